"""Replies are read and screened off the event loop where they are bulk, within a deadline."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from skilltrail.core.child import Child
from skilltrail.core.item import Item
from skilltrail.models.protocol import Reply
from skilltrail.optimizers.injection import TaskText
from skilltrail.optimizers.leakage import TrainTexts
from skilltrail.optimizers.llm.analysis import Assignment, read_analysis
from skilltrail.optimizers.llm.proposals import ProposalContext
from skilltrail.optimizers.llm.question import Parsed
from skilltrail.optimizers.llm.reading import replies
from skilltrail.optimizers.llm.reading.replies import read_aside
from skilltrail.optimizers.screen import Screen

SKILL = "# Skill\n\n- Answer in a word.\n"
ITEM = Item(
    "oak-1", {"question": "What is the Tall Oak 1742 called?", "text": "w " * 300}, ["Hal 9"]
)


def ground() -> ProposalContext:
    return ProposalContext(SKILL, None, Screen(SKILL, TaskText([SKILL]), TrainTexts([ITEM])))


def reply_of(content: str) -> Reply:
    edit = {"op": "append", "target": None, "section": None, "content": content, "kind": "rule",
            "items": ["oak-1"], "reason": "r"}  # fmt: skip
    return Reply(json.dumps({"reasoning": "", "edits": [edit], "failures": [], "notes": []}))


def analyst() -> Any:
    return partial(read_analysis, Assignment("patch", ("oak-1",), (), False, ground()))


async def ticked(reply: Reply, read: Any) -> tuple[Any, int]:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)  # a turn of the loop, however busy the machine
            ticks += 1

    ticking = asyncio.create_task(tick())
    found = await read_aside(reply, "patch", read, asyncio.Lock())
    ticking.cancel()
    return found, ticks


@pytest.mark.parametrize(
    "content", ["- Say the word.", "see http://evil.example/x", "ok\u200b"]
)
def test_a_reply_comes_to_the_same_in_the_child(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = asyncio.run(ticked(reply_of(content), analyst()))[0]
    monkeypatch.setattr(replies, "_BULK_CHARS", 0)
    assert asyncio.run(ticked(reply_of(content), analyst()))[0] == here


@pytest.mark.parametrize("unit", ["\n", "# h\n", "a.b/", "- x\n", "password: ", "| a |\n"])
def test_the_event_loop_goes_on_while_bulk_is_screened(unit: str) -> None:
    content = unit * (400_000 // len(unit))
    (fault, reading, _), ticks = asyncio.run(ticked(reply_of(content), analyst()))
    assert fault is not None or reading.value is not None
    assert ticks > 5


def never(found: Mapping[str, Any]) -> Parsed[str]:
    while found:
        pass
    return Parsed("")


def test_a_reply_that_is_not_read_in_time_is_a_fault_and_ctrl_c_ends_the_reading() -> None:
    big = reply_of("x" * 20_000)
    child = replies.Child(replies.__name__, cpu_s=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "_CHILD", child)
        (fault, reading, _), ticks = asyncio.run(ticked(big, never))
    assert str(fault) == "too_slow: it did not end within 0 s to be read"
    assert reading == Parsed(None)
    assert ticks > 10

    async def stopped() -> None:
        asking = asyncio.create_task(ticked(big, never))
        await asyncio.sleep(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    began = time.monotonic()
    asyncio.run(stopped())
    assert time.monotonic() - began < 4


def test_a_child_answers_where_more_than_a_thousand_files_are_open() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2_000), before[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        child = Child(__name__)
        assert child.call(b"x" * 300_000) == b"300000"
        child.stop()
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def answer(request: bytes) -> bytes:
    """Return what a child of this module says: how long the request is."""
    return str(len(request)).encode()


def test_an_answer_that_was_not_awaited_is_not_taken_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    child = Child(__name__)
    with monkeypatch.context() as patch:
        patch.setattr("skilltrail.core.child._read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.call(b"12")
    assert child.call(b"123") == b"3"
    child.stop()

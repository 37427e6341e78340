"""Candidates are built in time, off the event loop where they are bulk, and can be stopped."""

from __future__ import annotations

import asyncio
import subprocess
import time
from functools import partial
from pathlib import Path

import golden_runs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_script import MemoryFacts

from skilltrail.core.child import Child
from skilltrail.core.errors import SkilltrailError
from skilltrail.skill import alignment, building
from skilltrail.skill.alignment import comparable
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.building import built
from skilltrail.skill.candidate import Candidate, align
from skilltrail.skill.document import split_lines, unified_diff
from skilltrail.skill.edit import Edit
from skilltrail.skill.rewrite import rewrite

SKILL = "# Trees\n\n" + "".join(f"- know tree {n}\n" for n in range(20_000))
EDITS = [
    Edit("replace", target=f"- know tree {n * 9} well", content="- know it", id=f"3.{n}")
    for n in range(20)
]
Lines = st.lists(st.sampled_from(["a", "b", "c", "", "d"]), max_size=30)


def between(strange: str, common: int, count: int) -> str:
    """Return a text in which lines that are common stand between strange ones."""
    return "".join(f"{strange}{n}\n- rule {n % common}\n" for n in range(count))


def test_two_texts_of_common_lines_between_strange_ones_are_compared_in_time() -> None:
    old, new = between("u", 60, 6_000), between("v", 60, 6_000)
    begin = time.process_time()
    candidate = rewrite(old, new, "7.0")
    assert candidate.diff.count("\n") > 12_000
    assert time.process_time() - begin < 10


@given(Lines, Lines)
def test_lines_that_are_compared_in_time_are_paired_in_order_where_they_are_equal(
    old: list[str], new: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MOST_LOOKS", -1)
        assert [list(map(str, side)) for side in comparable(old, new)] == [old, new]
        at = to = 0
        for a, b, length in align(old, new):
            assert a >= at
            assert b >= to
            assert old[a : a + length] == new[b : b + length]
            at, to = a + length, b + length


def test_a_diff_of_texts_that_take_long_is_one_that_git_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alignment, "MOST_LOOKS", -1)
    old = between("u", 3, 40)
    new = old.replace("u7\n", "w7\n").replace("- rule 1\nu20\n", "") + "- last\n"
    (tmp_path / "skill.md").write_text(old, encoding="utf-8")
    diff = unified_diff(old, new)
    assert len(diff) < len(old)
    subprocess.run(
        ["git", "apply"], cwd=tmp_path, input=diff.encode(), check=True, capture_output=True
    )
    assert (tmp_path / "skill.md").read_text("utf-8") == new


def ticking(make: partial[Candidate]) -> tuple[Candidate, int]:
    """Return what is built, and how many turns the loop had meanwhile."""

    async def both() -> tuple[Candidate, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        turning = asyncio.create_task(tick())
        found = await built(make, "it")
        turning.cancel()
        return found, ticks

    return asyncio.run(both())


def test_bulk_is_built_off_the_event_loop_and_comes_to_the_same() -> None:
    make = partial(apply_edits, SKILL, EDITS)
    here = make()
    found, ticks = ticking(make)
    assert ticks > 5
    assert found == here
    assert vars(found)["diff"] == here.diff
    assert vars(found)["faults"] == here.faults
    assert split_lines(found.text) == split_lines(here.text)


def test_what_is_small_is_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_CHILD", None)
    found, _ = ticking(partial(apply_edits, "# T\n", [Edit("append", content="- a", id="3.0")]))
    assert found.text == "# T\n- a\n"


def without_end(text: str) -> Candidate:
    while text:
        pass
    return apply_edits(text, ())


def test_a_candidate_that_is_not_built_in_time_is_named_and_ctrl_c_ends_the_building(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "_CHILD", Child(building.__name__, cpu_s=0))
    make = partial(without_end, SKILL)
    with pytest.raises(SkilltrailError, match="Building the candidate of event 7: it did not"):
        asyncio.run(built(make, "the candidate of event 7"))

    async def stopped() -> None:
        task = asyncio.create_task(built(make, "it"))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(building, "_CHILD", Child(building.__name__))
    began = time.monotonic()
    asyncio.run(stopped())
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("name", ["patch", "suggestions", "documents", "slow", "notes"])
def test_a_run_whose_candidates_are_built_aside_has_the_same_log(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def log(folder: str) -> list[bytes]:
        run = golden_runs.train(
            name, tmp_path / folder, MemoryFacts(), golden_runs.script(name)
        )
        return [event.line for event in run.recorder.events]

    here = log("here")
    monkeypatch.setattr(building, "_BULK_BYTES", 0)
    assert log("aside") == here

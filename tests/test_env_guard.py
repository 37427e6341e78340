"""Scorers that hang or raise: stopped, told by item, file and line; the loop goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.child import wants_turn
from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.served import Served
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Where
from skilltrail.envs.scoring import Queue, ScorerChild, by_rule, by_rule_aside, metric_means
from tests.env_world import env_of
from tests.fault_server import Answer, FaultServer
from tests.model_world import project
from tests.toy_world import ToyEnvironment, items_of

ROOT = Path(__file__).resolve().parents[1]
HANGING = [r"^(\w+\s?)*$", r"^(a|aa)+$", r"^([a-z]+)*\d$", r"(x+x+)+y"]
BAIT = "a" * 60 + "!" + "x" * 60


def said(text: str) -> Trajectory:
    return Trajectory((), text)


def pattern_item(pattern: str, **fields: Any) -> Item:
    record = {"id": "till-9", "question": "q", "answers": [pattern], "scorer": "regex"}
    return env_of("qa").parse({**record, **fields}, Where("tills.jsonl", 7))


@pytest.fixture(scope="module")
def brief() -> ScorerChild:
    return ScorerChild(cpu_s=0)


@pytest.mark.parametrize("pattern", HANGING)
def test_a_pattern_that_hangs_makes_the_item_invalid_by_id(
    brief: ScorerChild, pattern: str
) -> None:
    env = env_of("qa")
    with pytest.raises(DataError, match=r"item 'till-9'.*invalid: it did not end within"):
        by_rule(env, pattern_item(pattern), said(BAIT), brief)
    assert by_rule(env, pattern_item("^a+$"), said("aaa"), brief).hard == 1.0


@pytest.mark.parametrize("op", ["regex", "not_regex"])
def test_a_check_whose_pattern_hangs_is_stopped_too(brief: ScorerChild, op: str) -> None:
    fields = {"scorer": None, "answers": None, "checks": [{"op": op, "arg": HANGING[0]}]}
    with pytest.raises(DataError, match=r"'till-9'.*invalid"):
        by_rule(env_of("qa"), pattern_item("", **fields), said(BAIT), brief)


def test_the_event_loop_goes_on_while_a_pattern_hangs() -> None:
    ticks = 0

    async def watch() -> None:
        nonlocal ticks
        env, item, turn = env_of("qa"), pattern_item(HANGING[0]), Queue()
        scoring = asyncio.create_task(by_rule_aside(env, item, said(BAIT), turn))
        began = time.monotonic()
        while time.monotonic() - began < 0.6:
            await asyncio.sleep(0.01)
            ticks += 1
        scoring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scoring

    began = time.monotonic()
    asyncio.run(watch())
    assert ticks > 15
    assert time.monotonic() - began < 4  # and nothing waits for the pattern


def test_a_score_in_the_child_is_the_score_in_place() -> None:
    env, item = env_of("qa"), pattern_item(r"\d+ (?=metres)")
    for answer in ("120 metres", "120 feet", "", "\ud800", "ß" * 10):
        clean = answer.encode("utf-8", "replace").decode()
        assert by_rule(env, item, said(clean)) == env.score(item, said(clean))
    checked = pattern_item("", scorer=None, checks=[{"op": "regex", "arg": "a"}], answers=None)
    assert metric_means(env, [(checked, said("a"))]) == {"content_checks": 1.0}


def test_bulk_is_scored_in_the_child_and_in_linear_time() -> None:
    env = env_of("searchqa")
    record = {
        "id": "big",
        "question": "Who?",
        "context": "the a b " * 1_250_000,
        "answers": ["z"],
    }
    item = env.parse(record, Where("big.jsonl", 1))
    began = time.process_time()
    assert by_rule(env, item, said("a b " * 2000)).hard == 0.0
    assert time.process_time() - began < 2  # of this process: the loop is free meanwhile


def test_what_was_scored_is_not_scored_again_whichever_model_answered(
    brief: ScorerChild,
) -> None:
    env, item = env_of("qa"), pattern_item("^b+$")
    first = by_rule(env, item, said("bbb"), brief)
    brief.stop()
    assert brief.knows(env.name, env.params, "score", item, said("bbb"))
    other = replace(said("bbb"), served=(Served("m", "print-2"),))
    assert by_rule(env, item, other, brief) == first
    assert not brief.knows(env.name, env.params, "score", item, said("bb"))
    assert by_rule(env, pattern_item("^b$"), said("bbb"), brief) != first


def test_a_child_that_waits_for_its_turn_is_told_from_one_that_sleeps() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as sleeper:
        until = time.monotonic() + 30
        while wants_turn(sleeper.pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert not wants_turn(sleeper.pid)
        assert sleeper.stdin is not None
        sleeper.stdin.close()
    assert wants_turn(os.getpid())
    assert not wants_turn(2**22 + 1)


class Raising(ToyEnvironment):
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return Score.scored(float(trajectory.extra["missing"]))


def test_a_scorer_that_raises_names_item_file_and_line() -> None:
    item = Item("oak", {"word": "oak"}, "oak", place="data/splits/train.jsonl, line 4")
    with pytest.raises(DataError) as caught:
        by_rule(Raising(), item, said("oak"))
    text = str(caught.value)
    assert "item 'oak' (data/splits/train.jsonl, line 4)" in text
    assert "KeyError: 'missing' (tests/test_env_guard.py, line " in text
    assert items_of("train")[0].place == ""


@pytest.fixture
def scored_by_pattern(tmp_path: Path) -> Any:
    """A project whose items hold a pattern that hangs over what the model says."""
    with FaultServer(say=lambda call: Answer(f"<answer>{'a' * 60}!</answer>")) as server:
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1", "max_tokens": 32}  # fmt: skip
        skill = {"seed": "skills/seeds/textqa.md"}
        project(tmp_path, target, items=2, env="qa", skill=skill)
        for path in (tmp_path / "data/small").glob("*.jsonl"):
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            kept = [
                {"id": r["id"], "question": r["question"], "context": r["context"],
                 "answers": [HANGING[0]], "scorer": "regex"} for r in rows
            ]  # fmt: skip
            for row in kept:
                row["answers"] = [r"^(\w+\s?)*!!$"]  # which no empty answer passes
            path.write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")
        assert stage(tmp_path, "split").wait(60) == 0
        yield tmp_path, server


def stage(folder: Path, name: str) -> subprocess.Popen[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "DVC_ROOT"}
    return subprocess.Popen(
        [sys.executable, "-m", f"stages.{name}"],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_stops_a_run_whose_scorer_hangs(
    scored_by_pattern: tuple[Path, FaultServer],
) -> None:
    folder, server = scored_by_pattern
    running = stage(folder, "train")
    until = time.monotonic() + 60
    while not server.calls and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)  # the reply is being scored now
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = running.communicate(timeout=30)
    assert running.returncode == 75, err
    assert time.monotonic() - began < 4
    assert "Stopped by SIGINT" in err


def test_a_run_over_a_hanging_pattern_ends_and_so_does_its_rerun(
    scored_by_pattern: tuple[Path, FaultServer],
) -> None:
    folder, server = scored_by_pattern
    for _ in range(2):
        running = stage(folder, "train")
        _, err = running.communicate(timeout=90)
        assert running.returncode == 2, err
        assert "data/splits/selection.jsonl, line" in err
        assert "invalid: it did not end within 5 s" in err
    assert len(server.calls) <= 4  # the stored replies were used again

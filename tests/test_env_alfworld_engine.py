"""ALFWorld's real engine plays our own games and, where they are at hand, the official ones.

Without the engine these tests skip; `make test-alfworld` installs it and plays all 77 official
games (minutes), where a plain run plays one of each task type.
"""

from __future__ import annotations

import asyncio
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from env_world import ROOT, WHERE, roll, scripted

from skilltrail.cli.commands.start.envs import contract_checks
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import Item
from skilltrail.envs.alfworld.engine import TextWorldEngine, WorldState, missing
from skilltrail.envs.alfworld.env import Alfworld, AlfworldLimits, AlfworldParams
from skilltrail.envs.alfworld.games import TASK_TYPES

pytestmark = pytest.mark.skipif(
    bool(missing()), reason=f"`make setup-alfworld` installs the engine; missing: {missing()}"
)
OWN = ROOT / "data" / "alfworld"
SHARED = Path(os.environ.get("SKILLTRAIL_SHARED", ROOT.parent / "shared"))
REAL = SHARED / "data" / "alfworld"
ALL = os.environ.get("SKILLTRAIL_ALFWORLD") == "all"
ENGINE = TextWorldEngine(120)


def own_records() -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for split in ("train", "selection", "test")
        for line in (OWN / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def own_item(id: str, **params: Any) -> tuple[Alfworld, Item]:
    env = Alfworld(AlfworldParams(data_dirs=(str(OWN),), **params))
    record = next(record for record in own_records() if record["id"] == id)
    return env, env.parse(record, WHERE)


def real_records() -> list[dict[str, Any]]:
    """Return the official games that are played here: all, or the first of each task type."""
    if not REAL.is_dir():
        return []
    records = json.loads((REAL / "index.json").read_text(encoding="utf-8"))
    first = {record["task_type"]: record for record in reversed(records)}
    return list(records) if ALL else list(first.values())


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    with tarfile.open(REAL / "games.tar.xz") as archive:
        for member in archive.getmembers():
            if member.isreg():
                archive.extract(member, folder)
    return folder


def says(*commands: str) -> Any:
    return scripted([f" {command}" for command in commands], style="completion")


def states(
    path: Path, task: str | None, commands: Sequence[str], steps: int
) -> list[WorldState]:
    """Send commands to a game as they are and return what it says, its first state first."""

    async def play() -> list[WorldState]:
        game, first = await ENGINE.open(path, task, steps)
        try:
            return [first, *[await game.step(command) for command in commands]]
        finally:
            await game.close()

    return asyncio.run(play())


@pytest.mark.parametrize("id", [record["id"] for record in own_records()])
def test_a_walkthrough_of_our_own_games_wins_in_as_many_steps(id: str) -> None:
    env, item = own_item(id)
    done = roll(env, item, says(*item.extra["walkthrough"]))
    assert (env.score(item, done).hard, done.ending) == (1.0, "answered")
    assert done.extra["steps"] == len(item.extra["walkthrough"])
    assert str(item.input["task"]) in str(done.turns[0].sent)


@pytest.mark.skipif(not REAL.is_dir(), reason=f"the official games are not at {REAL}")
@pytest.mark.parametrize("record", real_records(), ids=lambda record: str(record["id"]))
def test_a_walkthrough_of_the_official_games_wins(record: dict[str, Any], games: Path) -> None:
    env = Alfworld(AlfworldParams(data_dirs=(str(games),)))
    item = env.parse(record, WHERE)
    done = roll(env, item, says(*record["walkthrough"]))
    assert env.score(item, done).hard == 1.0
    assert done.extra["steps"] == len(record["walkthrough"])
    assert item.task_type in TASK_TYPES


@pytest.mark.skipif(not ALL, reason="plays some fifty games: `make test-alfworld`")
def test_the_environment_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert [check for check in contract_checks(ROOT, "alfworld") if check.verdict != "ok"] == []


def test_without_its_last_command_a_walkthrough_does_not_win() -> None:
    env, item = own_item("own:pick-1", limits=AlfworldLimits(turns=5))
    way = item.extra["walkthrough"]
    done = roll(env, item, says(*way[:-1], "look"))
    assert (env.score(item, done).hard, done.ending) == (0.0, "out_of_turns")


def test_the_last_step_may_win() -> None:
    env, item = own_item("own:pick-1", limits=AlfworldLimits(turns=5))
    assert len(item.extra["walkthrough"]) == 5
    done = roll(env, item, says(*item.extra["walkthrough"]))
    assert env.score(item, done).hard == 1.0


def test_fifty_looks_do_not_win() -> None:
    env, item = own_item("own:pick-1")
    done = roll(env, item, says(*["look"] * 50))
    assert (env.score(item, done).hard, len(done.turns)) == (0.0, 50)


def test_a_wrong_verb_and_upper_case_change_nothing_and_cost_a_step() -> None:
    _, item = own_item("own:pick-1")
    way = item.extra["walkthrough"]
    wrong = ["put cup 1 in/on shelf 1", "put cup 1 in shelf 1", way[-1].upper()]
    path = OWN / "problems" / "pick-1.pddl"
    found = states(path, item.input["task"], [*way[:-1], *wrong, way[-1]], 50)
    assert [state.text for state in found[-4:-1]] == ["Nothing happens."] * 3
    assert not any(state.won for state in found[:-1])
    assert found[-1].won


def test_a_state_has_the_commands_that_are_possible() -> None:
    _, item = own_item("own:pick-1")
    first, second = states(
        OWN / "problems" / "pick-1.pddl", item.input["task"], ["go to cabinet 1"], 50
    )
    assert "go to cabinet 1" in first.admissible
    assert "open cabinet 1" in second.admissible
    assert list(second.admissible) == sorted(second.admissible)


def test_the_same_game_played_twice_says_the_same() -> None:
    env, item = own_item("own:two-1")
    way = item.extra["walkthrough"]
    first, second = (roll(env, item, says(*way)) for _ in range(2))
    assert first == second


def test_a_file_that_is_no_game_ends_with_the_engines_own_words(tmp_path: Path) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(SkilltrailError, match="the game engine ended.*KeyError"):
        states(path, None, [], 5)

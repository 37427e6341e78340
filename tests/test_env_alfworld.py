"""The environment `alfworld` with an engine of our own: replies, prompts, limits, items."""

from __future__ import annotations

import asyncio
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.errors import DataError, SkilltrailError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.alfworld.actions import command_in, first_line, is_well_formed
from skilltrail.envs.alfworld.engine import Game, WorldState, missing
from skilltrail.envs.alfworld.env import Alfworld, AlfworldLimits, AlfworldParams
from skilltrail.envs.alfworld.games import TASK_TYPES, records_below
from skilltrail.envs.protocol import Where
from skilltrail.models.protocol import Reply, Request

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SKILLTRAIL_SHARED", ROOT.parent / "shared"))
REAL = SHARED / "data" / "alfworld"
WHERE = Where("items.jsonl", 1)
needs_real_games = pytest.mark.skipif(
    not REAL.is_dir(), reason=f"the real ALFWorld games are not at {REAL}"
)
FIRST = (
    "-= Welcome to TextWorld, ALFRED! =-\n\n"
    "You are in the middle of a room. You see a shelf 1.\n\n"
    "Your task is to: put a cup in shelf 1."
)
WAY = ("go to cabinet 1", "take cup 1 from cabinet 1", "move cup 1 to shelf 1")


class TinyGame:
    """A game that is won by `WAY`, in this order; anything else changes nothing."""

    def __init__(self) -> None:
        self.done = 0
        self.closed = False

    async def step(self, command: str) -> WorldState:
        if command != WAY[self.done]:
            return WorldState("Nothing happens.", WAY)
        self.done += 1
        return WorldState(f"You did {command}.", WAY, self.done == len(WAY))

    async def close(self) -> None:
        self.closed = True


class TinyEngine:
    def __init__(self) -> None:
        self.games: list[TinyGame] = []

    async def open(
        self, path: Path, task: str | None, most_steps: int
    ) -> tuple[Game, WorldState]:
        self.games.append(TinyGame())
        return self.games[-1], WorldState(FIRST, WAY)


class Scripted:
    """A model that gives prepared replies in turn, the last one for ever."""

    identity: Mapping[str, Any] = {"backend": "scripted"}
    workers = 1
    abilities: frozenset[str] = frozenset()

    def __init__(self, *replies: str | Reply, style: str = "chat") -> None:
        self.style = style
        self._replies = list(replies)
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return Reply(reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        """Nothing is held."""


def act(command: str) -> str:
    return f"<think>so</think><action>{command}</action>"


def own_items(split: str) -> list[Item]:
    folder = ROOT / "data" / "alfworld"
    env = Alfworld(AlfworldParams(data_dirs=(str(folder),)))
    lines = (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [env.parse(json.loads(line), WHERE) for line in lines]


def play(model: Scripted, **params: Any) -> tuple[Alfworld, Item, Trajectory, TinyEngine]:
    engine = TinyEngine()
    folder = str(ROOT / "data" / "alfworld")
    env = Alfworld(AlfworldParams(data_dirs=(folder,), **params), engine)
    item = own_items("train")[0]
    return env, item, asyncio.run(env.rollout(item, "# Skill", model)), engine


# --- replies ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "command"),
    [
        ("<think>x</think><action>Go to Desk 1</action>", "go to desk 1"),
        ("<ACTION> look </ACTION>", "look"),
        ("<action>one</action><action>two</action>", "one"),
        ("I will now go and then take cup 1 from cabinet 1", "then take cup 1 from cabinet 1"),
        ("look", "look"),
    ],
)
def test_the_command_is_in_the_tags_or_at_the_end(reply: str, command: str) -> None:
    assert command_in(reply) == command


def test_a_completion_is_its_first_line() -> None:
    assert first_line("\n > Go to desk 1\nYou are") == "go to desk 1"
    assert first_line("") == ""


@pytest.mark.parametrize(
    ("reply", "well"),
    [
        (act("look"), True),
        ("<action>look</action>", False),
        ("look", False),
        ("<think>好</think><action>look</action>", False),
    ],
)
def test_a_reply_without_thinking_or_with_cjk_is_badly_formed(reply: str, well: bool) -> None:
    assert is_well_formed(reply) is well


# --- the agent ----------------------------------------------------------------------------


def test_the_commands_of_the_walkthrough_win() -> None:
    env, item, done, engine = play(Scripted(*map(act, WAY)))
    assert (env.score(item, done).hard, done.ending) == (1.0, "answered")
    assert done.extra == {"won": True, "steps": 3, "badly_formed": 0}
    assert engine.games[0].closed
    assert Trajectory.from_json(json.loads(json.dumps(done.to_json()))) == done


def test_the_last_step_may_win() -> None:
    env, item, done, _ = play(Scripted(*map(act, WAY)), limits=AlfworldLimits(turns=3))
    assert env.score(item, done).hard == 1.0


def test_one_command_less_does_not_win() -> None:
    env, item, done, _ = play(
        Scripted(*map(act, WAY[:2]), act("look")), limits=AlfworldLimits(turns=5)
    )
    score = env.score(item, done)
    assert (score.hard, score.reason) == (0.0, "out_of_turns")
    assert env.catalogue.type_of(score) == "out_of_turns"


def test_fifty_looks_do_not_win() -> None:
    env, item, done, _ = play(Scripted(act("look")))
    assert len(done.turns) == 50
    assert env.score(item, done).hard == 0.0


def test_a_command_that_the_game_does_not_take_costs_a_step() -> None:
    _, _, done, _ = play(Scripted(act("put cup 1 in/on shelf 1"), *map(act, WAY)))
    assert done.turns[0].observation == "Nothing happens."
    assert done.extra["steps"] == 4


def test_the_prompt_has_task_room_commands_and_a_window_of_history() -> None:
    model = Scripted(act("look"), act("look"), *map(act, WAY))
    play(model, history_length=1)
    first, _, third = (request.messages[0].parts[0].text for request in model.asked[:3])
    assert model.asked[0].system == "# Skill"
    assert "Your task is to: put a cup in shelf 1." in first
    assert "Welcome" not in first
    assert WAY[0] in first
    assert third.count("> look") == 1


def test_commands_can_be_left_out_of_the_prompt() -> None:
    model = Scripted(*map(act, WAY))
    play(model, admissible=False)
    assert WAY[0] not in model.asked[0].messages[0].parts[0].text


def test_a_completion_model_goes_on_after_the_prompt_sign() -> None:
    model = Scripted(*(f" {command}" for command in WAY), style="completion")
    env, item, done, _ = play(model)
    assert env.score(item, done).hard == 1.0
    assert str(model.asked[0].prompt).endswith("\n>")
    assert model.asked[0].decoding.stop == ("\n",)


def test_a_refusal_ends_the_game() -> None:
    _, _, done, engine = play(Scripted(Reply("no", finish="refusal")))
    assert done.ending == "refused"
    assert engine.games[0].closed


# --- items --------------------------------------------------------------------------------


def test_our_own_games_cover_every_task_type() -> None:
    items = [item for split in ("train", "selection", "test") for item in own_items(split)]
    assert sorted(str(item.task_type) for item in items) == sorted(TASK_TYPES)
    env = Alfworld()
    assert str(env.example(items[0])).startswith(
        "Your task is to: put a cup in shelf.\n> go to"
    )
    assert str(env.reference(items[0])).endswith("move cup 1 to shelf 1")


def test_records_are_made_from_game_files_alone(tmp_path: Path) -> None:
    name = "json_2.1.1/train/look_at_obj_in_light-CD-None-DeskLamp-304/trial_T1/game.tw-pddl"
    (tmp_path / name).parent.mkdir(parents=True)
    game = {"pddl_domain": "", "grammar": "", "pddl_problem": "", "walkthrough": []}
    (tmp_path / name).write_text(json.dumps(game), encoding="utf-8")
    (record,) = records_below(tmp_path)
    item = Alfworld(AlfworldParams(data_dirs=(str(tmp_path),))).parse(record, WHERE)
    assert (item.task_type, item.extra["file"]) == ("look_at_obj_in_light", name)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"id": "a", "gamefile": "absent.tw-pddl"}, "gamefile"),
        ({"id": "a", "gamefile": "../../etc/passwd"}, "gamefile"),
        ({"id": "a"}, "gamefile"),
        ({"id": "a", "problem": "problems/pick-1.pddl"}, "task"),
        ({"id": "a", "problem": "problems/pick-1.pddl", "task": "x"}, "task_type"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(record: dict[str, Any], field: str) -> None:
    env = Alfworld(AlfworldParams(data_dirs=(str(ROOT / "data" / "alfworld"),)))
    with pytest.raises(DataError, match=f"line 1, field '{field}'"):
        env.parse(record, WHERE)


@pytest.mark.parametrize("text", ["{broken", "[]", '{"pddl_domain": ""}', ""])
def test_a_damaged_game_file_is_named_with_a_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "game.tw-pddl").write_text(text, encoding="utf-8")
    record = {"id": "a", "gamefile": "game.tw-pddl", "task_type": TASK_TYPES[0]}
    with pytest.raises(DataError, match="line 1, field 'gamefile'") as caught:
        Alfworld(AlfworldParams(data_dirs=(str(tmp_path),))).parse(record, WHERE)
    assert caught.value.remedy


@needs_real_games
def test_the_real_games_load(tmp_path: Path) -> None:
    with tarfile.open(REAL / "games.tar.xz") as archive:
        for member in archive.getmembers():
            if member.isreg():
                archive.extract(member, tmp_path)
    env = Alfworld(AlfworldParams(data_dirs=(str(tmp_path),)))
    records = json.loads((REAL / "index.json").read_text(encoding="utf-8"))
    items = [env.parse(record, WHERE) for record in records]
    assert len(items) == 77
    assert {item.task_type for item in items} == set(TASK_TYPES)
    assert len(list(records_below(tmp_path))) == 77


@pytest.mark.skipif(not missing(), reason="the engine is installed here")
def test_without_the_engine_it_says_how_to_install_it() -> None:
    env = Alfworld(AlfworldParams(data_dirs=(str(ROOT / "data" / "alfworld"),)))
    item = own_items("train")[0]
    with pytest.raises(SkilltrailError, match="make setup-alfworld"):
        asyncio.run(env.rollout(item, "", Scripted("x")))

"""The contract check passes our environments and finds what is wrong with broken ones."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from env_world import OURS, ROOT, WHERE, env_of, own_items

from skilltrail.cli.checks import FAULT
from skilltrail.cli.commands.start.envs import contract_checks
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs._template.env import Template
from skilltrail.envs.contract.contract import check_contract, parser_of
from skilltrail.envs.contract.fakes import FakeModel
from skilltrail.envs.registry import environment_class, environment_names
from skilltrail.models.errors import ModelError
from skilltrail.models.judge import Case
from skilltrail.models.protocol import Model, Request

RECORD = {"id": "1", "question": "What is 6 plus 7?", "answers": ["13"]}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", [*OURS, "textqa", "spreadsheet", "triggering", "inspect"])
def test_our_environments_keep_the_contract(name: str) -> None:
    found = contract_checks(ROOT, name)
    lacking = [check for check in found if check.verdict == FAULT and "install" in check.remedy]
    if lacking:
        pytest.skip(f"{lacking[0].name}: {lacking[0].found}")
    assert [check for check in found if check.verdict == FAULT] == []


@pytest.mark.parametrize("name", environment_names())
def test_every_environment_can_be_trained_by_the_default_optimizer(name: str) -> None:
    """`-S env=NAME` alone must start."""
    env = environment_class(name)()
    assert env.supports_rules
    assert env.catalogue.types
    for one in own_items(name):
        assert env.traits(one.item)


def test_each_of_ours_can_teach_from_its_own_items() -> None:
    for name in OURS:
        params: dict[str, Any] = {"oracle": True} if name == "officeqa" else {}
        env = env_of(name, **params)
        examples = [env.example(one.item) for one in own_items(name, **params)]  # type: ignore[attr-defined]
        assert sum(example is not None for example in examples) > len(examples) / 2


def broken(environment: Any) -> set[str]:
    """Return the names of the checks that an environment fails."""
    item = environment.parse(RECORD, WHERE)
    found = check_contract(environment, [item], parser_of(environment, RECORD, WHERE))
    return {one.name for one in found if not one.sound}


def test_the_template_keeps_the_contract() -> None:
    assert broken(Template()) == set()


def test_what_is_put_to_a_judge_is_part_of_the_contract() -> None:
    env = env_of("qa", scorer="judge")
    found = {one.name: one for one in check_contract(env, [env.parse(RECORD, WHERE)])}
    assert all(one.sound for one in found.values())
    assert "a judge's to score" in found["judge"].found


class Moody(Template):
    """Shows the judge something else each time."""

    count = itertools.count()

    def needs_judge(self, item: Item) -> bool:
        return True

    def case(self, item: Item, trajectory: Trajectory) -> Case:
        return Case(f"task {next(self.count)}", trajectory.answer)


class Leaking(Template):
    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        prompt = f"{item.input['question']} Is it {item.gold[0]}?"
        reply = await target.complete(Request(system=skill, prompt=prompt))
        return Trajectory((Turn(prompt, reply.text),), reply.text, _ending(reply.finish))


class Showing(Template):
    def parse(self, record: Any, where: Any) -> Item:
        item = super().parse(record, where)
        return Item(item.id, {**item.input, "answers": item.gold}, item.gold)


class Forgetful(Template):
    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        return await super().rollout(item, "", target)


class Restless(Template):
    count = itertools.count()

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        skill = f"{skill}\n{next(self.count)} {time.monotonic_ns()}"
        return await super().rollout(item, skill, target)


class Picky(Template):
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        if not trajectory.answer.strip():
            return Score.invalid("no answer")
        return super().score(item, trajectory)


class Fragile(Template):
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return Score.scored(float(int(trajectory.answer) == 13), reason="number")


class Swallowing(Template):
    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        try:
            return await super().rollout(item, skill, target)
        except ModelError:
            return Trajectory((Turn("", ""),), "")


class Endless(Template):
    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        while True:
            reply = await target.complete(Request(system=skill, prompt="next"))
            if "CALL" not in reply.text and not reply.tool_calls:
                return Trajectory(
                    (Turn("next", reply.text),), reply.text, _ending(reply.finish)
                )


class Counting(Template):
    def parse(self, record: Any, where: Any) -> Item:
        item = super().parse(record, where)
        return Item("x" + str(len(item.id)), item.input, item.gold)


class Filing(Template):
    folder = Path()

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        place = self.folder / item.id[:100]
        if place.parent.is_dir() and not place.is_dir():
            place.write_text("notes", encoding="utf-8")
        return await super().rollout(item, skill, target)


def _ending(finish: str) -> str:
    return "refused" if finish == "refusal" else "answered"


@pytest.mark.parametrize(
    ("made", "check"),
    [
        (Leaking, "no gold in prompts"),
        (Showing, "items"),
        (Forgetful, "rollouts"),
        (Restless, "repeatable"),
        (Moody, "judge"),
        (Picky, "scores"),
        (Fragile, "scores"),
        (Swallowing, "failures"),
        (Endless, "limits"),
        (Counting, "ids"),
    ],
)
def test_a_broken_environment_fails_the_check_that_names_it(made: Any, check: str) -> None:
    assert check in broken(made())


def test_a_file_named_by_an_id_is_found(tmp_path: Path) -> None:
    made = Filing()
    made.folder = tmp_path / "inside"  # type: ignore[misc]
    made.folder.mkdir()
    assert "ids" in broken(made)


def test_environments_are_folders_and_the_template_is_none() -> None:
    assert set(OURS) <= set(environment_names())
    assert "_template" not in environment_names()


def test_fake_models_are_models() -> None:
    model: Model = FakeModel()
    assert model.workers == 1

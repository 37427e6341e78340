"""What the contract check works with: fake models, strange inputs, and a watch on files."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.models.errors import ModelError
from skilltrail.models.protocol import Model, Reply, Request

SENTINEL = "Sentinel line 7391 of the skill."
SKILL = f"# Skill of the contract check\n\n- {SENTINEL}\n"
STRANGE_IDS = (
    "../../x",
    "CON",
    "i" * 300,
    "\U0001f9ea id",
    "17",
    "a/b\\c:*?",
    "id\twith\ttabs",
)
STRANGE_ANSWERS = (
    "",
    " \n ",
    "\x00",
    "\u2028 \U0001f600",
    "((((" * 500,
    "9" * 5000,
    "x" * 20000,
)
MAX_CALLS = 1000


class Broken(Exception):
    """The contract is broken; `str(error)` says how, `remedy` what to do."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(found)
        self.remedy = remedy


def require(condition: bool, found: str, remedy: str) -> None:
    """Raise `Broken` unless a condition holds."""
    if not condition:
        raise Broken(found, remedy)


def answer_always(reply: Reply) -> Callable[[int], Reply]:
    """Return the answers of a model that says the same thing every turn."""
    return lambda turn: reply


@dataclass
class FakeModel:
    """A plain-function model that remembers what it was asked."""

    style: str = "completion"
    abilities: frozenset[str] = frozenset()
    answer: Callable[[int], Reply] = answer_always(Reply("Answer 42"))
    fails: ModelError | None = None
    workers: int = 1
    requests: list[Request] = field(default_factory=list)
    identity: Mapping[str, Any] = field(default_factory=lambda: {"backend": "fake"})

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        found = f"more than {MAX_CALLS} calls for one item"
        require(len(self.requests) <= MAX_CALLS, found, "Limit the agent's turns")
        return self.answer(len(self.requests) - 1)

    async def close(self) -> None:
        """Nothing is held."""


def useful_models(environment: Environment, item: Item) -> Iterator[FakeModel]:
    """Yield a model of each kind that this environment can serve as it is set.

    An environment may refuse a kind of model in words (`SkilltrailError`); one must be left.
    """
    everything = frozenset({"schema", "tools", "vision"})
    served = 0
    for model in (FakeModel("completion"), FakeModel("chat"), FakeModel("chat", everything)):
        try:
            run(environment, item, model)
        except ModelError:
            raise
        except SkilltrailError:
            continue
        model.requests.clear()
        served += 1
        yield model
    require(served > 0, "no kind of model can be asked", "Serve chat or completion models")


def run(environment: Environment, item: Item, model: FakeModel) -> Trajectory:
    """Return the trajectory of one rollout by a fake model."""
    as_model: Model = model
    return asyncio.run(environment.rollout(item, SKILL, as_model))


def run_and_asked(
    environment: Environment, item: Item, model: FakeModel
) -> tuple[Trajectory, list[Any]]:
    """Return the trajectory of one rollout, and the requests it made as JSON."""
    model.requests.clear()
    trajectory = run(environment, item, model)
    return trajectory, [request.to_json() for request in model.requests]


class opened_files:
    """Collect the paths that this process opens, makes or renames while the block runs.

    An audit hook cannot be taken away again: one is added at most, and sleeps outside blocks.
    """

    _active: list[str] | None = None
    _hooked = False

    def __enter__(self) -> list[str]:
        if not opened_files._hooked:
            sys.addaudithook(opened_files._note)
            opened_files._hooked = True
        opened_files._active = []
        return opened_files._active

    def __exit__(self, *error: object) -> None:
        opened_files._active = None

    @staticmethod
    def _note(event: str, args: tuple[Any, ...]) -> None:
        active = opened_files._active
        if active is not None and event in ("open", "os.mkdir", "os.rename"):
            active.append(str(args[0]))

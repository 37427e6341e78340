"""Rollouts and scores by an environment's own code, whatever that code does.

What raises names item, file and line; a scorer that does not end makes the item `invalid`.
Scorers that may run long (`guarded`: patterns of data files, foreign code, bulk) do so in a
child process (`core.child`), off the event loop. Further
metrics of an environment are told by name: means over an evaluation's rollouts.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from skilltrail.core.child import CPU_S, WALL_S, Child, TimeUp, off_the_loop
from skilltrail.core.errors import DataError, SkilltrailError, raised_at
from skilltrail.core.item import Item
from skilltrail.core.score import InvalidScore, Outcome, Score, exact
from skilltrail.core.trajectory import WITHOUT_ANSWER, Trajectory
from skilltrail.envs.protocol import BrokenItem, Environment
from skilltrail.envs.registry import environment_class, is_foreign
from skilltrail.models.errors import TooLong
from skilltrail.models.protocol import Model

_KEPT = 250_000  # scores, of some 150 bytes each


class Raised(Exception):
    """The hook raised: `str(error)` says what and where."""


class ScorerChild:
    """The door to the child."""

    def __init__(self, cpu_s: int = CPU_S, wall_s: float = WALL_S) -> None:
        self._child = Child(__name__, cpu_s, wall_s)
        self._known: dict[bytes, str] = {}
        self.stop = self._child.stop

    def call(self, env: str, params: Any, hook: str, *args: Any) -> Any:
        """Return what a hook of an environment says: a score, or JSON.

        Raises:
            TimeUp: it took longer than allowed.
            Raised: it raised.
        """
        digest = _digest(env, params, hook, args)
        if digest in self._known:
            return _value(json.loads(self._known[digest]))
        asked = pickle.dumps((params, hook, args))
        text = self._child.call(pickle.dumps((os.getcwd(), env, asked)))
        said = json.loads(text)
        if "raised" in said:
            raise Raised(said["raised"])
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[digest] = sys.intern(text.decode())
        return _value(said)

    def knows(self, env: str, params: Any, hook: str, *args: Any) -> bool:
        """Return whether the hook said what it says of the same before: hooks are pure."""
        return bool(self._known) and _digest(env, params, hook, args) in self._known


GUARD = ScorerChild()


def _value(said: Mapping[str, Any]) -> Any:
    if "score" in said:
        return Score(**{**said["score"], "outcome": Outcome(said["score"]["outcome"])})
    return said["value"]


def _digest(env: str, params: Any, hook: str, args: tuple[Any, ...]) -> bytes:
    """Return a digest of a call; which model answered says nothing of what it said."""
    bare = [replace(one, served=()) if isinstance(one, Trajectory) else one for one in args]
    return blake2b(
        pickle.dumps((os.getcwd(), env, params, hook, bare)), digest_size=16
    ).digest()


def answer(request: bytes) -> bytes:
    """Return what the child is asked for, as JSON: foreign code may have had a hand in it."""
    workspace, name, asked = pickle.loads(request)
    try:
        os.chdir(workspace)
        environment = environment_class(name)  # its module is known now: params are of it
        params, hook, args = pickle.loads(asked)
        found = getattr(environment(params), hook)(*args)
        kind, value = ("score", asdict(found)) if isinstance(found, Score) else ("value", found)
        return json.dumps({kind: value}).encode()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (foreign: whatever it raises is told)
        return json.dumps({"raised": raised_at(error)}).encode()


_BULK_CHARS = 1_000_000  # texts beyond are scored in the child, however sound the scorer


async def rolled_out(env: Environment, item: Item, skill: str, target: Model) -> Trajectory:
    """Return what the agent did; a prompt that is too long for the target is its ending.

    Raises:
        ModelError: the infrastructure failed.
        DataError: the environment raised.
    """
    try:
        return await env.rollout(item, skill, target)
    except TooLong:
        return Trajectory((), "", ending="too_long")
    except (SkilltrailError, OSError):
        raise
    except (Exception, SystemExit) as error:  # foreign code
        asked, remedy = (
            f"{named(item)} cannot be rolled out",
            f"Fix the environment {env.name}",
        )
        raise DataError(asked, raised_at(error), remedy) from error


def by_rule(
    env: Environment, item: Item, trajectory: Trajectory, guard: ScorerChild = GUARD
) -> Score:
    """Return the score that the environment's own rule gives.

    Raises:
        BrokenItem: the item itself cannot be scored.
        DataError: the scorer raised, or what it says is no score.
    """
    if trajectory.ending in WITHOUT_ANSWER:
        return Score.scored(0.0, 0.0, trajectory.ending)
    score = asked(env.score, item, trajectory, guard)
    if not isinstance(score, Score):
        raise _unscored(
            env, item, f"invalid_score: expected a Score, found {type(score).__name__}"
        )
    if score.outcome is Outcome.INVALID:
        raise BrokenItem(
            f"{named(item)} cannot be scored", score.reason, "Fix or remove the item"
        )
    return score


@dataclass
class Queue:
    """Who may use the child: one at a time, and nobody after an item that cannot be scored.

    Such an item stops the run, and the others in flight need not hang one after the other.
    """

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    broken: DataError | None = None


async def by_rule_aside(
    env: Environment, item: Item, trajectory: Trajectory, queue: Queue
) -> Score:
    """Return the same as `by_rule`, off the event loop where it may take long.

    Raises:
        DataError: as `by_rule`.
    """
    if not guarded(env, item, trajectory) or _known(env, item, trajectory):
        return by_rule(env, item, trajectory)
    async with queue.turn:
        if queue.broken is not None:
            raise queue.broken
        try:
            return await off_the_loop(GUARD.stop, by_rule, env, item, trajectory)
        except DataError as error:
            queue.broken = error
            raise


def _known(env: Environment, item: Item, trajectory: Trajectory) -> bool:
    return GUARD.knows(env.name, env.params, "score", item, trajectory)


def guarded(env: Environment, item: Item, trajectory: Trajectory) -> bool:
    """Return whether scoring runs what came with the data, foreign code, or over bulk.

    An environment that no name leads to (one made in a program) is scored in place.
    """
    module = sys.modules.get(type(env).__module__)
    if getattr(module, "ENVIRONMENT", None) is not type(env):
        return False
    if is_foreign(type(env)) or env.needs_guard(item):
        return True
    return _chars((item.input, item.gold, trajectory.answer, trajectory.extra)) > _BULK_CHARS


def asked(
    hook: Callable[[Item, Trajectory], Any],
    item: Item,
    trajectory: Trajectory,
    guard: ScorerChild = GUARD,
) -> Any:
    """Return what a hook of an environment says of a rollout.

    Raises:
        DataError: it raised, or did not end in time.
    """
    env: Environment = hook.__self__  # type: ignore[attr-defined]
    try:
        if guarded(env, item, trajectory):
            return guard.call(env.name, env.params, hook.__name__, item, trajectory)
        return hook(item, trajectory)
    except TimeUp as error:
        raise BrokenItem(
            f"{named(item)} cannot be scored",
            f"invalid: {error}",
            "Fix its pattern or its scorer, or remove the item; what was paid for is kept",
        ) from error
    except InvalidScore as error:
        raise _unscored(env, item, f"invalid_score: {error}") from error
    except Raised as error:
        raise _unscored(env, item, str(error)) from error
    except SkilltrailError:
        raise
    except (Exception, SystemExit) as error:  # foreign code
        raise _unscored(env, item, raised_at(error)) from error


def named(item: Item) -> str:
    """Return an item as messages call it, with the file and line it was read from."""
    return f"item {item.id!r}" + (f" ({item.place})" if item.place else "")


def _unscored(env: Environment, item: Item, found: str) -> DataError:
    return DataError(
        f"{named(item)} cannot be scored",
        found,
        f"Fix the scorer of the environment {env.name}",
    )


def _chars(value: Any) -> int:
    """Return how many characters the texts in a JSON value have."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_chars, value.values()))
    return sum(map(_chars, value)) if isinstance(value, (list, tuple)) else 0


def metric_means(
    environment: Environment, done: Iterable[tuple[Item, Trajectory]]
) -> dict[str, float]:
    """Return the exactly summed mean of each named metric over the items that have it.

    A rollout that ended without an answer counts 0 under every name, as its score does.
    """
    if type(environment).metrics is Environment.metrics:
        return {}
    values: dict[str, list[Fraction]] = {}
    for item, trajectory in done:
        counts = trajectory.ending not in WITHOUT_ANSWER
        for name, value in asked(environment.metrics, item, trajectory).items():
            values.setdefault(name, []).append(exact(value) if counts else Fraction(0))
    return {name: float(sum(found) / len(found)) for name, found in sorted(values.items())}


def metric_rows(
    environment: Environment, done: Iterable[tuple[Item, Trajectory]]
) -> list[dict[str, str | float]]:
    """Return the named means as an event tells them, by name; [] where there are none."""
    return [{"name": n, "mean": mean} for n, mean in metric_means(environment, done).items()]

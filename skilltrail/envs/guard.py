"""Scorers in a child process (`core.child`): patterns of data files, foreign code, bulk."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import blake2b
from typing import Any

from skilltrail.core.child import CPU_S, WALL_S, Child
from skilltrail.core.errors import raised_at
from skilltrail.core.score import Outcome, Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.registry import environment_class

_KEPT = 250_000  # scores, of some 150 bytes each


class Raised(Exception):
    """The hook raised: `str(error)` says what and where."""


class Guard:
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


GUARD = Guard()


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

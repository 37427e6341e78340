"""Scorers in a child process (`core.child`): patterns of data files, foreign code, bulk."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import asdict
from typing import Any

from skilltrail.core.child import CPU_S, WALL_S, Child
from skilltrail.core.errors import raised_at
from skilltrail.core.score import Outcome, Score
from skilltrail.envs.registry import environment_class


class Raised(Exception):
    """The hook raised: `str(error)` says what and where."""


class Guard:
    """The door to the child."""

    def __init__(self, cpu_s: int = CPU_S, wall_s: float = WALL_S) -> None:
        self._child = Child(__name__, cpu_s, wall_s)
        self.stop = self._child.stop

    def call(self, env: str, params: Any, hook: str, *args: Any) -> Any:
        """Return what a hook of an environment says: a score, or JSON.

        Raises:
            TimeUp: it took longer than allowed.
            Raised: it raised.
        """
        asked = pickle.dumps((params, hook, args))
        said = json.loads(self._child.call(pickle.dumps((os.getcwd(), env, asked))))
        if "raised" in said:
            raise Raised(said["raised"])
        if "score" in said:
            return Score(**{**said["score"], "outcome": Outcome(said["score"]["outcome"])})
        return said["value"]


GUARD = Guard()


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
    except Exception as error:  # noqa: BLE001 (foreign code: whatever it raises is told)
        return json.dumps({"raised": raised_at(error)}).encode()

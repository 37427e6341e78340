"""The game engine: TextWorld in a process of its own, one for each game.

A process of its own keeps the engine's native libraries and their global state out of ours, and
can be ended when it hangs. `WorldEngine` is the door; tests play with an engine of their own.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from skilltrail.core.errors import SkilltrailError
from skilltrail.models.errors import Transient

_PLAYER = Path(__file__).with_name("player.py")
_LINE_BYTES = 2**20
HOW_TO_INSTALL = (
    "`make setup-alfworld`, or `pip install alfworld textworld` (Linux; about 400 MB; parts "
    "under GPL-3 are built from source, which takes a C++ compiler and some minutes)"
)


@dataclass(frozen=True)
class WorldState:
    """What the game says: its text, the commands it would take, whether the task is done."""

    text: str
    admissible: tuple[str, ...]
    won: bool = False


class Game(Protocol):
    """One game being played."""

    async def step(self, command: str) -> WorldState:
        """Send a command, which always counts as a step."""

    async def close(self) -> None:
        """End the game and its process."""


class WorldEngine(Protocol):
    """Opens games."""

    async def open(
        self, path: Path, task: str | None, most_steps: int
    ) -> tuple[Game, WorldState]:
        """Return a fresh game and its first state.

        Args:
            path: `game.tw-pddl`, or a bare PDDL problem with the words of its task.

        Raises:
            SkilltrailError: the engine is not installed, or the file is no game.
            Transient: the engine did not answer.
        """


class TextWorldEngine:
    """The engine of ALFWorld, from the packages `textworld` and `alfworld`.

    Args:
        answer_s: seconds to wait for one answer; loading takes up to 10.
    """

    def __init__(self, answer_s: float) -> None:
        self._answer_s = answer_s

    async def open(
        self, path: Path, task: str | None, most_steps: int
    ) -> tuple[Game, WorldState]:
        require_installed()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(_PLAYER)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
        )
        game = _Played(process, self._answer_s)
        try:
            state = await game.ask({"game": str(path), "task": task, "steps": most_steps})
        except BaseException:
            await game.close()
            raise
        return game, state


class _Played:
    """A game in a player process; it answers each line with one line of JSON."""

    def __init__(self, process: asyncio.subprocess.Process, answer_s: float) -> None:
        self._process, self._answer_s = process, answer_s

    async def step(self, command: str) -> WorldState:
        return await self.ask({"command": command})

    async def ask(self, said: Mapping[str, Any]) -> WorldState:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(said).encode() + b"\n")
            await self._process.stdin.drain()
            line = await asyncio.wait_for(self._process.stdout.readline(), self._answer_s)
        except asyncio.TimeoutError as error:
            raise Transient(
                "the game engine", f"no answer within {self._answer_s:g} s"
            ) from error
        except (ConnectionError, ValueError) as error:
            raise Transient("the game engine", str(error)) from error
        if not line:
            raise SkilltrailError(
                "the game engine ended", await self._last_words(), "Check the game file"
            )
        found = json.loads(line)
        return WorldState(found["text"], tuple(found["admissible"]), bool(found["won"]))

    async def close(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def _last_words(self) -> str:
        assert self._process.stderr is not None
        said = (await self._process.stderr.read()).decode("utf-8", "replace").strip()
        return said.rpartition("\n")[2] or "it said nothing"


def missing() -> list[str]:
    """Return which of the engine's packages are not installed."""
    return [
        name for name in ("textworld", "alfworld") if importlib.util.find_spec(name) is None
    ]


def require_installed() -> None:
    """Raise with the way to install the engine when it is not there."""
    absent = missing()
    if absent:
        raise SkilltrailError(
            "environment alfworld needs the TextWorld engine",
            f"not installed: {', '.join(absent)}",
            HOW_TO_INSTALL,
        )

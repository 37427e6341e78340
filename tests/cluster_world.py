"""A workspace with the toy environment, and a model that tells a file of each of its calls.

Nodes cannot import tests: Ray carries this module's functions there by value.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from pathlib import Path
from typing import Any

import toy_world

from skilltrail.models.protocol import Reply, Request

_HEADER = '''"""The toy environment, as a workspace's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.protocol import Environment, Where
from skilltrail.models.protocol import Model, Request


'''


def write_workspace(folder: Path) -> None:
    """Write the least of a workspace: its mark, and the toy environment as its own."""
    own = folder / "envs" / "toy"
    own.mkdir(parents=True)
    parts = (toy_world.ToyParams, toy_world.ToyEnvironment)
    code = "\n\n".join(f"@dataclass(frozen=True)\n{_class(part)}" for part in parts)
    text = f"{_HEADER}{code}\n\nENVIRONMENT = ToyEnvironment\n"
    (own / "env.py").write_text(text, encoding="utf-8", newline="\n")
    (folder / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8", newline="\n")


def _class(part: type) -> str:
    return inspect.getsource(part).replace("@dataclass(frozen=True)\n", "")


class TellingModel:
    """Knows a word when the skill says so, as `ToyModel` does.

    `ROUNDS` in a node's environment changes its answers; with `STUCK` it stays at its third
    call for good.
    """

    style, workers = "completion", 1
    abilities: frozenset[str] = frozenset()
    identity = {"backend": "toy"}

    def __init__(self, calls: Path, budget: Any) -> None:
        self._calls, self._budget, self._made = calls, budget, 0

    async def complete(self, request: Request) -> Reply:
        from skilltrail.models.client.budget import UNUSED, Amount

        word = str(request.prompt)
        held = None if self._budget is None else await self._budget.reserve(Amount(1))
        self._tell("begun", word)
        self._made += 1
        if "STUCK" in os.environ and self._made == 3:
            self._tell("stuck", word)
            await asyncio.sleep(1e6)
        await asyncio.sleep(0.02)
        lines = request.system.split("\n")
        text = word + os.environ.get("ROUNDS", "") if f"- know {word}" in lines else ""
        self._tell("ended", word)
        if held is not None:
            self._budget.settle(held, UNUSED)
        return Reply(text, usage={"input": 7, "output": 1})

    async def close(self) -> None:
        pass

    def _tell(self, what: str, word: str) -> None:
        with self._calls.open("a", encoding="utf-8") as file:
            file.write(f"{what} {word}\n")


def telling(role: str, options: Any, budget: Any = None) -> TellingModel:
    """Open the model; `options.model` names the file."""
    return TellingModel(Path(options.model), budget)

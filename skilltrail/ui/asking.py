"""What the live page asks other commands before a run: they are started as a person would.

A command is a process of its own, so that what it holds (a model, a store) is gone with it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.store.place import Place
from skilltrail.ui.options import command

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class CheckShown:
    """One check of `skilltrail doctor`."""

    name: str
    verdict: str
    found: str
    remedy: str = ""


class Ask:
    """Asks `skilltrail doctor` and `skilltrail plan`."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def doctor(self) -> list[CheckShown]:
        """Return the checks of the set-up."""
        _, output, error = await self._run("doctor", "--json")
        try:
            return [CheckShown(**row) for row in json.loads(output)]
        except (ValueError, TypeError):
            return [CheckShown("doctor", "fault", error.strip())]

    async def plan(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a run would cost: `told`, the plan's own lines."""
        _, output, error = await self._run("plan", *command(changes)[2:])
        return {"told": (error + output).strip()}

    async def _run(self, *arguments: str) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "skilltrail.cli.main",
            *arguments,
            cwd=self._place.workspace,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, error = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
        except asyncio.TimeoutError:
            process.kill()
            return 1, "", f"`skilltrail {arguments[0]}` took longer than {TIMEOUT_S:.0f} s"
        code = 1 if process.returncode is None else process.returncode
        return code, output.decode("utf-8", "replace"), error.decode("utf-8", "replace")

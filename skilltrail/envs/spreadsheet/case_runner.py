"""The workbench of one item: run code on its cases in the sandbox and read what came out.

The agent's own time (its code's, not the model's) is counted here; model-made workbooks are
read inside the sandbox too, so that one that is a bomb harms nobody.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skilltrail.envs.spreadsheet.recalculate import Recalculator
from skilltrail.sandbox.protocol import Job, Limits, Ran, Sandbox

INPUT, OUTPUT, CODE = "input.xlsx", "output.xlsx", "solution.py"
_READER = Path(__file__).with_name("reader.py")
_READ_LIMITS = Limits(wall_s=120, cpu_s=100, memory_mb=2048, processes=8)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_LEAST_S = 0.5


@dataclass
class CaseRunner:
    """One item's cases.

    Attributes:
        inputs: the input workbook of each case, in order.
        run_s, item_s: seconds that one run, and all runs of the item together, may take.
        spent_s: what the runs took so far.
    """

    sandbox: Sandbox
    inputs: Sequence[bytes]
    position: str
    recalculator: Recalculator
    run_s: float
    item_s: float
    spent_s: float = field(default=0.0, init=False)

    @property
    def is_out_of_time(self) -> bool:
        return self.item_s - self.spent_s < _LEAST_S

    async def run(
        self,
        code: str,
        case: int = 0,
        files: Mapping[str, bytes] | None = None,
        keep: str = OUTPUT,
    ) -> Ran:
        """Run code on the workbook of one case (counted from 0)."""
        if self.is_out_of_time:
            return Ran("out_of_time", None, "", "")
        wall_s = min(self.run_s, self.item_s - self.spent_s)
        work = {
            INPUT: self.inputs[case],
            **(files or {}),
            CODE: code.encode("utf-8", "replace"),
        }
        argv = (self.sandbox.interpreter, CODE)
        started = time.monotonic()
        ran = await self.sandbox.run(
            Job(argv, work, keep, Limits(wall_s=wall_s, cpu_s=int(wall_s) + 1))
        )
        self.spent_s += time.monotonic() - started
        return ran

    async def all_cases(self, code: str, first: Ran | None = None) -> dict[str, Any]:
        """Return what the scorer needs: the answer cells of every case after running `code`.

        Args:
            first: the run on the first case, when it was made already.
        """
        runs = [first if first is not None else await self.run(code)]
        runs += [await self.run(code, case) for case in range(1, len(self.inputs))]
        outputs = {
            f"output{case}": ran.files[OUTPUT]
            for case, ran in enumerate(runs)
            if OUTPUT in ran.files  # saved is scored, however the run ended
        }
        inputs = {f"input{case}": data for case, data in enumerate(self.inputs)}
        found = await self.read({**outputs, **inputs}) if outputs else {}
        recalculated = None
        if any(read.get("formulas") for name, read in found.items() if name in outputs):
            recalculated = await self.recalculator.version()
            if recalculated is not None:
                found |= await self.read(await self.recalculator.recalculated(outputs))
        cases = []
        for case, ran in enumerate(runs):
            read = found.get(f"output{case}", {"fault": fault_of(ran)})
            unchanged = "parts" in read and read["parts"] == found[f"input{case}"].get("parts")
            marks: dict[str, Any] = {"unchanged": True} if unchanged else {}
            if not ran.ok and "parts" in read:
                marks["stopped"] = fault_of(ran)
            cases.append({**read, **marks})
        return {"sandbox": self.sandbox.name, "recalculated": recalculated, "cases": cases}

    async def read(self, books: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
        """Return the answer cells of workbooks, by name; an unreadable one has a fault.

        The reading process writes a line for each and dies of one that it cannot read; it is
        then started again for those after it.
        """
        left = sorted(books)
        found: dict[str, dict[str, Any]] = {}
        while left:
            ran = await self.sandbox.run(self._reading({name: books[name] for name in left}))
            lines = ran.files.get("answer.jsonl", b"").decode("utf-8").split("\n")[:-1]
            found |= {name: json.loads(line) for name, line in zip(left, lines, strict=False)}
            if len(lines) < len(left):
                found[left[len(lines)]] = {"fault": "unreadable_output"}
            left = left[len(lines) + 1 :]
        return found

    def _reading(self, books: Mapping[str, bytes]) -> Job:
        named = {f"{name}.xlsx": content for name, content in books.items()}
        request = {"files": list(named), "position": self.position}
        files = {
            **named,
            "request.json": json.dumps(request).encode(),
            "reader.py": _READER.read_bytes(),
        }
        argv = (self.sandbox.interpreter, "-W", "ignore", "reader.py", "request.json")
        disk_mb = 64 + sum(map(len, files.values())) // 2**20
        return Job(argv, files, "answer.jsonl", replace(_READ_LIMITS, disk_mb=disk_mb))


def fault_of(ran: Ran) -> str:
    """Return why a run left nothing to compare."""
    if ran.ending != "finished":
        return ran.ending
    if ran.exit_code == 0:
        return "no_output"
    # 128 + SIGXCPU and 128 + SIGXFSZ: the kernel's limits of time and of file size.
    return {152: "out_of_time", 153: "out_of_space"}.get(ran.exit_code or 0, "error")


def format_run(ran: Ran, chars: int, *, wants_output: bool = True) -> str:
    """Return what a model is told of a run: its output's end and what went wrong.

    `wants_output`: a run that leaves no output workbook is told so.
    """
    said = _ADDRESS.sub("0x…", f"{ran.stdout}\n{ran.stderr}".strip())
    if len(said) > chars:
        said = f"[…]{said[-chars:]}"
    if ran.ending == "out_of_time":
        return f"{said}\nStopped: it took too long.".strip()
    if ran.ending != "finished":
        return f"{said}\nStopped: {ran.ending.replace('_', ' ')}.".strip()
    if ran.exit_code != 0:
        return said or f"It failed with exit code {ran.exit_code} and said nothing."
    if wants_output and OUTPUT not in ran.files:
        return f"{said}\nIt ran, but wrote no {OUTPUT}.".strip()
    return said

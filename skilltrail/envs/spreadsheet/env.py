"""`spreadsheet`: write a program that changes a workbook as told (SpreadsheetBench).

    {"id": "13-1", "instruction": "How can I …?", "spreadsheet_path": "spreadsheet/13-1",
     "instruction_type": "Cell-Level Manipulation", "answer_position": "'Sheet1'!H3:H5"}

Official scorer: `evaluation.py` of SpreadsheetBench, rebuilt in `judge.py`.
A rollout keeps the answer cells of every case, so scores are computed again without running
code. Model-written code runs in the sandbox; the answer workbooks never enter it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit import fields
from skilltrail.envs.kit.files import NamesFiles, find_known
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.protocol import KnownAnswers, MissingDependency, ScoredBy, Where
from skilltrail.envs.spreadsheet.agents import Task, exec_agent, work_with_tools, write_code
from skilltrail.envs.spreadsheet.case_runner import INPUT, CaseRunner
from skilltrail.envs.spreadsheet.cases import UNREADABLE, cells_in, find_cases, inputs_of
from skilltrail.envs.spreadsheet.judge import (
    CaseVerdict,
    case_scores,
    format_gold,
    format_verdicts,
    judge_case,
    reason_of,
)
from skilltrail.envs.spreadsheet.reader import preview, sound
from skilltrail.envs.spreadsheet.recalculate import HOW_TO_INSTALL, Recalculator, program
from skilltrail.models.protocol import File, Model
from skilltrail.params.knob import knob, operational
from skilltrail.sandbox.choose import KINDS, REMEDY, open_sandbox, why_not
from skilltrail.sandbox.protocol import Sandbox

_HERE = Path(__file__).parent
PROMPTS = Prompts(
    _HERE / "prompts", "chat", "react", "exec", "retry_chat", "completion", "retry_completion"
)
AGENTS = ("single", "multi", "react", "exec")
_TEXTS = ("instruction", "answer_position")
_NOWHERE = Where("", 0)  # for errors of which the reason alone is told


@dataclass(frozen=True)
class SpreadsheetLimits:
    """What one item may cost."""

    turns: int = knob(30, "Replies of the model per item; the agent single has one.", low=1)
    run_s: float = knob(30.0, "Seconds that one run of its code may take.", low=1)
    item_s: float = knob(300.0, "Seconds that all runs of its code may take.", low=1)


@dataclass(frozen=True)
class SpreadsheetParams:
    """Options of `spreadsheet`."""

    agent: str = knob(
        "multi",
        "single = one reply; multi = errors fed back; react = tools; exec = a coding client.",
        choices=AGENTS,
    )
    sandbox: str = knob(
        "bubblewrap", "Where model-written code runs; none = without isolation.", choices=KINDS
    )
    recalculate: bool = knob(
        True, "Let LibreOffice, where installed, compute formulas that have no value."
    )
    train_feedback: bool = knob(
        False,
        "Tell analysts which cells of train items are wrong, never what they should hold.",
    )
    preview_rows: int = knob(5, "Rows of each sheet shown in the prompt.", low=0)
    preview_columns: int = knob(20, "Columns of each sheet shown in the prompt.", low=1)
    preview_chars: int = knob(6000, "Longest preview; what is over is cut off.", low=1)
    feedback_chars: int = knob(1500, "Longest program output fed back.", low=100)
    answer_tokens: int = knob(400, "Longest program of a completion model.", low=1)
    data_dirs: tuple[str, ...] = operational(
        (), "Folders of the workbooks; none = data/spreadsheet."
    )
    limits: SpreadsheetLimits = field(default_factory=SpreadsheetLimits)


class Spreadsheet(NamesFiles):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "spreadsheet"
    version: ClassVar[str] = versioned("spreadsheet/2", PROMPTS)
    runs_software: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]] = (
        "id", "group", "instruction", "instruction_type", "spreadsheet_path",
        "answer_position",
    )  # fmt: skip
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = SpreadsheetParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; its answer workbooks are read now, into the gold."""
        texts = {name: fields.text(record, name, where) for name in _TEXTS}
        kind = fields.optional_text(record, "instruction_type", where)
        cases = find_cases(record.get("spreadsheet_path"), self.folders, where)
        position = texts["answer_position"]
        return Item(
            id=fields.ident(record, self.id_fields, where),
            input={**texts, "kind": kind or "not said", "cases": inputs_of(cases)},
            gold={"cases": [cells_in(case.answer, position, where) for case in cases]},
            group=fields.optional_text(record, "group", where),
            task_type=kind,
            extra={"files": [case.name for case in cases], **self.rest_of(record)},
        )

    def content(self, item: Item) -> str:
        """Return the instruction with its workbooks: what may not stand in two splits."""
        digests = " ".join(case["sha256"] for case in item.input["cases"])
        return f"{item.input['instruction']}\n{item.input['answer_position']}\n{digests}"

    def most_calls(self) -> int:
        alone = self.params.agent in ("single", "exec")
        return 1 if alone else int(self.params.limits.turns)

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Let the agent write a program, run it on every case and keep the answer cells.

        Raises:
            SandboxError: there is no sandbox, and the params do not say to do without.
        """
        paths = self._paths(item)
        task = self._task(item, skill, await asyncio.to_thread(self._preview, paths[0]))
        runner = CaseRunner(
            sandbox=self._sandbox,
            inputs=[sound(path.read_bytes()) for path in paths],
            position=item.input["answer_position"],
            recalculator=self._recalculator,
            run_s=self.params.limits.run_s,
            item_s=self.params.limits.item_s,
        )
        if self.params.agent == "exec":
            book = File(INPUT, item.input["cases"][0]["sha256"], str(paths[0]))
            return await exec_agent(task, runner, target, book)
        work = work_with_tools if self.params.agent == "react" else write_code
        return await work(task, runner, target)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge the kept cells: hard = all cases pass, soft = the share that does."""
        if trajectory.ending not in ("answered", "truncated"):
            return Score.scored(0.0, 0.0, trajectory.ending)
        if "cases" not in trajectory.extra:
            return Score.scored(0.0, 0.0, "no_code")
        verdicts = self.verdicts(item, trajectory)
        hard, soft = case_scores([verdict.passes for verdict in verdicts])
        reason = reason_of(verdicts)
        if trajectory.ending == "truncated" and reason in ("error", "no_code"):
            reason = "truncated"
        return Score.scored(hard, soft, reason)

    def verdicts(self, item: Item, trajectory: Trajectory) -> list[CaseVerdict]:
        """Return the verdict on each case, in order."""
        outputs = trajectory.extra.get("cases", [])
        return [
            judge_case(gold, output, item.input["answer_position"])
            for gold, output in zip(item.gold["cases"], outputs, strict=True)
        ]

    def known_answers(self, item: Item) -> KnownAnswers:
        """Return the answer workbooks as an output, and the inputs as they stand."""
        position = item.input["answer_position"]
        unmade = sum(gold["formulas"] for gold in item.gold["cases"])
        if unmade:
            found = f"{unmade} formulas of the answer have no value, so nobody can give theirs"
            raise _NOWHERE.broken(
                "answer_position", found, "Save it with a spreadsheet program"
            )
        cases: list[dict[str, Any]] = []
        passes = True  # one case decides: the workbooks after it need not be read
        for path, gold in zip(self._paths(item), item.gold["cases"], strict=True):
            cases.append(
                cells_in(path, position, _NOWHERE) if passes else {"fault": "no_output"}
            )
            passes = passes and judge_case(gold, cases[-1], position).passes
        right = Trajectory((), "gold", extra={"cases": item.gold["cases"]})
        unchanged = Trajectory((), "", extra={"cases": cases})
        return KnownAnswers((right,), {"the unchanged workbook": unchanged})

    def reference(self, item: Item) -> str | None:
        """Return what the answer cells of the first case hold."""
        held = format_gold(item.gold["cases"][0])
        code = item.extra.get("solution")
        return "\n".join([*held, *([f"A program that does it:\n{code}"] if code else [])])

    def outcome(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return what the first case's output holds in the answer cells, or its fault."""
        cases = trajectory.extra.get("cases")
        if not cases:
            return None
        if "fault" in cases[0]:
            said = [cases[0]["fault"].replace("_", " "), str(cases[0].get("detail", ""))]
            return "no answer cells: " + "; ".join(part for part in said if part)
        return "\n".join(["the answer cells of the first workbook:", *format_gold(cases[0])])

    def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return which answer cells are wrong and what they hold: never what they should hold.

        For analysts of train items; None when `train_feedback` is off or nothing is wrong.
        """
        if not self.params.train_feedback or "cases" not in trajectory.extra:
            return None
        return format_verdicts(self.verdicts(item, trajectory))

    def asked(self, item: Item) -> str:
        """Return the instruction."""
        return str(item.input["instruction"])

    def example(self, item: Item) -> str | None:
        """Return a solved item as a paragraph, where its record has a `solution`."""
        code = item.extra.get("solution")
        if not isinstance(code, str) or not code.strip():
            return None
        task = self._task(item, "", self._preview(self._paths(item)[0]))
        prompt = PROMPTS.fill("completion", **task.values)
        lines = [line for line in f"{prompt}\n{code.strip()}\n```".split("\n") if line.strip()]
        return "\n".join(lines)

    @cached_property
    def _sandbox(self) -> Sandbox:
        return open_sandbox(self.params.sandbox, tuple(self.folders))

    @cached_property
    def _recalculator(self) -> Recalculator:
        return Recalculator(self._sandbox, self.params.recalculate)

    def requirements(self) -> list[MissingDependency]:
        """Return the sandbox and LibreOffice where they are asked for and not there."""
        fault = why_not() if self.params.sandbox == "bubblewrap" else None
        lacking = [] if fault is None else [MissingDependency("sandbox", fault, REMEDY)]
        if self.params.recalculate and program() is None:
            found = "no LibreOffice: a formula without a value counts as wrong (no_value)"
            lacking.append(
                MissingDependency("recalculation", found, HOW_TO_INSTALL, needed=False)
            )
        return lacking

    def _paths(self, item: Item) -> list[Path]:
        named = zip(item.extra["files"], item.input["cases"], strict=True)
        return [find_known(name, case["sha256"], self.folders) for name, case in named]

    def _preview(self, path: Path) -> str:
        try:
            text = _cached_preview(
                path,
                path.stat().st_mtime_ns,
                self.params.preview_rows,
                self.params.preview_columns,
            )
        except UNREADABLE as error:
            raise DataError(
                f"The workbook {path.name}", str(error), "Download the file again"
            ) from error
        return text[: self.params.preview_chars]

    def _task(self, item: Item, skill: str, shown: str) -> Task:
        return Task(
            values={
                "instruction": item.input["instruction"],
                "kind": item.input["kind"],
                "position": item.input["answer_position"],
                "preview": shown,
            },
            prompts=PROMPTS,
            skill=skill,
            turns=1 if self.params.agent in ("single", "exec") else self.params.limits.turns,
            answer_tokens=self.params.answer_tokens,
            feedback_chars=self.params.feedback_chars,
        )


ENVIRONMENT = Spreadsheet


@lru_cache(maxsize=256)
def _cached_preview(path: Path, changed_ns: int, rows: int, columns: int) -> str:
    return preview(path, rows, columns)

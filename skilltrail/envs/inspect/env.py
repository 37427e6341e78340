"""`inspect`: a task written for the evaluation framework Inspect (package `inspect-ai`).

    envs: {inspect: {task: data/inspect/tasks.py@price}}

Its samples are the items; its own solver or agent does them, with the skill as system message
or as a file in its sandbox; its own scorer scores. The calls go through our models, so that
they are recorded, counted and reused. Source: the framework's own documentation.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from skilltrail.core.canon import cleaned
from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.inspect import records
from skilltrail.envs.kit.excerpts import fold
from skilltrail.envs.kit.fields import ident, optional_text
from skilltrail.envs.protocol import Environment, MissingDependency, ScoredBy, Where
from skilltrail.models.protocol import Model
from skilltrail.params.knob import knob
from skilltrail.skill.folder import is_folder, named_in
from skilltrail.store.place import project_above

if TYPE_CHECKING:
    from inspect_ai import Task

    from skilltrail.envs.inspect.session import SampleRunner


@dataclass(frozen=True)
class ItemLimits:
    """What one item may cost."""

    turns: int = knob(30, "Replies of the model per item; the scorer's calls apart.", low=1)


@dataclass(frozen=True)
class InspectParams:
    """Options of `inspect`."""

    task: str = knob(
        "data/inspect/tasks.py@price", "The task: FILE.py@NAME, or PACKAGE/NAME as installed."
    )
    task_args: Mapping[str, Any] = knob({}, "Arguments of the task.")
    scorer: str = knob("", "Whose score counts where the task has several; none = the first.")
    value: str = knob("", "Which entry counts where a score is a table.")
    skill_path: str = knob(
        "", "Where in the task's sandbox the skill is written; none = it is the system message."
    )
    answer_tokens: int = knob(32, "Longest reply of a completion model.", low=1)
    limits: ItemLimits = field(default_factory=ItemLimits)


class Inspect(Environment):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "inspect"
    version: str = "inspect/1"  # type: ignore[misc]
    fields: ClassVar[tuple[str, ...]] = ("sample", "target", "metadata", "task_type")
    scored_by: ClassVar[ScoredBy] = ScoredBy.RUN
    runs_software: ClassVar[bool] = True
    Params: ClassVar[type] = InspectParams

    def __init__(self, params: Any = None) -> None:
        super().__init__(params)
        self._root = project_above(Path.cwd()) or Path.cwd()
        self.version = f"inspect/1+{records.task_version(self._root, self.params.task)}"
        self._session: SampleRunner | None = None

    def requirements(self) -> list[MissingDependency]:
        """Return the framework, where it is not installed."""
        if importlib.util.find_spec("inspect_ai") is not None:
            return []
        remedy = "Install it: pip install 'skilltrail[inspect]'"
        return [MissingDependency("Inspect", "no package inspect-ai", remedy)]

    def records(self, root: Path) -> Iterator[tuple[Mapping[str, Any], Where]]:
        """Yield the task's samples as records."""
        for lack in self.requirements():
            raise DataError(f"env inspect needs {lack.what}", lack.found, lack.remedy)
        task, folder = self._task(), records.folder_of(self._root, self.params.task)
        for place, record in enumerate(records.records_of(task, root, folder), 1):
            yield cleaned(record), Where(self.params.task, place)

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one sample; target and metadata are its gold."""
        if not isinstance(record.get("sample"), Mapping):
            raise where.error("sample", "no sample of Inspect", "Let the task itself give it")
        return Item(
            id=ident(record, self.id_fields, where),
            input=records.input_of(record),
            gold={name: record.get(name) for name in ("target", "metadata")},
            task_type=optional_text(record, "task_type", where),
        )

    def content(self, item: Item) -> str:
        """Return what the agent is asked, and the names of its files."""
        sample = item.input["sample"]
        files = json.dumps(sample.get("files", {}), sort_keys=True)
        return f"{records.question_of(sample)}\n{files}"

    def asked(self, item: Item) -> str:
        """Return the question in words."""
        return records.question_of(item.input["sample"])

    def most_calls(self) -> int:
        return int(self.params.limits.turns)

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Let the task's own solver do one sample, and its scorer score it.

        Raises:
            ModelError: a call of the agent or of the scorer failed.
            DataError: the task's code raised.
        """
        from skilltrail.envs.inspect.provider import OutOfTurns, RolloutCalls, other_models

        session = self._session_here()
        sample = records.sample_of(item, self._root, session.next_id())
        calls = RolloutCalls(target, self.params.limits.turns, self.params.answer_tokens)
        done = await session.run(sample, skill, calls)
        if isinstance(calls.error, OutOfTurns):
            return calls.said.ended("out_of_turns")
        if calls.error is not None:
            raise calls.error
        asked = f"The Inspect task at item {item.id!r}"
        if others := other_models(done.events):
            found = f"it asks {', '.join(others)} by name: nothing of it is recorded or counted"
            remedy = "Ask get_model() or get_model(role=…) in its file; both are the target"
            raise DataError(asked, found, remedy)
        if done.error is not None:
            raise DataError(asked, done.error.message.splitlines()[0], "Mend the task")
        scores = {
            name: cleaned({"value": score.value, "explanation": score.explanation})
            for name, score in (done.scores or {}).items()
        }
        extra: dict[str, Any] = {"scores": scores}
        if done.limit is not None:
            extra["limit"] = done.limit.type
        if self.params.skill_path and is_folder(skill):
            told = json.dumps([dict(c) for turn in calls.said.turns for c in turn.tool_calls])
            extra["opened"] = named_in(told, skill)
        last = calls.said.replies[-1:]
        ending = "refused" if last and last[0].finish == "refusal" else "answered"
        return calls.said.ended(ending, done.output.completion, extra)

    def _session_here(self) -> SampleRunner:
        from skilltrail.envs.inspect.session import SampleRunner

        if self._session is None or self._session.loop is not asyncio.get_running_loop():
            self._session = SampleRunner(self._task(), self.params.skill_path)
        return self._session

    def _task(self) -> Task:
        return records.load_task(self._root, self.params.task, self.params.task_args)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Return the task's own score, as Inspect turns values into numbers.

        C, I, P and N are 1, 0, 0.5 and 0; truth values and numbers are what they are.
        """
        found: Mapping[str, Any] = trajectory.extra.get("scores", {})
        if not found:
            return Score.invalid("the task gave no score")
        name = self.params.scorer or next(iter(found))
        if name not in found:
            return Score.invalid(f"the task gave no score {name!r}, but {', '.join(found)}")
        value = found[name]["value"]
        if isinstance(value, Mapping):
            key = self.params.value or next(iter(value), "")
            if key not in value:
                there = ", ".join(value) or "none"
                return Score.invalid(f"the score {name!r} has no value {key!r}, but {there}")
            value = value[key]
        number = _number(value)
        if number is None or not 0 <= number <= 1:
            return Score.invalid(f"the score {name!r} is {value!r}, not from 0 to 1")
        return Score.scored(number, reason=_reason(number, trajectory))

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return the task's scores that lie from 0 to 1, by scorer, where there are several;
        the values of one that is a table as `scorer.value`."""
        numbers: dict[str, float | None] = {}
        for name, score in trajectory.extra.get("scores", {}).items():
            value = score["value"]
            told = {name: value}
            if isinstance(value, Mapping):
                told = {f"{name}.{key}": one for key, one in value.items()}
            numbers |= {key: _number(one) for key, one in told.items()}
        return {
            name: number
            for name, number in numbers.items()
            if number is not None and 0 <= number <= 1 and len(numbers) > 1
        }

    def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return why the task's scorer scored so, where it says."""
        said = [s.get("explanation") for s in trajectory.extra.get("scores", {}).values()]
        return "\n".join(text for text in said if text and text != trajectory.answer) or None

    def reference(self, item: Item) -> str | None:
        """Return the target, of several the first."""
        target = item.gold["target"]
        first = target if isinstance(target, str) else next(iter(target or ()), "")
        return first or None

    def example(self, item: Item) -> str | None:
        """Return the solved sample as a paragraph, in the form that a completion has."""
        answer = self.reference(item)
        if answer is None:
            return None
        lines = [fold(line) for line in self.asked(item).split("\n")]
        return "\n".join([*filter(None, lines), f"Answer: {fold(answer)}"])


def _number(value: Any) -> float | None:
    """Return a value of Inspect as a number; None where it is none."""
    words = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0}
    if isinstance(value, str):
        if value.lower() in (*words, "false"):
            return words.get(value.lower(), 0.0)
        try:
            return float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, (bool, int, float)) else None


def _reason(number: float, trajectory: Trajectory) -> str:
    if number == 1:
        return "correct"
    if not trajectory.answer.strip():
        return "empty"
    if "limit" in trajectory.extra:
        return "limit"
    return "partial" if number > 0 else "wrong"


ENVIRONMENT = Inspect

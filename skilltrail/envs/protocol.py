"""What a benchmark provides: items, an agent, a scorer.

An environment is a folder `<name>/` whose `env.py` defines `ENVIRONMENT`, a subclass of
`Environment`. What it can do beyond the five methods that each needs is told by what it
overrides: every hook has a neutral answer here, and callers simply ask.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import WITHOUT_ANSWER, Trajectory
from skilltrail.envs.kit.catalogue import Catalogue, load_catalogue
from skilltrail.envs.kit.reasons import question_words
from skilltrail.models.judge import Case
from skilltrail.models.protocol import Model


@dataclass(frozen=True)
class Where:
    """Where a record stands: for error messages only."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"

    def error(self, field: str, found: str, remedy: str) -> DataError:
        """Return the error that names file, line and field."""
        return DataError(f"{self}, field {field!r}", found, remedy)

    def broken(self, field: str, found: str, remedy: str) -> BrokenItem:
        """Return the error that sets this one record apart and lets the others be read."""
        return BrokenItem(f"{self}, field {field!r}", found, remedy)


class BrokenItem(DataError):
    """A record that is sound as data, but that no answer can be scored by."""


@dataclass(frozen=True)
class MissingDependency:
    """Software that an environment would use and does not find here.

    `needed`: without it there are no rollouts; else they are only measured otherwise.
    """

    what: str
    found: str
    remedy: str
    needed: bool = True


class ScoredBy(str, Enum):
    """What a score is computed from, besides the item and its gold."""

    ANSWER = "the answer"
    RUN = "a run"
    JUDGE = "a judge"
    FUNCTION = "a function of its author"


@dataclass(frozen=True)
class KnownAnswers:
    """Answers to an item whose scores are known before anybody is asked.

    Attributes:
        right: what must score 1; () where nothing is known to, as with a pattern.
        idle: what must score 0, by what messages call it.
        unchecked: what the score needs, where it is no pure function of gold and answer.
    """

    right: tuple[Trajectory, ...] = ()
    idle: Mapping[str, Trajectory] = field(default_factory=dict)
    unchecked: ScoredBy | None = None


class Environment(ABC):
    """One benchmark.

    `version` is part of every rollout key: raise it when prompts or the agent change. A change
    of the scorer alone costs no call, since scores are computed from trajectories.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    fields: ClassVar[tuple[str, ...]] = ()  # of a record, as `parse` spells them
    scored_by: ClassVar[ScoredBy] = ScoredBy.FUNCTION
    runs_software: ClassVar[bool] = False  # in rollouts, besides the model
    id_fields: ClassVar[tuple[str, ...]] = ("id",)  # the first that is there is the id
    Params: ClassVar[type]  # a frozen dataclass with defaults
    params: Any

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    def records(self, root: Path) -> Iterable[tuple[Mapping[str, Any], Where]] | None:
        """Return the raw records of an environment that has them from no file, or None.

        Asked where neither `data.path` nor `data.split_dir` names any. `root`: the project's.
        """
        return None

    @abstractmethod
    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one raw record.

        Raises:
            DataError: via `where.error`, naming the field.
        """

    @abstractmethod
    def content(self, item: Item) -> str:
        """Return the text whose normalised form must differ between splits."""

    @abstractmethod
    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Let the agent, told `skill`, do `item`.

        Raises:
            ModelError: the infrastructure failed; the rollout is then missing, not wrong.
        """

    @abstractmethod
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge a trajectory. Pure: same arguments, same score."""

    def rest_of(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a record has beyond the fields that `parse` reads."""
        return {key: value for key, value in record.items() if key not in self.fields}

    def most_calls(self) -> int:
        """Return how often one rollout calls the target at most, failed calls apart."""
        return 1

    def known_answers(self, item: Item) -> KnownAnswers:
        """Return the answers that the contract of items is checked with (`contract.items`)."""
        if self.needs_judge(item):
            return KnownAnswers(unchecked=ScoredBy.JUDGE)
        if self.scored_by is not ScoredBy.ANSWER:
            return KnownAnswers(unchecked=self.scored_by)
        right = tuple(Trajectory((), gold) for gold in self.golds(item))
        return KnownAnswers(right, {"the empty answer": Trajectory((), "")})

    def golds(self, item: Item) -> Sequence[str]:
        """Return the texts that are right answers; () where they cannot be listed."""
        reference = self.reference(item)
        return () if reference is None else (reference,)

    def reference(self, item: Item) -> str | None:
        """Return the expected answer for analysts (asked for train items only), or None."""
        return None

    def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return what it says of a train rollout to analysts, never to the agent, or None."""
        return None

    def outcome(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return what a train rollout left besides its words, such as the cells it wrote.

        It is shown to analysts beside the trace; nothing of the expected answer may be in it.
        """
        return None

    def metrics(self, item: Item, trajectory: Trajectory) -> Mapping[str, float]:
        """Return further named values in [0, 1], such as an official score that ours is not.

        Pure, the same names for items of one kind. Told of evaluations; no gate reads them.
        """
        return {}

    def requirements(self) -> Sequence[MissingDependency]:
        """Return the software that it needs and does not find; at most a probe is started."""
        return ()

    def needs_guard(self, item: Item) -> bool:
        """Return whether `score` runs what came with the data, such as a pattern."""
        return False

    def needs_judge(self, item: Item) -> bool:
        """Return whether no rule can score this item's answers; see the params `judge`."""
        return False

    def case(self, item: Item, trajectory: Trajectory) -> Case | None:
        """Return what the judge is shown of an answer to an item that needs one. Pure.

        None where a rule decides after all, as over an empty answer: `score` is asked then.
        """
        return None

    @cached_property
    def catalogue(self) -> Catalogue:
        """Failure types and instruction lines, from the `rules.yaml` beside `env.py`."""
        path = Path(inspect.getfile(type(self))).with_name("rules.yaml")
        return load_catalogue(path) if path.is_file() else Catalogue(())

    @property
    def supports_rules(self) -> bool:
        """Whether the optimizer `rules` has anything to work with here."""
        return bool(self.catalogue.types)

    def example(self, item: Item) -> str | None:
        """Return `item` solved, in exactly the form of the agent's own prompt, or None.

        One paragraph of the skill document without blank lines; asked for train items only.
        """
        return None

    def traits(self, item: Item) -> frozenset[str]:
        """Return what makes train items alike: words it asks, its task type in brackets.

        An example teaches most about items that share its traits.
        """
        kind = [] if item.task_type is None else [f"<{item.task_type}>"]
        return question_words(self.asked(item)) | frozenset(kind)

    def asked(self, item: Item) -> str:
        """Return what the item asks for, in words."""
        return str(item.input.get("question", ""))


def case_of(env: Environment, item: Item, trajectory: Trajectory) -> Case | None:
    """Return what the judge is to be asked of a rollout; None where it is not."""
    if trajectory.ending in WITHOUT_ANSWER or not env.needs_judge(item):
        return None
    return env.case(item, trajectory)

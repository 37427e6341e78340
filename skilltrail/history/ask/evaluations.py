"""Evaluations at hand, and how often they opened the test split.

An evaluation's first event follows the last one of its training log, so it belongs to the run
that ends with that event, wherever it is found:

    .skilltrail/evaluations/RUN/    a log each, RUN is the first digits of that event's id
    reports/out/evaluation.jsonl    the pipeline's, in the workspace
    refs/evolution…                 the commits that go on from the run's

An opening is recorded in the log and among the commits before the first item is rolled out. One
that a person asked for says how many stood before it, so one that was lost is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.canon import digest
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.layout import EVALUATION
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_whole

LOGS = Path(".skilltrail/evaluations")
WITHOUT_RUN = "none"
SEALED = ("test", "all")  # splits that an evaluation opens


@dataclass(frozen=True)
class Evaluation:
    """One evaluation, perhaps unfinished.

    Attributes:
        run: id of the last event of the training that it follows, None where it follows none.
    """

    events: Sequence[Event]

    @property
    def run(self) -> str | None:
        return self.events[0].prev

    @property
    def opened(self) -> Event:
        """The `test.opened` event that it begins with."""
        return self.events[0]

    @property
    def asked(self) -> bool:
        """True where a person asked for it (`skilltrail evaluate`), not the pipeline."""
        return "opened_before" in self.opened.data


@dataclass(frozen=True)
class Openings:
    """How often the test split was opened, as far as that is at hand.

    Attributes:
        run: times for the run asked about; `asked` of them by `skilltrail evaluate`.
        everywhere: times for any run on the same items.
        lost: at least so many more are told of and nowhere to be found.
    """

    run: int
    asked: int
    everywhere: int
    lost: int

    def __str__(self) -> str:
        by = f", {self.asked} of them by `skilltrail evaluate`" if self.asked else ""
        more = self.everywhere - self.run
        others = f"; {self.everywhere}× in all, with other runs" if more else ""
        lost = f"; the record of at least {self.lost} more is missing" if self.lost else ""
        return f"opened {self.run}× for this run{by}{others}{lost}"


def openings(found: Iterable[Evaluation], run: str | None) -> Openings:
    """Count openings for the run that ends in event `run`; each event is one, however often
    it is derived again."""
    opened = {one.opened.id: one for one in found if one.opened.data["split"] in SEALED}
    of_run = [one for one in opened.values() if one.run == run]
    told = [int(one.opened.data["opened_before"]) + 1 for one in of_run if one.asked]
    items = {_items(one) for one in of_run}
    return Openings(
        run=len(of_run),
        asked=len(told),
        everywhere=sum(_items(one) in items for one in opened.values()),
        lost=max(0, max(told, default=0) - len(of_run)),
    )


def _items(one: Evaluation) -> str:
    return digest("items/1", one.opened.data["items"])


def evaluations(project: Project) -> list[Evaluation]:
    """Return every evaluation at hand once, the oldest log first; damaged ones as far as whole.

    Of one that was cut off and gone on with elsewhere, the longest counts.
    """
    found: dict[str, Evaluation] = {}
    for events in (*_in_files(project), *_in_git(project)):
        if not any(events[-1].id in map(_id, one.events) for one in found.values()):
            for id in [id for id, one in found.items() if id in map(_id, events)]:
                del found[id]
            found[events[-1].id] = Evaluation(events)
    return list(found.values())


def _id(event: Event) -> str:
    return event.id


def evaluation_logs(project: Project) -> list[Path]:
    """Return the logs of evaluations: live ones in the order they began, the workspace's."""
    here = project.workspace / EVALUATION
    live = sorted(path for path in (project.root / LOGS).glob("*/*.jsonl") if path.is_file())
    return [*live, *([here] if here.is_file() else [])]


def _in_files(project: Project) -> Iterator[list[Event]]:
    for path in evaluation_logs(project):
        events = read_whole(path, continues=True).events
        if events and events[0].type == "test.opened":
            yield events


def _in_git(project: Project) -> Iterator[list[Event]]:
    from skilltrail.history.git.branches import evaluations_in
    from skilltrail.history.git.repository import Git

    try:
        door = Git.find(project.root)
        if door is not None:
            yield from evaluations_in(door)
    except SkilltrailError:
        return  # the logs have to do; `skilltrail verify` names what is wrong with the commits

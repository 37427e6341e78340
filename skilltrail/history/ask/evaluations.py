"""Evaluations at hand: how often they opened the test split, and what held-out items scored.

An evaluation's first event follows the last one of its training log, so it belongs to the run
that ends with that event, wherever it is found:

    .skilltrail/evaluations/RUN/    a log each, RUN is the first digits of that event's id
    reports/out/evaluation.jsonl    the pipeline's, in the workspace
    refs/evolution…                 the commits that go on from the run's
    a branch or a DVC experiment    for scores: its dvc.lock names the file, DVC's cache has it

An opening is recorded in the log and among the commits before the first item is rolled out. One
that a person asked for says how many stood before it, so one that was lost is missed. Nothing
is fetched; an evaluation that is only on a remote is not at hand (`dvc pull`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.layout import EVALUATION
from skilltrail.core.targets import by_item as by_target_weights
from skilltrail.core.targets import targets_in
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.consumed import items_text
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_whole
from skilltrail.history.log.rows import by_item as by_case_of
from skilltrail.history.log.rows import means_of
from skilltrail.history.log.types.outcomes import RolloutsScored, SkillEvaluated, TestOpened

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
    def opened(self) -> TestOpened:
        """What the event that it begins with says."""
        return self.events[0].read(TestOpened)

    @property
    def asked(self) -> bool:
        """True where a person asked for it (`skilltrail evaluate`), not the pipeline."""
        return self.opened.opened_before is not None


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
    opened = {one.events[0].id: one for one in found if one.opened.split in SEALED}
    of_run = [one for one in opened.values() if one.run == run]
    befores = (one.opened.opened_before for one in of_run)
    asked = [before + 1 for before in befores if before is not None]
    items = {one.opened.items for one in of_run}
    return Openings(
        run=len(of_run),
        asked=len(asked),
        everywhere=sum(one.opened.items in items for one in opened.values()),
        lost=max(0, max(asked, default=0) - len(of_run)),
    )


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


CACHE = ".dvc/cache/files/md5"
HOLDERS = ("refs/heads", "refs/tags", "refs/exps")


@dataclass(frozen=True)
class HeldOut:
    """What the test split said of one run.

    Attributes:
        gain: of the best skill over the seed skill, in `metric`.
        best: the best skill's score of each item.
        items: number and digest of the items that were opened.
        seed: the seed skill's score of each item, where it was measured with it.
    """

    metric: str
    gain: float
    items: str
    best: Mapping[str, Fraction]
    seed: Mapping[str, Fraction] = field(default_factory=dict)


def held_out(project: Project) -> dict[str, HeldOut]:
    """Return what evaluations at hand say, by the id of the run's last event.

    A file that is damaged says nothing here; `skilltrail verify --run FILE` names the fault.
    """
    found: dict[str, HeldOut] = {}
    for events in _found(project):
        try:
            told = held_out_of(events)
        except SkilltrailError:
            continue
        if told is not None and events[0].prev is not None:
            found.setdefault(events[0].prev, told)
    return found


def held_out_of(events: Sequence[Event]) -> HeldOut | None:
    """Return what an evaluation says, None where it did not open the test split for the best
    skill."""
    seed: dict[str, Fraction] = {}
    for at, event in enumerate(events):
        if event.type != "skill.evaluated":
            continue
        said, opening = event.read(SkillEvaluated), events[0].said
        if said.split != "test" or not isinstance(opening, TestOpened):
            continue
        rows = by_case_of(events[at - 1].read(RolloutsScored).items)
        by_case = means_of(rows, said.metric, said.mixed_weight)
        items = by_target_weights(by_case, targets_in(opening.target))
        scores = {item: mean for item, mean in items.items() if mean is not None}
        if said.name == "seed":
            seed = scores
        elif said.name == "best" and said.gain is not None:
            opened = items_text(opening.items)
            return HeldOut(said.metric, said.gain, opened, scores, seed)
    return None


def _found(project: Project) -> Iterator[Sequence[Event]]:
    """Yield the events of every evaluation at hand, the pipeline's before those asked for."""
    yield from (one.events for one in sorted(evaluations(project), key=lambda one: one.asked))
    cached = [project.root / CACHE / md5[:2] / md5[2:] for md5 in _locked(project)]
    for path in dict.fromkeys([project.workspace / EVALUATION, *cached]):
        if path.is_file():
            yield read_whole(path, continues=True).events


def _locked(project: Project) -> Iterator[str]:
    """Yield the MD5 of the evaluation in every dvc.lock that a branch or experiment holds."""
    from skilltrail.history.git.repository import Git, GitError

    door = Git.find(project.root)
    if door is None:
        return
    lock = f"{door.prefix}dvc.lock"
    for sha in dict.fromkeys(door.refs(*HOLDERS).values()):
        try:
            (text,) = door.files([door.resolve(sha)], lock)
            yield from _outs(text)
        except (GitError, YAMLError, AttributeError, TypeError, RecursionError):
            continue  # no lock, or one that a merge or a crash left damaged


def _outs(text: bytes) -> Iterator[str]:
    stages = (YAML(typ="safe").load(text) or {}).get("stages", {})
    for stage in stages.values():
        for out in stage.get("outs", ()):
            if out.get("path") == EVALUATION.as_posix() and "md5" in out:
                yield out["md5"]

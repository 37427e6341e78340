"""Held-out scores of runs: evaluation logs, found where they lie and matched by their chain.

An evaluation's first event follows the last one of its training log, so an evaluation belongs
to the run that ends with that event, wherever the file is found:

    logs and commits                  see `evaluations`
    a branch or a DVC experiment      its dvc.lock names the file, DVC's cache has it

Nothing is fetched; an evaluation that is only on a remote is not at hand (`dvc pull`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.layout import EVALUATION
from skilltrail.core.targets import by_item as by_target_weights
from skilltrail.core.targets import targets_in
from skilltrail.history.ask.evaluations import evaluations
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.consumed import told_items
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_whole
from skilltrail.history.log.rows import by_item as by_case_of
from skilltrail.history.log.rows import means_of
from skilltrail.history.log.types.outcomes import RolloutsScored, SkillEvaluated, TestOpened

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
            told = told_of(events)
        except SkilltrailError:
            continue
        if told is not None and events[0].prev is not None:
            found.setdefault(events[0].prev, told)
    return found


def told_of(events: Sequence[Event]) -> HeldOut | None:
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
            opened = told_items(opening.items)
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

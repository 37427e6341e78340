"""Verify a run at three levels, each checked or absent.

    log        chain, schemas, versions rebuilt, every decision that follows recomputed; the
               skill that stands beside the log is its best version
    facts      items rescored from their trajectories; the loop run again on recorded facts;
               the named metrics of an evaluation computed again
    anchored   equal to the commits of a run

Nothing is repaired, no model is asked, nothing is fetched. A change that keeps every hash and
every decision right (of a train score, say) is beyond the first level; the others catch it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import skilltrail.verify.rules
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import SPLITS
from skilltrail.data.splits import read_split
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_log
from skilltrail.history.log.replay import version_of
from skilltrail.runtime.outputs import BEST_SKILL, EVENTS
from skilltrail.runtime.workspace import environment_of, load_params
from skilltrail.store import database
from skilltrail.store.facts import FactStore
from skilltrail.store.place import Place
from skilltrail.verify.faults import Fault
from skilltrail.verify.levels import Report, verify_log
from skilltrail.verify.replay_check import rerun
from skilltrail.verify.rescore import remeasured, rescored

assert skilltrail.verify.rules  # its import registers the checks of level log

CHECKED, ABSENT = "checked", "absent"


@dataclass(frozen=True)
class Level:
    """One level: `checked` or `absent`, and what was or was not looked at."""

    name: str
    state: str
    detail: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Verification:
    """All levels of one log."""

    name: str
    events: int
    levels: tuple[Level, ...]
    not_recomputed: Mapping[str, int]

    @property
    def faults(self) -> list[Fault]:
        return [fault for level in self.levels for fault in level.faults]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"faults": [fault.to_json() for fault in self.faults]}


async def verify(
    place: Place,
    data: bytes,
    name: str,
    *,
    allow_unfinished: bool = False,
    after: Event | None = None,
) -> Verification:
    """Verify the bytes of a log at every level that this place allows.

    Args:
        after: the event that the first line follows: an evaluation's log goes on from the
            training log.
    """
    report = verify_log(data, name, allow_unfinished=allow_unfinished, after=after)
    levels = (
        log_level(report, tuple(skill_faults(place, data, report))),
        await facts_level(place, report, after),
        anchored_level(place, report),
    )
    return Verification(name, len(report.events), levels, dict(report.not_recomputed))


def log_level(report: Report, more: Sequence[Fault]) -> Level:
    """Return what `verify_log` found, and `more` faults, as a level."""
    decisions = sum(report.recomputed.values())
    detail = f"{len(report.events)} events, {decisions} decisions recomputed"
    if report.not_recomputed:
        tags = ", ".join(f"{tag} ({n})" for tag, n in sorted(report.not_recomputed.items()))
        detail += f"; not recomputed here: {tags}"
    return Level("log", CHECKED, detail, (*report.faults, *more))


def skill_faults(place: Place, data: bytes, report: Report) -> Iterator[Fault]:
    """Compare `skills/best_skill.md` with the best version of the log beside it."""
    skill, log = place.workspace / BEST_SKILL, place.workspace / EVENTS
    if not skill.is_file() or not log.is_file() or log.read_bytes() != data:
        return
    try:
        best = version_of(report.events, "best")
    except SkilltrailError:
        return  # the log's own faults say why no version can be rebuilt
    found = hashlib.sha256(skill.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    if found != best.digest:
        right = f"{best.digest}, version {best.number}"
        yield Fault(None, BEST_SKILL.as_posix(), "sha256", found, right)


def anchored_level(place: Place, report: Report) -> Level:
    """Compare the log with the commits of the repository's runs."""
    from skilltrail.history.git.repository import Git, GitError
    from skilltrail.verify.anchor import find_anchor

    if not report.events or report.events[0].seq != 1:
        return Level("anchored", ABSENT, "the log has no beginning")
    try:
        door = Git.find(place.root)
        if door is None:
            return Level("anchored", ABSENT, "this project is not in git")
        anchor = find_anchor(door, report.events)
    except GitError as error:
        return Level("anchored", ABSENT, str(error))
    state = CHECKED if anchor.ref is not None or anchor.faults else ABSENT
    return Level("anchored", state, anchor.detail, anchor.faults)


async def facts_level(place: Place, report: Report, after: Event | None = None) -> Level:
    """Rescore rollouts from the store, then run the loop again on recorded facts alone.

    Of an evaluation, which goes on from `after`, the named metrics are computed again instead.
    """
    events = report.events
    if not events or events[0].type != ("run.started" if after is None else "test.opened"):
        return Level("facts", ABSENT, "the log has no beginning")
    if not (place.state / database.FILE).exists():
        return Level("facts", ABSENT, "there is no store (`dvc pull` and `dvc repro` fill it)")
    try:
        started = (events if after is None else read_log(place.workspace / EVENTS))[0].data
        params = load_params(place.workspace)
        env = environment_of(params)
        items = {name: read_split(place.workspace, name) for name in _splits(events[0])}
    except SkilltrailError as error:
        return Level("facts", ABSENT, str(error))
    if (env.name, env.version) != (started["env"], started["agent"]["version"]):
        found = f"{env.name} {env.version}"
        return Level("facts", ABSENT, f"the environment here is {found}, the run's is another")
    with FactStore.open(place.root) as store:
        scores, faults = rescored(events, store, env, items)
        if after is None:
            again, more = await rerun(place, params, env, items, store, events)
        else:
            again, more = remeasured(events, store, env, items)
    state = CHECKED if scores or not again.startswith("not") else ABSENT
    return Level("facts", state, f"{scores} rollouts rescored; {again}", (*faults, *more))


def _splits(first: Event) -> tuple[str, ...]:
    """Return the splits whose items a log that begins so is about."""
    if first.type == "run.started":
        return ("train", "selection")
    split = first.data["split"]
    return SPLITS if split == "all" else (split,)

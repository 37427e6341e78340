"""Verify a run at three levels, each checked or absent.

    log        chain, schemas, versions rebuilt, every decision that follows recomputed
    facts      items rescored from their trajectories; the loop run again on recorded facts
    anchored   equal to the commits of a run

Nothing is repaired, no model is asked, nothing is fetched. A change that keeps every hash and
every decision right (of a train score, say) is beyond the first level; the others catch it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import stages.recheck
from stages.core.errors import SkilltrailError
from stages.core.item import Item
from stages.core.params import Params, seed_skill_path
from stages.core.trajectory import Trajectory
from stages.data.splits import read_split
from stages.envs.protocol import Environment
from stages.history.consumed import consumed_params
from stages.history.events import Event
from stages.history.faults import FACTS, Fault
from stages.history.log import follow
from stages.history.verify import ENDS, Report, verify_log
from stages.loop import train
from stages.models.errors import UnseenRequest
from stages.models.protocol import Model, Reply, Request
from stages.models.registry import open_model
from stages.optimizers.registry import open_optimizer
from stages.rollout import Rollouts, judge
from stages.run import Run
from stages.store import database
from stages.store.facts import FactStore
from stages.store.place import Place
from stages.store.protocol import Made
from stages.train import read_seed_skill
from stages.workspace import environment_of, load_params

assert stages.recheck  # its import registers the checks of level log

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
        log_level(report),
        await facts_level(place, report),
        anchored_level(place, report),
    )
    return Verification(name, len(report.events), levels, dict(report.not_recomputed))


def log_level(report: Report) -> Level:
    """Return what `verify_log` found, as a level."""
    decisions = sum(report.recomputed.values())
    detail = f"{len(report.events)} events, {decisions} decisions recomputed"
    if report.not_recomputed:
        tags = ", ".join(f"{tag} ({n})" for tag, n in sorted(report.not_recomputed.items()))
        detail += f"; not recomputed here: {tags}"
    return Level("log", CHECKED, detail, tuple(report.faults))


def anchored_level(place: Place, report: Report) -> Level:
    """Compare the log with the commits of the repository's runs."""
    from stages.history.anchor import find_anchor
    from stages.history.gitdoor import GitDoor, GitError

    if not report.events or report.events[0].seq != 1:
        return Level("anchored", ABSENT, "the log has no beginning")
    try:
        door = GitDoor.find(place.root)
        if door is None:
            return Level("anchored", ABSENT, "this project is not in git")
        anchor = find_anchor(door, report.events)
    except GitError as error:
        return Level("anchored", ABSENT, str(error))
    state = CHECKED if anchor.ref is not None or anchor.faults else ABSENT
    return Level("anchored", state, anchor.detail, anchor.faults)


async def facts_level(place: Place, report: Report) -> Level:
    """Rescore rollouts from the store, then run the loop again on recorded facts alone."""
    events = report.events
    if not events or events[0].type != "run.started":
        return Level("facts", ABSENT, "the log has no beginning")
    if not (place.state / database.FILE).exists():
        return Level("facts", ABSENT, "there is no store (`dvc pull` and `dvc repro` fill it)")
    try:
        params = load_params(place.workspace)
        env = environment_of(params)
        items = {name: read_split(place.workspace, name) for name in ("train", "selection")}
    except SkilltrailError as error:
        return Level("facts", ABSENT, str(error))
    started = events[0].data
    if (env.name, env.version) != (started["env"], started["agent"]["version"]):
        found = f"{env.name} {env.version}"
        return Level("facts", ABSENT, f"the environment here is {found}, the run's is another")
    with FactStore.open(place.root) as store:
        scores, faults = rescored(events, store, env, items)
        again, more = await rerun(place, params, env, items, store, events)
    state = CHECKED if scores or not again.startswith("not") else ABSENT
    return Level("facts", state, f"{scores} rollouts rescored; {again}", (*faults, *more))


def rescored(
    events: Sequence[Event],
    store: FactStore,
    env: Environment,
    items: Mapping[str, Sequence[Item]],
) -> tuple[int, list[Fault]]:
    """Score recorded trajectories again; return how many, and the rows that differ.

    Items whose content is no longer the recorded one, and rollouts that are not in the store,
    are passed over.
    """
    started = events[0].data
    digests = {row["item"]: row["digest"] for split in items for row in started[split]}
    known = {item.id: item for split in items.values() for item in split}
    same = {id for id, item in known.items() if digests.get(id) == item.content_digest}
    scored = 0
    faults = []
    for event in events:
        if event.type != "rollouts.scored":
            continue
        rows = [
            r for r in event.data["items"] if r["outcome"] == "scored" and r["item"] in same
        ]
        facts = store.get_many(row["key"] for row in rows)
        for row in rows:
            if row["key"] not in facts:
                continue
            trajectory = Trajectory.from_json(facts[row["key"]]["trajectory"])
            score = judge(env, known[row["item"]], trajectory)
            scored += 1
            for name in ("hard", "soft", "reason"):
                right = getattr(score, name)
                if row[name] != right:
                    what = f"{name} of item {row['item']}"
                    faults.append(Fault.of(event, what, row[name], right, FACTS))
    return scored, faults


class Refusing:
    """The target's identity without the target: what is not recorded is not asked for."""

    def __init__(self, target: Model) -> None:
        self.identity = target.identity
        self.style = target.style
        self.abilities = target.abilities
        self.workers = 1

    async def complete(self, request: Request) -> Reply:
        raise UnseenRequest("verify", "a rollout is not in the store", "Run `dvc repro`")

    async def close(self) -> None:
        pass


class Differs(Exception):
    """The loop told another event than the log holds."""

    def __init__(self, told: Event, stands: Event | None) -> None:
        super().__init__(told.name)
        self.told, self.stands = told, stands


class Echo:
    """A history that holds each event against the log and writes nothing."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._standing = events
        self.events: list[Event] = []

    @property
    def next_seq(self) -> int:
        return len(self.events) + 1

    def append(self, type: str, data: Mapping[str, Any]) -> Event:
        event = follow(self.events[-1] if self.events else None, type, data)
        at = len(self.events)
        stands = self._standing[at] if at < len(self._standing) else None
        if stands is None or stands.line != event.line:
            raise Differs(event, stands)
        self.events.append(event)
        return event

    def flush(self) -> None:
        pass


class RecordedOnly:
    """The store as a prompted optimizer sees it: replies are found again, never asked for."""

    def __init__(self, store: FactStore) -> None:
        self._store = store
        self.lacks = False

    async def get_or_make(
        self, kind: str, key: str, make: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> Made:
        value = self._store.get(key)
        if value is None:
            self.lacks = True
            raise UnseenRequest("verify", "a reply is not in the store", "Run `dvc repro`")
        return Made(value, reused=True)


class Uncounted:
    """Counts nothing: no rollout of a verification is new."""

    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        pass


async def rerun(
    place: Place,
    params: Params,
    env: Environment,
    items: Mapping[str, Sequence[Item]],
    store: FactStore,
    events: Sequence[Event],
) -> tuple[str, list[Fault]]:
    """Run the loop on recorded facts and compare event by event; return words and faults."""
    why_not = _other_params(params, events)
    if why_not is not None:
        return f"not run again: {why_not}", []
    echo, replies = Echo(events), RecordedOnly(store)
    lacking = "not run again beyond event {}: a fact is not in the store"
    try:
        await train(_run(place, params, env, items, store, replies, echo, events))
    except Differs as found:
        if replies.lacks:
            return lacking.format(echo.next_seq), []
        if found.stands is None and events[-1].type not in ENDS:
            return f"all {len(events)} events told again by the loop are the same", []
        return _difference(found)
    except UnseenRequest:
        return lacking.format(echo.next_seq), []
    except SkilltrailError as error:
        return f"not run again: {error}", []
    return "every event told again by the loop is the same", []


def _run(
    place: Place,
    params: Params,
    env: Environment,
    items: Mapping[str, Sequence[Item]],
    store: FactStore,
    replies: RecordedOnly,
    echo: Echo,
    events: Sequence[Event],
) -> Run:
    """Return the run as it was, with doors that only recorded facts come through."""
    return Run(
        params=params,
        train=tuple(items["train"]),
        selection=tuple(items["selection"]),
        seed_skill=read_seed_skill(place.workspace / seed_skill_path(params)),
        rollouts=Rollouts(
            env,
            Refusing(open_model("target", params.target)),
            store,
            Uncounted(),
            gaps=_run_name(place, events),
            min_coverage=params.gate.min_coverage,
        ),
        optimizer=open_optimizer(params, env, replies, lambda reply, *, reused: None),
        history=echo,
        parent=params.skill.parent,
        say=lambda record, state: None,
    )


def _difference(found: Differs) -> tuple[str, list[Fault]]:
    told, stands = found.told, found.stands
    if told.seq == 1:
        return "not run again: data or params here are not the run's", []
    line = "the end of the log" if stands is None else stands.line.decode()
    fault = Fault(told.seq, told.type, "event told again", line, told.line.decode(), FACTS)
    return f"the loop told another event {told.seq}", [fault]


def _other_params(params: Params, events: Sequence[Event]) -> str | None:
    """Say which param here is not the one that the run consumed, or None."""
    for name, recorded in consumed_params(events).items():
        value: Any = params
        for part in name.split("."):
            value = getattr(value, part, None)
        comparable = not name.startswith(("target.", "skill.")) and name != "gate.rule"
        if comparable and value != recorded:
            return f"{name} is {value} here and was {recorded} in the run"
    return None


def _run_name(place: Place, events: Sequence[Event]) -> str:
    """Return the name of the run's live log, under which its gaps are kept; "" without one."""
    wanted = events[-1].id.encode()
    for log in sorted((place.state / "runs").glob("*/events.jsonl")):
        if wanted in log.read_bytes():
            return log.parent.name
    return ""

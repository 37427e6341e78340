"""Retell: run the loop again on recorded facts alone and hold every event against the log.

The doors of such a run let nothing new in: the target is refused, an optimizer's reply is found
in the store or not at all, and the history writes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.history.log.consumed import consumed_params
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import follow
from skilltrail.method.loop import train
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import Run
from skilltrail.models.backends.replay import RecordedCalls
from skilltrail.models.client.identity import identity_of
from skilltrail.models.errors import UnseenRequest
from skilltrail.models.judge import Judge, read_rubric
from skilltrail.models.protocol import Reply, Request
from skilltrail.models.registry import abilities_of, open_model, style_of
from skilltrail.optimizers.registry import open_optimizer
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.training import read_seed_skill
from skilltrail.store.facts import FactStore
from skilltrail.store.place import Place
from skilltrail.store.protocol import Made
from skilltrail.verify.faults import FACTS, Fault
from skilltrail.verify.levels import ENDS


class Refusing:
    """A model's identity without the model: what is not recorded is not asked for.

    No key is needed for it, and no package of the provider.
    """

    workers = 1

    def __init__(self, role: str, options: RoleOptions) -> None:
        if options.backend in ("local", "replay"):
            model = open_model(role, options, records=RecordedCalls((), {}))
            self.identity, self.style = model.identity, model.style
            self.abilities = model.abilities
        else:
            self.identity, self.style = identity_of(options), style_of(options)
            self.abilities = abilities_of(options)

    async def complete(self, request: Request) -> Reply:
        raise UnseenRequest("verify", "a reply is not in the store", "Run `dvc repro`")

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
            Refusing("target", params.target),
            store,
            Uncounted(),
            gaps=_run_name(place, events),
            min_coverage=params.gate.min_coverage,
            judge=_judge(place, params, store),
        ),
        optimizer=open_optimizer(
            params,
            env,
            replies,
            lambda reply, *, reused: None,
            opener=partial(Refusing, "optimizer"),
        ),
        history=echo,
        parent=params.skill.parent,
        say=lambda record, state: None,
    )


def _judge(place: Place, params: Params, store: FactStore) -> Judge | None:
    """Return the judge as it was, who only repeats what is recorded."""
    asked = params.judge
    if asked.backend == "none":
        return None
    rubric = read_rubric(place.workspace / asked.rubric)
    model = Refusing("judge", asked)
    return Judge(model, rubric, asked.threshold, store, lambda reply, *, reused: None)


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
        elsewhere = name.startswith(("target.", "judge.", "skill.")) or name == "gate.rule"
        if not elsewhere and value != recorded:
            return f"{name} is {value} here and was {recorded} in the run"
    return None


def _run_name(place: Place, events: Sequence[Event]) -> str:
    """Return the name of the run's live log, under which its gaps are kept; "" without one."""
    wanted = events[-1].id.encode()
    for log in sorted((place.state / "runs").glob("*/events.jsonl")):
        if wanted in log.read_bytes():
            return log.parent.name
    return ""

"""What runs on a node: one rollout at a time in a process, on a model that is kept open.

A process answers the probe when it opens its model. Where its answers are not the head's, it
makes nothing: another processor may round otherwise, and then its rollouts would not be those
that the head would have made.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import Item
from skilltrail.envs.registry import environment_class
from skilltrail.method.making import Here
from skilltrail.models.protocol import Decoding, Model, Request
from skilltrail.params.model_options import EMBEDDED_BACKENDS, RoleOptions
from skilltrail.runtime.cluster.purse import RemoteBudget

Open = Callable[..., Model]
_SHOWN_CHARS = 60
_RULES = "Answer with one line. " * 12 + "Say no more than you are asked for.\n\n"
# Long enough that a difference in rounding changes a word, short enough to cost seconds.
PROBES = tuple(
    Request(system=_RULES, prompt=prompt, decoding=Decoding(max_tokens=40))
    for prompt in (
        "Question: Which river runs through the city, and where does it end?\nAnswer:",
        "List of numbers, each twice the one before: 3, 6, 12,",
        "Once upon a time a clockmaker and a baker",
    )
)


@dataclass(frozen=True)
class RolloutJob:
    """What all rollouts of one target have in common.

    Attributes:
        name: tells jobs of a session apart.
        env: the environment's name.
        env_params: its params, pickled, for their class is known after its module only.
        probes, answers: what a node must answer and how; () where models may vary.
        identity: the head's model, that a node's must be.
    """

    name: str
    env: str
    env_params: bytes
    role: str
    options: RoleOptions
    identity: Mapping[str, Any]
    opener: Open
    probes: Sequence[Request] = ()
    answers: Sequence[str] = ()


@dataclass(frozen=True)
class Barred:
    """Why a node makes nothing."""

    node: str
    why: str


@dataclass
class Seat:
    """A process of a node with its model open."""

    here: Here
    loop: asyncio.AbstractEventLoop
    budget: RemoteBudget | None
    fault: str = ""


@dataclass
class _Process:
    seats: dict[str, Seat] = field(default_factory=dict)


_PROCESS = _Process()


def probes_for(options: RoleOptions) -> tuple[Request, ...]:
    """Return what a node is probed with: only embedded models must answer alike."""
    return PROBES if options.backend in EMBEDDED_BACKENDS else ()


def answers_of(model: Model, probes: Sequence[Request]) -> list[str]:
    """Return the texts that a model answers probes with, one after the other."""

    async def ask() -> list[str]:
        return [(await model.complete(probe)).text for probe in probes]

    return asyncio.run(ask())


def roll_out(
    job: RolloutJob, skill: str, item: Item, ticket: str, purse: Any
) -> dict[str, Any] | SkilltrailError | OSError | Barred:
    """Make one rollout and return its value, what went wrong, or why this node is barred.

    `ticket` names this rollout to the purse, which is None where the role has no limit.
    """
    try:
        seat = _seat(job, purse)
        if seat.fault:
            return Barred(_node(), seat.fault)
        if seat.budget is not None:
            seat.budget.ticket = ticket
        return seat.loop.run_until_complete(seat.here.make(item, skill))
    except (SkilltrailError, OSError) as error:
        return error


def _seat(job: RolloutJob, purse: Any) -> Seat:
    if job.name not in _PROCESS.seats:
        kind = environment_class(job.env)
        env = kind(pickle.loads(job.env_params))
        options = replace(job.options, workers=1)
        budget = None if purse is None else RemoteBudget(job.role, options, purse)
        unheld = job.opener(job.role, options)
        fault = _differs(job, unheld)
        model = unheld if budget is None else job.opener(job.role, options, budget=budget)
        seat = Seat(Here(env, model), asyncio.new_event_loop(), budget, fault)
        _PROCESS.seats[job.name] = seat
    return _PROCESS.seats[job.name]


def _differs(job: RolloutJob, model: Model) -> str:
    """Return how this node's model differs from the head's; "" where it does not."""
    if dict(model.identity) != dict(job.identity):
        return "its model is another one (other weights or settings)"
    answers = answers_of(model, job.probes)
    for number, (here, there) in enumerate(zip(answers, job.answers, strict=True), start=1):
        if here != there:
            return f"probe {number} is answered {_short(here)}, by the head {_short(there)}"
    return ""


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def _node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())

"""Every method that trains a skill document, by the name that `method` in params.yaml gives.

A method is an asynchronous generator over the same building blocks as the main loop (rollouts,
optimizer questions, candidates, gate, events): it takes the run and the state after the seed
skill was measured, and yields the state after each step. So a run can end after any of them.
All share the first events, and hence the first commits, and part at `method.chosen`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass

from skilltrail.history.log import types
from skilltrail.method import loop
from skilltrail.method.calls import CallsSpent
from skilltrail.method.run import Run, State
from skilltrail.methods.bootstrap import bootstrap
from skilltrail.methods.gepa import gepa
from skilltrail.methods.mipro import mipro
from skilltrail.methods.opro import opro
from skilltrail.methods.promptbreeder import promptbreeder
from skilltrail.methods.random_search import random_search
from skilltrail.methods.textgrad import textgrad
from skilltrail.methods.tpe import require_optuna


@dataclass(frozen=True)
class Method:
    """A rival of the main loop.

    Attributes:
        tag: name and version of its decisions.
        steps: yields the state after each step.
        end: what has run out when it ends of itself.
        require: raises where something it needs is not installed.
    """

    tag: str
    steps: Callable[[Run, State], AsyncGenerator[State, None]]
    end: str
    require: Callable[[], None] = lambda: None


RIVALS: Mapping[str, Method] = {
    "bootstrap": Method("bootstrap/1", bootstrap, "candidates"),
    "gepa": Method("gepa/1", gepa, "epochs"),
    "mipro": Method("mipro/1", mipro, "trials", require_optuna),
    "opro": Method("opro/1", opro, "rounds"),
    "promptbreeder": Method("promptbreeder/1", promptbreeder, "generations"),
    "random_search": Method("random_search/1", random_search, "candidates"),
    "textgrad": Method("textgrad/1", textgrad, "epochs"),
}


async def train(run: Run) -> State:
    """Train by the run's method; every decision is in the history by then."""
    rival = RIVALS.get(run.params.method)
    return await (loop.train(run) if rival is None else compete(run, rival))


async def compete(run: Run, rival: Method) -> State:
    """Train by a rival: measure the seed skill, then take its steps until one thing ends."""
    rival.require()
    state = await loop.measure_seed(run)
    settings = asdict(getattr(run.params.methods, run.params.method))
    run.tell(types.MethodChosen(method=run.params.method, rule=rival.tag, settings=settings))
    why = rival.end
    try:
        async with aclosing(rival.steps(run, state)) as steps:
            async for after in steps:
                state = after
    except CallsSpent:
        why = "calls"
    return loop.finish(run, state, why)

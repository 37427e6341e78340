"""A session: params, environment, target and store, opened together and closed together.

Every command that may call a model works inside one: the stages `train` and `evaluate`, and the
commands `evaluate`, `bisect` and `aa-check`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from stages.core.params import Params
from stages.core.trajectory import Trajectory
from stages.envs.protocol import Environment
from stages.models.local import local_model
from stages.models.protocol import Decoding, Model
from stages.progress import Progress
from stages.rollout import Rollouts
from stages.store.facts import FactStore
from stages.store.ops import Ops
from stages.store.place import Place, find_place
from stages.store.usage import Meter
from stages.workspace import environment_of, load_params


@dataclass(frozen=True)
class Session:
    place: Place
    params: Params
    env: Environment
    target: Model
    store: FactStore
    meter: Meter
    ops: Ops
    progress: Progress

    def rollouts(self, gaps: str = "") -> Rollouts:
        """Return the door to rollouts; `gaps` names the run, see `Rollouts`."""
        return Rollouts(
            self.env,
            self.target,
            self.store,
            self,
            gaps=gaps,
            min_coverage=self.params.gate.min_coverage if gaps else 1.0,
        )

    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        """Count one finished rollout of the target."""
        if trajectory is None:
            self.meter.failed("target")
        elif reused:
            self.meter.reused("target", trajectory.usage)
        else:
            self.meter.made("target", trajectory.usage, 0.0)
        self.progress.rollout(reused=reused)

    def report(self, kind: str, details: Mapping[str, Any]) -> None:
        """Write what is not an event to the operations log."""
        self.ops.write(kind, **details)


@asynccontextmanager
async def open_session(section: str, place: Place | None = None) -> AsyncIterator[Session]:
    """Open a session; `section` (`train` or `evaluate`) is where its usage is counted."""
    place = find_place() if place is None else place
    params = load_params(place.workspace)
    env = environment_of(params)
    ops = Ops(place.state / "ops.jsonl")
    with FactStore.open(place.root, ops) as store, Progress(section) as progress:
        target = open_target(params)
        try:
            with Meter(place, section) as meter:
                yield Session(place, params, env, target, store, meter, ops, progress)
        finally:
            await target.close()


def open_target(params: Params) -> Model:
    """Return the frozen model that does the tasks."""
    target = params.target
    decoding = Decoding(
        max_tokens=target.max_tokens,
        temperature=target.temperature,
        top_p=target.top_p,
        stop=target.stop,
        seed=target.seed,
        effort=target.effort,
    )
    return local_model(
        model=target.model,
        style=target.style,
        workers=target.workers,
        n_ctx=target.n_ctx,
        decoding=decoding,
    )

"""A model that notes who served its replies, for the record of one rollout."""

from __future__ import annotations

from typing import Any

from skilltrail.core.served import Served
from skilltrail.core.trajectory import Trajectory
from skilltrail.models.protocol import Model, Reply, Request, WrappedModel


class NotingModel(WrappedModel):
    """Passes requests on, and keeps what replies say of who gave them."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._served: set[Served] = set()

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        self._served.add(Served(reply.model, reply.fingerprint))
        return reply

    def noted(self, trajectory: Trajectory) -> dict[str, Any]:
        """Return what a fact records beside its trajectory: nothing that this says already."""
        found = sorted(self._served - {Served("")})
        if found == [Served(trajectory.model)] or not found:
            return {}
        return {"served": [[one.model, one.fingerprint] for one in found]}

"""Rollouts made by Ray tasks: placed by resources, made again elsewhere where a node was lost.

A task is not repeated by Ray: this side learns of each loss, so that budgets and the journal
do, and sends the rollout again. Which nodes may have it is told to Ray by their labels.
"""

from __future__ import annotations

import asyncio
import math
import pickle
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.envs.protocol import Environment
from skilltrail.models.errors import ModelConfigError, Transient
from skilltrail.models.panel import members_of
from skilltrail.models.protocol import Model, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import BudgetOptions, RoleOptions
from skilltrail.runtime.cluster.node import (
    Barred,
    Open,
    RolloutJob,
    answers_of,
    probes_for,
    roll_out,
)

_LOOK_S = 2.0
_KEPT_SKILLS = 8
Report = Callable[..., None]


class RayMaker:
    """Makes rollouts of one environment by one target on a cluster.

    Args:
        purse: returns the actor that keeps the role's account, or None where it has no limit.
        say: tells a person; report: writes to the operations journal.
    """

    def __init__(
        self,
        ray: Any,
        env: Environment,
        role: str,
        options: RoleOptions,
        target: Model,
        resources: Mapping[str, float],
        *,
        purse: Callable[[], Any],
        say: Callable[[str], None],
        report: Report,
        opener: Open = open_model,
        probes: Sequence[Request] | None = None,
    ) -> None:
        self._ray, self._options, self._resources = ray, options, resources
        self._purse, self._say, self._report = purse, say, report
        self._job = RolloutJob(
            uuid.uuid4().hex, env.name, pickle.dumps(env.params), role, options,
            dict(target.identity), opener, probes_for(options) if probes is None else probes,
        )  # fmt: skip
        self._sent: asyncio.Task[Any] | None = None  # puts the job, once the probe is answered
        self._skills: dict[str, Any] = {}
        self._barred: dict[str, str] = {}
        self._slots, self._looked = 1, -math.inf
        self._task = ray.remote(roll_out)

    @property
    def workers(self) -> int:
        """What the nodes have room for, but not over `target.workers` where that is set."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._slots, self._looked = self._room(), time.monotonic()
        set_to = self._options.workers
        return min(self._slots, set_to) if set_to else self._slots

    async def make(self, item: Item, skill: str) -> dict[str, Any]:
        """Return the rollout's value; see `Maker`.

        Raises:
            Transient: as many nodes were lost over it as `retry.attempts` allows.
            ModelConfigError: no node may be used, or one cannot open the model.
        """
        if self._sent is None:
            self._sent = asyncio.create_task(self._send_job())
        job = await asyncio.shield(self._sent)
        purse, lost = self._purse(), 0
        while lost < self._options.retry.attempts:
            ticket = uuid.uuid4().hex
            task = self._task.options(**self._placed())
            reference = task.remote(job, self._put(skill), item, ticket, purse)
            try:
                done = await reference
            except asyncio.CancelledError:
                self._ray.cancel(reference, force=False)
                raise
            except self._ray.exceptions.RayTaskError:
                raise
            except self._ray.exceptions.RayError as error:
                lost += 1
                self._report("rollout.lost", item=item.id, found=type(error).__name__)
                if purse is not None:
                    await purse.lost.remote(ticket)
                continue
            if isinstance(done, Barred):
                self._bar(done)
                continue
            if isinstance(done, Exception):
                raise done
            return dict(done)
        raise Transient(
            f"item {item.id!r} on the cluster",
            f"the node or process that was at it was lost {lost} times",
            "See `ray status`; an item that needs more memory than a node has ends so too",
            billed=True,
        )

    async def _send_job(self) -> Any:
        """Answer the probe here and put the job where nodes find it."""
        answers = await asyncio.to_thread(self._own_answers) if self._job.probes else []
        return self._ray.put(replace(self._job, answers=answers))

    def _own_answers(self) -> list[str]:
        free = replace(self._options, workers=1, budget=BudgetOptions())
        model = self._job.opener(self._job.role, free)
        try:
            return answers_of(model, self._job.probes)
        finally:
            asyncio.run(model.close())

    def _put(self, skill: str) -> Any:
        """Return the skill as an object that each node fetches once."""
        name = text_digest(skill)
        if name not in self._skills:
            if len(self._skills) >= _KEPT_SKILLS:
                del self._skills[next(iter(self._skills))]
            self._skills[name] = self._ray.put(skill)
        return self._skills[name]

    def _placed(self) -> dict[str, Any]:
        """Return where a task may run, in Ray's words."""
        needs = {name.lower(): amount for name, amount in self._resources.items()}
        known = {"cpu": "num_cpus", "gpu": "num_gpus", "memory": "memory"}
        placed: dict[str, Any] = {"max_retries": 0, "num_cpus": 0}
        placed |= {known[name]: needs[name] for name in needs if name in known}
        placed["resources"] = {
            name: amount
            for name, amount in self._resources.items()
            if name.lower() not in known
        }
        if self._barred:
            placed["label_selector"] = {"ray.io/node-id": f"!in({','.join(self._barred)})"}
        return placed

    def _room(self) -> int:
        """Return how many rollouts the nodes that may be used have room for, at least 1.

        Without room one is asked for all the same: it waits for a node, and tells a cluster
        that grows by need that there is one.
        """
        room = sum(
            room_on(node["Resources"], self._resources)
            for node in self._ray.nodes()
            if node["Alive"] and node["NodeID"] not in self._barred
        )
        if room == 0:
            wanted = ", ".join(f"{name}: {n:g}" for name, n in self._resources.items())
            self._say(f"waiting: no node of the cluster has {{{wanted}}}")
        return max(1, room)

    def _bar(self, barred: Barred) -> None:
        """Send nothing more to a node, and say which it is.

        Raises:
            ModelConfigError: no node is left.
        """
        nodes = {n["NodeID"]: n for n in self._ray.nodes() if n["Alive"]}
        known = nodes.get(barred.node, {})
        name = f"{known.get('NodeManagerHostname', 'gone')} ({barred.node[:12]})"
        if barred.node not in self._barred:
            self._barred[barred.node] = barred.why
            self._looked = -math.inf
            self._say(f"warning: node {name} makes no rollouts: {barred.why}")
            self._report("node.barred", node=name, why=barred.why)
        fit = [id for id, n in nodes.items() if room_on(n["Resources"], self._resources)]
        if fit and set(fit) <= set(self._barred):
            raise ModelConfigError(
                "executor: ray",
                f"every node answers otherwise than this machine; {name}: {barred.why}",
                "Run the head on a machine of the nodes' kind, or use executor: local",
            )


def room_on(has: Mapping[str, float], needs: Mapping[str, float]) -> int:
    """Return how many rollouts that need this fit on a node that has that."""
    there = {name.lower(): amount for name, amount in has.items()}
    return min(int(there.get(name.lower(), 0) // amount) for name, amount in needs.items())


def refuse_models_of_here(role: str, options: RoleOptions, target: Model) -> None:
    """Refuse what is made on this machine alone: answers that lie here, several targets.

    Raises:
        ModelConfigError: it is one of these.
    """
    if members_of(target):
        raise ModelConfigError(
            "executor: ray", "several `targets`", "Use executor: local, or train on one target"
        )
    if options.backend in ("handoff", "replay"):
        raise ModelConfigError(
            f"{role}.backend: {options.backend}",
            "executor: ray, and its answers lie on this machine alone",
            "Use executor: local",
        )

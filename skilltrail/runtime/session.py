"""A session: params, environment, target and store, opened together and closed together.

Every command that may call a model works inside one: the stages `train` and `evaluate`, and the
commands `evaluate`, `bisect` and `aa-check`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from skilltrail.core.served import Served, in_words, served_by, told_apart
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import gate_rule
from skilltrail.models.client.prices import cost_usd, price_of
from skilltrail.models.environ import redactor
from skilltrail.models.judge import Judge, read_rubric
from skilltrail.models.panel import Panel
from skilltrail.models.protocol import Model, Reply
from skilltrail.models.registry import key_env_of, open_model, warning_of
from skilltrail.params.fields import Params
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.call_estimate import transfer_role
from skilltrail.runtime.cluster.connection import Cluster, connected
from skilltrail.runtime.console import say
from skilltrail.runtime.preflight import refuse_left_behind
from skilltrail.runtime.progress import Progress
from skilltrail.runtime.recorded import StoredCalls
from skilltrail.runtime.spending import Accounts
from skilltrail.runtime.template import require_library
from skilltrail.runtime.workspace import environment_of, load_params
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import Ops
from skilltrail.store.place import Place, find_place
from skilltrail.store.remote import RemotePacks
from skilltrail.store.shared import SharedFacts
from skilltrail.store.usage import Meter


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
    judge_model: Model | None = None
    accounts: Accounts = field(default_factory=Accounts)
    served: dict[str, list[tuple[Served, bool]]] = field(default_factory=dict)
    cluster: Cluster | None = None
    shared: SharedFacts | None = None

    def rollouts(self, gaps: str = "") -> Rollouts:
        """Return the door to rollouts; `gaps` names the run, see `Rollouts`."""
        return self._door(gaps, self.target, self.params.target_roles)

    @asynccontextmanager
    async def rollouts_on(
        self, name: str, options: RoleOptions, gaps: str = ""
    ) -> AsyncIterator[Rollouts]:
        """Open another target and yield the door to rollouts on it.

        Raises:
            ParamError, ModelConfigError: the target cannot be opened.
        """
        role = transfer_role(name)
        target = open_model(role, options, account=self.accounts.of(role))
        try:
            yield self._door(gaps, target, {role: options})
        finally:
            await target.close()

    def _door(self, gaps: str, target: Model, roles: Mapping[str, RoleOptions]) -> Rollouts:
        role, options = next(iter(roles.items()))
        cluster = self.cluster
        made_by = None if cluster is None else cluster.maker(self.env, role, options, target)
        counters = [RolloutCounter(self, role, options) for role, options in roles.items()]
        by_name: RolloutCounter | dict[str, RolloutCounter] = counters[0]
        if isinstance(target, Panel):
            by_name = dict(zip(target.members, counters, strict=True))
        return Rollouts(
            self.env,
            target,
            self.store,
            by_name,
            gaps=gaps,
            min_coverage=self.params.gate.min_coverage if gaps else 1.0,
            judge=self.judge,
            maker=made_by,
            shared=self.shared,
            costs=gate_rule(self.params).counts_cost,
        )

    @property
    def judge(self) -> Judge | None:
        """Who scores what no rule can."""
        if self.judge_model is None:
            return None
        asked = self.params.judge
        rubric = read_rubric(self.place.workspace / asked.rubric)
        count = partial(self.count_reply, role="judge")
        return Judge(self.judge_model, rubric, asked.threshold, self.store, count)

    def count_reply(
        self, reply: Reply | None, *, reused: bool, role: str = "optimizer"
    ) -> None:
        """Count one reply of the optimizer, or of another role but the target; None = a failed
        call."""
        if reply is None:
            self.meter.failed(role)
            return
        self.saw(role, served_by({"reply": reply.to_json()}), reused=reused)
        if reused:
            self.meter.reused(role, reply.usage)
        else:
            price = price_of(role, getattr(self.params, role))
            self.meter.made(role, reply.usage, cost_usd(price, reply.usage))

    def saw(self, role: str, served: Iterable[Served], *, reused: bool) -> None:
        """Note who gave a reply of `role`."""
        self.served.setdefault(role, []).extend((one, reused) for one in served)

    def tell_drift(self) -> None:
        """Say where one name was served by several models, in new replies and reused ones."""
        for role, found in self.served.items():
            told = in_words(one for one, _ in found)
            if len(told_apart(one for one, _ in found)) > 1:
                new = ", ".join(sorted({str(one) for one, reused in found if not reused}))
                told += f"; new here: {new if new else 'none'}"
                say(f"warning: replies of the {role} are of several models: {told}")
                self.ops.write("model.drifted", role=role, served=told)

    def report(self, kind: str, details: Mapping[str, Any]) -> None:
        """Write what is not an event to the operations log."""
        self.ops.write(kind, **details)


@dataclass(frozen=True)
class RolloutCounter:
    """Counts rollouts on a target, at that target's own price."""

    session: Session
    role: str
    options: RoleOptions

    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        """Count one finished rollout; None is a failed one."""
        meter = self.session.meter
        if trajectory is None:
            meter.failed("target")
        else:
            self.session.saw(self.role, trajectory.served, reused=reused)
            if reused:
                meter.reused("target", trajectory.usage)
            else:
                cost = cost_usd(price_of(self.role, self.options), trajectory.usage)
                meter.made("target", trajectory.usage, cost)
        self.session.progress.rollout()


def target_among(params: Params, models: Mapping[str, Model]) -> Model:
    """Return the run's target, of several a panel of them."""
    if not params.panel:
        return models["target"]
    members = {target.name: models[f"targets.{target.name}"] for target in params.targets_named}
    return Panel(params.targets_named, members)


def key_names(params: Params) -> list[str]:
    """Return the variables that hold the keys of this run's roles."""
    roles = (
        *params.target_roles.values(),
        params.optimizer,
        params.judge,
        *params.evaluate.roles.values(),
    )
    return [name for role in roles if (name := key_env_of(role)) is not None]


@dataclass(frozen=True)
class Setup:
    """What a session works with: where, by which params, in which environment."""

    place: Place
    params: Params
    env: Environment

    @staticmethod
    def here() -> Setup:
        """Return that of the project that the working directory lies in.

        Raises:
            UsageError: there is none, its params have faults, or it lacks files of a run.
        """
        place = find_place()
        require_library(place.workspace)
        params = load_params(place.workspace)
        refuse_left_behind(place, params)
        return Setup(place, params, environment_of(params))


@asynccontextmanager
async def open_session(
    section: str, *, command: str | None = None, setup: Setup | None = None
) -> AsyncIterator[Session]:
    """Open a session.

    Args:
        section: `train` or `evaluate`: where its usage is counted.
        command: a command outside the pipeline; its usage is counted in a file of its own.
        setup: what it works with; None = the project here.
    """
    setup = Setup.here() if setup is None else setup
    place, params, env = setup.place, setup.params, setup.env
    hidden = redactor(names=key_names(params))
    ops = Ops(place.state / "ops.jsonl", hidden.value)
    roles = {**params.target_roles, "optimizer": params.optimizer, "judge": params.judge}
    for role, options in roles.items():
        if (warning := warning_of(role, options)) is not None:
            say(f"warning: {warning}")
    started = time.monotonic()
    kept, held = FactStore.open(place.root, ops, hide=hidden.sure_value), ExitStack()
    with kept as store, held, Progress(section) as progress:
        accounts, records, cluster = Accounts(), StoredCalls(store), None
        shared = _shared(store, params.store.remote, place, ops)
        if params.executor == "ray":
            found = connected(place.workspace, params.ray, env, accounts, ops.write)
            cluster = held.enter_context(found)
        models: dict[str, Model] = {}
        try:
            judged = ("judge",) if params.judge.backend != "none" else ()
            for role in (*params.target_roles, *judged):
                models[role] = open_model(
                    role, roles[role], records=records, account=accounts.of(role)
                )
            with Meter(place, section, apart=command) as meter:
                progress.read(meter)
                session = Session(
                    place, params, env, target_among(params, models), store, meter, ops,
                    progress, models.get("judge"), accounts, cluster=cluster, shared=shared,
                )  # fmt: skip
                yield session
                session.tell_drift()
        finally:
            for model in models.values():
                await model.close()
            if shared is not None:
                await shared.share()
    name = section if command is None else f"command {command}"
    where = {} if place.experiment is None else {"experiment": place.experiment}
    ops.write("stage.ended", stage=name, wall_s=round(time.monotonic() - started, 3), **where)


def _shared(store: FactStore, remote: str | None, place: Place, ops: Ops) -> SharedFacts | None:
    """Return the store's way to the shared place, where params name one."""
    if remote is None:
        return None
    shared = SharedFacts(store, RemotePacks(remote, place.state / "shared"), ops, say)
    store.shared = shared
    return shared

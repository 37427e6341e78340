"""The run with doors that only recorded facts come through.

Nothing new comes in: a model is asked for nothing and the store is only read. The target's
identity and the agent's version are those that the log names, since recorded facts are kept
under them; whether they are also those here is the rule on the start's matter.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from skilltrail.core.errors import FaultError
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.method.calls import limited
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import History, Run, gate_rule
from skilltrail.models.client.identity import abilities_of, identity_of, style_of
from skilltrail.models.errors import UnseenRequest
from skilltrail.models.judge import Judge, read_rubric
from skilltrail.models.panel import Panel, models_in
from skilltrail.models.protocol import Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.optimizers.registry import open_optimizer
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.params.model_options import EMBEDDED_BACKENDS, RoleOptions
from skilltrail.runtime.evaluation import gaps_after
from skilltrail.runtime.training import name_of, read_seed_skill
from skilltrail.verify.evidence import Evidence


class RefusingModel:
    """A model's identity without the model: no key, no weights, no package of the provider."""

    workers = 1

    def __init__(
        self, role: str, options: RoleOptions, identity: Mapping[str, Any] | None = None
    ) -> None:
        self.identity = identity_here(role, options) if identity is None else identity
        self.style, self.abilities = style_of(options), abilities_of(options)

    async def complete(self, request: Request) -> Reply:
        raise UnseenRequest("verify", "a reply is not recorded", "Run `dvc repro`")

    async def close(self) -> None:
        pass


def identity_here(role: str, options: RoleOptions) -> Mapping[str, Any]:
    """Return the identity of the model that params name here.

    Raises:
        SkilltrailError: it is known by its file, which is not here.
    """
    if options.backend in (*EMBEDDED_BACKENDS, "handoff"):
        return open_model(role, options).identity
    return identity_of(options)


class Uncounted:
    """Counts nothing: no rollout of a verification is new."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick

    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        self._tick()


def run_of(evidence: Evidence, history: History, *, here: bool = False) -> Run:
    """Return the run with doors that only recorded facts come through.

    `here` takes target and agent as they are here, else they are those that the log names.
    """
    e, params = evidence, evidence.params
    env = e.env if here else labelled(e.env, e.started.agent["version"])
    target = None if here else e.started.target
    return Run(
        params=params,
        train=tuple(_split(e, "train")),
        selection=tuple(_split(e, "selection")),
        seed_skill=read_seed_skill(e.place.workspace / seed_skill_path(params)),
        rollouts=limited(
            rollouts_of(e, env, target_of(params, target), gaps_of(e)), params.stop.calls
        ),
        optimizer=open_optimizer(
            params,
            env,
            e.facts,
            lambda reply, *, reused: None,
            opener=partial(RefusingModel, "optimizer"),
        ),
        history=history,
        parent=params.skill.parent,
        say=lambda record, state: None,
    )


def rollouts_of(
    evidence: Evidence,
    env: Environment,
    target: RefusingModel | Panel,
    gaps: str,
) -> Rollouts:
    """Return the door to recorded rollouts on a target."""
    e = evidence
    count = Uncounted(e.tick)
    return Rollouts(
        env,
        target,
        e.facts,
        dict.fromkeys(target.members, count) if isinstance(target, Panel) else count,
        gaps=gaps,
        min_coverage=e.params.gate.min_coverage,
        judge=judge_of(e),
        costs=gate_rule(e.params).counts_cost,
    )


def target_of(params: Params, identity: Mapping[str, Any] | None) -> RefusingModel | Panel:
    """Return the target that params name, or of several all of them, under the identities that
    a log names; None = those that they have here.

    Raises:
        FaultError: the log knows a target not, or knows others.
    """
    if not params.panel:
        return RefusingModel("target", params.target, identity)
    known = None if identity is None else models_in(identity)
    if known is not None and known.keys() != params.panel.keys():
        raise FaultError("the targets", f"the log names {', '.join(known) or 'one'}, not these")
    members = {
        name: RefusingModel(f"targets.{name}", options, None if known is None else known[name])
        for name, options in params.panel.items()
    }
    return Panel(params.targets_named, members)


def labelled(env: Environment, version: str) -> Environment:
    """Return the environment under the version that a log names."""
    if env.version == version:
        return env
    other = copy.copy(env)
    object.__setattr__(other, "version", version)  # a class of its own says it as a constant
    return other


def judge_of(evidence: Evidence) -> Judge | None:
    """Return the judge, who only repeats what is recorded."""
    asked = evidence.params.judge
    if asked.backend == "none":
        return None
    recorded = evidence.started.judge
    model = RefusingModel("judge", asked, None if recorded is None else recorded.model)
    rubric = read_rubric(evidence.place.workspace / asked.rubric)
    return Judge(model, rubric, asked.threshold, evidence.facts, lambda reply, *, reused: None)


def gaps_of(evidence: Evidence, *, evaluated: bool = False) -> str:
    """Return the name under which the gaps of the run, or of its evaluation, are kept."""
    if evidence.params.gate.min_coverage == 1:
        return ""  # there are none
    return gaps_after(evidence.training.events[-1].id) if evaluated else run_name(evidence)


def run_name(evidence: Evidence) -> str:
    """Return the run's name: that of a live log which ends as the run does, else what the
    inputs here give."""
    e = evidence
    last = e.training.events[-1].id.encode()
    for log in sorted((e.place.state / "runs").glob("*/events.jsonl")):
        if log.is_file() and last in log.read_bytes():
            return log.parent.name
    judge = e.start.data.get("judge")  # its JSON: a run's name is made of that
    seed = e.started.seed_skill.text
    splits = _split(e, "train"), _split(e, "selection")
    return name_of(e.params, e.started.target, judge, *splits, seed)


def _split(evidence: Evidence, name: str) -> list[Any]:
    if name not in evidence.splits:
        raise FaultError(f"the {name} split", "cannot be read here")
    return evidence.splits[name]

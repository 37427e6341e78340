"""Opening the optimizer that params name: `rules`, or a prompted one over any model."""

from __future__ import annotations

from functools import partial

from stages.core.params import Params
from stages.envs.protocol import Environment
from stages.models.budget import Account
from stages.models.facts import Facts
from stages.optimizers.llm.ask import Counter
from stages.optimizers.llm.opening import Opener, open_llm, open_optimizer_model
from stages.optimizers.llm.options import STAGES, LlmOptions
from stages.optimizers.protocol import Optimizer
from stages.optimizers.rules import RulesOptimizer

DEFAULT_WORKERS = 16


def open_optimizer(
    params: Params,
    env: Environment,
    facts: Facts,
    count: Counter,
    account: Account | None = None,
    opener: Opener | None = None,
) -> Optimizer:
    """Return the optimizer of `optimizer.backend`.

    Args:
        facts: where a prompted optimizer keeps its calls and finds them again.
        count: told of each of its replies, made or recalled.
        account: what all its models share a budget by.
        opener: returns the model of a stage's options; None = as params say.
    """
    role = params.optimizer
    if role.backend == "rules":
        return RulesOptimizer(env)
    if opener is None:
        own = Account() if account is None else account
        opener = partial(open_optimizer_model, account=own)
    return open_llm(role, llm_options(params), facts, env.name, count, opener)


def llm_options(params: Params) -> LlmOptions:
    """Return what params tell a prompted optimizer, apart from its models."""
    role, reflect, aware = params.optimizer, params.reflect, params.skill_aware
    return LlmOptions(
        minibatch_size=reflect.minibatch_size,
        failure_only=reflect.failure_only,
        workers=role.workers if role.workers else DEFAULT_WORKERS,
        show=reflect.show,
        trajectory_chars=reflect.trajectory_chars,
        skill_aware=aware.enabled,
        notes_from=aware.source,
        max_tokens=role.max_tokens,
        stages={stage: getattr(role.stages, stage) for stage in STAGES},
    )

"""Opening the optimizer that params name: `rules`, or a prompted one over any model."""

from __future__ import annotations

from functools import partial

from skilltrail.envs.protocol import Environment
from skilltrail.models.client.budget import Account
from skilltrail.models.client.facts import CountReply, Facts
from skilltrail.optimizers.failure_types import domain_of
from skilltrail.optimizers.llm.optimizer import Opener, open_llm, open_optimizer_model
from skilltrail.optimizers.llm.options import CONTEXT_TOKENS, LlmOptions
from skilltrail.optimizers.llm.setting import Setting
from skilltrail.optimizers.protocol import Optimizer
from skilltrail.optimizers.rules import RulesOptimizer
from skilltrail.params.fields import Params
from skilltrail.params.model_options import EMBEDDED_BACKENDS, STAGES
from skilltrail.params.optimizing import Optimizer as OptimizerOptions

DEFAULT_WORKERS = 16


def open_optimizer(
    params: Params,
    env: Environment,
    facts: Facts,
    count: CountReply,
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
    return open_llm(role, llm_options(params, env.name), facts, env.name, count, opener)


def context_of(role: OptimizerOptions) -> int:
    """Return the context of the optimizer's model in tokens, as params state it."""
    if role.context_tokens is not None:
        return role.context_tokens
    return role.n_ctx if role.backend in EMBEDDED_BACKENDS else CONTEXT_TOKENS


def llm_options(params: Params, env: str) -> LlmOptions:
    """Return what params tell a prompted optimizer, apart from its models."""
    role, reflect, aware = params.optimizer, params.reflect, params.skill_aware
    target, *others = params.target_roles.values()
    return LlmOptions(
        minibatch_size=reflect.minibatch_size,
        success=reflect.success,
        grouping=reflect.grouping,
        per_batch=reflect.per_batch,
        most_edits=reflect.most_edits,
        merge_ask=params.merge_ask,
        guide_ask=params.slow_update.ask,
        past=role.past,
        past_to=role.past_to,
        memory_to=params.meta_skill.told_to,
        workers=role.workers if role.workers else DEFAULT_WORKERS,
        show=reflect.show,
        trajectory_chars=reflect.trajectory_chars,
        context_tokens=context_of(role),
        skill_aware=aware.enabled,
        notes_from=aware.source,
        max_tokens=role.max_tokens,
        stages={stage: getattr(role.stages, stage) for stage in STAGES},
        judge_reasons=params.judge.show_reasons and params.judge.backend != "none",
        setting=Setting(target, domain_of(env), tuple(others)),
    )

"""Opening the prompted optimizer from params: one model per stage that asks for its own."""

from __future__ import annotations

from collections.abc import Callable

from skilltrail.models.client.budget import Account
from skilltrail.models.client.facts import Facts
from skilltrail.models.protocol import Model
from skilltrail.models.registry import open_model
from skilltrail.optimizers.llm.ask import Counter
from skilltrail.optimizers.llm.optimizer import LlmOptimizer, uncounted
from skilltrail.optimizers.llm.options import LlmOptions, role_of_stage
from skilltrail.params.model_options import STAGES, RoleOptions

Opener = Callable[[RoleOptions], Model]


def open_optimizer_model(options: RoleOptions, account: Account | None = None) -> Model:
    """Open the model of one stage of the role `optimizer`; all stages draw on one account."""
    return open_model("optimizer", options, account=account)


def open_llm(
    role: RoleOptions,
    options: LlmOptions,
    facts: Facts,
    env: str,
    count: Counter = uncounted,
    opener: Opener = open_optimizer_model,
) -> LlmOptimizer:
    """Return the prompted optimizer whose models `role` describes.

    Stages with the same settings share one model, hence its limits.

    Raises:
        ParamError: settings that cannot work.
        ModelConfigError: a key or program that is not there, named.
    """
    roles = {stage: role_of_stage(role, stage) for stage in STAGES}
    models: list[tuple[RoleOptions, Model]] = []
    for wanted in roles.values():
        if not any(wanted == known for known, _ in models):
            models.append((wanted, opener(wanted)))

    def model_for(stage: str) -> Model:
        return next(model for known, model in models if known == roles[stage])

    return LlmOptimizer(model_for, facts, options, env, count)

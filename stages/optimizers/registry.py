"""Opening the optimizer that params name."""

from __future__ import annotations

from stages.core.params import Params
from stages.envs.protocol import Environment
from stages.optimizers.protocol import Optimizer


def open_optimizer(params: Params, env: Environment) -> Optimizer:
    """Return the optimizer of `optimizer.backend`; `rules` needs no model."""
    from stages.optimizers.rules import RulesOptimizer

    return RulesOptimizer(env)

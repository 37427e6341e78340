"""Optimizer `rules`: a deterministic analyst without any model (tag `rules/4`)."""

from skilltrail.optimizers.rules.optimizer import RulesOptimizer

__all__ = ["RulesOptimizer"]

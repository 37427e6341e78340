"""Optimizer `rules`: a deterministic analyst without any model (tag `rules/3`)."""

from skilltrail.optimizers.rules.optimizer import RulesOptimizer

__all__ = ["RulesOptimizer"]

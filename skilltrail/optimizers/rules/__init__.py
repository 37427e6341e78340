"""Optimizer `rules`: a deterministic analyst without any model (tag `rules/5`)."""

from skilltrail.optimizers.rules.optimizer import RulesOptimizer

__all__ = ["RulesOptimizer"]

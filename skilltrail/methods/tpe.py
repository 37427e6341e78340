"""The search of `mipro`: Optuna's tree-structured Parzen estimator over two choices.

Source: DSPy's MIPROv2, `_optimize_prompt_parameters`, over `optuna.samplers.TPESampler`, seeded
and multivariate. Each measurement is a trial: what was drawn and scored on a minibatch, and
what was measured in full, the seed among them. The sampler's draws are its own; another major
version of Optuna may draw otherwise, so that stands in the tag.
"""

from __future__ import annotations

import importlib
import importlib.util
from fractions import Fraction
from typing import Any

from skilltrail.core.errors import UsageError

FAMILY = "tpe/"
_NAMES = ("document", "demonstrations")  # sorted, they stand as in the package

Choice = tuple[int, int]  # places of a proposal and of a set of demonstrations


def require_optuna() -> None:
    """Raise where Optuna is not installed.

    Raises:
        UsageError: says how to install it.
    """
    if importlib.util.find_spec("optuna") is None:
        raise UsageError(
            "method mipro",
            "its search is Optuna's, which is not installed",
            'Install it: `pip install "skilltrail[mipro]"`, or choose another method',
        )


class Search:
    """What was tried, and what to try next.

    Args:
        sizes: how many proposals and how many sets of demonstrations there are.
        first: the score of (0, 0), the seed document.
    """

    def __init__(self, sizes: Choice, seed: int, first: Fraction) -> None:
        require_optuna()
        self._optuna: Any = importlib.import_module("optuna")
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        sampler = self._optuna.samplers.TPESampler(seed=seed, multivariate=True)
        self._study = self._optuna.create_study(direction="maximize", sampler=sampler)
        self._ranges = {
            name: self._optuna.distributions.CategoricalDistribution(range(size))
            for name, size in zip(_NAMES, sizes, strict=True)
        }
        self._scores: dict[Choice, list[Fraction]] = {}
        self._measured: set[Choice] = set()
        self._add((0, 0), first)

    @property
    def tag(self) -> str:
        return f"{FAMILY}{self._optuna.__version__.split('.')[0]}"

    def ask(self) -> tuple[Any, Choice]:
        """Return a trial and what it tries."""
        trial = self._study.ask()
        one, two = (
            trial.suggest_categorical(name, self._ranges[name].choices) for name in _NAMES
        )
        return trial, (one, two)

    def scored(self, choice: Choice, score: Fraction) -> None:
        """Note the score of a choice on a minibatch."""
        self._scores.setdefault(choice, []).append(score)

    def tell(self, trial: Any, score: Fraction) -> None:
        """End a trial."""
        self._study.tell(trial, float(score))

    def next_in_full(self) -> Choice | None:
        """Return the choice of the highest mean that was not measured in full, if any is left.

        Of equal ones the first that was tried.
        """
        left = [choice for choice in self._scores if choice not in self._measured]
        return max(left, key=self._mean) if left else None

    def measured(self, choice: Choice, score: Fraction) -> None:
        """Note the score of a choice on the whole split, which is a trial of its own."""
        self._measured.add(choice)
        self._add(choice, score)

    def _mean(self, choice: Choice) -> Fraction:
        scores = self._scores[choice]
        return sum(scores, Fraction(0)) / len(scores)

    def _add(self, choice: Choice, score: Fraction) -> None:
        params = dict(zip(_NAMES, choice, strict=True))
        trial = self._optuna.trial.create_trial(
            params=params, distributions=self._ranges, value=float(score)
        )
        self._study.add_trial(trial)


def in_full_after(trials: int, every: int) -> list[bool]:
    """Return for each trial whether a measurement in full follows it, as the package has it.

    It counts the measurements in full as trials too, the seed's first.
    """
    last = trials + trials // every + (1 if trials % every else 0)
    plan, number = [], 2
    for _ in range(trials):
        full = number % (every + 1) == 0 or number == last
        plan.append(full)
        number += 2 if full else 1
    return plan

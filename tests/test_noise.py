"""A skill compared with itself: how often would the gate call that progress?"""

import pytest

from skilltrail.core.score import Score
from skilltrail.method.gate import GateRule
from skilltrail.method.gate.noise import false_accept_rate


def scores(values: list[float]) -> dict[str, Score]:
    return {f"i{n}": Score.scored(value) for n, value in enumerate(values)}


FLIPS = scores([0, 1, 0, 1, 0, 1, 1, 0] * 3), scores([1, 0, 1, 0, 1, 0, 1, 0] * 3)


def test_the_paired_rule_accepts_noise_no_more_often_than_alpha() -> None:
    """Case gate-02: a comparison of a skill with itself flipped between the verdicts."""
    one, two = FLIPS
    rate = false_accept_rate(GateRule("paired", alpha=0.1), list(one), one, two, 400)
    assert 0 < rate <= 0.1


def test_the_strict_rule_accepts_noise_nearly_every_second_time() -> None:
    one, two = FLIPS
    assert 0.3 < false_accept_rate(GateRule(), list(one), one, two) < 0.5


@pytest.mark.parametrize("rule", ["strict", "paired", "no_regression"])
def test_a_measurement_without_noise_is_never_accepted(rule: str) -> None:
    one, _ = FLIPS
    assert false_accept_rate(GateRule(rule), list(one), one, one) == 0


def test_the_rate_is_the_same_every_time() -> None:
    one = scores([1, 0, 1, 1, 1, 0])
    two = scores([0, 1, 1, 1, 0, 1])
    rates = {false_accept_rate(GateRule(), list(one), one, two) for _ in range(3)}
    assert len(rates) == 1

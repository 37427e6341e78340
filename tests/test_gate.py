"""The gate decides by rule, exactly, and stopping early never changes its word."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.score import InvalidScore, Outcome, Score
from skilltrail.core.stats import sign_flip_p
from skilltrail.method.evaluate_candidate import moves_best
from skilltrail.method.gate import GateRule, gate_order, judge_all, recorded


def scores(values: list[float], soft: list[float] | None = None) -> dict[str, Score]:
    return {
        f"i{n}": Score.scored(value, None if soft is None else soft[n])
        for n, value in enumerate(values)
    }


def word(
    rule: GateRule, before: dict[str, Score], after: dict[str, Score], **tokens: int
) -> str:
    return judge_all(rule, list(before), before, after, **tokens).verdict


def test_strict_accepts_only_a_higher_mean() -> None:
    rule = GateRule()
    assert word(rule, scores([0, 0, 1]), scores([1, 0, 1])) == "accepted"
    assert word(rule, scores([0, 1, 1]), scores([1, 0, 1])) == "rejected"


def test_strict_has_no_float_luck() -> None:
    before, after = scores([0.1, 0.2, 0.3]), scores([0.3, 0.2, 0.1])
    verdict = judge_all(GateRule(metric="soft"), list(before), before, after)
    assert verdict.verdict == "rejected"


@pytest.mark.parametrize(
    ("low", "high"),
    [([0.1, 0.2], [0.3, 0.0]), ([1 / 3] * 3, [1.0, 0, 0]), ([1 / 7] * 2, [2 / 7, 0])],
)
def test_scores_of_one_sum_tie_however_floats_round(
    low: list[float], high: list[float]
) -> None:
    rule = GateRule(metric="soft")
    for one, two in ((low, high), (high, low)):
        verdict = judge_all(rule, list(scores(one)), scores(one), scores(two), early=False)
        assert verdict.reason == "mean equal"


def test_a_loss_of_exactly_the_tolerance_is_within_it() -> None:
    rule = GateRule(rule="no_regression", metric="soft", tolerance=0.09)
    before, after = scores([0.91, 0.5]), scores([0.82, 0.9])
    assert word(rule, before, after) == "accepted"


def test_equal_mean_and_fewer_tokens_is_accepted_as_shorter() -> None:
    before = scores([1, 0, 1, 0])
    verdict = judge_all(
        GateRule(), list(before), before, before, tokens_before=900, tokens_after=700
    )
    assert (verdict.verdict, verdict.reason) == ("accepted", "shorter")
    assert word(GateRule(), before, before, tokens_before=700, tokens_after=900) == "rejected"
    keep = GateRule(prefer_shorter=False)
    assert word(keep, before, before, tokens_before=900, tokens_after=700) == "rejected"


def test_no_regression_refuses_a_gaming_edit_and_names_the_item() -> None:
    before, after = scores([0.55, 0.91, 1.0, 1.0]), scores([1.0, 0.82, 1.0, 1.0])
    rule = GateRule(rule="no_regression", metric="soft", tolerance=0.05)
    verdict = judge_all(rule, list(before), before, after)
    assert verdict.verdict == "rejected"
    assert verdict.lost == ("i1",)
    assert "i1" in verdict.reason
    plain = judge_all(GateRule(metric="soft"), list(before), before, after)
    assert (plain.verdict, plain.won, plain.lost) == ("accepted", ("i0",), ("i1",))


def test_paired_is_indecisive_on_one_improved_item_whatever_n() -> None:
    for n in range(4, 200, 7):
        before, after = scores([0.0] * n), scores([1.0] + [0.0] * (n - 1))
        verdict = judge_all(GateRule(rule="paired"), list(before), before, after)
        assert (verdict.verdict, verdict.p) == ("indecisive", 0.5)


def test_paired_accepts_five_wins_without_a_loss() -> None:
    before, after = scores([0.0] * 9), scores([1.0] * 5 + [0.0] * 4)
    verdict = judge_all(GateRule(rule="paired"), list(before), before, after)
    assert (verdict.verdict, verdict.p) == ("accepted", 1 / 32)


def test_one_item_is_too_few_to_decide() -> None:
    before, after = scores([0.5]), scores([0.6])
    verdict = judge_all(GateRule(metric="soft"), list(before), before, after)
    assert (verdict.verdict, verdict.reason) == ("indecisive", "too few items (1)")


def test_missing_items_leave_the_mean_alone_and_coverage_decides() -> None:
    before = scores([0, 0, 0])
    after = {"i0": Score.scored(1), "i1": Score.missing("429"), "i2": Score.missing("429")}
    verdict = judge_all(GateRule(min_coverage=0.6), list(before), before, after)
    assert (verdict.verdict, verdict.reason) == ("indecisive", "coverage 1/3")
    assert verdict.after == 1.0


def test_both_means_are_over_the_items_scored_under_both_skills() -> None:
    before = scores([1, 0, 0, 0])
    gone = Score.missing("429")
    after = {"i0": Score.scored(1), "i1": Score.scored(0), "i2": gone, "i3": gone}
    rule = GateRule(min_coverage=0.5)
    verdict = judge_all(rule, list(before), before, after, early=False)
    assert (verdict.before, verdict.after, verdict.compared) == (0.5, 0.5, 2)
    assert verdict.reason == "mean equal"
    assert recorded(verdict, 4)["compared"] == 2
    whole = judge_all(rule, list(before), before, before, early=False)
    assert "compared" not in recorded(whole, 4)


def test_nothing_scored_under_both_has_no_mean() -> None:
    gone = {"i0": Score.missing("429"), "i1": Score.missing("429")}
    verdict = judge_all(GateRule(min_coverage=0.1), list(gone), gone, scores([1, 1]))
    assert (verdict.verdict, verdict.before, verdict.after) == ("indecisive", None, None)


@pytest.mark.parametrize("rule", ["strict", "paired", "no_regression", "none"])
def test_best_moves_on_a_higher_score_or_an_equal_one_in_fewer_tokens(rule: str) -> None:
    some, more, gone = scores([1, 0, 0]), scores([1, 1, 0]), Score.missing("429")
    for shorter in (False, True):
        assert moves_best(GateRule(rule=rule), some, more, cheaper=shorter)
        assert not moves_best(GateRule(rule=rule), more, some, cheaper=shorter)
        assert moves_best(GateRule(rule=rule), some, some, cheaper=shorter) is shorter
    fewer = {"i0": Score.scored(1), "i1": gone, "i2": gone}  # 1.0 of one is no gain over 0.33
    assert not moves_best(GateRule(rule=rule), some, fewer, cheaper=False)
    assert not moves_best(GateRule(rule=rule), some, dict.fromkeys(some, gone), cheaper=True)


def test_a_hard_tie_with_a_soft_gain_is_called_too_coarse() -> None:
    before = scores([1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0])
    after = scores([1, 1, 1, 0, 0, 0], [1, 1, 1, 0.24, 0.24, 0.24])
    verdict = judge_all(GateRule(), list(before), before, after)
    assert verdict.verdict == "rejected"
    assert "metric too coarse" in verdict.reason
    assert word(GateRule(metric="soft"), before, after) == "accepted"


def test_scores_that_are_not_numbers_never_reach_the_gate() -> None:
    for bad in (float("nan"), float("inf"), 85.0, -0.1):
        with pytest.raises(ValueError, match="score"):
            Score.scored(bad)


def test_only_numbers_are_scores() -> None:
    for bad in ("0.5", None, True, Decimal("0.5")):
        with pytest.raises(InvalidScore, match="score"):
            Score(Outcome.SCORED, bad, bad)
    assert Score.scored(True, Fraction(1, 4)).hard == 1.0


def test_mixed_weighs_soft_by_the_param_and_hard_by_the_rest() -> None:
    before, after = scores([1, 0], [0, 0.5]), scores([0, 1], [0.1, 1])
    verdict = judge_all(GateRule(metric="mixed", mixed_weight=0.2), list(before), before, after)
    assert (verdict.before, verdict.after) == (0.45, 0.51)
    assert word(GateRule(metric="mixed", mixed_weight=0.0), before, after) == "rejected"


def test_no_gate_accepts_all_and_says_forced() -> None:
    before = scores([1, 1])
    verdict = judge_all(GateRule(rule="none"), list(before), before, scores([0, 0]))
    assert (verdict.verdict, verdict.forced, verdict.after) == ("accepted", True, 0.0)


def test_strict_looks_first_where_the_current_skill_fails_and_stops_there() -> None:
    before = scores([1, 0, 1, 1, 0, 1, 1, 1, 1, 1])
    order = gate_order(list(before), before, GateRule())
    assert order[:2] == ["i1", "i4"]
    verdict = judge_all(GateRule(), order, before, before)
    assert (verdict.judged, verdict.saved) == (("i1", "i4"), 8)
    assert (verdict.after, verdict.after_max) == (None, 0.8)


def test_of_the_items_that_pass_the_fragile_ones_are_looked_at_first() -> None:
    before = scores([1, 0, 1, 1])
    order = gate_order(list(before), before, GateRule(), {"i3": Fraction(2), "i2": Fraction(1)})
    assert order == ["i1", "i3", "i2", "i0"]


grades = st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0])
pairs = st.lists(st.tuples(grades, st.one_of(grades, st.none())), min_size=1, max_size=12)
rules = st.builds(
    GateRule,
    rule=st.sampled_from(["strict", "paired", "no_regression", "none"]),
    metric=st.sampled_from(["hard", "soft", "mixed"]),
    alpha=st.sampled_from([0.05, 0.3, 0.9]),
    tolerance=st.sampled_from([0.0, 0.1, 0.3]),
    prefer_shorter=st.booleans(),
    min_items=st.integers(1, 4),
    min_coverage=st.sampled_from([0.3, 0.6, 1.0]),
)


@given(pairs, rules, st.integers(0, 3), st.integers(0, 3))
def test_stopping_early_never_changes_a_verdict(
    values: list[tuple[float, float | None]], rule: GateRule, size: int, new_size: int
) -> None:
    if rule.min_coverage == 1:  # then a missing item stops the run before any verdict
        values = [(a, 0.5 if b is None else b) for a, b in values]
    before = scores([value for value, _ in values])
    after = {
        f"i{n}": Score.missing("429") if value is None else Score.scored(value)
        for n, (_, value) in enumerate(values)
    }
    order = gate_order(list(before), before, rule)
    tokens = {"tokens_before": size, "tokens_after": new_size}
    early = judge_all(rule, order, before, after, **tokens)
    full = judge_all(rule, order, before, after, early=False, **tokens)
    assert early.verdict == full.verdict
    assert early.judged == full.judged[: len(early.judged)]
    assert early.saved == len(order) - len(early.judged)


def test_the_sign_flip_test_counts_all_patterns() -> None:
    half = Fraction(1, 2)
    assert sign_flip_p([]) == 1.0
    assert sign_flip_p([Fraction(1)] * 3) == 1 / 8
    assert sign_flip_p([Fraction(1), -half]) == 0.5  # of 1.5, 0.5, -0.5, -1.5 two reach 0.5

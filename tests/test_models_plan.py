"""`plan`, the probes of `doctor`, the judge: mistakes shown before money is spent."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from skilltrail.cli.commands.start.plan import measured_tokens
from skilltrail.cli.forecast import PerCall, forecast
from skilltrail.models.probe import probe
from skilltrail.params.fields import Params
from skilltrail.params.model_options import BudgetOptions, PriceOptions, RoleOptions
from skilltrail.params.optimizing import Optimizer
from skilltrail.params.sections import Evaluate
from skilltrail.runtime.call_estimate import Size, call_ranges, steps_of
from tests.fault_server import Fault, FaultServer
from tests.role_options import KEYS, options_at

SIZE = Size(train=60, selection=60, test=120)
PAID = RoleOptions(backend="openai", model="m", price=PriceOptions(input=1.0, output=2.0))


def test_steps_and_rollouts_follow_from_the_params() -> None:
    params = Params(epochs=2, batch_size=20)
    assert steps_of(params, 60) == 6
    rows = {(r.phase, r.role): (r.fewest, r.most) for r in call_ranges(params, SIZE)}
    assert rows["baseline", "target"] == (60, 60)
    assert rows["train rollouts", "target"] == (20, 120)  # one step may give the full score
    assert rows["gate", "target"] == (0, 360)
    assert rows["evaluate", "target"] == (120, 360)
    assert not any(role == "optimizer" for _, role in rows)


def test_a_prompted_optimizer_has_lines_of_its_own() -> None:
    params = Params(optimizer=Optimizer(backend="openai", model="gpt-4o"))
    found = forecast(params, SIZE)
    total = found.totals("optimizer")
    # Minibatches of successes, and those without a failure to learn from, may need no question.
    assert 0 == total.calls_low < total.calls_likely < total.calls_high
    assert total.usd_high is not None
    assert total.usd_high > 0


def test_the_evaluation_on_other_targets_is_foreseen_at_their_own_price() -> None:
    other = RoleOptions(backend="openai", model="gpt-4o")
    asked = Evaluate(skills=("seed", "best"), split="selection", roles={"wire": other})
    found = forecast(Params(evaluate=asked), SIZE)
    there = found.totals("evaluate.targets.wire")
    assert (there.calls_low, there.calls_likely, there.calls_high) == (60, 120, 120)
    assert there.usd_high is not None
    assert there.usd_high > 0
    assert found.totals("target").usd_high == 0
    sealed = forecast(Params(evaluate=replace(asked, enabled=False)), SIZE)
    assert sealed.totals("evaluate.targets.wire").calls_high == 0


def test_compaction_is_foreseen() -> None:
    params = Params(
        optimizer=Optimizer(backend="openai", model="gpt-4o"), epochs=2, compaction=True
    )
    rows = {(r.phase, r.role): (r.fewest, r.most) for r in call_ranges(params, SIZE)}
    assert rows["compaction", "target"] == (0, 120)
    assert rows["compaction", "optimizer"] == (0, 4)


def test_cost_is_tokens_times_price() -> None:
    each = PerCall((100.0, 10.0), (100.0, 10.0))
    found = forecast(Params(target=PAID), SIZE, {"target": each})
    total = found.totals("target")
    assert total.usd_high == pytest.approx(total.calls_high * (100 * 1 + 10 * 2) / 1e6)


def test_an_unknown_price_is_said_and_its_cost_unknown() -> None:
    target = RoleOptions(backend="openai", model="x", base_url="http://x", provider="p")
    found = forecast(Params(target=target), SIZE)
    assert found.totals("target").usd_high is None
    assert any("price of 'x' is unknown" in warning for warning in found.warnings)


def test_a_budget_too_small_to_judge_candidates_is_warned_of() -> None:
    """Public case cli-02."""
    target = replace(PAID, budget=BudgetOptions(calls=8))
    found = forecast(Params(target=target, batch_size=3), Size(6, 6, 6))
    (warning,) = [w for w in found.warnings if "candidate" in w]
    assert "at most 0 candidate" in warning
    assert "at least 15 are needed for one" in warning


def test_tokens_of_a_call_come_from_what_was_recorded() -> None:
    assert measured_tokens([]) is None
    found = measured_tokens([{"input": 10, "output": 2}, {"input": 30, "output": 4}])
    assert found == PerCall((20.0, 3.0), (30.0, 4.0), 2)
    assert measured_tokens([{}, {"output": 4}]) is None


def test_a_probe_says_what_works() -> None:
    with FaultServer() as server:
        found = asyncio.run(probe("target", options_at("chat", server.url), KEYS))
        assert found.ok
        assert (found.answered, found.api) == ("m", "chat (set in params)")
        assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(status=401), "LAB_KEY"),
        (Fault(status=400, body={"error": "temperature is unsupported"}), "target.omit"),
        (Fault(status=500), "500"),
    ],
)
def test_a_probe_says_what_does_not_work_after_one_call(fault: Fault, words: str) -> None:
    with FaultServer(lambda _: fault) as server:
        found = asyncio.run(probe("target", options_at("chat", server.url), KEYS))
        assert not found.ok
        assert words in found.problem
        assert len(server.calls) == 1

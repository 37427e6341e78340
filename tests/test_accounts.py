"""Budgets hold over all starts of a run: what was spent is written down before it is spent."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.errors import BudgetError
from skilltrail.models.client.budget import Amount, Budget
from skilltrail.params.model_options import BudgetOptions
from skilltrail.runtime.spending import Accounts, note, spent_in
from stages.train import main as train
from tests.fault_server import FaultServer
from tests.model_world import Learner, project, run_stages, set_params

WORST = Amount(1, 100, Fraction(1, 3))


def budget(accounts: Accounts, limit: int = 3, role: str = "target") -> Budget:
    return Budget(role, BudgetOptions(calls=limit), None, accounts.of(role))


def test_a_call_counts_at_its_most_until_it_is_settled(tmp_path: Path) -> None:
    ledger = tmp_path / "runs/x/spent.jsonl"
    accounts = Accounts()
    accounts.keep_in(ledger)
    held = asyncio.run(budget(accounts).reserve(WORST))
    assert spent_in(ledger, "target") == WORST  # what a killed process leaves
    budget(accounts).settle(held, {"input": 4, "output": 2})
    assert spent_in(ledger, "target") == Amount(1, 6)
    assert accounts.of("target").spent == Amount(1, 6)


def test_a_second_start_goes_on_with_what_is_left(tmp_path: Path) -> None:
    ledger = tmp_path / "spent.jsonl"
    for role, calls in (("target", 2), ("optimizer", 1), ("target", 1)):
        note(ledger, role, Amount(calls))
    opened_before, opened_after = Accounts(), Accounts()
    early = budget(opened_before)
    opened_before.keep_in(ledger)
    opened_after.keep_in(ledger)
    for one in (early, budget(opened_after)):
        with pytest.raises(BudgetError, match="3 of 3 used"):
            asyncio.run(one.reserve(Amount(1)))
    assert asyncio.run(budget(opened_after, role="optimizer").reserve(Amount(1))) == Amount(1)


def test_a_line_that_a_crash_cut_is_passed_over_and_spoils_no_other(tmp_path: Path) -> None:
    ledger = tmp_path / "spent.jsonl"
    note(ledger, "target", Amount(2))
    with ledger.open("a", encoding="utf-8", newline="\n") as file:
        file.write('\n{"role": "targ')
    note(ledger, "target", Amount(3))
    assert spent_in(ledger, "target").calls == 5


@pytest.mark.parametrize(
    "line",
    [
        "[" * 2000 + "]" * 2000,
        '{"role":"target","calls":' + '{"a":' * 2000 + "1" + "}" * 2001,
        '{"role":"target","calls":1,"tokens":1,"usd":"1/0"}',
        '["target"]',
        "null",
    ],
)
def test_a_damaged_line_is_passed_over_however_deep(tmp_path: Path, line: str) -> None:
    ledger = tmp_path / "spent.jsonl"
    note(ledger, "target", Amount(2))
    with ledger.open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"\n{line}")
    note(ledger, "target", Amount(3))
    assert spent_in(ledger, "target").calls == 5


def test_models_of_one_role_draw_on_one_account() -> None:
    accounts = Accounts()
    first, second = budget(accounts, 2), budget(accounts, 2)

    async def spend() -> None:
        for one in (first, second):
            one.settle(await one.reserve(Amount(1)), None)
        with pytest.raises(BudgetError):
            await first.reserve(Amount(1))

    asyncio.run(spend())


def test_a_run_started_again_and_again_never_makes_more_calls_than_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner()

    def target(calls: int) -> dict[str, Any]:
        return {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                "base_url": f"{server.url}/v1", "budget": {"calls": calls}}  # fmt: skip

    with FaultServer(say=learner) as server:
        learner.learn(project(tmp_path, target(0), items=4))
        with pytest.raises(BudgetError):
            run_stages(tmp_path, monkeypatch)
        set_params(tmp_path, target(6))
        for _ in range(3):
            with pytest.raises(BudgetError, match=r"target\.budget\.calls"):
                asyncio.run(train())
            assert len(server.calls) == 6
        set_params(tmp_path, target(100))
        run_stages(tmp_path, monkeypatch)
        bodies = [str(call.body) for call in server.calls]
    assert len(bodies) == len(set(bodies))  # nothing was paid for twice


@pytest.mark.parametrize(
    "line", ["[1]", "3", "null", "{}", '{"role": "target"}', "\x00", "[" * 3]
)
def test_a_line_of_a_ledger_that_is_none_is_passed_over(tmp_path: Path, line: str) -> None:
    ledger = tmp_path / "spent.jsonl"
    note(ledger, "target", Amount(calls=2, tokens=5))
    with ledger.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}")
    note(ledger, "target", Amount(calls=1))
    assert spent_in(ledger, "target") == Amount(calls=3, tokens=5)

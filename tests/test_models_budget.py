"""Money: reserved before each call, never overrun, never counted as nothing when unknown."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.core.errors import BudgetError, ParamError
from skilltrail.models.client.budget import (
    Account,
    Amount,
    Budget,
    BudgetedModel,
    most_input_tokens,
)
from skilltrail.models.client.client import ModelClient
from skilltrail.models.client.prices import Price, price_of, price_table, require_price
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import BudgetOptions, PriceOptions, RoleOptions
from tests.fault_server import Answer, Call, Fault, FaultServer
from tests.role_options import KEYS, options_at

CENT = Amount(calls=1, tokens=10, usd=Fraction("0.01"))
ASK = Request(prompt="hi", decoding=Decoding(max_tokens=5))


def test_a_budget_with_room_for_five_calls_makes_five_of_forty() -> None:
    """Public case retry-07."""

    async def run() -> tuple[int, Budget]:
        budget = Budget(
            "target", BudgetOptions(usd=1.0), account=Account(Amount(usd=Fraction("0.95")))
        )

        async def call() -> None:
            held = await budget.reserve(CENT)
            await asyncio.sleep(0)
            budget.settle(held, None)

        ends = await asyncio.gather(*(call() for _ in range(40)), return_exceptions=True)
        assert all(e is None or isinstance(e, BudgetError) for e in ends)
        return sum(e is None for e in ends), budget

    made, budget = asyncio.run(run())
    assert made == 5
    assert budget.account.spent.usd == 1


@settings(max_examples=40)
@given(
    limit=st.integers(0, 60),
    calls=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), max_size=15),
)
def test_no_number_of_calls_together_overruns(limit: int, calls: list[tuple[int, int]]) -> None:
    async def run() -> None:
        budget = Budget("target", BudgetOptions(tokens=limit))

        async def call(worst: int, used: int) -> None:
            held = await budget.reserve(Amount(1, worst))
            await asyncio.sleep(0)
            budget.settle(held, {"output": min(used, worst)})

        tasks = (call(worst, used) for worst, used in calls)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(e is None or isinstance(e, BudgetError) for e in ends)
        assert budget.account.spent.tokens <= limit

    asyncio.run(run())


def test_a_call_waits_for_what_another_may_give_back() -> None:
    async def run() -> None:
        budget = Budget("target", BudgetOptions(tokens=10))
        held = await budget.reserve(Amount(1, 8))
        waiting = asyncio.create_task(budget.reserve(Amount(1, 8)))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        budget.settle(held, {"input": 1, "output": 1})
        await waiting

    asyncio.run(run())


def open_at(server: FaultServer, budget: BudgetOptions, **changes: object) -> ModelClient:
    options = replace(options_at("chat", server.url), budget=budget, workers=8, **changes)
    model = open_model("target", options, environ=KEYS)
    assert isinstance(model, ModelClient)
    return model


def test_a_call_limit_counts_failed_attempts_and_names_the_param() -> None:
    with FaultServer(lambda call: Fault(status=500) if call.number == 1 else None) as server:

        async def run() -> list[Reply | BaseException]:
            model = open_at(server, BudgetOptions(calls=4))
            asked = (model.complete(ASK) for _ in range(9))
            return await asyncio.gather(*asked, return_exceptions=True)

        found = asyncio.run(run())
        assert len(server.calls) == 4
        assert sum(isinstance(reply, Reply) for reply in found) == 3
        errors = [e for e in found if isinstance(e, BaseException)]
        assert all("target.budget.calls" in str(e) for e in errors)


def test_usage_counts_against_the_token_limit() -> None:
    with FaultServer(say=lambda _: Answer(input=40, output=5)) as server:

        async def run() -> Amount:
            model = open_at(server, BudgetOptions(tokens=200), max_tokens=5)
            asked = (model.complete(ASK) for _ in range(9))
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert isinstance(found[-1], BudgetError)
            return model.budget.account.spent

        spent = asyncio.run(run())
    assert spent.tokens == 45 * spent.calls
    assert 45 <= spent.tokens <= 200


def test_a_reply_without_a_cap_cannot_be_budgeted() -> None:
    with FaultServer() as server:
        model = open_at(server, BudgetOptions(tokens=1000), max_tokens=None)
        with pytest.raises(ParamError, match="target.max_tokens"):
            asyncio.run(model.complete(Request(prompt="hi")))
        assert server.calls == []


def test_an_unknown_price_under_a_money_limit_is_an_error_before_the_start() -> None:
    """Public case cli-01."""
    options = RoleOptions(
        backend="openai", model="local/x", base_url="http://127.0.0.1:1/v1", provider="lab",
        budget=BudgetOptions(usd=5),
    )  # fmt: skip
    with pytest.raises(ParamError, match="--allow-unpriced") as caught:
        open_model("target", options, environ={})
    assert "target.price.input" in str(caught.value)
    allowed = replace(options, budget=BudgetOptions(usd=5, allow_unpriced=True))
    assert require_price("target", allowed) is None
    priced = replace(options, price=PriceOptions(input=1, output=2))
    assert require_price("target", priced) == Price.of(1, 2)


def test_prices_are_found_by_name_and_by_dated_release() -> None:
    listed = price_table()["gpt-4o"]
    for model in ("gpt-4o", "gpt-4o-2024-08-06"):
        assert price_of("target", RoleOptions(backend="openai", model=model)) == listed
    assert price_of("target", RoleOptions(backend="openai", model="gpt-4o-extra")) is None
    assert price_of("target", RoleOptions()) == Price.of(0, 0)


def test_cached_tokens_cost_their_own_price() -> None:
    price = Price.of(2, 8, 0.5)
    usage = {"input": 1000, "cached": 600, "output": 100}
    assert price.cost(usage) == (400 * 2 + 600 * Fraction("0.5") + 100 * 8) / Fraction(10**6)
    assert price.cost(usage) <= price.most(1000, 100)


def test_tokens_put_into_a_cache_cost_a_quarter_more_at_anthropic() -> None:
    price = price_table()["claude-sonnet-4-5"]
    usage = {"input": 1000, "cached": 600, "written": 300, "output": 100}
    paid = 100 * 3 + 600 * Fraction("0.3") + 300 * Fraction("3.75") + 100 * 15
    assert price.cost(usage) == paid / 10**6
    assert price.cost({"input": 1000, "written": 1000, "output": 9}) == price.most(1000, 9)
    for name, listed in price_table().items():
        claude = name.startswith("claude-")
        assert listed.written == listed.input * (Fraction(5, 4) if claude else 1)
    own = PriceOptions(input=1, output=2, written=3)
    assert price_of("target", RoleOptions(price=own)) == Price.of(1, 2, written=3)


@pytest.mark.parametrize("name", ["anthropic", "chat"])
def test_a_reply_carries_what_it_put_into_a_cache(name: str) -> None:
    say = Answer("fine", input=900, cached=500, written=300, output=3)
    with FaultServer(say=lambda _: say) as server:
        model = open_model("target", options_at(name, server.url), environ=KEYS)
        usage = asyncio.run(model.complete(Request(prompt="hi"))).usage
    assert (usage["input"], usage["cached"]) == (900, 500)
    assert usage.get("written", 0) == (300 if name == "anthropic" else 0)


@given(st.text(max_size=300), st.text(max_size=300))
def test_input_tokens_never_exceed_the_reserve(system: str, text: str) -> None:
    request = Request(system=system, messages=(Message.text("user", text),))
    assert most_input_tokens(request) >= len((system + text).encode("utf-8", "replace"))


def test_an_image_is_part_of_the_worst_case() -> None:
    message = Message("user", (Part(image="0" * 64), Part("what is it?")))
    assert most_input_tokens(Request(messages=(message,))) > 10_000


def test_what_was_spent_before_counts() -> None:
    def never(call: Call) -> Fault:
        raise AssertionError(call)

    with FaultServer(never) as server:
        options = replace(options_at("chat", server.url), budget=BudgetOptions(calls=2))
        model = open_model("target", options, environ=KEYS, account=Account(Amount(calls=2)))
        with pytest.raises(BudgetError, match="2 of 2 used"):
            asyncio.run(model.complete(ASK))


class Counting:
    """A model in this process that says how often it was asked."""

    identity = {"backend": "counting"}
    style = "completion"
    abilities = frozenset[str]()
    workers = 4

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        await asyncio.sleep(0)
        return Reply("ok", usage={"input": 5, "output": 1})

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("limits", "most"), [(BudgetOptions(calls=3), 3), (BudgetOptions(tokens=150), 12)]
)
def test_a_model_in_this_process_is_held_to_its_budget(
    limits: BudgetOptions, most: int
) -> None:
    inner = Counting()
    model = BudgetedModel(inner, Budget("target", limits, Price.of(0, 0)), 4)

    async def ask_all() -> None:
        await asyncio.gather(*(model.complete(Request(prompt="hi")) for _ in range(40)))

    with pytest.raises(BudgetError, match=r"target\.budget"):
        asyncio.run(ask_all())
    assert 0 < inner.asked <= most
    assert (model.style, model.workers) == (inner.style, inner.workers)

"""The replay backend: recorded answers only."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from recorded_calls import RecordedCalls

from skilltrail.models.client.identity import identity_of
from skilltrail.models.errors import UnseenRequest
from skilltrail.models.protocol import Decoding, Message, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import RoleOptions

REAL = RoleOptions(backend="openai", model="gpt-x", temperature=0.5)
REPLAY = replace(REAL, backend="replay", replays="openai")
FRANCE = Request(system="Be brief.", prompt="Capital of France?", decoding=Decoding(seed=1))
SPAIN = replace(FRANCE, prompt="Capital of Spain?")
SUM = Request(messages=(Message.text("user", "1 + 1"),))


def records(*requests: Request) -> RecordedCalls:
    calls = [
        {"request": r.to_json(), "reply": Reply(f"answer {n}").to_json()}
        for n, r in enumerate(requests)
    ]
    return RecordedCalls(calls, identity_of(REAL))


def test_a_recorded_request_gets_its_recorded_answer() -> None:
    model = open_model("target", REPLAY, records=records(FRANCE, SUM))
    assert asyncio.run(model.complete(SUM)) == Reply("answer 1")


def test_it_has_the_identity_of_what_it_replays() -> None:
    assert open_model("target", REPLAY, records=records()).identity == identity_of(REAL)


def test_an_unseen_request_shows_the_nearest_recorded_one() -> None:
    model = open_model("target", REPLAY, records=records(SUM, FRANCE))
    with pytest.raises(UnseenRequest, match=r"Spain.*France"):
        asyncio.run(model.complete(SPAIN))


def test_another_repeat_is_another_request() -> None:
    model = open_model("target", REPLAY, records=records(FRANCE))
    with pytest.raises(UnseenRequest):
        asyncio.run(model.complete(replace(FRANCE, repeat=1)))


def test_a_request_comes_back_from_json_as_it_was() -> None:
    for request in (FRANCE, SUM):
        assert Request.from_json(request.to_json()) == request

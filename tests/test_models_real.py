"""The real SDKs, the real protocols, a real model: SmolLM2 behind llama.cpp on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from null_store import NullStore

from skilltrail.core.score import Outcome, Score
from skilltrail.models.backends.weights import EMBEDDED, PACKAGE, find_weights
from skilltrail.models.errors import TooLong, Unjudged
from skilltrail.models.judge import Case, Judge
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import RoleOptions
from tests.llama_server import llama_server
from tests.role_options import KEYS, options_at

NAMES = ("chat", "completions", "responses", "anthropic", "vllm")
ASK = Request(
    system="You answer briefly.\n\n",
    prompt="The capital of France is",
    decoding=Decoding(max_tokens=8, temperature=0.0),
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    for package in (PACKAGE, "xllamacpp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make setup`")
    with llama_server(Path(find_weights(EMBEDDED).path), n_ctx=1024) as at:
        yield at


def options_of(name: str, url: str) -> RoleOptions:
    return replace(options_at(name, url), model="smollm2", timeout_s=60.0, max_tokens=None)


def ask(name: str, url: str, request: Request = ASK) -> Reply:
    async def go() -> Reply:
        model = open_model("target", options_of(name, url), environ=KEYS)
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(go())


@pytest.mark.parametrize("name", NAMES)
def test_a_real_reply_comes_back_whole(name: str, url: str) -> None:
    reply = ask(name, url)
    assert reply.text.strip()
    assert reply.finish in ("stop", "length")
    assert reply.model == "smollm2"
    assert reply.usage["input"] > 4
    assert 0 < reply.usage["output"] <= 8


def test_a_real_judge_gives_a_score_or_none_and_no_other(url: str) -> None:
    """It is a very small model: what counts is that what it says is read, or refused."""
    counted: list[Reply | None] = []

    async def judge() -> Score:
        options = replace(options_of("chat", url), max_tokens=120)
        model = open_model("judge", options, environ=KEYS)
        rubric = "Score 1 when the answer greets, else 0. Reason in at most three words."
        asked = Judge(model, rubric, 0.5, NullStore(), lambda r, *, reused: counted.append(r))
        try:
            return await asked.score(Case("Say hello.", "Hello!"))
        except Unjudged as error:
            return Score.missing(str(error))
        finally:
            await model.close()

    score = asyncio.run(judge())
    assert 1 <= len(counted) <= 2
    if score.outcome is Outcome.SCORED:
        assert score.reason == "model-judged"
    else:
        assert "could not be used" in score.reason


@pytest.mark.parametrize("name", ["chat", "anthropic", "completions"])
def test_the_cap_is_told_as_length(name: str, url: str) -> None:
    capped = replace(ASK, decoding=replace(ASK.decoding, max_tokens=2))
    assert ask(name, url, capped).finish == "length"


@pytest.mark.parametrize("name", ["chat", "completions", "anthropic", "vllm"])
def test_a_context_that_is_too_long_is_told_as_such(name: str, url: str) -> None:
    with pytest.raises(TooLong, match="context"):
        ask(name, url, replace(ASK, prompt="word " * 1500))


def test_a_schema_shapes_the_reply(url: str) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    asked = replace(ASK, schema=schema, decoding=replace(ASK.decoding, max_tokens=24))
    assert isinstance(json.loads(ask("chat", url, asked).text)["n"], int)


def test_a_stop_text_ends_the_reply(url: str) -> None:
    asked = replace(ASK, decoding=replace(ASK.decoding, max_tokens=24, stop=(".",)))
    for name in ("chat", "completions", "responses", "anthropic"):
        assert "." not in ask(name, url, asked).text


def test_the_skill_is_read_from_the_cache_the_second_time(url: str) -> None:
    long = replace(ASK, system="A rule of the skill. " * 30)
    ask("chat", url, long)
    assert ask("chat", url, replace(long, prompt="Two and two is")).usage["cached"] > 50

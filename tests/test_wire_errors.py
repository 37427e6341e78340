"""What failures mean: the words of an error count, whatever its status and its shape."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.errors import BudgetError, IncompleteError, ParamError
from skilltrail.models.client.classify import Endpoint, classify
from skilltrail.models.client.foreign import page_error
from skilltrail.models.errors import (
    GaveUp,
    ModelConfigError,
    ModelError,
    RateLimited,
    TooLong,
    Transient,
)
from skilltrail.models.probe import probe
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.models.registry import open_model, warning_of
from skilltrail.params.model_options import BudgetOptions, RetryOptions
from stages.split import main as split
from stages.train import main as train
from tests.fault_server import Call, Fault, FaultServer, answer_body
from tests.model_world import Learner, project, run_stages, set_params
from tests.role_options import FAST, HTTP, KEYS, PLAIN, options_at

ASK = Request(system="Be brief.", prompt="Say ok.")
HERE = Endpoint("target", "lab", "m", "LAB_KEY", "http://lab:1/v1")
every = pytest.mark.parametrize("name", HTTP)


def ask(name: str, fault: Fault, **changes: Any) -> tuple[ModelError | Reply, int]:
    """Return what comes of a call that always meets `fault`, and how many were made."""
    with FaultServer(lambda _: fault) as server:

        async def go() -> ModelError | Reply:
            options = replace(options_at(name, server.url), **{"retry": FAST, **changes})
            model = open_model("target", options, environ=KEYS)
            try:
                return await model.complete(ASK)
            except ModelError as error:
                return error
            finally:
                await model.close()

        return asyncio.run(go()), len(server.calls)


def ok_with(body: Any) -> Fault:
    return Fault(raw=body if isinstance(body, bytes) else json.dumps(body).encode())


NO_AUTH = {"error": {"message": "No auth credentials found", "code": 401}}


@every
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (NO_AUTH, "No auth credentials found"),
        ({"error": {"message": "Insufficient credits", "code": 402}}, "Insufficient credits"),
        ({"error": {"message": "x", "code": "401"}}, "LAB_KEY"),
        ({"statusCode": 401, "message": "Access denied"}, "Access denied"),
        ({"detail": "Invalid API key"}, "LAB_KEY"),
        ({"error": "Unauthorized"}, "LAB_KEY"),
        ([{"error": {"code": 400, "message": "API key not valid."}}], "LAB_KEY"),
        (
            {"type": "error", "error": {"type": "authentication_error", "message": "x"}},
            "LAB_KEY",
        ),
        (
            {"choices": None, "base_resp": {"status_code": 1004, "status_msg": "login fail"}},
            "login",
        ),
    ],
)
def test_a_refused_key_inside_a_200_stops_at_once_with_the_provider_s_words(
    name: str, body: Any, words: str
) -> None:
    """Case wire-12: the body's own code counts as the status."""
    found, calls = ask(name, ok_with(body))
    assert isinstance(found, ModelConfigError)
    assert words in str(found)
    assert calls == 1


@every
def test_a_429_inside_a_200_waits_as_a_rate_limit(name: str) -> None:
    """Case wire-12."""
    body = {"error": {"message": "Rate limit exceeded", "code": 429}}
    with FaultServer(lambda call: ok_with(body) if call.number == 1 else None) as server:
        model = open_model("target", options_at(name, server.url), environ=KEYS)
        reply = asyncio.run(model.complete(ASK))
        assert (reply.text, reply.attempts) == ("ok", 2)
    found, _ = ask(name, ok_with(body), retry=replace(FAST, max_wait_s=0.0))
    assert isinstance(found, GaveUp)
    assert "Rate limit exceeded" in str(found)


TOO_LONG = [
    "Context size has been exceeded: the number of tokens (9001) is greater than the context "
    "length (4096).",
    "the request exceeds the available context size. try increasing the context size",
    "This model's maximum context length is 4096 tokens. However, you requested 9001 tokens",
    "Trying to keep the first 111490 tokens when context the overflows. However, the model is "
    "loaded with context length of only 32768 tokens, which is not enough",
    "Input is too long for requested model.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "The decoder prompt (length 9001) is longer than the maximum model length of 4096",
    "Please reduce the length of the messages or completion.",
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "Range of input length should be [1, 30720]",
    "Input validation error: `inputs` must have less than 4096 tokens. Given: 9001",
    "Your request exceeded model token limit: 8192",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "Prompt exceeds max length",
    "prompt too long; exceeded max context length by 4 tokens",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
    "300000 tokens. Please reduce the length of the messages.",
    "Input tokens exceed the configured limit of 272000 tokens.",
    "Prompt length 9001 is greater than max_seq_len 4096",
    "the number of input tokens 9001 cannot exceed the total tokens limit 8192 for this model",
    "Prompt has 9001 tokens, but the maximum is 8191",
    "Input length 9001 exceeds maximum allowed token size 4096",
    "the prompt exceeds max sequence length",
    "max_tokens must be at least 1, got -504.",
    "Requested generation length 10 is not possible! The provided prompt is 9001 tokens long",
    "Input prompt is too big (9001 tokens), n_ctx 4096",
    "The sum of prompt length (5000.0), query length (0) and max_tokens (2048) should not "
    "exceed max_num_tokens (4096)",
    "Total tokens of image and text exceed max message tokens",
    "your prompt contains 9001 tokens, which is more than the limit of 8000",
    "input is too large to process. increase the physical batch size",
    "messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 > 5242880",
]


@pytest.mark.parametrize("words", TOO_LONG)
@pytest.mark.parametrize("status", [200, 400, 500, 503])
def test_a_context_that_is_too_long_is_the_items_own_outcome(words: str, status: int) -> None:
    """Case wire-14: as a 200 with an error body, as HTTP 500, in each server's words."""
    assert isinstance(classify(HERE, status, {"error": words}), TooLong)
    assert isinstance(classify(HERE, status, {"error": {"message": words}}), TooLong)


@every
@pytest.mark.parametrize("status", [None, 500])
def test_a_too_long_item_is_told_after_one_call(name: str, status: int | None) -> None:
    body = {"error": TOO_LONG[0]}
    fault = ok_with(body) if status is None else Fault(status=status, body=body)
    found, calls = ask(name, fault)
    assert isinstance(found, TooLong)
    assert calls == 1


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"message": "Too many tokens, please wait before trying again."}, RateLimited),
        (400, "ThrottlingException: Too many tokens, please wait", RateLimited),
        (429, "Number of input tokens has exceeded your per-minute rate limit", RateLimited),
        (
            429,
            "This would exceed your rate limit of 40,000 input tokens per minute",
            RateLimited,
        ),
        (429, "Input tokens exceed the limit of 40000 tokens per minute", RateLimited),
        (200, {"error": {"message": "server is overloaded"}}, RateLimited),
        (500, {"error": {"message": "context deadline exceeded"}}, Transient),
        (
            200,
            {"error_code": 18, "error_msg": "Open api qps request limit reached"},
            RateLimited,
        ),
        (400, {"error": {"code": "json_validate_failed", "failed_generation": "{"}}, Transient),
        (
            400,
            {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}},
            Transient,
        ),
        (400, {"error": {"message": "The server had an error while processing it"}}, Transient),
        (424, {"error": "Inference service is unavailable"}, Transient),
        (499, "client closed request", Transient),
        (200, {"code": "Arrearage", "message": "Access denied, please pay"}, ModelConfigError),
        (500, {"error": "CUDA out of memory"}, Transient),
        (502, "<html><h1>502 Bad Gateway</h1></html>", Transient),
        (503, {"error": {"message": "overloaded, try later"}}, Transient),
        (502, {"error": {"code": 429, "message": "busy"}}, RateLimited),
        (500, {"error": {"code": 401, "message": "no"}}, ModelConfigError),
        (200, {"error": {"code": 500, "message": "upstream"}}, Transient),
        (400, {"error": {"message": "max_tokens is too large: 100000"}}, ModelConfigError),
        (400, {"error": {"message": "Your credit balance is too low"}}, ModelConfigError),
        (429, {"error": {"code": "insufficient_quota"}}, ModelConfigError),
        (200, {"error": {"message": "model 'x' not found, try pulling it"}}, ModelConfigError),
        (404, {"error": "x"}, ModelConfigError),
        (
            200,
            {"error": "Unexpected endpoint or method. (POST /chat/completions)"},
            ModelConfigError,
        ),
        (200, {"error": True, "message": "Unauthorized"}, ModelConfigError),
        (405, "", ModelConfigError),
        (422, {"detail": [{"msg": "extra fields not permitted"}]}, ModelConfigError),
        (500, "", Transient),
        (500, None, Transient),
        (500, [1, None], Transient),
        (418, {"error": None}, ModelConfigError),
    ],
)
def test_words_status_and_code_together_say_what_a_failure_is(
    status: int, body: Any, kind: type[ModelError]
) -> None:
    assert isinstance(classify(HERE, status, body), kind)


OF_GEMINI = (
    "You exceeded your current quota, please check your plan and billing details. * Quota "
    "exceeded for metric: generate_content_free_tier_requests, limit: 9\nPlease retry in 34.5s."
)
OF_OPENAI = (
    "Rate limit reached for m in organization o on tokens per min (TPM): Limit 300, Used 290, "
    "Requested 2000. Please try again in 1m2s. You can increase your rate limit by adding a "
    "payment method to your account at https://platform.openai.com/account/billing."
)


@pytest.mark.parametrize(
    ("message", "wait_s"),
    [
        (OF_GEMINI, 34.5),
        (OF_OPENAI, 62.0),
        (
            "Please retry after 6 seconds. To increase your limit see https://x.test/billing",
            6.0,
        ),
        ("Rate limit. Try again in 120ms.", 0.12),
        ("Your rate limit resets: see https://x.test/billing", None),
        ("Rate limit exceeded: free-models-per-day. Add 10 credits to unlock", None),
    ],
)
def test_a_quota_that_comes_back_is_waited_for_as_long_as_the_provider_says(
    message: str, wait_s: float | None
) -> None:
    for status, body in ((429, {"error": {"message": message}}),
                         (200, {"error": {"message": message, "code": 429}})):  # fmt: skip
        found = classify(HERE, status, body)
        assert isinstance(found, RateLimited)
        assert found.retry_after_s == wait_s
    said = classify(HERE, 429, {"error": {"message": message}}, {"retry-after": "7"})
    assert isinstance(said, RateLimited)
    assert said.retry_after_s == 7.0


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "You exceeded your current quota, please check your plan and "
                              "billing details.", "code": "insufficient_quota"}},
        {"error": {"message": "insufficient_quota. Please try again in 20s."}},
        {"error": {"message": "Your account x is suspended, please check billing"}},
    ],
)  # fmt: skip
def test_a_quota_that_does_not_come_back_stops_at_once(body: Any) -> None:
    found = classify(HERE, 429, body)
    assert isinstance(found, ModelConfigError)
    assert "credit" in found.remedy


@pytest.mark.parametrize(
    ("status", "message", "remedy"),
    [
        (400, "UnrecognizedClientException: The security token is invalid.", "LAB_KEY"),
        (400, "The security token included in the request is expired", "LAB_KEY"),
        (400, "You have reached your specified API usage limits. You will regain it", "credit"),
        (403, "Key limit exceeded (total limit)", "credit"),
        (400, "This organization has been disabled.", "credit"),
    ],
)
def test_a_key_and_an_account_are_told_from_a_setting(
    status: int, message: str, remedy: str
) -> None:
    found = classify(HERE, status, {"error": {"message": message}})
    assert isinstance(found, ModelConfigError)
    assert remedy in found.remedy


def test_a_page_that_says_the_request_is_too_large_is_the_item_s_outcome() -> None:
    page = b"<html><h1>413 Request Entity Too Large</h1><hr>nginx</html>"
    found, calls = ask("chat", Fault(status=413, raw=page))
    assert isinstance(found, TooLong)
    assert calls == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, {"error": {"code": 403, "message": "Your input was flagged"}}),
        (400, {"error": {"message": "Content Exists Risk"}}),
        (403, {"error": {"message": "Failed check: SAFETY_CHECK_TYPE_BIO"}}),
        (
            200,
            {
                "choices": None,
                "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"},
            },
        ),
        (400, {"code": "DataInspectionFailed", "message": "Output data may be bad"}),
        (400, {"error": {"code": "1301", "message": "输入或生成内容可能包含不安全或敏感内容"}}),
        (200, {"error": {"code": "content_filter"}}),
        (500, {"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
        (400, {"error": {"message": "Output blocked by content filtering policy"}}),
        (400, {"error": {"code": "data_inspection_failed"}}),
    ],
)
def test_a_refusal_of_the_content_is_a_reply_in_every_form(status: int, body: Any) -> None:
    fault = ok_with(body) if status == 200 else Fault(status=status, body=body)
    found, calls = ask("chat", fault)
    assert isinstance(found, Reply)
    assert (found.finish, calls) == ("refusal", 1)


def test_an_error_of_a_choice_is_an_error_whatever_text_came_before_it() -> None:
    choice = {"message": {"role": "assistant", "content": "half"}, "finish_reason": "error",
              "error": {"code": 502, "message": "upstream network error"}}  # fmt: skip
    found, calls = ask("chat", ok_with({"choices": [choice]}))
    assert isinstance(found, Transient)
    assert "upstream network error" in str(found)
    assert calls == FAST.attempts
    native = {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop",
              "native_finish_reason": "network_error"}  # fmt: skip
    found, _ = ask("chat", ok_with({"choices": [native]}))
    assert isinstance(found, Transient)
    assert "network_error" in str(found)


def test_a_response_that_failed_says_why() -> None:
    error = {"code": "server_error", "message": "The model failed."}
    found, _ = ask("responses", ok_with({"status": "failed", "error": error, "output": []}))
    assert isinstance(found, Transient)
    assert "The model failed." in str(found)


PAGE = b"<!DOCTYPE html>\n<html><head><title> Sign in </title></head><body>key</body></html>"
STREAM = b'data: {"choices": [{"delta": {"content": "GOLD"}}]}\n\ndata: [DONE]\n\n'


@every
@pytest.mark.parametrize(("body", "words"), [(PAGE, "web page"), (STREAM, "event stream")])
def test_a_wrong_address_is_a_setting_and_not_an_outage(
    name: str, body: bytes, words: str
) -> None:
    """Case wire-17: stop at once, say what came back and what to check."""
    found, calls = ask(name, Fault(raw=body, headers={"content-type": "text/html"}))
    assert isinstance(found, ModelConfigError)
    assert calls == 1
    for told in (words, "target.base_url", "/v1", "127.0.0.1"):
        assert told in str(found)


def test_a_web_page_with_an_error_s_status_is_one_too_but_not_a_gateway_s() -> None:
    for status in (400, 403, 404):
        found, calls = ask("chat", Fault(status=status, raw=PAGE))
        assert isinstance(found, ModelConfigError)
        assert calls == 1
    assert page_error(HERE, "{}") is None
    assert "Sign in" in str(page_error(HERE, PAGE.decode()))


@every
def test_the_connection_error_names_the_url(name: str) -> None:
    with FaultServer() as server:
        url = server.url
    model = open_model("target", replace(options_at(name, url), retry=FAST), environ=KEYS)
    with pytest.raises(ModelError, match=url):
        asyncio.run(model.complete(ASK))
    found = asyncio.run(probe("target", options_at(name, url), KEYS))
    assert url in found.problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("all_proxy", "socks4a://127.0.0.1:1080"),
        ("http_proxy", "socks://user:hunter22@127.0.0.1:1"),
        ("https_proxy", "http://[::1"),
        ("SSL_CERT_FILE", "/nowhere/certificates.pem"),
        ("SSL_CERT_FILE", __file__),
    ],
)
@pytest.mark.parametrize("workers", [1, 40])
@pytest.mark.parametrize("backend", ["chat", "anthropic"])
def test_a_proxy_or_certificate_that_cannot_be_used_is_a_setting_and_named(
    name: str, value: str, workers: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    options = replace(options_at(backend, "http://127.0.0.1:9"), workers=workers)
    with pytest.raises(ModelConfigError, match=name) as caught:
        open_model("target", options, environ=KEYS)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "localhost/v1", "http:///v1", "htp://x"])
def test_an_address_that_can_be_none_is_refused_before_any_call(url: str) -> None:
    with pytest.raises(ParamError, match=r"target\.base_url"):
        open_model("target", replace(PLAIN, backend="openai", base_url=url), environ=KEYS)


@pytest.mark.parametrize("around", ["{}\n", "{}\r\n", " {}\t", "\n{}"])
@every
def test_blanks_and_line_ends_around_a_key_are_cut(name: str, around: str) -> None:
    """Case config-02."""
    key = "plain-secret-value-123"
    with FaultServer() as server:
        environ = {"LAB_KEY": around.format(key)}
        model = open_model("target", options_at(name, server.url), environ=environ)
        assert asyncio.run(model.complete(ASK)).text == "ok"
        headers = server.calls[0].headers
    assert any(value in (key, f"Bearer {key}") for value in headers.values())


@pytest.mark.parametrize("key", [" ", "\n", "", "plain—secret", "pl\nain", "clé", "a\x00b"])
@every
def test_what_cannot_be_a_key_stops_at_once_and_names_the_variable(name: str, key: str) -> None:
    """Case config-02."""
    with FaultServer() as server:
        with pytest.raises(ModelConfigError, match="LAB_KEY") as caught:
            open_model("target", options_at(name, server.url), environ={"LAB_KEY": key})
        assert server.calls == []
    assert not key.strip() or key not in str(caught.value)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": None, "completion_tokens": None},
                                   {"prompt_tokens": -1, "completion_tokens": -1}])  # fmt: skip
def test_unknown_use_counts_at_its_worst_case_and_the_budget_holds(usage: Any) -> None:
    """Case wire-18: 40 calls, a limit of 1,000 tokens, 100 a reply."""

    def without_usage(call: Call) -> Fault:
        from tests.fault_server import Answer

        return ok_with({**answer_body(call, Answer()), "usage": usage})

    with FaultServer(without_usage) as server:
        options = replace(
            options_at("chat", server.url),
            max_tokens=100,
            budget=BudgetOptions(tokens=1000),
            workers=1,
        )

        async def go() -> int:
            model = open_model("target", options, environ=KEYS)
            asked = (model.complete(ASK) for _ in range(40))
            found = await asyncio.gather(*asked, return_exceptions=True)
            await model.close()
            return sum(isinstance(one, BudgetError) for one in found)

        refused = asyncio.run(go())
        assert 1 <= len(server.calls) < 10
        assert refused == 40 - len(server.calls)


def test_a_key_over_plain_http_to_another_host_is_warned_of() -> None:
    at = replace(PLAIN, backend="openai", base_url="http://10.0.0.5:8000/v1")
    assert "LAB_KEY" in str(warning_of("target", at))
    assert "10.0.0.5" in str(warning_of("target", at))
    for url in ("https://llm.example.org/v1", "http://127.0.0.1:1/v1", "http://localhost:1/v1",
                "http://[::1]:1/v1", "http://127.8.0.1/v1"):  # fmt: skip
        assert warning_of("target", replace(at, base_url=url)) is None
    assert warning_of("target", replace(at, key_env=None)) is None


def test_one_request_that_fails_alone_again_and_again_is_no_endpoint_that_is_down() -> None:
    """The last item of a batch must not stop a run that may go on without it."""
    policy = RetryOptions(attempts=3, give_up_after=2)
    found, calls = ask("chat", Fault(status=500), retry=policy)
    assert isinstance(found, Transient)
    assert not isinstance(found, GaveUp)
    assert calls == 3


class LosesOne(Learner):
    """A provider that loses the text of one item, each time."""

    lost: str = ""

    def spoil(self, call: Call) -> Fault | None:
        if self.lost not in json.dumps(call.body):
            return None
        choice = {
            "message": {"content": "", "reasoning_content": "Hm."},
            "finish_reason": "stop",
        }
        return ok_with({"choices": [choice], "usage": None})


def test_an_endpoint_that_loses_one_item_s_text_does_not_block_a_run_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = LosesOne()
    with FaultServer(learner.spoil, learner) as server:
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1", "max_tokens": 400,
                  "retry": {"attempts": 2}}  # fmt: skip
        rows = project(tmp_path, target, items=6)
        learner.learn(rows)
        learner.lost = rows[8]["question"]
        monkeypatch.chdir(tmp_path)
        asyncio.run(split())
        with pytest.raises(IncompleteError, match=r"gate\.min_coverage") as caught:
            asyncio.run(train())
        assert rows[8]["id"] in str(caught.value)
        assert "reasoning_content" in str(caught.value)
        learner.lost = "nothing at all"
        set_params(tmp_path, target, gate={"min_coverage": 0.5})
        run_stages(tmp_path, monkeypatch)
        whole = len(server.calls)
    assert whole > 12


@pytest.mark.parametrize("where", ["train", "selection", "test"])
def test_a_run_that_may_goes_on_without_it_and_repeats_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    learner = LosesOne()
    with FaultServer(learner.spoil, learner) as server:
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1", "max_tokens": 400,
                  "retry": {"attempts": 2}}  # fmt: skip
        rows = project(tmp_path, target, items=6, gate={"min_coverage": 0.5})
        learner.learn(rows)
        at = {"train": 2, "selection": 8, "test": 14}[where]
        learner.lost = rows[at]["question"]
        run_stages(tmp_path, monkeypatch)
        events = (tmp_path / "skills/events.jsonl").read_bytes()
        tested = (tmp_path / "reports/out/evaluation.jsonl").read_bytes()
        assert rows[at]["id"].encode() in (tested if where == "test" else events)
        assert b'"missing"' in (tested if where == "test" else events)
        assert b"127.0.0.1" not in events + tested
        made = len(server.calls)
        run_stages(tmp_path, monkeypatch)
        assert len(server.calls) == made
    assert (tmp_path / "skills/events.jsonl").read_bytes() == events
    assert (tmp_path / "reports/out/evaluation.jsonl").read_bytes() == tested


def test_a_decoding_s_stop_cuts_where_a_server_did_not() -> None:
    request = replace(ASK, decoding=Decoding(stop=("\n",)))
    body = {
        "choices": [{"message": {"content": "GOLD\nQuestion: more"}, "finish_reason": "stop"}]
    }
    with FaultServer(lambda _: ok_with(body)) as server:
        model = open_model("target", options_at("chat", server.url), environ=KEYS)
        assert asyncio.run(model.complete(request)).text == "GOLD"


DRESSES: dict[str, Any] = {
    "parts": lambda text: [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": True},
        {"type": "text", "text": text},
    ],
    "a think block": lambda text: f"<think>\n<answer>wrong</answer>\n</think>\n\n{text}",
    "a lone closing tag": lambda text: f"Perhaps <answer>wrong</answer>.\n</think>\n{text}",
    "Harmony": lambda text: (
        "<|channel|>analysis<|message|>Perhaps <answer>wrong</answer>.<|end|><|start|>assistant"
        f"<|channel|>final<|message|>{text}<|return|>"
    ),
}


@pytest.mark.parametrize("backend", ["openai", "vllm"])
@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_answers_in_another_dress_give_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dress: str, backend: str
) -> None:
    """Cases wire-01, reason-01 and reason-02, from the request to the scores."""
    learner = Learner()

    def dressed(call: Call) -> Fault:
        body = answer_body(call, learner(call))
        choice = body["choices"][0]
        choice["message"]["content"] = DRESSES[dress](choice["message"]["content"])
        choice["finish_reason"] = None
        return ok_with(body)

    found = []
    for number, spoil in enumerate((lambda call: None, dressed)):
        folder = tmp_path / str(number)
        with FaultServer(spoil, learner) as server:
            target = {"backend": backend, "api": "chat", "model": "m", "provider": "lab",
                      "base_url": f"{server.url}/v1", "max_tokens": 400}  # fmt: skip
            learner.learn(project(folder, target, items=4))
            run_stages(folder, monkeypatch)
        found.append((folder / "skills/events.jsonl").read_bytes())
    assert found[0] == found[1]
    assert b'"correct"' in found[0]

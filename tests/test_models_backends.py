"""What each backend does in its own way: thinking policy, regions, sign-in, strict schemas."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.errors import ParamError
from skilltrail.models.backends.openai_clients import (
    MINIMAX_URLS,
    credential_for,
    require_azure_host,
    token_provider,
)
from skilltrail.models.backends.strict import is_closed
from skilltrail.models.client.backend import cut_at_stop, model_name
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.identity import abilities_of, identity_of, resolved_api
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Message, Part, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import AzureOptions, ExecOptions, RoleOptions
from tests.fault_server import Answer, Call, FaultServer
from tests.role_options import CHATS, KEYS, PLAIN, options_at

ASK = Request(system="Be brief.", prompt="hi")
STRICT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def ask(
    options: RoleOptions, request: Request = ASK, answer: Answer | None = None
) -> tuple[Reply, list[Call]]:
    with FaultServer(say=lambda _: Answer() if answer is None else answer) as server:
        at = options_at("vllm", server.url)
        url = server.url if options.backend == "anthropic" else at.base_url
        model = open_model("target", replace(options, base_url=url), environ=KEYS)
        return asyncio.run(model.complete(request)), server.calls


VLLM = replace(PLAIN, backend="vllm")


@pytest.mark.parametrize(
    ("policy", "sent"),
    [
        ("server_default", None),
        ("enabled", {"enable_thinking": True}),
        ("disabled", {"enable_thinking": False}),
    ],
)
def test_the_thinking_policy_is_sent_only_when_set(
    policy: str, sent: dict[str, bool] | None
) -> None:
    _, calls = ask(replace(VLLM, thinking=policy))
    assert calls[0].body.get("chat_template_kwargs") == sent


def test_thinking_in_the_text_is_taken_out() -> None:
    for text in ("<think>so\nso</think>\n\n42", "so so</think>\n42"):
        reply, _ = ask(VLLM, answer=Answer(text))
        assert reply.text == "42"
    reply, _ = ask(replace(VLLM, thinking="disabled"), answer=Answer("a </think> b"))
    assert reply.text == "b"


def test_vllm_gets_a_seed_that_is_a_function_of_the_key() -> None:
    seeds = [ask(VLLM, replace(ASK, repeat=n))[1][0].body["seed"] for n in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]
    other = ask(replace(VLLM, seed=7))[1][0].body["seed"]
    assert other != seeds[0]


def test_minimax_regions_have_their_own_urls() -> None:
    assert len(set(MINIMAX_URLS.values())) == 2
    first, second = (
        identity_of(RoleOptions(backend="minimax", model="MiniMax-M3", region=region))
        for region in MINIMAX_URLS
    )
    assert first != second


def test_effort_is_sent_in_each_providers_words() -> None:
    wanted = {
        "chat": ("reasoning_effort", "high"),
        "responses": ("reasoning", {"effort": "high"}),
        "anthropic": ("output_config", {"effort": "high"}),
    }
    for name, (field, value) in wanted.items():
        with FaultServer() as server:
            options = replace(options_at(name, server.url), effort="high")
            model = open_model("target", options, environ=KEYS)
            asyncio.run(model.complete(ASK))
            assert server.calls[0].body[field] == value


def test_a_schema_is_asked_for_in_each_providers_way() -> None:
    paths = {
        "chat": ("response_format", "json_schema", "schema"),
        "responses": ("text", "format", "schema"),
        "anthropic": ("output_config", "format", "schema"),
    }
    for name, path in paths.items():
        with FaultServer() as server:
            model = open_model("target", options_at(name, server.url), environ=KEYS)
            asyncio.run(model.complete(replace(ASK, schema=STRICT)))
            found = server.calls[0].body
            for part in path:
                found = found[part]
            assert found == STRICT


def test_only_a_closed_schema_is_called_strict() -> None:
    assert is_closed(STRICT)
    assert not is_closed({**STRICT, "required": []})
    assert not is_closed({"type": "object"})
    assert not is_closed({"type": "array", "items": {"type": "object"}})


def test_an_image_goes_as_bytes_checked_by_digest(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    path.write_bytes(b"png")
    part = Part(image=hashlib.sha256(b"png").hexdigest(), path=str(path), image_detail="low")
    request = Request(messages=(Message("user", (Part("see"), part)),))
    for name in CHATS:
        with FaultServer() as server:
            options = replace(options_at(name, server.url), abilities=("vision",))
            asyncio.run(open_model("target", options, environ=KEYS).complete(request))
            assert "cG5n" in json.dumps(server.calls[0].body)
    assert str(path) not in json.dumps(request.to_json())
    path.write_bytes(b"other")
    with pytest.raises(ModelConfigError, match="other bytes"):
        ask(replace(PLAIN, backend="openai", abilities=("vision",)), request)


def test_a_conversation_is_refused_where_plain_completions_are_spoken() -> None:
    with FaultServer() as server:
        model = open_model("target", options_at("completions", server.url), environ=KEYS)
        with pytest.raises(ModelConfigError, match="target.api: chat"):
            asyncio.run(model.complete(Request(messages=(Message.text("user", "hi"),))))
        assert server.calls == []


def test_abilities_are_what_the_endpoint_surely_has() -> None:
    own = RoleOptions(backend="openai", model="m")
    assert abilities_of(own) == {"schema", "tools", "vision"}
    elsewhere = replace(own, base_url="http://x", api="chat")
    assert abilities_of(elsewhere) == {"schema", "tools"}
    assert abilities_of(replace(elsewhere, abilities=("vision",))) == {"vision"}


def test_the_api_is_chosen_with_a_reason() -> None:
    own = RoleOptions(backend="openai", model="m")
    assert resolved_api(own)[0] == "responses"
    assert resolved_api(replace(own, seed=1))[0] == "chat"
    assert resolved_api(replace(own, base_url="http://x"))[0] == "chat"
    assert resolved_api(replace(own, api="completions")) == ("completions", "set in params")


def test_each_role_has_its_own_azure_endpoint_and_deployment() -> None:
    with FaultServer() as first, FaultServer() as second:
        for server, deployment in ((first, "small"), (second, "large")):
            azure = AzureOptions(endpoint=server.url, deployment=deployment)
            options = replace(PLAIN, backend="azure", azure=azure)
            asyncio.run(open_model("target", options, environ=KEYS).complete(ASK))
        assert first.calls[0].path.startswith("/openai/deployments/small/chat/completions")
        assert second.calls[0].path.startswith("/openai/deployments/large/chat/completions")
        assert "api-version=2024-10-21" in first.calls[0].path


@pytest.mark.parametrize(
    "url",
    ["http://x.openai.azure.com", "https://x.example.org", "http://127.0.0.1:80",
     "https://openai.azure.com.example.org", "https://azure.com@example.org"],
)  # fmt: skip
def test_an_identity_token_never_goes_to_another_host(url: str) -> None:
    azure = AzureOptions(endpoint=url, auth="azure_cli")
    with pytest.raises(ParamError, match="target.azure.endpoint"):
        open_model("target", replace(PLAIN, backend="azure", azure=azure, key_env=None))


def test_an_azure_host_may_receive_one() -> None:
    for url in ("https://x.openai.azure.com/", "https://x.cognitiveservices.azure.com"):
        require_azure_host("target", url)


class TokenEndpoint(http.server.BaseHTTPRequestHandler):
    """A machine's identity endpoint as a web app has it."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = {"access_token": "token-1", "expires_on": "4102444800", "token_type": "Bearer"}
        body["resource"] = "s"
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture
def token_endpoint() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), TokenEndpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()


def signed_in(azure: AzureOptions) -> str:
    options = replace(PLAIN, backend="azure", azure=azure)

    async def go() -> str:
        credential = credential_for(options)
        endpoint = Endpoint("target", "azure", "m", None)
        try:
            return await token_provider(credential, options, endpoint)()
        finally:
            await credential.close()

    return asyncio.run(go())


def test_a_managed_identity_signs_in(
    token_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("azure.identity", reason="azure-identity is not installed")
    monkeypatch.setenv("IDENTITY_ENDPOINT", token_endpoint)
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    azure = AzureOptions(auth="managed_identity", client_id="me", scope="https://s/.default")
    assert signed_in(azure) == "token-1"
    assert "client_id=me" in TokenEndpoint.asked[-1]


def test_the_azure_cli_signs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("azure.identity", reason="azure-identity is not installed")
    token = json.dumps({"accessToken": "token-2", "expires_on": 4102444800})
    script = tmp_path / "az"
    script.write_text(f"#!/bin/sh\necho '{token}'\n", "utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert signed_in(AzureOptions(auth="azure_cli", scope="https://s/.default")) == "token-2"
    script.write_text("#!/bin/sh\necho 'Please run az login' >&2; exit 1\n", "utf-8")
    with pytest.raises(ModelConfigError, match="az login"):
        signed_in(AzureOptions(auth="azure_cli", scope="https://s/.default"))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"backend": "nobody"}, "target.backend"),
        ({"api": "chatt"}, "target.api"),
        ({"temperature": 3.0}, "target.temperature"),
        ({"omit": ("temp",)}, "target.omit"),
        ({"abilities": ("sight",)}, "target.abilities"),
        ({"backend": "vllm"}, "target.base_url"),
        ({"backend": "openai", "base_url": "http://x"}, "target.provider"),
        ({"backend": "azure"}, "target.azure.endpoint"),
        ({"backend": "exec"}, "target.exec.argv"),
        ({"backend": "anthropic", "seed": 1}, "target.seed"),
        ({"backend": "openai", "api": "responses", "stop": ("x",)}, "target.stop"),
        ({"exec": ExecOptions(sandbox="none")}, "target.exec.sandbox"),
    ],
)
def test_options_that_cannot_work_are_named(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ParamError, match=key.replace(".", r"\.")):
        open_model("target", RoleOptions(**changes), environ={})


def test_names_of_models_carry_no_path() -> None:
    assert model_name("/models/x/m.gguf") == "m.gguf"
    assert model_name("C:\\models\\m.gguf") == "m.gguf"
    assert model_name("org/model-7b") == "org/model-7b"
    assert model_name("") == ""


def test_text_is_cut_at_the_first_stop() -> None:
    assert cut_at_stop("one\ntwo. three", (".", "\n")) == "one"
    assert cut_at_stop("one", (".", "")) == "one"

"""How one role (target, optimizer, judge) reaches its model: typed, frozen, checked once.

The fields are the Models table of the docs. What is None is not sent, so the provider's own
default holds. Keys never stand here: `key_env` names the environment variable that holds one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NoReturn
from urllib.parse import urlsplit

from skilltrail.core.errors import ParamError
from skilltrail.params.knob import Mismatch, convert, knob, knobs_of, operational, value_at
from skilltrail.params.tree import node_of

EMBEDDED_MODEL = "SmolLM2-135M-Instruct"
SETTINGS = ("max_tokens", "temperature", "top_p", "stop", "seed", "effort")
HTTP_BACKENDS = ("openai", "azure", "anthropic", "vllm", "minimax")
HARNESS_BACKENDS = ("codex_exec", "claude_exec", "exec")
EMBEDDED_BACKENDS = ("local", "openvino")
BACKENDS = (*EMBEDDED_BACKENDS, *HTTP_BACKENDS, *HARNESS_BACKENDS, "handoff", "replay")
ABILITIES = ("schema", "tools", "vision")
APIS = ("auto", "chat", "responses", "completions")
STYLES = ("completion", "chat")
THINKING = ("server_default", "enabled", "disabled")
REGIONS = ("global_en", "cn_zh")
SIGN_INS = ("api_key", "azure_cli", "managed_identity")
PARSERS = ("text", "jsonl")
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
APPROVALS = ("untrusted", "on-request", "never")


@dataclass(frozen=True)
class BudgetOptions:
    """Hard limits of one role; see `skilltrail.models.client.budget`."""

    calls: int | None = operational(
        None, "Most calls, failed ones included; null = no limit.", low=0
    )
    tokens: int | None = operational(None, "Most tokens, input and output together.", low=0)
    usd: float | None = operational(None, "Most US dollars.", low=0)
    allow_unpriced: bool = operational(
        False, "Go on without the dollar limit where no price is known."
    )


@dataclass(frozen=True)
class PriceOptions:
    """US dollars for a million tokens; what is set here wins over the price table."""

    input: float | None = operational(None, "Input tokens.", low=0)
    output: float | None = operational(None, "Output tokens.", low=0)
    cached: float | None = operational(
        None, "Cached input tokens; null = as other input.", low=0
    )
    written: float | None = operational(
        None, "Tokens put into a cache; null = as other input.", low=0
    )


@dataclass(frozen=True)
class RetryOptions:
    """How often a failed call is made again."""

    attempts: int = operational(6, "Calls made for one request at most.", low=1)
    after_timeout: int = operational(
        1, "Calls made again after one that used up timeout_s.", low=0
    )
    give_up_after: int = operational(6, "Failed rounds in a row that stop the run.", low=1)
    max_wait_s: float = operational(120.0, "Longest wait for a rate limit to lift.", low=0)


@dataclass(frozen=True)
class AzureOptions:
    """Azure OpenAI: where the deployment is and how to sign in."""

    endpoint: str | None = operational(None, "https://NAME.openai.azure.com")
    deployment: str | None = knob(None, "Deployment; null = the model's name.")
    api_version: str = knob("2024-10-21", "Version of the API.")
    auth: str = operational("api_key", "How to sign in.", choices=SIGN_INS)
    scope: str = operational(
        "https://cognitiveservices.azure.com/.default", "What identity tokens are for."
    )
    client_id: str | None = operational(None, "A user-assigned managed identity.")


@dataclass(frozen=True)
class ExecOptions:
    """An agent command line. `exec` is the general one; see docs/models."""

    path: str | None = operational(None, "The program; null = its usual name on PATH.")
    argv: tuple[str, ...] = knob(
        (), "`exec`: the command; {model}, {dir}, {system_file} are filled in."
    )
    parser: str = knob(
        "text", "`exec`: stdout is the answer, or one event a line.", choices=PARSERS
    )
    text_field: str = knob(
        "text", "`exec`, jsonl: dotted field of the answer's text; the last event counts."
    )
    system_args: tuple[str, ...] = knob(
        (), "`exec`: words that hand over {system_file}; none = the text leads the prompt."
    )
    env: tuple[str, ...] = operational((), "Environment variables handed to the program.")
    sandbox: str = knob(
        "read-only", "codex_exec, claude_exec: what commands may do.", choices=SANDBOXES
    )
    network: bool = knob(False, "codex_exec: commands may use the network.")
    web_search: bool = knob(False, "codex_exec: the agent may search the web.")
    approval_policy: str = knob(
        "never", "codex_exec: when the agent would ask a person.", choices=APPROVALS
    )
    profile: str | None = knob(None, "codex_exec, claude_exec: named settings of the program.")
    tools: tuple[str, ...] = knob((), "claude_exec: tools the agent may use.")
    max_turns: int | None = knob(None, "claude_exec: most turns of one call.", low=1)
    max_thinking_tokens: int | None = knob(None, "claude_exec: thinking budget.", low=0)
    use_sdk: bool = knob(False, "Drive the program by its Python SDK.")


@dataclass(frozen=True)
class HandoffOptions:
    """Answers by hand; see docs/models/handoff.md."""

    folder: str = operational(
        ".skilltrail/handoff", "Where requests are written and answers are read."
    )
    wait_s: float | None = operational(
        None, "Longest wait for an answer, then exit 75; null = as long as it takes.", low=0
    )


@dataclass(frozen=True)
class StageOptions:
    """What one optimizer stage does differently; null = as the optimizer does."""

    model: str | None = knob(None, "Model of this stage.")
    effort: str | None = knob(None, "Reasoning effort of this stage.")
    max_tokens: int | None = knob(None, "Most tokens of a reply of this stage.", low=1)


@dataclass(frozen=True)
class StagesOptions:
    """The optimizer's stages."""

    analyst: StageOptions = StageOptions()
    merge: StageOptions = StageOptions()
    rank: StageOptions = StageOptions()
    rewrite: StageOptions = StageOptions()
    slow: StageOptions = StageOptions()
    meta: StageOptions = StageOptions()
    lr: StageOptions = StageOptions()


STAGES = tuple(field.name for field in fields(StagesOptions))


@dataclass(frozen=True)
class RoleOptions:
    """One role's model. Settings that are null are not sent."""

    backend: str = knob("local", "How the model is reached.", choices=BACKENDS)
    model: str = knob(
        EMBEDDED_MODEL,
        f"Name at the provider, or a .gguf file for `local`; {EMBEDDED_MODEL} is embedded.",
    )
    provider: str | None = knob(
        None, "Label recorded in place of the URL; part of fact keys; needed with base_url."
    )
    base_url: str | None = operational(None, "A compatible endpoint; null = the backend's own.")
    api: str = knob("auto", "`auto`: doctor says which and why.", choices=APIS)
    style: str = knob("completion", "`local`: prompt form.", choices=STYLES)
    key_env: str | None = operational(
        None, "Environment variable with the key; null = the usual one, none for a base_url."
    )
    temperature: float | None = knob(None, "Sampling temperature.", low=0, high=2)
    top_p: float | None = knob(None, "Nucleus sampling mass.", low=0, high=1)
    max_tokens: int | None = knob(None, "Most tokens of a reply.", low=1)
    stop: tuple[str, ...] = knob((), "Texts that end a reply, in place of the environment's.")
    seed: int | None = knob(
        None, "Mixed into each call's sampling seed; null = providers choose.", low=0
    )
    effort: str | None = knob(None, "Reasoning effort, in the provider's words.")
    omit: tuple[str, ...] = knob(
        (), "Decoding settings never sent, for models that refuse them."
    )
    thinking: str = knob(
        "server_default", "Thinking policy; the default sends nothing.", choices=THINKING
    )
    region: str = knob("global_en", "minimax: which base URL.", choices=REGIONS)
    abilities: tuple[str, ...] | None = operational(
        None, "Of schema, tools, vision; null = what the backend surely has."
    )
    timeout_s: float = operational(300.0, "Longest wait for a whole call.", low=0.001)
    connect_timeout_s: float = operational(10.0, "Longest wait for a connection.", low=0.001)
    workers: int = operational(
        0, "Requests in flight; 0 = 16, 2 for agent programs, one per core for `local`.", low=0
    )
    n_ctx: int = knob(4096, "Context of the `local` backend in tokens.", low=256, high=2**20)
    replays: str | None = knob(None, "`replay`: the backend whose answers are repeated.")
    retry: RetryOptions = RetryOptions()
    budget: BudgetOptions = BudgetOptions()
    price: PriceOptions = PriceOptions()
    azure: AzureOptions = AzureOptions()
    exec: ExecOptions = ExecOptions()
    handoff: HandoffOptions = HandoffOptions()
    stages: StagesOptions = StagesOptions()

    def check(self, role: str) -> None:
        """Refuse what cannot work, naming the key below `role`.

        Raises:
            ParamError: a value outside its range, or two that contradict each other.
        """
        for knob_ in knobs_of(type(self)):
            try:
                convert(node_of(value_at(self, knob_.key)), knob_)
            except Mismatch as mismatch:
                raise ParamError(f"{role}.{knob_.key}", str(mismatch)) from mismatch
        for name, allowed in (("abilities", ABILITIES), ("omit", SETTINGS)):
            for one in getattr(self, name) or ():
                if one not in allowed:
                    _refuse(f"{role}.{name}", repr(one), f"Use of {', '.join(allowed)}")
        _check_backend(role, self)


@dataclass(frozen=True)
class TargetOptions(RoleOptions):
    """One of several targets."""

    weight: float = knob(1.0, "Of its items in the run's score.", low=0.001)
    floor: float = knob(0.0, "Mean that no accepted skill may bring it below.", low=0, high=1)


def _refuse(key: str, found: str, remedy: str) -> NoReturn:
    raise ParamError(key, found, remedy)


def _check_backend(role: str, options: RoleOptions) -> None:
    backend = options.backend
    if options.base_url is not None and options.provider is None and backend in HTTP_BACKENDS:
        _refuse(
            f"{role}.provider",
            "missing, while base_url is set",
            "Set a short label such as `my-vllm`: it is recorded in place of the URL",
        )
    for key, url in (
        ("base_url", options.base_url),
        ("azure.endpoint", options.azure.endpoint),
    ):
        parts = urlsplit("https://unset" if url is None else url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            _refuse(f"{role}.{key}", repr(url), "Write http://HOST or https://HOST, in full")
    if backend == "vllm" and options.base_url is None:
        _refuse(f"{role}.base_url", "missing", "The vllm backend needs its server's URL")
    if backend == "azure" and options.azure.endpoint is None:
        _refuse(f"{role}.azure.endpoint", "missing", "Set https://NAME.openai.azure.com")
    if backend == "exec" and not options.exec.argv:
        _refuse(f"{role}.exec.argv", "empty", "Set the command, one word an element")
    if backend == "anthropic" and options.seed is not None:
        _refuse(f"{role}.seed", str(options.seed), "This provider takes no seed; remove it")
    if options.api == "responses":
        _refuse_settings(role, options, ("stop", "seed"), "with api: responses, which has none")
    if backend in HARNESS_BACKENDS:
        sampled = ("temperature", "top_p", "max_tokens", "stop", "seed")
        _refuse_settings(role, options, sampled, f"with {backend}: an agent does not take it")
        for name in ("tokens", "usd"):
            if getattr(options.budget, name) is not None:
                _refuse(
                    f"{role}.budget.{name}",
                    f"set with backend {backend}",
                    "What an agent will use is not known before a call; limit budget.calls",
                )


def _refuse_settings(role: str, options: RoleOptions, names: tuple[str, ...], why: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value not in (None, ()):
            _refuse(f"{role}.{name}", f"{value!r} {why}", "Remove it")

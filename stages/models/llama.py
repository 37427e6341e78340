"""One llama.cpp instance that answers every call as if it were its first.

In llama.cpp the bits of a reply depend on how its prompt was cut into evaluations, hence on how
much of it the key-value cache happened to hold. An instance therefore brings the cache into one
known state before each call:

- A call whose stable front part can be pinned has the cache hold exactly the tokens of that
  part, evaluated from nothing and with its last token evaluated once more by itself (which is
  what pinning again does to a cache that holds more). The rest is one further evaluation.
- Any other call starts from an empty cache.

Which of the two a call takes depends on the call alone: the server reports how many tokens it
reused, so a front part that is no token prefix of the whole prompt is noticed, and the call
then takes the second way. Source of the cache's rules: `tools/server` of llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.models.errors import ModelConfigError, ModelError, TooLong, Transient

_MARK = "front-part-goes-here"
_LAST_WORD_END = re.compile(r".*\S(?= )", re.DOTALL)
_WORTH_PINNING_CHARS = 64


def pin_boundary(front: str) -> str:
    """Return the head of `front` up to the last word that ends before a blank, or "".

    Tokenizers keep that boundary almost without exception ("…\\n\\n" would often become another
    token once text follows). A head too short to be worth a call of its own is "".
    """
    match = _LAST_WORD_END.match(front)
    head = "" if match is None else match.group()
    return head if len(head) >= _WORTH_PINNING_CHARS else ""


class Instance:
    """A llama.cpp server in this process: one slot, one thread. Not safe for two threads."""

    def __init__(self, weights: Path, n_ctx: int) -> None:
        self._server = _start(weights, n_ctx)
        self._pinned = ""
        self._pinned_tokens = 0
        self._chat_head: str | None = None

    def holds(self, pin: str) -> bool:
        """Say whether the cache already holds `pin`: saves time, changes nothing else."""
        return pin != "" and self._pinned.endswith(pin)

    def complete(self, pin: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a plain completion whose prompt starts with `pin`.

        Args:
            pin: the head shared with other calls (see `pin_boundary`); "" = an empty cache.
            body: what llama.cpp's completion endpoint takes.

        Raises:
            ModelError: see `stages.models.errors`.
        """
        return self._answer(self._server.handle_completions, pin, body)

    def chat(self, pin: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a chat whose system message starts with `pin`.

        Raises:
            ModelError: see `stages.models.errors`.
        """
        whole = pin and self._head_of_chat() + pin
        return self._answer(self._server.handle_chat_completions, whole, body)

    def _answer(self, call: Any, pin: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if pin:
            self._pin(pin)
            answer = self._call(call, {**body, "cache_prompt": True})
            if _cached(answer) == self._pinned_tokens:
                return answer
        self._pinned = ""
        return self._call(call, {**body, "cache_prompt": False})

    def _pin(self, text: str) -> None:
        body = {"prompt": text, "n_predict": 0, "temperature": 0.0}
        complete = self._server.handle_completions
        if text != self._pinned:
            self._pinned = ""
            answer = self._call(complete, {**body, "cache_prompt": False})
            self._pinned_tokens = int(answer["usage"]["prompt_tokens"])
        self._call(complete, {**body, "cache_prompt": True})
        self._pinned = text

    def _head_of_chat(self) -> str:
        """Return what the chat template puts before the system message's text."""
        if self._chat_head is None:
            self._pinned = ""
            messages = [{"role": "system", "content": _MARK}, {"role": "user", "content": "."}]
            body = {"messages": messages, "max_tokens": 1, "verbose": True}
            answer = self._call(self._server.handle_chat_completions, body)
            self._chat_head = str(answer["__verbose"]["prompt"]).partition(_MARK)[0]
        return self._chat_head

    def _call(self, call: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = call(dict(body))
            if "error" in answer:
                raise _error(answer["error"])
        except ModelError:
            self._pinned = ""
            raise
        except RuntimeError as error:
            self._pinned = ""
            raise Transient("call to the local model", str(error)) from error
        return answer


def _cached(answer: Mapping[str, Any]) -> int:
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


def _error(error: Mapping[str, Any]) -> ModelError:
    asked, found = "call to the local model", str(error.get("message"))
    kind = error.get("type")
    if kind == "exceed_context_size_error":
        return TooLong(asked, found, "raise `target.n_ctx`")
    if kind == "invalid_request_error":
        return ModelConfigError(asked, found)
    return Transient(asked, found)


def _start(weights: Path, n_ctx: int) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelConfigError(
            "backend 'local'", "xllamacpp is not installed", "run `make setup`, or install it"
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = n_ctx
    params.fit_params = False
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.verbosity = -1
    # Each of these would let a past call change what the cache holds for this one.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_ctx_checkpoints = 0
    params.ctx_shift = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelConfigError(
            f"model {weights.name!r}", str(error), "give a GGUF file that llama.cpp can load"
        ) from error

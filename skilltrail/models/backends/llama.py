"""One llama.cpp instance that answers every call as if it were its first.

In llama.cpp the bits of a reply depend on how its prompt was cut into evaluations, hence on how
much of it the key-value cache happened to hold. An instance therefore brings the cache into one
known state before each call:

- A call whose stable front part can be pinned has the cache hold exactly the tokens of that
  part. They are evaluated link by link (`chain`), each link's last token once more by itself,
  which is what going back to a link does to a cache that holds more. So a front part that
  shares its first links with the one before goes on from there, with the same bits as from
  nothing. The rest of the prompt is one further evaluation.
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

from skilltrail.models.errors import ModelConfigError, ModelError, TooLong, Transient

_MARK = "front-part-goes-here"
_LAST_WORD_END = re.compile(r".*\S(?= )", re.DOTALL)
_WORTH_PINNING_CHARS = 64
_BLANK_LINE = re.compile(r"(?<=\S)\n\n(?=\S)")
_LINK_CHARS = 200


def pin_boundary(front: str) -> str:
    """Return the head of `front` up to the last word that ends before a blank, or "".

    Tokenizers keep that boundary almost without exception ("…\\n\\n" would often become another
    token once text follows). A head too short to be worth a call of its own is "".
    """
    match = _LAST_WORD_END.match(front)
    head = "" if match is None else match.group()
    return head if len(head) >= _WORTH_PINNING_CHARS else ""


def chain(pin: str) -> list[str]:
    """Return the growing heads by which `pin` is evaluated; the last one is `pin` itself.

    A head ends before a blank line, at least `_LINK_CHARS` after the one before. Where it ends
    depends on the text up to there alone, so texts with a common start share heads.
    """
    heads: list[str] = []
    start = 0
    for match in _BLANK_LINE.finditer(pin):
        if match.start() - start >= _LINK_CHARS:
            start = match.start()
            heads.append(pin[:start])
    return [*heads, pin]


class Instance:
    """A llama.cpp server in this process: one slot, one thread. Not safe for two threads."""

    def __init__(self, weights: Path, n_ctx: int) -> None:
        self._server = _start(weights, n_ctx)
        self._heads: list[str] = []  # what the cache holds, link by link
        self._pinned_tokens = 0
        self._chat_head: str | None = None

    def holds(self, pin: str) -> bool:
        """Say whether the cache already holds `pin`: saves time, changes nothing else."""
        return pin != "" and self._heads != [] and self._heads[-1].endswith(pin)

    def complete(self, pin: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a plain completion whose prompt starts with `pin`.

        Args:
            pin: the head shared with other calls (see `pin_boundary`); "" = an empty cache.
            body: what llama.cpp's completion endpoint takes.

        Raises:
            ModelError: see `skilltrail.models.errors`.
        """
        return self._answer(self._server.handle_completions, pin, body)

    def chat(self, pin: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a chat whose system message starts with `pin`.

        Raises:
            ModelError: see `skilltrail.models.errors`.
        """
        whole = pin and self._head_of_chat() + pin
        return self._answer(self._server.handle_chat_completions, whole, body)

    def _answer(self, call: Any, pin: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if pin:
            self._pin(pin)
            answer = self._call(call, {**body, "cache_prompt": True})
            if _cached(answer) == self._pinned_tokens:
                return answer
        self._heads = []
        return self._call(call, {**body, "cache_prompt": False})

    def _pin(self, text: str) -> None:
        """Bring the cache to hold exactly `text`, from the last link that it has already."""
        heads, held = chain(text), self._heads
        known = 0
        while known < min(len(heads), len(held)) and heads[known] == held[known]:
            known += 1
        self._heads = []
        if known:
            self._evaluate(heads[known - 1], cached=True)
        for head in heads[known:]:
            if not self._grow(head, first=head is heads[0]):
                # A link that is no token prefix of the next one: a matter of the text alone.
                heads = [text]
                self._grow(text, first=True)
                break
        self._heads = heads

    def _grow(self, head: str, *, first: bool) -> bool:
        """Evaluate a further link; False when the link before it was not reused whole."""
        before = 0 if first else self._pinned_tokens
        reused = self._evaluate(head, cached=not first)
        self._evaluate(head, cached=True)
        return reused == before

    def _evaluate(self, head: str, *, cached: bool) -> int:
        """Evaluate what the cache lacks of `head`, or its last token if it lacks nothing.

        Returns how many tokens were reused.
        """
        body = {"prompt": head, "n_predict": 0, "temperature": 0.0, "cache_prompt": cached}
        answer = self._call(self._server.handle_completions, body)
        self._pinned_tokens = int(answer["usage"]["prompt_tokens"])
        return _cached(answer)

    def _head_of_chat(self) -> str:
        """Return what the chat template puts before the system message's text."""
        if self._chat_head is None:
            self._heads = []
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
            self._heads = []
            raise
        except RuntimeError as error:
            self._heads = []
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
            "backend 'local'", "xllamacpp is not installed", "Run `make setup`, or install it"
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
            f"model {weights.name!r}", str(error), "Give a GGUF file that llama.cpp can load"
        ) from error

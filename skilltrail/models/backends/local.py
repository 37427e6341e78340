"""Backend `local`: a model run in this process by llama.cpp, on plain CPUs.

`workers` single-threaded instances answer side by side: two threads in one instance collapse on
a busy machine, and with two slots in one instance replies would depend on each other. A reply
is a function of the request and the weights: order, concurrency, the number of workers and
earlier calls never show (`skilltrail.models.backends.llama` says how).
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from skilltrail.core.canon import clean, cleaned
from skilltrail.models.backends.llama import Instance, pin_boundary
from skilltrail.models.backends.weights import Weights, find_weights
from skilltrail.models.client.client import answered, lost_text
from skilltrail.models.client.foreign import beside, text_of
from skilltrail.models.client.identity import abilities_of, own_decoding
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Message, Reply, Request
from skilltrail.params.model_options import RoleOptions

_MAX_SPARE = 4  # instances beyond the workers, about 250 MB each
_MAX_SEED = 2**32 - 1  # llama.cpp takes this one value for "choose a seed yourself"


def local_model(options: RoleOptions) -> LocalModel:
    """Return the local model of a role; nothing is loaded before the first call.

    Up to twice as many instances (about 250 MB each) as workers are kept, at most four more.

    Raises:
        ModelConfigError: the weights are not there.
    """
    return LocalModel(find_weights(options.model), options)


class LocalModel:
    """A `Model` over several llama.cpp instances, started when first needed."""

    def __init__(self, weights: Weights, options: RoleOptions) -> None:
        self.style, self.abilities = options.style, abilities_of(options)
        self.workers = options.workers if options.workers else _usable_cores()
        self._weights, self._n_ctx = weights, options.n_ctx
        self._decoding = own_decoding(options)
        self._idle: list[Instance] = []  # the one used longest ago comes first
        self._started = 0
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(self.workers, "local-model")

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "backend": "local",
            "method": "chained/1",
            "gguf": self._weights.sha256,
            "style": self.style,
            "n_ctx": self._n_ctx,
            "decoding": self._decoding.to_json(),
        }

    async def complete(self, request: Request) -> Reply:
        """Return the reply.

        An instance is taken and given back by the thread that uses it, so a cancelled task
        never keeps one, and no event loop owns it.

        Raises:
            ModelConfigError: the request asks for what this backend cannot do.
            TooLong: the prompt exceeds the context.
            Transient: llama.cpp failed.
        """
        decoding = self._decided(request)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._answer, request, decoding)

    async def close(self) -> None:
        """Wait for the calls in flight and free all instances."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._idle.clear()
        self._started = 0

    def _answer(self, request: Request, decoding: Decoding) -> Reply:
        front, is_chat, body = request_body(request, self.style, decoding)
        pin = pin_boundary(front)
        instance = self._take(pin)
        try:
            answer = instance.chat(pin, body) if is_chat else instance.complete(pin, body)
        finally:
            with self._lock:
                self._idle.append(instance)
        return _reply(answer, f"gguf:{self._weights.sha256[:12]}")

    def _take(self, pin: str) -> Instance:
        """Return an idle instance, if possible one that already holds `pin`.

        A run goes to and fro between the current skill and a candidate. With spare instances
        each keeps its own; else the one that was used longest ago takes the new pin.
        """
        with self._lock:
            for index, instance in enumerate(self._idle):
                if instance.holds(pin):
                    return self._idle.pop(index)
            if self._idle and self._started >= self.workers + min(self.workers, _MAX_SPARE):
                return self._idle.pop(0)
            self._started += 1
        return Instance(self._weights.path, self._n_ctx)

    def _decided(self, request: Request) -> Decoding:
        """Return the request's decoding with the params' on top, complete for this backend."""
        decoding = self._decoding.over(request.decoding)
        if decoding.effort is not None:
            raise ModelConfigError(
                "effort for backend 'local'", decoding.effort, "Leave it unset: it has none"
            )
        if decoding.seed is None:
            seed = int(request.key(self.identity)[:16], 16)
            decoding = dataclasses.replace(decoding, seed=seed)
        return decoding


def joined(front: str, prompt: str) -> str:
    """Return a plain completion's text: both parts with exactly one blank line between them."""
    if not front.strip():
        return prompt
    return front.rstrip("\n") + "\n\n" + prompt.lstrip("\n")


def request_body(
    request: Request, style: str, decoding: Decoding
) -> tuple[str, bool, dict[str, Any]]:
    """Return the front part, whether this is a chat, and what is sent to llama.cpp."""
    if request.tools:
        raise ModelConfigError("tools for backend 'local'", "it has none", "Choose another")
    front = clean(request.system)
    sampling: dict[str, Any] = {
        "temperature": 0.0 if decoding.temperature is None else decoding.temperature,
        "top_p": 1.0 if decoding.top_p is None else decoding.top_p,
        "samplers": ["top_p", "temperature"],
        "stop": cleaned(decoding.stop),
        "seed": (decoding.seed or 0) % _MAX_SEED,
    }
    if request.schema is not None:
        sampling["json_schema"] = _checked(cleaned(dict(request.schema)))
    if decoding.max_tokens is not None:
        sampling["max_tokens"] = decoding.max_tokens
    if request.prompt is not None and style == "completion":
        prompt = joined(front, clean(request.prompt))
        if not prompt:
            raise ModelConfigError("call to the local model", "an empty prompt", "Send text")
        return front, False, {**sampling, "prompt": prompt}
    messages = request.messages
    if request.prompt is not None:
        messages = (Message.text("user", request.prompt),)
    said = [{"role": "system", "content": front}] if front else []
    return front, True, {**sampling, "messages": said + [_message(m) for m in messages]}


def _checked(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema`; llama.cpp would drop a broken one without a word."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ModelConfigError("schema of a request", error.message, "Correct it") from error
    return schema


def _message(message: Message) -> dict[str, str]:
    if message.tool_calls or message.role == "tool":
        raise ModelConfigError("tools for backend 'local'", "it has none", "Choose another")
    if any(part.image is not None for part in message.parts):
        raise ModelConfigError("image for backend 'local'", "it reads text only", "Send text")
    text = "\n".join(part.text for part in message.parts)
    return {"role": message.role, "content": clean(text)}


def _reply(answer: Mapping[str, Any], model: str) -> Reply:
    choice, usage = answer["choices"][0], answer["usage"]
    said = choice.get("message", choice)
    text = text_of(said.get("content", said.get("text")))
    counts = {
        "input": usage["prompt_tokens"],
        "output": usage["completion_tokens"],
        "cached": usage["prompt_tokens_details"]["cached_tokens"],
    }
    reply = answered(
        Reply(text, choice["finish_reason"], model=model, usage=counts, blocks=beside(said))
    )
    if reply.blocks and not reply.text:
        raise lost_text("call to the local model", reply.blocks)
    return reply


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

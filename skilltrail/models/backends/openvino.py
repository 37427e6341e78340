"""Backend `openvino`: a GGUF model in this process, faster than `local` and less exact.

Requests are read as `local` reads them and refused as there; no reply is held to a schema.
`skilltrail.models.backends.openvino_engine` says why a reply follows from its request alone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from skilltrail.core.canon import clean
from skilltrail.models.backends.local import LocalModel, request_body
from skilltrail.models.backends.openvino_engine import Engine, Sampling
from skilltrail.models.backends.weights import Weights, find_weights
from skilltrail.models.client.client import answered
from skilltrail.models.errors import ModelConfigError, TooLong
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.params.model_options import RoleOptions

_starting = threading.Lock()


def openvino_model(options: RoleOptions) -> OpenVinoModel:
    """Return the model of a role; nothing is loaded before the first call.

    Raises:
        ModelConfigError: the weights are not there.
    """
    return OpenVinoModel(find_weights(options.model), options)


class OpenVinoModel(LocalModel):
    """A `Model` on an engine that all models with the same weights share."""

    @property
    def identity(self) -> Mapping[str, Any]:
        return {**super().identity, "backend": "openvino", "method": "state/1"}

    def _answer(self, request: Request, decoding: Decoding) -> Reply:
        if request.schema is not None:
            raise ModelConfigError(
                "schema for backend 'openvino'", "it holds no reply to one", "Use `local`"
            )
        front, is_chat, body = request_body(request, self.style, decoding)
        with _starting:
            engine = engine_of(self._weights, self.workers)
        prompt = engine.chat_text(body["messages"]) if is_chat else body["prompt"]
        head = clean(front).rstrip("\n")
        if is_chat and head:
            head = prompt[: prompt.find(head) + len(head)]
        ids = engine.tokens(prompt)
        if len(ids) >= self._n_ctx:
            found = f"{len(ids)} tokens, over a context of {self._n_ctx}"
            raise TooLong("call to the local model", found, "raise `target.n_ctx`")
        most = min(self._n_ctx - len(ids), body.get("max_tokens", self._n_ctx))
        sampling = Sampling(
            body["temperature"], body["top_p"], body["seed"], tuple(body["stop"])
        )
        done = engine.answer(head, ids, most, sampling)
        usage = {"input": done.n_prompt, "output": done.n_made, "cached": done.n_cached}
        model = f"gguf:{self._weights.sha256[:12]}"
        return answered(Reply(clean(done.text), done.finish, model=model, usage=usage))


@cache
def engine_of(weights: Weights, workers: int) -> Engine:
    """Return the engine of some weights, with as many calls side by side as `workers`."""
    return Engine(weights, workers)

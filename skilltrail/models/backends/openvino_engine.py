"""A GGUF model compiled by OpenVINO, that answers every call as if it were its first.

The bits of a reply depend on how its prompt was cut into evaluations. Here the cut is a
function of the request alone: the front part (the skill) is evaluated once from nothing and its
state kept; each call starts from that state and evaluates the rest of its prompt in one go. So
replies depend on neither order, concurrency nor earlier calls, and there is no cache to tend.
One thread an evaluation; calls side by side share the compiled model.

States and sums are in float32; OpenVINO quantizes activations to 8 bits where it multiplies
them with 4-bit weights, which costs some right answers (docs/models/openvino.md has figures).
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import jinja2.sandbox
import numpy as np

from skilltrail.models.backends.weights import Weights
from skilltrail.models.errors import ModelConfigError

_MODEL = "openvino_model.xml"
_MOST_STATE_BYTES = 256 * 2**20
_REMEDY = 'Install it: `pip install "skilltrail[openvino]"`'
_FOREIGN_REMEDY = "Use backend `local`, which reads more kinds of GGUF files"

State = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen: temperature 0 takes the likeliest; `top_p` cuts the tail first."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    """What one call gave. `finish` is `stop` or `length`; counts are in tokens."""

    text: str
    finish: str
    n_prompt: int
    n_made: int
    n_cached: int


class Engine:
    """A compiled model, and the states of the front parts that were used last."""

    def __init__(self, weights: Weights, workers: int) -> None:
        openvino = _openvino()
        folder = converted(weights)
        core = openvino.Core()
        model = core.read_model(folder / _MODEL)
        _last_position_only(model)
        options = {
            "INFERENCE_NUM_THREADS": workers,
            "NUM_STREAMS": workers,
            "INFERENCE_PRECISION_HINT": "f32",
            "KV_CACHE_PRECISION": "f32",
            "ENABLE_CPU_PINNING": False,
        }
        self._openvino = openvino
        self._model = core.compile_model(model, "CPU", options)
        into = core.read_model(folder / "openvino_tokenizer.xml")
        self._into = core.compile_model(into, "CPU")
        self._out_of = core.compile_model(
            core.read_model(folder / "openvino_detokenizer.xml"), "CPU"
        )
        self._own = threading.local()
        self._lock = threading.Lock()
        self._states: OrderedDict[tuple[int, ...], State] = OrderedDict()
        about = into.get_rt_info()
        self._template = str(about["chat_template"].value) if "chat_template" in about else ""
        self._ends = {int(about["eos_token_id"].value), *self._single("<|endoftext|>")}

    def tokens(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text."""
        own = self._requests()
        return tuple(int(one) for one in own.into.infer([np.array([text])])["input_ids"][0])

    def chat_text(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return messages as the model's own chat template puts them, ready for its turn.

        Raises:
            ModelConfigError: the file has no template, or it does not take these messages.
        """
        if not self._template:
            raise ModelConfigError(
                "style: chat", "the model has no chat template", "Use completion"
            )
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment()
        try:
            made: str = environment.from_string(self._template).render(
                messages=messages, add_generation_prompt=True
            )
        except jinja2.TemplateError as error:
            raise ModelConfigError("style: chat", f"the chat template: {error}") from error
        return made

    def answer(self, front: str, ids: tuple[int, ...], most: int, sampling: Sampling) -> Output:
        """Return what the model adds to the tokens `ids` of a prompt.

        Args:
            front: how the prompt begins, where calls share it; its state is kept. "" = none.
            most: most tokens to make.
        """
        head = self.tokens(front) if front else ()
        # A boundary that the tokenizer does not keep is none: a matter of the text alone.
        if ids[: len(head)] != head or len(head) == len(ids):
            head = ()
        own = self._requests()
        own.start(self._state(own, head) if head else (), len(head))
        choose = _chooser(sampling)
        made: list[int] = []
        logits = own.feed(ids[len(head) :])
        text, finish = "", "length"
        while len(made) < most:
            made.append(choose(logits))
            if made[-1] in self._ends:
                finish = "stop"
                break
            text = self._text(own, made)
            cut = min((at for one in sampling.stop if (at := text.find(one)) >= 0), default=-1)
            if cut >= 0:
                text, finish = text[:cut], "stop"
                break
            if len(made) < most:
                logits = own.feed(made[-1:])
        return Output(text, finish, len(ids), len(made), len(head))

    def _state(self, own: _Requests, head: tuple[int, ...]) -> State:
        """Return the state after `head`, evaluated from nothing unless it is kept."""
        with self._lock:
            if head not in self._states:
                own.start((), 0)
                own.feed(head)
                self._states[head] = own.state()
                while len(self._states) > 1 and self._size() > _MOST_STATE_BYTES:
                    self._states.popitem(last=False)
            self._states.move_to_end(head)
            return self._states[head]

    def _size(self) -> int:
        return sum(array.nbytes for state in self._states.values() for _, array in state)

    def _requests(self) -> _Requests:
        if not hasattr(self._own, "requests"):
            models = self._model, self._into, self._out_of
            self._own.requests = _Requests(self._openvino, *models)
        own: _Requests = self._own.requests
        return own

    def _text(self, own: _Requests, made: Sequence[int]) -> str:
        return str(own.out_of.infer([np.array([made])])["string_output"][0])

    def _single(self, text: str) -> tuple[int, ...]:
        ids = self.tokens(text)
        return ids if len(ids) == 1 else ()


class _Requests:
    """What one thread works with: its own requests to the compiled models."""

    def __init__(self, openvino: Any, model: Any, into: Any, out_of: Any) -> None:
        self._openvino = openvino
        self._request = model.create_infer_request()
        self.into, self.out_of = into.create_infer_request(), out_of.create_infer_request()
        self._n = 0

    def start(self, state: State, n_tokens: int) -> None:
        self._request.reset_state()
        self._n = n_tokens
        if state:
            arrays = dict(state)
            for one in self._request.query_state():
                one.state = self._openvino.Tensor(arrays[one.name])

    def state(self) -> State:
        return tuple(
            (one.name, np.array(one.state.data)) for one in self._request.query_state()
        )

    def feed(self, ids: Sequence[int]) -> Any:
        """Evaluate further tokens; return the logits (n_vocabulary) of what follows."""
        before, self._n = self._n, self._n + len(ids)
        self._request.infer(
            {
                "input_ids": np.array([ids], dtype=np.int64),
                "attention_mask": np.ones((1, self._n), dtype=np.int64),
                "position_ids": np.arange(before, self._n, dtype=np.int64)[None],
                "beam_idx": np.zeros(1, dtype=np.int32),
            }
        )
        return self._request.get_output_tensor(0).data[0, -1]


def _chooser(sampling: Sampling) -> Any:
    """Return a function from logits to a token id; its draws follow from the seed alone."""
    if sampling.temperature <= 0:
        return lambda logits: int(logits.argmax())
    draws = np.random.default_rng(sampling.seed)

    def choose(logits: Any) -> int:
        scores = logits.astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        weights = np.exp(scores[order] - scores[order[0]])
        shares = np.cumsum(weights / weights.sum())
        kept = order[: int(np.searchsorted(shares, sampling.top_p)) + 1]
        hot = np.exp((scores[kept] - scores[kept[0]]) / sampling.temperature)
        at = np.searchsorted(np.cumsum(hot / hot.sum()), draws.random())
        return int(kept[min(int(at), len(kept) - 1)])

    return choose


def converted(weights: Weights) -> Path:
    """Return the folder with OpenVINO's form of a GGUF file, made once and kept per user.

    Raises:
        ModelConfigError: OpenVINO is not installed or cannot read the file.
    """
    name = f"{weights.sha256[:16]}-openvino-{version('openvino')}"
    folder = _cache() / name
    if (folder / _MODEL).is_file():
        return folder
    import openvino_genai

    made = folder.with_name(f".{name}.{os.getpid()}-{secrets.token_hex(4)}")
    made.mkdir(parents=True)
    try:
        # The library writes beside the file it reads, which may lie where nobody may write.
        (made / "model.gguf").symlink_to(weights.path.resolve())
        openvino_genai.LLMPipeline(str(made / "model.gguf"), "CPU", enable_save_ov_model=True)
        (made / "model.gguf").unlink()
        if not (folder / _MODEL).is_file():
            made.rename(folder)
    except (RuntimeError, IndexError) as error:
        told = str(error).strip().splitlines()[-1]
        raise ModelConfigError(f"model {weights.path.name!r}", told, _FOREIGN_REMEDY) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _cache() -> Path:
    """Return where converted models are kept: the user's cache, or a temporary folder."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(named) if named else Path("~/.cache").expanduser()
    place = folder / "skilltrail"
    try:
        place.mkdir(parents=True, exist_ok=True)
        if os.access(place, os.W_OK):
            return place
    except OSError:
        pass
    return Path(tempfile.gettempdir()) / f"skilltrail-{os.getuid()}"


def _openvino() -> Any:
    try:
        import openvino
        import openvino_tokenizers  # its import registers the tokenizer's operations
    except ImportError as error:
        found = f"{error.name} is not installed"
        raise ModelConfigError("backend 'openvino'", found, _REMEDY) from error
    assert openvino_tokenizers
    return openvino


def _last_position_only(model: Any) -> None:
    """Let the model compute logits for the last token alone: the rest is never looked at."""
    from openvino import opset15

    product = model.get_results()[0].input_value(0).get_node()
    if product.get_type_name() != "MatMul":
        return
    one = np.array([1])
    last = opset15.slice(
        product.input_value(0), -one, np.array([np.iinfo(np.int64).max]), one, one
    )
    product.input(0).replace_source_output(last.output(0))
    model.validate_nodes_and_infer_types()

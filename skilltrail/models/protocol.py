"""The one door to every model: `complete(request) -> reply`.

A request says what is sent and nothing about when, where or why. Its digest, with the model's
identity, is the key under which the reply is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from skilltrail.core.canon import digest


@dataclass(frozen=True)
class Part:
    """One part of a message: text, or an image named by its SHA-256.

    `path` says where the image's bytes lie now; it is never part of a key.
    """

    text: str = ""
    image: str | None = None
    image_type: str = "image/png"
    image_detail: str = "auto"
    path: str | None = field(default=None, compare=False)

    def to_json(self) -> Any:
        if self.image is None:
            return self.text
        return {"image": self.image, "type": self.image_type, "detail": self.image_detail}

    @staticmethod
    def from_json(data: Any) -> Part:
        if isinstance(data, str):
            return Part(data)
        return Part("", data["image"], data["type"], data["detail"])


@dataclass(frozen=True)
class Message:
    """One message of a chat. `role` is user, assistant or tool."""

    role: str
    parts: tuple[Part, ...]
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str | None = None

    @staticmethod
    def text(role: str, text: str) -> Message:
        return Message(role, (Part(text),))

    def to_json(self) -> dict[str, Any]:
        calls = {"tool_calls": list(self.tool_calls)} if self.tool_calls else {}
        id = {} if self.tool_call_id is None else {"tool_call_id": self.tool_call_id}
        parts = [part.to_json() for part in self.parts]
        return {"role": self.role, "parts": parts, **calls, **id}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Message:
        parts = tuple(map(Part.from_json, data["parts"]))
        calls = tuple(data.get("tool_calls", ()))
        return Message(data["role"], parts, calls, data.get("tool_call_id"))


@dataclass(frozen=True)
class File:
    """A file handed to an agent harness: its name in the work folder and its SHA-256.

    `path` says where the bytes lie now; it is never part of a key.
    """

    name: str
    digest: str
    path: str | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "digest": self.digest}


@dataclass(frozen=True)
class Decoding:
    """How tokens are chosen. None = the provider's default, and then nothing is sent."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    effort: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "stop": list(self.stop)}

    def over(self, asked: Decoding) -> Decoding:
        """Return what is set here, and `asked` for all else."""
        own = {name: value for name, value in vars(self).items() if value not in (None, ())}
        return replace(asked, **own) if own else asked

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Decoding:
        return Decoding(**{**data, "stop": tuple(data["stop"])})


@dataclass(frozen=True)
class Request:
    """One call.

    Attributes:
        system: the stable front part (it carries the skill, so providers can cache it).
            Chat backends send it as the system message, completion backends put it first.
        prompt: what follows `system` in a plain completion; exactly one of `prompt` and
            `messages` is used.
        messages: what follows `system` in a chat.
        decoding: see `Decoding`; environments set their needs, params may override.
        schema: a JSON Schema that the reply must follow, where the backend can ask for it.
        tools: tool definitions, each {"name", "description", "parameters": JSON Schema}.
        repeat, turn: part of the identity, never sent: repeated samples are separate facts.
        files: what lies in an agent harness's work folder beside the task; other backends
            refuse them.
        returns: names of files that the agent may leave there and that come back.
        skills: texts of skills that an agent harness offers its agent; which it loads comes
            back in `Reply.extra` as `loaded`.
    """

    system: str = ""
    prompt: str | None = None
    messages: tuple[Message, ...] = ()
    decoding: Decoding = Decoding()
    schema: Mapping[str, Any] | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    repeat: int = 0
    turn: int = 0
    files: tuple[File, ...] = ()
    returns: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        data = {
            **vars(self),
            "messages": [message.to_json() for message in self.messages],
            "decoding": self.decoding.to_json(),
            "tools": list(self.tools),
            "files": [file.to_json() for file in self.files],
            "returns": list(self.returns),
            "skills": list(self.skills),
        }
        # Older keys know nothing of files: what is not used is not told.
        return {k: v for k, v in data.items() if v or k not in ("files", "returns", "skills")}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Request:
        return Request(
            **{
                **data,
                "messages": tuple(map(Message.from_json, data["messages"])),
                "decoding": Decoding.from_json(data["decoding"]),
                "tools": tuple(data["tools"]),
                "files": tuple(File(**file) for file in data.get("files", ())),
                "returns": tuple(data.get("returns", ())),
                "skills": tuple(data.get("skills", ())),
            }
        )

    def key(self, identity: Mapping[str, Any]) -> str:
        """Return the fact key of this call to a model of this identity."""
        return digest("call/1", {"model": dict(identity), "request": self.to_json()})


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        text: the reply's text, reasoning removed.
        finish: `stop`, `length`, `tool`, `refusal`; `out_of_turns` when an agent harness used
            up its own turns.
        tool_calls: each {"id", "name", "arguments": dict}.
        model: the model's name as the provider returned it.
        fingerprint: what else is said of the weights (`system_fingerprint`; the host behind a
            router before it).
        usage: token counts: `input`, `output`, `cached` and `written` (of input: read from a
            cache, put into one), `reasoning` (of output). What is not known is not in it.
        attempts: how many calls were paid for to get it (failed ones included).
        extra: what an agent harness adds (JSON): `actions`, each {"name", "input", "output",
            "exit_code"}; `files`, name -> base64; `skipped_events`.
        blocks: kinds of output that came besides text, calls and a refusal; never recorded.
    """

    text: str
    finish: str = "stop"
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)
    blocks: tuple[str, ...] = field(default=(), compare=False)
    fingerprint: str = ""

    def to_json(self) -> dict[str, Any]:
        some = (name for name in ("extra", "fingerprint") if getattr(self, name))
        told = {
            name: getattr(self, name) for name in ("text", "finish", "model", "usage", *some)
        }
        return {**told, "tool_calls": list(self.tool_calls)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Reply:
        return Reply(**{**data, "tool_calls": tuple(data["tool_calls"])})


class Model(Protocol):
    """A frozen model behind one door."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines replies besides the request: backend, provider label, model name or
        GGUF digest, decoding set by params. JSON; never a URL, path, key or time limit."""

    @property
    def style(self) -> str:
        """`completion` (plain text in, text out) or `chat`."""

    @property
    def abilities(self) -> frozenset[str]:
        """Of `schema`, `tools`, `vision`."""

    @property
    def workers(self) -> int:
        """How many requests may be in flight at once."""

    async def complete(self, request: Request) -> Reply:
        """Return the reply.

        Raises:
            ModelError: see `models.errors`; infrastructure failures are never replies.
        """

    async def close(self) -> None:
        """Free connections, processes and memory."""


class WrappedModel:
    """A model that stands for another one: base of what adds something to each call."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.identity, self.style = model.identity, model.style
        self.abilities, self.workers = model.abilities, model.workers

    async def complete(self, request: Request) -> Reply:
        """Return the reply; see `Model`."""
        return await self._model.complete(request)

    async def close(self) -> None:
        await self._model.close()

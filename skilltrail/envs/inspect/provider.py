"""The target as a model of Inspect: every call of a task goes through our own models.

So its replies are facts, budgets hold, keys stay where they are. Which rollout a call belongs
to is known from the store that Inspect keeps for each sample, its scorer included.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.model import Model as InspectModel
from inspect_ai.model._model_output import StopReason
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo
from inspect_ai.util import store

from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.envs.kit.transcript import Transcript, completion
from skilltrail.models.protocol import Decoding, Message, Model, Part, Reply, Request

NAME = "skilltrail/target"
MARK = "skilltrail:rollout"  # where a sample's own store says whose calls are made
_FINISH: dict[str, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "tool": "tool_calls",
    "refusal": "content_filter",
}


# What a task may set of a call: sent on as it is, or no matter of what is asked.
_SENT = {"max_tokens", "temperature", "top_p", "stop_seqs", "seed", "reasoning_effort"}
_OF_THE_WAY = {
    "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections",
    "adaptive_connections", "system_message", "max_tool_output", "cache", "cache_prompt",
    "batch", "internal_tools", "reasoning_history", "reasoning_summary", "fail_on_refusal",
}  # fmt: skip
_USUAL = {"num_choices": 1, "best_of": 1, "logprobs": False, "parallel_tool_calls": True}


class OutOfTurns(Exception):
    """The agent has made all the calls that it may make."""


@dataclass
class RolloutCalls:
    """The calls of one rollout.

    Attributes:
        most: how many replies the agent may have.
        said: the agent's turns.
        made: how many calls were answered, the scorer's too.
        answer_tokens: longest reply of a completion model, where the task sets none.
        scoring: whether the task's scorer is at work: its calls are no turns of the agent.
        error: what ended the rollout from our side.
    """

    target: Model
    most: int
    answer_tokens: int
    said: Transcript = field(default_factory=Transcript)
    made: int = 0
    scoring: bool = False
    error: Exception | None = None
    _sent: tuple[Message, ...] = ()

    async def complete(
        self, messages: list[ChatMessage], tools: list[ToolInfo], config: GenerateConfig
    ) -> Reply:
        """Return the target's reply and note the turn.

        Raises:
            OutOfTurns: there are no more turns.
            ModelError: as `Model.complete`; kept in `error`.
        """
        if not self.scoring and len(self.said.turns) >= self.most:
            self.error = OutOfTurns()
            raise self.error
        try:
            request = self._request(messages, tools, config)
            reply = await self.target.complete(request)
        except SkilltrailError as error:
            self.error = error
            raise
        self.made += 1
        if not self.scoring:
            self._note(request, reply)
        return reply

    def _request(
        self, messages: list[ChatMessage], tools: list[ToolInfo], config: GenerateConfig
    ) -> Request:
        front = [m.text for m in messages if m.role == "system"]
        system = "\n\n".join(text for text in front if text.strip())
        sent = tuple(_message(m) for m in messages if m.role != "system")
        offered = tuple(_tool(tool) for tool in tools)
        schema = self._schema(config)
        decoding = Decoding(
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            stop=tuple(config.stop_seqs or ()),
            seed=config.seed,
            effort=config.reasoning_effort,
        )
        if self.target.style == "completion":
            asked = completion(system, completion_text(sent, offered), self.answer_tokens)
            over = decoding.over(asked.decoding)
            return replace(asked, decoding=over, schema=schema, turn=self.made)
        if offered and "tools" not in self.target.abilities:
            raise UsageError(
                "The Inspect task offers its agent tools",
                "the target takes none",
                "Choose a target with tools, or a task without",
            )
        return Request(system, None, sent, decoding, schema, offered, turn=self.made)

    def _schema(self, config: GenerateConfig) -> dict[str, Any] | None:
        """Return the schema that the reply is to follow.

        Raises:
            UsageError: the task wants what no target is asked for, or this one cannot do.
        """
        wanted = config.model_dump(exclude_none=True)
        usual = {name for name, value in _USUAL.items() if wanted.get(name) == value}
        schema = wanted.pop("response_schema", None)
        others = sorted(set(wanted) - _SENT - _OF_THE_WAY - usual)
        if schema is not None and "schema" not in self.target.abilities:
            others.append("response_schema, which this target cannot be held to")
        if others:
            asked = "The Inspect task sets how its model is asked"
            remedy = "Leave it out of the task, or set it for the target (docs/models)"
            raise UsageError(asked, ", ".join(others), remedy)
        if config.response_schema is None:
            return None
        json_schema = config.response_schema.json_schema
        return json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)

    def _note(self, request: Request, reply: Reply) -> None:
        """Add the turn: what was sent after what had been sent before."""
        known = len(self._sent)
        new = request.messages[known:] if request.messages[:known] == self._sent else None
        self._sent = request.messages
        shown: Any = request.prompt
        if shown is None:
            shown = [m.to_json() for m in (request.messages if new is None else new)]
        self.said.add(shown, reply)


calls_of: dict[str, RolloutCalls] = {}


def calls_here() -> RolloutCalls:
    """Return the calls of the rollout whose sample is at work here."""
    return calls_of[store().get(MARK)]


@modelapi("skilltrail")
class TargetAPI(ModelAPI):
    """Inspect's side of the door."""

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the target's reply in Inspect's words."""
        calls = calls_here()
        if tool_choice == "none":
            tools = []
        elif tools and tool_choice != "auto":
            asked, found = "The Inspect task makes its agent call a tool", f"{tool_choice!r}"
            remedy = 'Leave tool_choice "auto" or "none": no target is made to call one'
            calls.error = UsageError(asked, f"tool_choice is {found}", remedy)
            raise calls.error
        told = tools if calls.target.style == "completion" else []
        return _output(await calls.complete(input, tools, config), told)

    def max_connections(self) -> int:
        """Return how many calls may wait at our door: it keeps its own limits."""
        return 10_000


class Door(InspectModel):
    """The target as the task's model and as each of its roles.

    Inspect's own cache knows a model by its name, and every target has this one: so it is left
    out, and replies are reused from our store alone.
    """

    @classmethod
    def of_target(cls) -> Door:
        model = get_model(NAME)
        return cls(model.api, model.config)

    async def generate(self, *args: Any, **options: Any) -> ModelOutput:
        """Return the target's reply, whatever cache was asked for."""
        return await super().generate(*args[:4], **{**options, "cache": False})


def other_models(events: list[Any]) -> list[str]:
    """Return the models that were asked by name, so past the target."""
    asked = {event.model for event in events if event.event == "model"}
    return sorted(asked - {NAME})


def completion_text(messages: tuple[Message, ...], tools: tuple[Any, ...]) -> str:
    """Return a conversation as the text that a completion model goes on with.

    One question alone is put as `...\\nAnswer:`, the form of worked examples. Tools are told as
    lines; a reply that is `{"name": ..., "arguments": {...}}` calls one.
    """
    texts = ["".join(part.text for part in message.parts) for message in messages]
    if len(messages) == 1 and not tools:
        return f"{texts[0].rstrip()}\nAnswer:"
    lines = [f"Tool: {json.dumps(tool, ensure_ascii=False, sort_keys=True)}" for tool in tools]
    names = {"user": "User", "assistant": "Assistant", "tool": "Result"}
    said = zip(messages, texts, strict=True)
    lines += [f"{names[message.role]}: {text.strip()}" for message, text in said]
    return "\n".join([*lines, "Assistant:"])


def _message(message: ChatMessage) -> Message:
    """Return a message of Inspect as ours.

    Raises:
        UsageError: it holds an image, a sound or a document.
    """
    if not isinstance(message.content, str):
        kinds = {part.type for part in message.content} - {"text", "reasoning"}
        if kinds:
            raise UsageError(
                "A message of the Inspect task",
                f"it holds {', '.join(sorted(kinds))}",
                "Only texts reach a target from a task of Inspect",
            )
    parts = (Part(message.text),)
    if isinstance(message, ChatMessageTool):
        text = message.error.message if message.error is not None else message.text
        return Message("tool", (Part(text),), tool_call_id=message.tool_call_id)
    if isinstance(message, ChatMessageAssistant):
        calls = tuple(
            {"id": call.id, "name": call.function, "arguments": call.arguments}
            for call in message.tool_calls or ()
        )
        return Message("assistant", parts, calls)
    return Message("user", parts)


def _tool(tool: ToolInfo) -> dict[str, Any]:
    parameters = tool.parameters.model_dump(mode="json", exclude_none=True)
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _output(reply: Reply, told: list[ToolInfo]) -> ModelOutput:
    """Return a reply in Inspect's words; `told`: the tools that the prompt told as text."""
    calls = [
        ToolCall(id=call["id"], function=call["name"], arguments=dict(call["arguments"]))
        for call in reply.tool_calls
    ] or _written_call(reply.text, {tool.name for tool in told})
    message = ChatMessageAssistant(
        content=reply.text, tool_calls=calls or None, model=NAME, source="generate"
    )
    usage = ModelUsage(
        input_tokens=reply.usage.get("input", 0),
        output_tokens=reply.usage.get("output", 0),
        total_tokens=reply.usage.get("input", 0) + reply.usage.get("output", 0),
    )
    stop = "tool_calls" if calls else _FINISH.get(reply.finish, "unknown")
    choice = ChatCompletionChoice(message=message, stop_reason=stop)
    return ModelOutput(model=reply.model or NAME, choices=[choice], usage=usage)


def _written_call(text: str, names: set[str]) -> list[ToolCall]:
    """Return the call that a completion model wrote as JSON, or []."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(call, dict) or call.get("name") not in names:
        return []
    arguments = call.get("arguments", {})
    return [ToolCall("written", call["name"], arguments)] if isinstance(arguments, dict) else []

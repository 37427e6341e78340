"""The tool loop: the model looks into files until it answers or its turns are used up.

Targets with the ability `tools` get tool definitions; others write `CALL name {…}` lines and
are sent the results as text. Every turn is in the trajectory: what was sent, the reply, its
calls and what the tools said.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skilltrail.core.canon import value_of
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.transcript import Transcript, completion, ending_of
from skilltrail.envs.officeqa.tools import TOOLS, run_tool, shown_call
from skilltrail.models.errors import TooLong
from skilltrail.models.protocol import Message, Model, Part, Reply, Request

_CALL = re.compile(r"^\s*CALL\s+(\w+)\s+(\{.*\})\s*$", re.MULTILINE)
STEP = "\nStep:"


@dataclass(frozen=True)
class Loop:
    """What the loop may do.

    Attributes:
        files: name -> text of each file the agent may see.
        tool_turns: turns with tool calls; a further call ends the rollout `out_of_turns`.
        calls_per_turn: calls run in one turn; what is over is answered with a refusal.
        item_s: seconds that the agent's own tools may take; waiting for the model is not its.
        step_tokens: longest step of a completion model.
    """

    files: Mapping[str, str]
    tool_turns: int
    calls_per_turn: int
    item_s: float
    step_tokens: int


async def search(request: Request, target: Model, loop: Loop) -> Trajectory:
    """Return the trajectory of one search; its `answer` is the last reply.

    Args:
        request: the first request; the loop adds what follows.

    Raises:
        ModelError: the infrastructure failed.
    """
    said = Transcript()
    sent: Any = request.prompt
    if sent is None:
        sent = [message.to_json() for message in request.messages]
    spent_s, ending = 0.0, ""
    while not ending:
        try:
            reply = await target.complete(replace(request, turn=len(said.turns)))
        except TooLong:
            if not said.turns:
                raise
            ending = "too_long"
            break
        calls = reply.tool_calls if request.tools else calls_in(reply.text)
        if not calls:
            ending = ending_of(reply)
        elif len(said.turns) == loop.tool_turns:
            ending = "out_of_turns"
        if ending:
            said.add(sent, reply, calls=calls)
            break
        began = time.monotonic()
        results = run_calls(calls, loop)
        spent_s += time.monotonic() - began
        said.add(sent, reply, "\n\n".join(results), calls)
        request, sent = _followed(request, reply, calls, results)
        if spent_s > loop.item_s:
            ending = "out_of_time"
    answered = ending in ("answered", "truncated")
    return said.ended(ending, reply.text.strip() if answered else "")


def first_request(prompt: str, skill: str, target: Model, loop: Loop, native: bool) -> Request:
    """Return the request that opens a search."""
    if target.style != "chat":
        return completion(skill, prompt, loop.step_tokens)
    message = Message.text("user", prompt)
    return Request(system=skill, messages=(message,), tools=TOOLS if native else ())


def calls_in(text: str) -> tuple[dict[str, Any], ...]:
    """Return the calls of a reply in the text protocol; broken JSON stays a call that fails."""
    found = []
    for number, match in enumerate(_CALL.finditer(text), start=1):
        found.append(
            {"id": f"call-{number}", "name": match[1], "arguments": _arguments(match[2])}
        )
    return tuple(found)


def run_calls(calls: Sequence[Mapping[str, Any]], loop: Loop) -> list[str]:
    """Return what the tools say to each call, in order."""
    said = []
    for number, call in enumerate(calls):
        arguments = call.get("arguments")
        if number >= loop.calls_per_turn:
            said.append(f"[not run: at most {loop.calls_per_turn} calls a turn]")
        elif not isinstance(arguments, Mapping) or "_broken" in arguments:
            said.append("[the arguments are no JSON object]")
        else:
            said.append(run_tool(str(call.get("name")), arguments, loop.files))
    return said


def _followed(
    request: Request, reply: Reply, calls: Sequence[Mapping[str, Any]], said: list[str]
) -> tuple[Request, Any]:
    """Return the next request and what it adds."""
    if request.tools:
        results = [
            Message("tool", (Part(text),), tool_call_id=str(call["id"]))
            for call, text in zip(calls, said, strict=True)
        ]
        assistant = Message("assistant", (Part(reply.text),), tool_calls=tuple(calls))
    else:
        lines = [
            f"RESULT of {shown_call(str(call['name']), call['arguments'])}\n{text}"
            for call, text in zip(calls, said, strict=True)
        ]
        if request.prompt is not None:
            added = f" {reply.text.strip()}\n" + "\n".join(lines) + STEP
            return replace(request, prompt=request.prompt + added), added
        assistant = Message.text("assistant", reply.text)
        results = [Message.text("user", "\n\n".join(lines))]
    new = replace(request, messages=(*request.messages, assistant, *results))
    return new, [message.to_json() for message in results]


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = value_of(text)
    except ValueError:
        return {"_broken": text}
    return found if isinstance(found, dict) else {"_broken": text}

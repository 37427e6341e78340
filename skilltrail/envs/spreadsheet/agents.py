"""The agents: code in text (one shot, several with errors fed back), a coding client, tools.

Code is written from the first case and then run on all of them. An agent stops as soon as its
code runs on the first case and leaves an output; what that output is worth, only the scorer
says. A coding client (`exec`) works in a folder of its own and leaves `solution.py`; where it
works is its own affair, and what counts is run in our sandbox.

The agent with tools looks into the workbook by running code, and submits code:

run_python(code)   runs in a folder that lasts for the item, on the first case
submit(code)       ends the item: this code is run on every case
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.prompts import Prompts
from skilltrail.envs.kit.transcript import Transcript, completion
from skilltrail.envs.spreadsheet.case_runner import CODE, INPUT, OUTPUT, CaseRunner, format_run
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import File, Message, Model, Reply, Request
from skilltrail.sandbox.protocol import Ran

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Task:
    """One item as an agent gets it; `values` fill the places of the prompts."""

    values: dict[str, str]
    prompts: Prompts
    skill: str
    turns: int
    answer_tokens: int
    feedback_chars: int


async def write_code(task: Task, runner: CaseRunner, target: Model) -> Trajectory:
    """Ask for code up to `task.turns` times; see the module's text.

    The same code twice in a row would fail the same way again: it counts as the answer.

    Raises:
        ModelError: the infrastructure failed.
    """
    transcript = Transcript()
    request, sent = _first(task, target)
    before = None
    for number in range(task.turns):
        reply = await target.complete(replace(request, turn=number))
        if reply.finish == "refusal":
            transcript.add(sent, reply)
            return transcript.ended("refused")
        code = code_in(reply.text)
        last = number + 1 == task.turns
        ran = await runner.run(code) if code else Ran("finished", 1, "", "There is no code.")
        if (ran.ok and OUTPUT in ran.files) or code == before or (last and task.turns == 1):
            transcript.add(sent, reply)
            return transcript.ended(_ending(reply), code, await results(runner, code, ran))
        if runner.is_out_of_time:
            transcript.add(sent, reply)
            return transcript.ended("out_of_time", code)
        problem = format_run(ran, task.feedback_chars)
        transcript.add(sent, reply, problem)
        before = code
        request, sent = _following(task, request, reply, code, problem)
    return transcript.ended("out_of_turns", before or "")


async def results(runner: CaseRunner, code: str, ran: Ran | None = None) -> dict[str, Any]:
    """Return what the scorer needs of all cases; without code each has that fault."""
    if not code.strip():
        faults = [{"fault": "no_code"} for _ in runner.inputs]
        return {"sandbox": runner.sandbox.name, "recalculated": None, "cases": faults}
    return await runner.all_cases(code, ran)


def _ending(reply: Reply) -> str:
    return "truncated" if reply.finish == "length" else "answered"


def _first(task: Task, target: Model) -> tuple[Request, Any]:
    if target.style == "chat":
        message = Message.text("user", task.prompts.fill("chat", **task.values))
        return Request(system=task.skill, messages=(message,)), [message.to_json()]
    prompt = task.prompts.fill("completion", **task.values)
    return _completion(task, prompt), prompt


def _following(
    task: Task, request: Request, reply: Reply, code: str, problem: str
) -> tuple[Request, Any]:
    """Return the request that tells what went wrong.

    A chat goes on whole; a completion model is shown the task and its latest attempt only, so
    that the prompt does not outgrow its context.
    """
    values = {**task.values, "code": code, "problem": problem}
    if request.prompt is None:
        new = Message.text("user", task.prompts.fill("retry_chat", **values))
        said = (*request.messages, Message.text("assistant", reply.text), new)
        return Request(system=task.skill, messages=said), [new.to_json()]
    prompt = task.prompts.fill("retry_completion", **values)
    return _completion(task, prompt), prompt


def _completion(task: Task, prompt: str) -> Request:
    return completion(task.skill, f"{prompt}\n", task.answer_tokens, ("```",))


def code_in(text: str) -> str:
    """Return the code of a reply, "" when there is none.

    A block that was cut off before its closing fence counts up to its end. Source: the reading
    rule of SpreadsheetBench's inference scripts (first fenced block, else everything).
    """
    match = _FENCED.search(text)
    return (match[1] if match is not None else text).strip("\n").rstrip()


async def exec_agent(task: Task, runner: CaseRunner, target: Model, book: File) -> Trajectory:
    """Ask once; the program is the file that was left, else the code in the reply.

    Raises:
        ModelError: the infrastructure failed.
    """
    message = Message.text("user", task.prompts.fill("exec", **task.values))
    request = Request(system=task.skill, messages=(message,), files=(book,), returns=(CODE,))
    reply = await target.complete(request)
    transcript = Transcript()
    transcript.add([message.to_json()], reply)
    if reply.finish in ("refusal", "out_of_turns"):
        return transcript.ended("refused" if reply.finish == "refusal" else reply.finish)
    code = _left_code(reply)
    actions = reply.extra.get("actions")
    trace = {"trace": actions} if actions else {}
    return transcript.ended("answered", code, trace | await results(runner, code))


def _left_code(reply: Reply) -> str:
    """Return the text of the file that the client left, or the code in what it said."""
    try:
        left = base64.b64decode(reply.extra.get("files", {}).get(CODE, ""), validate=True)
    except binascii.Error:
        left = b""
    return left.decode("utf-8", "replace") or code_in(reply.text)


_CODE = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "A whole Python program."}},
    "required": ["code"],
    "additionalProperties": False,
}
TOOLS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "run_python",
        "description": "Run a Python program beside input.xlsx and see what it prints.",
        "parameters": _CODE,
    },
    {
        "name": "submit",
        "description": "Hand in the program that reads input.xlsx and writes output.xlsx.",
        "parameters": _CODE,
    },
)


async def work_with_tools(task: Task, runner: CaseRunner, target: Model) -> Trajectory:
    """Let the model call tools up to `task.turns` times.

    Raises:
        ModelConfigError: this target has no tools.
        ModelError: the infrastructure failed.
    """
    if "tools" not in target.abilities:
        raise ModelConfigError(
            "envs.spreadsheet.agent: react",
            "the target has no tools",
            "Choose a target with tools, or the agent multi",
        )
    transcript = Transcript()
    first = Message.text("user", task.prompts.fill("react", **task.values))
    request = Request(system=task.skill, messages=(first,), tools=TOOLS)
    new: tuple[Message, ...] = (first,)
    files: dict[str, bytes] = {}
    for number in range(task.turns):
        reply = await target.complete(replace(request, turn=number))
        sent = [message.to_json() for message in new]
        if reply.finish == "refusal":
            transcript.add(sent, reply)
            return transcript.ended("refused")
        handed_in = _handed_in(reply.tool_calls, reply.text)
        if handed_in is not None:
            transcript.add(sent, reply)
            return transcript.ended("answered", handed_in, await results(runner, handed_in))
        new, files = await _answers(reply.tool_calls, task, runner, files)
        transcript.add(sent, reply, "\n".join(part.text for said in new for part in said.parts))
        if runner.is_out_of_time:
            return transcript.ended("out_of_time")
        said = Message("assistant", Message.text("", reply.text).parts, reply.tool_calls)
        request = replace(request, messages=(*request.messages, said, *new))
    return transcript.ended("out_of_turns")


def _handed_in(calls: tuple[Mapping[str, Any], ...], text: str) -> str | None:
    """Return the code that ends the item: of `submit`, or of a reply without any call."""
    for call in calls:
        if call["name"] == "submit":
            return _code(call)
    return None if calls else code_in(text)


async def _answers(
    calls: tuple[Mapping[str, Any], ...],
    task: Task,
    runner: CaseRunner,
    files: dict[str, bytes],
) -> tuple[tuple[Message, ...], dict[str, bytes]]:
    """Return what the tools answer, and the files of the work folder afterwards."""
    said = []
    for call in calls:
        if call["name"] == "run_python":
            ran = await runner.run(_code(call), files=files, keep=".")
            if ran.ending == "finished":
                files = {name: data for name, data in ran.files.items() if name != INPUT}
            said_now = format_run(ran, task.feedback_chars, wants_output=False)
            answer = said_now or "It ran and printed nothing."
        else:
            answer = f"There is no tool {call['name']!r}; there are run_python and submit."
        said.append(
            Message("tool", Message.text("", answer).parts, tool_call_id=str(call["id"]))
        )
    return tuple(said), files


def _code(call: Mapping[str, Any]) -> str:
    code = call["arguments"].get("code", "")
    return code if isinstance(code, str) else ""

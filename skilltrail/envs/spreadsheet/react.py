"""The agent with tools: it looks into the workbook by running code, and submits code.

run_python(code)   runs in a folder that lasts for the item, on the first case
submit(code)       ends the item: this code is run on every case
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.transcript import Transcript
from skilltrail.envs.spreadsheet.agents import Task, code_in, results
from skilltrail.envs.spreadsheet.case_runner import INPUT, CaseRunner, format_run
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Message, Model, Request

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

"""The agent `exec`: one request to a coding client, which works in a folder of its own.

The client finds the task and the first case's workbook there and leaves `solution.py`. Where it
works is its own affair (see the target's params); what counts is run in our sandbox.
"""

from __future__ import annotations

import base64
import binascii

from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.transcript import Transcript
from skilltrail.envs.spreadsheet.agents import Task, code_in, results
from skilltrail.envs.spreadsheet.case_runner import CODE, CaseRunner
from skilltrail.models.protocol import File, Message, Model, Reply, Request


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

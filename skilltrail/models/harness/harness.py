"""What all agent programs have in common: one call is one run in a folder of its own.

An agent may be driven by its Python SDK instead (`exec.use_sdk: true`; packages `openai-codex`
and `claude-agent-sdk`, each with its own copy of the program). The SDK runs in a process of its
own (`sdk_driver`), whose output reads like the command line's.
"""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.canon import value_of
from skilltrail.models.client.classify import Endpoint, classify
from skilltrail.models.errors import ModelConfigError, ModelError, Transient
from skilltrail.models.harness.folder import WorkFolder, work_folder
from skilltrail.models.harness.process import Finished, Invocation, run
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.params.model_options import RoleOptions
from skilltrail.skill.folder import is_folder, named_in
from skilltrail.skill.skill_file import described

_STATUS = re.compile(r"(?i)\b(?:status|error|http|api)\b[^0-9\n]{0,24}\b([45]\d\d)\b")
_LOGIN = re.compile(r"(?i)not logged in|/login|log in|missing environment")
_TAIL_CHARS = 600


class Harness(ABC):
    """A backend that runs a program; `remedy` is for one that cannot be started."""

    def __init__(
        self, options: RoleOptions, endpoint: Endpoint, env: dict[str, str], remedy: str
    ) -> None:
        self.options, self.endpoint, self.env, self.remedy = options, endpoint, env, remedy

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        with work_folder(request, self.skills_place) as folder:
            command = self.command(request, folder)
            reply = self.read(await run(command, self.endpoint.asked, self.remedy))
            if request.returns:
                files = {"files": folder.returned(request.returns)}
                reply = replace(reply, extra={**reply.extra, **files})
            if request.skills:
                actions = reply.extra.get("actions", ())
                extra = {**reply.extra, "loaded": loaded(request.skills, actions)}
                reply = replace(reply, extra=extra)
            if self.reads and is_folder(request.system):
                told = json.dumps([one["input"] for one in reply.extra.get("actions", ())])
                opened = {"opened": named_in(told, request.system)}
                reply = replace(reply, extra={**reply.extra, **opened})
            return reply

    skills_place: ClassVar[str] = ""  # where in the work folder it looks for skills

    @property
    def reads(self) -> bool:
        """Whether the agent can open the files of a skill folder by itself."""
        return False

    async def close(self) -> None:
        """Nothing outlives a call."""
        return

    @abstractmethod
    def command(self, request: Request, folder: WorkFolder) -> Invocation:
        """Return what is started for a request."""

    @abstractmethod
    def read(self, finished: Finished) -> Reply:
        """Return the reply that a run tells of.

        Raises:
            Refused, ModelError: it failed.
        """


def loaded(skills: Sequence[str], actions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the skills that an agent loaded: by its tool, or by reading them."""
    names = [described(skill)[0] for skill in skills]
    asked, told = set[str](), ""
    for action in actions:
        given = action["input"]
        if action["name"] == "Skill" and isinstance(given, Mapping):
            asked |= {str(value) for value in given.values()}
        told += json.dumps(given, ensure_ascii=False)
    return [name for name in names if name in asked or f"{name}/SKILL.md" in told]


@dataclass
class Skipped:
    """How many lines could not be used."""

    count: int = 0

    def beside(self, actions: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the `extra` of a reply: an agent's actions, and lines that were skipped."""
        extra: dict[str, Any] = {"actions": actions} if actions else {}
        return extra | ({"skipped_events": self.count} if self.count else {})


def objects(output: str, skipped: Skipped) -> Iterator[Mapping[str, Any]]:
    """Yield each line's JSON object; a line that is none is counted and passed over."""
    for line in output.split("\n"):
        if not line.strip():
            continue
        try:
            value = value_of(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            yield value
        else:
            skipped.count += 1


def last_text(output: str, dotted: str) -> tuple[str | None, int]:
    """Return the text at `dotted` of the last event that has one, and how many were skipped.

    An event without that field, or with null or nothing in it, says something else and is
    fine; one where the path runs into a value of another shape is skipped and counted.
    """
    skipped = Skipped()
    found: str | None = None
    for event in objects(output, skipped):
        value: Any = event
        for name in dotted.split("."):
            value = value.get(name) if isinstance(value, Mapping) else 0
            if value is None:
                break
        if isinstance(value, str):
            found = value if value or found is None else found
        elif value is not None:
            skipped.count += 1
    return found, skipped.count


def words_of(*said: Any) -> str:
    """Return the first of these that says something: a text, an object's message, or JSON."""
    for one in said:
        one = one.get("message", one) if isinstance(one, Mapping) else one
        one = one if isinstance(one, str) or not one else json.dumps(one, ensure_ascii=False)
        if one and one.strip():
            return str(one)
    return ""


def failure(endpoint: Endpoint, code: int, said: str, status: int | None = None) -> ModelError:
    """Return what a failed program's last words mean.

    Raises:
        Refused: the provider declined the content.
    """
    words = said.strip()[-_TAIL_CHARS:]
    found = f"exit code {code}: {words}" if words else f"exit code {code} and no message"
    if _LOGIN.search(words):
        return ModelConfigError(endpoint.asked, found, "Log in to the program, or set its key")
    named = _STATUS.search(words)
    if status is None and named is not None:
        status = int(named[1])
    error = classify(endpoint, 200 if status is None else status, words)
    if status is not None or not isinstance(error, Transient):
        return error
    if code in (2, 126, 127):
        return ModelConfigError(endpoint.asked, found, f"Check {endpoint.role}.exec")
    return Transient(endpoint.asked, found, billed=True)


_DRIVER = Path(__file__).with_name("sdk_driver.py")
_PACKAGES = {
    "codex": ("openai_codex", "openai-codex"),
    "claude": ("claude_agent_sdk", "claude-agent-sdk"),
}


def require_sdk(agent: str, endpoint: Endpoint) -> None:
    """Refuse to start without the SDK of `agent` (codex or claude).

    Raises:
        ModelConfigError: its package is missing.
    """
    module, package = _PACKAGES[agent]
    if find_spec(module) is None:
        raise ModelConfigError(
            f"{endpoint.role}.exec.use_sdk",
            f"the package {package} is missing",
            f"Install it (pip install {package}), or set use_sdk: false",
        )


def sdk_command(
    agent: str, asked: Mapping[str, Any], folder: WorkFolder, env: Mapping[str, str]
) -> Invocation:
    """Return the command that drives `agent`; settings and prompt go to its standard input."""
    argv = (sys.executable, str(_DRIVER), agent)
    stdin = json.dumps({**asked, "prompt": folder.task})
    return Invocation(argv, stdin, folder.work, env)

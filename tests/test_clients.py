"""The real agent programs, headless against a loopback server: `make test-clients`.

Skipped where `codex` and `claude` are not on PATH; install them with
`npm install -g @openai/codex @anthropic-ai/claude-code`. Their Python SDKs bring programs of
their own: `pip install openai-codex claude-agent-sdk`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from skilltrail.data.sessions.episodes import episodes_of
from skilltrail.data.sessions.read import read_session, session_files
from skilltrail.models.errors import ModelConfigError, Transient
from skilltrail.models.protocol import Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import ExecOptions, RetryOptions, RoleOptions
from tests.fault_server import Answer, Call, Fault, FaultServer, Say, Spoil

SKILL = "# Skill\n\n- Marker of the skill: ünïque-7421.\n" + "- A rule.\n" * 400
ASK = Request(system=SKILL, prompt="Marker of the task: 9183. Say fine.")


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that does not lie under the temp folder, where Codex refuses to work."""
    with TemporaryDirectory(dir=Path.home()) as folder:
        yield Path(folder)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"{program} is not installed (see the docstring)"
    )


def ask(
    backend: str,
    home: Path,
    spoil: Spoil = lambda _: None,
    say: Say = lambda _: Answer("fine"),
    request: Request = ASK,
    **harness: Any,
) -> tuple[Reply, list[Call]]:
    with FaultServer(spoil, say) as server:
        options = RoleOptions(
            backend=backend,
            model="test-model",
            base_url=server.url if backend == "claude_exec" else f"{server.url}/v1",
            key_env="LAB_KEY",
            timeout_s=60.0,
            retry=RetryOptions(attempts=1),
            exec=ExecOptions(**harness),
        )
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CODEX_HOME": str(home),
            "LAB_KEY": "lab-key-1234",
        }

        async def go() -> Reply:
            return await open_model("target", options, environ=environ).complete(request)

        return asyncio.run(go()), server.calls


def sent(calls: list[Call]) -> str:
    bodies = [call.body for call in calls if call.method == "POST"]
    return json.dumps(bodies, ensure_ascii=False)


def needs_sdk(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(module) is None, reason=f"{module} is not installed (see the docstring)"
    )


CODEX = [
    pytest.param("codex_exec", False, marks=needs("codex"), id="codex"),
    pytest.param("codex_exec", True, marks=needs_sdk("openai_codex"), id="codex SDK"),
]
CLAUDE = [
    pytest.param("claude_exec", False, marks=needs("claude"), id="claude"),
    pytest.param("claude_exec", True, marks=needs_sdk("claude_agent_sdk"), id="claude SDK"),
]
EVERY = pytest.mark.parametrize(("backend", "use_sdk"), [*CODEX, *CLAUDE])


@EVERY
def test_it_answers_and_the_whole_skill_reaches_the_model(
    backend: str, use_sdk: bool, home: Path
) -> None:
    reply, calls = ask(backend, home, use_sdk=use_sdk)
    assert (reply.text, reply.finish) == ("fine", "stop")
    assert reply.usage["output"] == 2
    assert "ünïque-7421" in sent(calls)
    assert sent(calls).count("- A rule.") >= 400
    assert "9183" in sent(calls)


@EVERY
def test_a_wrong_key_is_a_config_error(backend: str, use_sdk: bool, home: Path) -> None:
    with pytest.raises(ModelConfigError, match="LAB_KEY"):
        ask(
            backend,
            home,
            use_sdk=use_sdk,
            spoil=lambda c: Fault(status=401) if c.method == "POST" else None,
        )


@EVERY
def test_a_broken_server_is_transient(backend: str, use_sdk: bool, home: Path) -> None:
    with pytest.raises(Transient):
        ask(
            backend,
            home,
            use_sdk=use_sdk,
            spoil=lambda c: Fault(status=500) if c.method == "POST" else None,
        )


def first_then_text(tool: tuple[str, dict[str, Any]]) -> Say:
    posts: list[int] = []

    def say(call: Call) -> Answer:
        posts.append(call.number)
        return Answer("", "tool", tool) if len(posts) == 1 else Answer("fine")

    return say


@pytest.mark.parametrize(("backend", "use_sdk"), CODEX)
def test_codex_runs_a_command_and_it_comes_back_without_keys(
    backend: str, use_sdk: bool, home: Path
) -> None:
    tool = ("exec_command", {"cmd": "echo seen-$((40+2)); env | grep -c LAB_KEY; false"})
    reply, _ = ask(backend, home, say=first_then_text(tool), use_sdk=use_sdk,
                   sandbox="danger-full-access")  # fmt: skip
    (action,) = reply.extra["actions"]
    assert "seen-42" in action["output"]
    assert "0" in action["output"].split()
    assert action["exit_code"] == 1
    assert reply.text == "fine"


@pytest.mark.parametrize(("backend", "use_sdk"), CLAUDE)
def test_claude_runs_a_command_and_it_comes_back(
    backend: str, use_sdk: bool, home: Path
) -> None:
    command = "echo seen-$((40+2)); false"
    tool = ("Bash", {"command": command, "description": "try"})
    reply, _ = ask(backend, home, say=first_then_text(tool), use_sdk=use_sdk, tools=("Bash",),
                   sandbox="danger-full-access")  # fmt: skip
    (action,) = reply.extra["actions"]
    assert "seen-42" in json.dumps(action["output"])
    assert action["exit_code"] == 1
    assert reply.text == "fine"


RECEIPTS = "---\nname: receipts\ndescription: Reads receipts.\n---\n\n# Receipts\n\nAdd up.\n"
FOLDER = RECEIPTS + "\n<!-- SKILL FILE: references/tax.md -->\n- Marker of the file: 5512.\n"


@pytest.mark.parametrize(("backend", "use_sdk"), CODEX[:1])
def test_codex_loads_a_skill_on_offer_by_reading_it(
    backend: str, use_sdk: bool, home: Path
) -> None:
    request = Request(prompt="Split this bill.", skills=(RECEIPTS,))
    tool = ("exec_command", {"cmd": "cat .agents/skills/receipts/SKILL.md"})
    reply, calls = ask(backend, home, say=first_then_text(tool), request=request,
                       sandbox="danger-full-access")  # fmt: skip
    assert "receipts: Reads receipts." in json.dumps(calls[0].body) + sent(calls)
    assert reply.extra["loaded"] == ["receipts"]
    quiet, _ = ask(backend, home, request=request)
    assert quiet.extra["loaded"] == []


@pytest.mark.parametrize(("backend", "use_sdk"), CLAUDE[:1])
def test_claude_loads_a_skill_on_offer_by_its_tool(
    backend: str, use_sdk: bool, home: Path
) -> None:
    request = Request(prompt="Split this bill.", skills=(RECEIPTS,))
    tool = ("Skill", {"skill": "receipts"})
    reply, calls = ask(backend, home, say=first_then_text(tool), request=request)
    assert "receipts: Reads receipts." in sent(calls)
    assert "Add up." in sent(calls)
    assert reply.extra["loaded"] == ["receipts"]
    quiet, _ = ask(backend, home, request=request)
    assert quiet.extra["loaded"] == []


@pytest.mark.parametrize(
    ("backend", "tool", "more"),
    [
        pytest.param("codex_exec", ("exec_command", {"cmd": "cat references/tax.md"}),
                     {"sandbox": "danger-full-access"}, marks=needs("codex")),
        pytest.param("claude_exec", ("Read", {"file_path": "references/tax.md"}),
                     {"tools": ("Read",)}, marks=needs("claude")),
    ],
)  # fmt: skip
def test_an_agent_opens_a_file_of_a_skill_folder_and_it_is_known(
    backend: str, tool: Any, more: dict[str, Any], home: Path
) -> None:
    request = Request(system=FOLDER, prompt="Tax?")
    reply, calls = ask(backend, home, say=first_then_text(tool), request=request, **more)
    posts = [json.dumps(call.body) for call in calls if call.method == "POST"]
    assert "references/tax.md" in posts[0]
    assert "5512" not in posts[0]
    assert reply.extra["opened"] == ["references/tax.md"]
    assert "5512" in posts[-1]
    quiet, _ = ask(backend, home, request=request, **more)
    assert quiet.extra["opened"] == []


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("backend", "use_sdk"), CODEX)
def test_codex_asks_for_the_schema(backend: str, use_sdk: bool, home: Path) -> None:
    request = replace(ASK, schema=SCHEMA)
    reply, calls = ask(backend, home, say=lambda _: Answer('{"a": "b"}'), request=request,
                       use_sdk=use_sdk)  # fmt: skip
    assert json.loads(reply.text) == {"a": "b"}
    assert "json_schema" in sent(calls)


@needs("claude")
@needs("codex")
def test_sessions_that_the_real_programs_leave_are_read(home: Path) -> None:
    """A question and a correction, by each program, resumed as a person would."""
    work = home / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    asked, corrected = "What is the limit for meals?", "No, that is wrong: since May it is 45."
    with FaultServer(lambda _: None, lambda _: Answer("The limit is 40 euros.")) as server:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "lab-key-1234",
            "LAB_KEY": "lab-key-1234",
        }
        lab = 'model_provider="lab"\nmodel="test-model"\n[model_providers.lab]\nname="lab"\n'
        lab += f'base_url="{server.url}/v1"\nenv_key="LAB_KEY"\nwire_api="responses"\n'
        (home / ".codex").mkdir()
        (home / ".codex/config.toml").write_text(lab)

        def said(*command: str) -> str:
            return subprocess.run(
                command, cwd=work, env=environ, stdin=subprocess.DEVNULL, text=True,
                capture_output=True, check=True,
            ).stdout  # fmt: skip

        claude = ("claude", "-p", "--output-format", "json", "--model", "test-model")
        session = json.loads(said(*claude, asked))["session_id"]
        said(*claude, "--resume", session, corrected)
        said("codex", "exec", "--skip-git-repo-check", asked)
        said("codex", "exec", "resume", "--last", "--skip-git-repo-check", corrected)
    for program in ("claude", "codex"):
        (path,) = session_files(program, {"HOME": str(home)})
        (found,) = episodes_of(read_session(path))
        assert [found.kind, found.request, found.said] == ["corrected", asked, corrected]
        assert found.reply == "The limit is 40 euros."

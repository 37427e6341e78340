"""Agent programs behind the door, against a scripted one that speaks the real formats."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from skilltrail.core.errors import ParamError
from skilltrail.models.client.foreign import count
from skilltrail.models.errors import GaveUp, ModelConfigError, TimedOut, Transient
from skilltrail.models.harness.harness import last_text
from skilltrail.models.protocol import File, Message, Part, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import (
    BudgetOptions,
    ExecOptions,
    RetryOptions,
    RoleOptions,
)

AGENT = Path(__file__).with_name("fake_agent.py")
SKILL = "# Skill\n\n" + "- Rule ünïcode \U0001f600.\n" * 3000
ASK = Request(system=SKILL, prompt="What is it?\n; touch hacked.txt $(touch hacked.txt)")
ONCE = RetryOptions(attempts=1)


class Bench:
    """Runs one backend over one scenario of the scripted agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen_file = folder / "seen.json"

    def options(self, backend: str, scenario: str, **changes: Any) -> RoleOptions:
        harness = ExecOptions(
            argv=(sys.executable, str(AGENT), scenario), env=("FAKE_SEEN",), path=None
        )
        if backend != "exec":
            program = self.folder / scenario
            program.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" "{AGENT}" {scenario} "$@"\n', "utf-8"
            )
            program.chmod(0o755)
            harness = replace(harness, argv=(), path=str(program))
        harness = replace(harness, **changes.pop("harness", {}))
        fixed = {"retry": ONCE, "timeout_s": 30.0, "model": "m", **changes}
        return RoleOptions(backend=backend, exec=harness, **fixed)

    def ask(self, backend: str, scenario: str, request: Request = ASK, **changes: Any) -> Reply:
        environ = {
            "PATH": os.environ["PATH"],
            "FAKE_SEEN": str(self.seen_file),
            "OPENAI_API_KEY": "sk-never-to-be-seen",
            "LAB_KEY": "lab-key",
        }

        async def go() -> Reply:
            options = self.options(backend, scenario, **changes)
            model = open_model("target", options, environ=environ)
            try:
                return await model.complete(request)
            finally:
                await model.close()

        return asyncio.run(go())

    @property
    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.seen_file.read_text("utf-8"))
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def is_gone(pid: int) -> bool:
    """Return whether a process ends soon (a killed one needs a moment)."""
    for _ in range(400):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


ANSWERS = [("exec", "text"), ("codex_exec", "codex"), ("claude_exec", "claude")]
every = pytest.mark.parametrize(("backend", "scenario"), ANSWERS)


@every
def test_the_answer_comes_back_and_the_whole_skill_went_in(
    bench: Bench, backend: str, scenario: str
) -> None:
    reply = bench.ask(backend, scenario)
    assert (reply.text, reply.finish) == ("fine", "stop")
    arrived = bench.seen["prompt"] if backend == "exec" else bench.seen["system"]
    assert SKILL.strip() in arrived
    assert ASK.prompt in bench.seen["prompt"]


@every
def test_the_folder_holds_the_task_and_attachments_only(
    bench: Bench, backend: str, scenario: str
) -> None:
    book = bench.folder / "book.xlsx"
    book.write_bytes(b"cells")
    file = File("in.xlsx", hashlib.sha256(b"cells").hexdigest(), str(book))
    bench.ask(backend, scenario, replace(ASK, files=(file,)))
    assert bench.seen["folder"] == ["in.xlsx", "task.md"]
    assert bench.seen["task"] == ASK.prompt


@every
def test_the_environment_is_an_allow_list(bench: Bench, backend: str, scenario: str) -> None:
    """Public case sandbox-01."""
    bench.ask(backend, scenario)
    assert bench.seen["keys"] == []


@every
def test_there_is_no_shell(bench: Bench, backend: str, scenario: str) -> None:
    """Public case sandbox-02."""
    bench.ask(backend, scenario, model="m; touch hacked.txt", harness={})
    assert "hacked.txt" not in bench.seen["folder"]
    assert not list(bench.folder.glob("**/hacked.txt"))


@every
def test_a_long_prompt_never_becomes_an_argument(
    bench: Bench, backend: str, scenario: str
) -> None:
    """Public case cli-08."""
    prompt = "x" * 400_000
    bench.ask(backend, scenario, Request(system=SKILL, prompt=prompt))
    assert prompt in bench.seen["prompt"]
    assert max(map(len, bench.seen["argv"]), default=0) < 500


@every
def test_a_program_that_is_not_there_is_named(
    bench: Bench, backend: str, scenario: str
) -> None:
    """Public case cli-08: never an empty answer."""
    gone = {"argv": ("/no/such/agent",)} if backend == "exec" else {"path": "/no/such/agent"}
    with pytest.raises(ModelConfigError, match=r"/no/such/agent.*target\.exec"):
        bench.ask(backend, scenario, harness=gone)


@every
def test_an_agent_takes_no_sampling_settings_or_token_budget(
    bench: Bench, backend: str, scenario: str
) -> None:
    with pytest.raises(ParamError, match="target.temperature"):
        bench.ask(backend, scenario, temperature=0.5)
    with pytest.raises(ParamError, match="target.budget.usd"):
        bench.ask(backend, scenario, budget=BudgetOptions(usd=1))


@pytest.mark.parametrize("backend", ["exec", "codex_exec", "claude_exec"])
def test_a_killed_harness_takes_its_whole_process_group_with_it(
    bench: Bench, backend: str
) -> None:
    noted = Path(f"{bench.seen_file}.child")
    for timeout_s in (2.0, 10.0, 50.0):  # a busy machine takes its time to start a program
        with pytest.raises(TimedOut):
            bench.ask(backend, "hang", timeout_s=timeout_s)
        if noted.exists():
            break
    child = int(noted.read_text("utf-8"))
    assert all(is_gone(pid) for pid in (child, bench.seen["pid"]))


def test_a_child_left_behind_ends_with_its_parent(bench: Bench) -> None:
    assert bench.ask("exec", "child").text == "fine"  # and was not waited for
    child = int(Path(f"{bench.seen_file}.child").read_text("utf-8"))
    assert is_gone(child)


def test_files_come_back_by_name_and_links_do_not(bench: Bench) -> None:
    reply = bench.ask("exec", "writes", replace(ASK, returns=("out.bin", "link.bin")))
    assert reply.extra["files"] == {"out.bin": "bWFkZQ=="}
    for name in ("../x", "a/b", "", ".."):
        with pytest.raises(ModelConfigError, match="plain file name"):
            bench.ask("exec", "writes", replace(ASK, returns=(name,)))


def test_an_image_lies_in_the_folder(bench: Bench) -> None:
    picture = bench.folder / "p.png"
    picture.write_bytes(b"png")
    digest = hashlib.sha256(b"png").hexdigest()
    part = Part(image=digest, path=str(picture))
    request = Request(messages=(Message("user", (Part("see "), part)),))
    bench.ask("codex_exec", "codex", request)
    assert bench.seen["folder"] == [f"{digest[:16]}.png", "task.md"]
    assert digest[:16] in bench.seen["task"]
    picture.write_bytes(b"other")
    with pytest.raises(ModelConfigError, match="other bytes"):
        bench.ask("codex_exec", "codex", request)


def test_one_odd_event_does_not_spoil_the_rest(bench: Bench) -> None:
    """Public case json-parse-13."""
    lines = [
        '{"type":"assistant.message","data":"oops"}',
        '{"type":"assistant.message","data":{"content":"hi"}}',
    ]
    assert last_text("\n".join(lines), "data.content") == ("hi", 1)
    jsonl = {"parser": "jsonl", "text_field": "data.content"}
    reply = bench.ask("exec", "jsonl", harness=jsonl)
    assert (reply.text, reply.extra["skipped_events"]) == ("fine", 2)


def test_events_without_an_answer_are_a_failure_not_an_empty_answer(bench: Bench) -> None:
    with pytest.raises(Transient, match="data.content"):
        bench.ask("exec", "jsonl-silent",
                  harness={"parser": "jsonl", "text_field": "data.content"})  # fmt: skip


def test_codex_actions_usage_and_odd_lines_are_kept(bench: Bench) -> None:
    reply = bench.ask("codex_exec", "codex", effort="high", harness={"network": True})
    assert reply.usage == {"input": 30, "output": 5, "cached": 20, "reasoning": 2}
    assert reply.extra["skipped_events"] == 1
    (action,) = reply.extra["actions"]
    assert (action["exit_code"], action["output"]) == (1, "no\n")
    argv = " ".join(bench.seen["argv"])
    for words in (
        "-s read-only",
        'approval_policy="never"',
        "network_access=true",
        'web_search="disabled"',
        'model_reasoning_effort="high"',
        "--disable unbounded_connection_retries",
        "--ephemeral",
    ):
        assert words in argv
    assert argv.endswith(" -")


def test_codex_is_pointed_at_a_compatible_endpoint_without_a_key_in_argv(
    bench: Bench,
) -> None:
    bench.ask("codex_exec", "codex", base_url="http://127.0.0.1:9/v1", key_env="LAB_KEY")
    argv = " ".join(bench.seen["argv"])
    assert 'env_key="LAB_KEY"' in argv
    assert "lab-key" not in argv
    assert bench.seen["keys"] == ["LAB_KEY"]


def test_claude_actions_usage_and_model_are_kept(bench: Bench) -> None:
    reply = bench.ask("claude_exec", "claude", harness={
        "tools": ("Bash",), "max_turns": 4, "sandbox": "danger-full-access"})  # fmt: skip
    assert reply.usage == {
        "input": 30, "output": 5, "cached": 20, "written": 0, "reasoning": 0,
    }  # fmt: skip
    assert reply.model == "m-2"
    assert reply.extra["skipped_events"] == 1
    (action,) = reply.extra["actions"]
    assert (action["name"], action["exit_code"], action["output"]) == ("Bash", 1, "no")
    argv = " ".join(bench.seen["argv"])
    assert "--tools Bash" in argv
    assert "--max-turns 4" in argv
    assert "--bare" not in argv  # no key is set: the login is used


def test_claude_runs_no_commands_bare_unless_params_say_so(bench: Bench) -> None:
    options = bench.options("claude_exec", "claude", harness={"tools": ("Bash",)})
    with pytest.raises(ParamError, match=r"bwrap and socat.*danger-full-access"):
        open_model("target", options, environ={"PATH": str(bench.folder)})


def test_claude_gets_a_key_by_its_environment_only(bench: Bench) -> None:
    bench.ask("claude_exec", "claude", base_url="http://127.0.0.1:9", key_env="LAB_KEY")
    assert bench.seen["keys"] == ["ANTHROPIC_API_KEY"]
    assert "lab-key" not in " ".join(bench.seen["argv"])
    assert "--bare" in bench.seen["argv"]


def test_claude_answers_in_the_shape_of_a_schema(bench: Bench) -> None:
    reply = bench.ask("claude_exec", "claude-schema", replace(ASK, schema={"type": "object"}))
    assert json.loads(reply.text) == {"a": 1}


def test_an_agent_that_used_its_own_turns_is_an_outcome(bench: Bench) -> None:
    assert bench.ask("claude_exec", "claude-turns").finish == "out_of_turns"


@pytest.mark.parametrize(
    ("backend", "scenario", "error", "words"),
    [
        ("exec", "text-fails", Transient, "boom"),
        ("exec", "text-bad-key", ModelConfigError, "401"),
        ("codex_exec", "codex-401", ModelConfigError, "401"),
        ("codex_exec", "codex-429", GaveUp, "429"),
        ("codex_exec", "codex-cut", Transient, "stream closed"),
        ("codex_exec", "codex-no-key", ModelConfigError, "LAB_KEY"),
        ("codex_exec", "codex-flag", ModelConfigError, "unexpected argument"),
        ("codex_exec", "codex-ends-early", Transient, "exit code 0"),
        ("claude_exec", "claude-401", ModelConfigError, "401"),
        ("claude_exec", "claude-500", Transient, "500"),
        ("claude_exec", "claude-error-exit-0", GaveUp, "529"),
        ("claude_exec", "claude-refused", Transient, "exit code 1"),
        ("claude_exec", "claude-login", ModelConfigError, "Log in"),
        ("claude_exec", "claude-root", Transient, "root"),
    ],
)
def test_failures_are_told_apart_as_for_every_backend(
    bench: Bench, backend: str, scenario: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        bench.ask(backend, scenario, retry=replace(ONCE, max_wait_s=0.5))


def test_two_agents_work_in_folders_of_their_own(bench: Bench) -> None:
    async def go() -> list[Reply]:
        options = bench.options("exec", "text", workers=2)
        environ = {"PATH": os.environ["PATH"], "FAKE_SEEN": str(bench.seen_file)}
        model = open_model("target", options, environ=environ)
        return await asyncio.gather(*(model.complete(ASK) for _ in range(4)))

    assert [reply.text for reply in asyncio.run(go())] == ["fine"] * 4


@pytest.mark.parametrize(
    ("backend", "package"),
    [("codex_exec", "openai-codex"), ("claude_exec", "claude-agent-sdk")],
)
def test_an_sdk_that_is_not_there_is_named_before_any_call(backend: str, package: str) -> None:
    if find_spec(package.replace("-", "_")) is not None:
        pytest.skip(f"{package} is installed: make test-clients runs it")
    options = RoleOptions(backend=backend, model="m", exec=ExecOptions(use_sdk=True))
    with pytest.raises(ModelConfigError, match=f"pip install {package}"):
        open_model("target", options, environ={"PATH": "/usr/bin"})


@pytest.mark.parametrize("other", [{"profile": "p"}, {"approval_policy": "on-request"}])
def test_what_an_sdk_does_not_take_is_refused(other: dict[str, str]) -> None:
    harness = ExecOptions(use_sdk=True, **other)  # type: ignore[arg-type]
    options = RoleOptions(backend="codex_exec", model="m", exec=harness)
    with pytest.raises(ParamError, match=f"target.exec.{next(iter(other))}"):
        open_model("target", options, environ={"PATH": "/usr/bin"})


@pytest.mark.parametrize("told", [-5, 10**300, 1.5, "7", None, [1]])
def test_tokens_that_no_program_can_have_used_count_as_none(told: Any) -> None:
    assert count({"tokens": told}, "tokens") is None

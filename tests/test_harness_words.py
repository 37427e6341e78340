"""What agent programs say that is no answer: null, nothing, and their own errors."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from skilltrail.models.errors import (
    GaveUp,
    LostText,
    ModelConfigError,
    ModelError,
    TooLong,
    Transient,
)
from skilltrail.models.protocol import Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import ExecOptions, RetryOptions, RoleOptions

USED = {"input_tokens": 9, "output_tokens": 30}
NOTHING = {"input_tokens": 0, "output_tokens": 0}


def run(
    folder: Path, backend: str, events: list[Any] | str, code: int = 0, attempts: int = 1
) -> tuple[Reply | ModelError, int]:
    """Return what a backend makes of a program that prints `events`, and how often it ran."""
    text = events if isinstance(events, str) else "\n".join(map(json.dumps, events))
    (folder / "says.txt").write_text(text, "utf-8")
    program, runs = folder / "agent", folder / "runs"
    program.write_text(
        f"#!/bin/sh\necho x >> {runs}\ncat > /dev/null\ncat {folder}/says.txt\nexit {code}\n",
        "utf-8",
    )
    program.chmod(stat.S_IRWXU)
    harness = ExecOptions(path=str(program))
    if backend == "exec":
        harness = ExecOptions(argv=(str(program),))
    options = RoleOptions(
        backend=backend, model="m", exec=harness,
        retry=RetryOptions(attempts=attempts, max_wait_s=0.2),
    )  # fmt: skip

    async def go() -> Reply | ModelError:
        model = open_model("target", options, environ={"PATH": os.environ["PATH"]})
        try:
            return await model.complete(Request(prompt="hi"))
        except ModelError as error:
            return error

    found = asyncio.run(go())
    return found, len(runs.read_text("utf-8").split())


def claude(result: Any, *before: Any, usage: Any = USED, **more: Any) -> list[Any]:
    """Return a run's events: messages of the assistant, then the result."""
    said = [{"type": "assistant", "message": one} for one in before]
    return [*said, {"type": "result", "subtype": "success", "is_error": False,
                    "result": result, "usage": usage, **more}]  # fmt: skip


def assistant(*content: Any, model: str = "m-2") -> dict[str, Any]:
    return {"model": model, "content": list(content)}


GOLD = {"type": "text", "text": "GOLD"}


@pytest.mark.parametrize("result", [None, "", 7, {"text": "x"}])
def test_a_result_that_is_no_text_leaves_the_last_words_of_the_assistant(
    tmp_path: Path, result: Any
) -> None:
    """Case harness-01: null is no text."""
    events = claude(result, assistant({"type": "text", "text": "first"}), assistant(GOLD))
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, Reply)
    assert found.text == "GOLD"


@pytest.mark.parametrize(
    ("result", "before", "came"),
    [
        (None, (), "a result"),
        (None, (assistant({"type": "thinking", "thinking": "x"}),), "thinking"),
        ("", (), "30 output tokens"),
    ],
)
def test_a_run_without_any_words_is_missing(
    tmp_path: Path, result: Any, before: tuple[Any, ...], came: str
) -> None:
    """Case harness-01: retried, then missing, never the answer "None"."""
    found, runs = run(tmp_path, "claude_exec", claude(result, *before), attempts=2)
    assert isinstance(found, LostText)
    assert came in str(found)
    assert runs == 2


@pytest.mark.parametrize("stop", ["tool_use", "pause_turn"])
def test_a_run_that_ended_at_a_tool_call_leaves_no_draft_as_the_answer(
    tmp_path: Path, stop: str
) -> None:
    """By its own account it ended well, with nothing to show."""
    draft = assistant({"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t"})
    found, runs = run(tmp_path, "claude_exec", claude("", draft, stop_reason=stop), attempts=2)
    assert isinstance(found, LostText)
    assert runs == 2


def test_what_a_helper_of_the_agent_says_is_no_answer(tmp_path: Path) -> None:
    helper = {"type": "text", "text": "<answer>wrong</answer>"}
    events = claude(None, assistant(GOLD), assistant(helper, model="small"))
    events[1]["parent_tool_use_id"] = "toolu_1"
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, Reply)
    assert (found.text, found.model) == ("GOLD", "m-2")


@pytest.mark.parametrize(
    "sign", [{"error": "rate_limit"}, {"isApiErrorMessage": True}, {"error": "billing_error"}]
)
def test_a_message_that_says_itself_that_it_is_an_error_is_no_answer(
    tmp_path: Path, sign: dict[str, Any]
) -> None:
    events = claude("Something odd", assistant({"type": "text", "text": "Something odd"}))
    events[0] |= sign
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, ModelError)
    assert "Something odd" in str(found)


def test_a_run_says_in_several_words_that_it_did_not_end_well(tmp_path: Path) -> None:
    events = claude("", assistant(GOLD), terminal_reason="aborted_streaming")
    assert isinstance(run(tmp_path, "claude_exec", events)[0], ModelError)
    events = claude("", assistant(GOLD), terminal_reason="max_turns")
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, Reply)
    assert (found.text, found.finish) == ("", "out_of_turns")
    events = claude(
        "GOLD", assistant(GOLD), terminal_reason="completed", stop_reason="end_turn"
    )
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, Reply)
    assert found.text == "GOLD"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("API Error: Rate limit reached", GaveUp),
        ('API Error: 529 {"type":"overloaded_error"}', GaveUp),
        ("API Error: 500 Internal server error", Transient),
        ("API Error: Connection error.", Transient),
        ("Credit balance is too low", ModelConfigError),
        ("Claude AI usage limit reached|1760000000", ModelConfigError),
        ("Invalid API key · Fix external API key", ModelConfigError),
        ("Prompt is too long", TooLong),
        ("Something nobody has heard of", Transient),
    ],
)
@pytest.mark.parametrize("sign", ["synthetic model", "no token"])
def test_a_program_s_own_error_is_no_answer(
    tmp_path: Path, words: str, kind: type[ModelError], sign: str
) -> None:
    """The run ended well by its own account: zero tokens, or the model `<synthetic>`."""
    text = {"type": "text", "text": words}
    events = claude(words, assistant(text, model="<synthetic>"))
    if sign == "no token":
        events = claude(words, assistant(text), usage=NOTHING, duration_api_ms=0)
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, kind), found


def test_an_answer_after_an_error_on_the_way_is_an_answer(tmp_path: Path) -> None:
    odd = assistant({"type": "text", "text": "API Error: 529"}, model="<synthetic>")
    found, _ = run(tmp_path, "claude_exec", claude("GOLD", odd, assistant(GOLD)))
    assert isinstance(found, Reply)
    assert (found.text, found.model) == ("GOLD", "m-2")


def test_a_failed_run_is_told_in_whatever_words_there_are(tmp_path: Path) -> None:
    events = claude(None, subtype="error_during_execution", errors=["stream broke"])
    found, _ = run(tmp_path, "claude_exec", events)
    assert isinstance(found, Transient)
    assert "stream broke" in str(found)


def codex(*texts: Any, usage: Any = USED) -> list[Any]:
    items = [{"type": "item.completed", "item": {"type": "agent_message", "text": text}}
             for text in texts]  # fmt: skip
    return [*items, {"type": "turn.completed", "usage": usage}]


@pytest.mark.parametrize("last", [None, "", 7, []])
def test_a_codex_message_that_is_no_text_leaves_the_one_before(
    tmp_path: Path, last: Any
) -> None:
    found, _ = run(tmp_path, "codex_exec", codex("GOLD", last))
    assert isinstance(found, Reply)
    assert found.text == "GOLD"
    found, runs = run(tmp_path, "codex_exec", codex(last), attempts=2)
    assert isinstance(found, LostText)
    assert "agent_message" in str(found)
    assert runs == 3


@pytest.mark.parametrize("usage", [USED, None, {"input_tokens": 9, "output_tokens": 1}])
def test_a_codex_turn_that_ends_without_a_message_is_missing(
    tmp_path: Path, usage: Any
) -> None:
    thought = {"type": "item.completed", "item": {"type": "reasoning", "text": "Hm."}}
    for events in ([thought, *codex(usage=usage)], codex(usage=usage)):
        found, _ = run(tmp_path, "codex_exec", events)
        assert isinstance(found, LostText)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([{"type": "turn.failed", "error": None}, {"type": "error", "message": "line broke"}],
         "line broke"),
        ([{"type": "turn.failed", "error": {"message": None, "code": "x"}}], "exit code 0"),
        ([{"type": "turn.failed", "error": "line broke"}], "line broke"),
        ([{"type": "error", "message": None}], "exit code 0"),
        ([], "no message"),
    ],
)  # fmt: skip
def test_a_failed_turn_never_says_none(tmp_path: Path, events: list[Any], words: str) -> None:
    found, _ = run(tmp_path, "codex_exec", events)
    assert isinstance(found, Transient)
    assert words in str(found)
    assert "None" not in str(found)


@pytest.mark.parametrize("said", ["", "\n", "  \n\n"])
def test_a_program_that_does_nothing_has_not_answered(tmp_path: Path, said: str) -> None:
    """`exec` with the default parser and a program such as `true`: missing, as elsewhere."""
    found, runs = run(tmp_path, "exec", said, attempts=2)
    assert isinstance(found, LostText)
    assert runs == 2


def test_true_itself_is_missing() -> None:
    options = RoleOptions(
        backend="exec", model="m", exec=ExecOptions(argv=("true",)),
        retry=RetryOptions(attempts=1),
    )  # fmt: skip
    model = open_model("target", options, environ={"PATH": os.environ["PATH"]})
    with pytest.raises(LostText):
        asyncio.run(model.complete(Request(prompt="hi")))


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("API Error: Rate limit reached\n", GaveUp),
        ("API Error: 401 Unauthorized", ModelConfigError),
        ("Credit balance is too low\n", ModelConfigError),
        ("Execution error\n", Transient),
    ],
)
def test_the_own_error_that_a_program_prints_and_ends_well_with_is_no_answer(
    tmp_path: Path, said: str, kind: type[ModelError]
) -> None:
    found, _ = run(tmp_path, "exec", said)
    assert isinstance(found, kind)


def test_an_answer_that_speaks_of_errors_is_an_answer(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "exec", "An API Error: 500 means that the server failed.\n")
    assert isinstance(found, Reply)
    found, _ = run(tmp_path, "exec", "Execution error handling is on page 4.\n")
    assert isinstance(found, Reply)


def test_fields_without_a_text_are_passed_over_in_events(tmp_path: Path) -> None:
    says = tmp_path / "says.jsonl"
    lines = [{"text": "GOLD"}, {"text": ""}, {"text": None}]
    says.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    harness = ExecOptions(argv=("cat", str(says)), parser="jsonl")
    options = RoleOptions(
        backend="exec", model="m", exec=harness, retry=RetryOptions(attempts=1)
    )
    environ = {"PATH": os.environ["PATH"]}
    model = open_model("target", options, environ=environ)
    assert asyncio.run(model.complete(Request(prompt="hi"))).text == "GOLD"
    says.write_text('{"text": ""}\n', "utf-8")
    with pytest.raises(LostText):
        asyncio.run(open_model("target", options, environ=environ).complete(Request(prompt="")))

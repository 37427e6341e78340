"""The command line: fast help, one message for every error, exit codes people can rely on."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from skilltrail import __version__
from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import find_command, help_text, invoke, run
from skilltrail.core.errors import Interrupted, UsageError

ROOT = Path(__file__).resolve().parents[1]


def skilltrail(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skilltrail", *args],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_in_the_table_is_there_and_helps(
    command: object, capsys: pytest.CaptureFixture[str]
) -> None:
    name = command.name  # type: ignore[attr-defined]
    assert run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: skilltrail {name}")


def test_every_example_in_the_help_is_a_line_to_paste(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = 0
    for command in COMMANDS:
        run([command.name, "--help"])
        shown = capsys.readouterr().out
        for line in shown.splitlines():
            assert line.count("Example: ") <= 1
            seen += "Example: " in line
    assert seen > len(COMMANDS)


def test_every_function_that_reads_like_a_command_is_in_the_table() -> None:
    typed = {command.name for command in COMMANDS}
    for module in {command.module for command in COMMANDS}:
        loaded = import_module(f"skilltrail.cli.commands.{module}")
        families = [app for app in vars(loaded).values() if isinstance(app, typer.Typer)]
        within = {one.callback for app in families for one in app.registered_commands}
        within |= {a.registered_callback.callback for a in families if a.registered_callback}
        for name, found in vars(loaded).items():
            if getattr(found, "__module__", "") != loaded.__name__ or found in within:
                continue
            if "Example: skilltrail" in (getattr(found, "__doc__", None) or ""):
                assert name.replace("_", "-") in typed


def test_the_help_shows_examples_and_every_command() -> None:
    assert "dvc exp run -S lr=8" in help_text()
    for command in COMMANDS:
        assert f"  {command.name} " in help_text()
        assert command.summary in help_text()


# Words that were ours alone; said now: recorded calls, skipped, available, where runs diverge,
# use --yes, fix, OK, cached, resume, model backends, invalid reply, valid, running.
OURS = re.compile(
    r"\w\(s\)|\bat hand\b|fact store|saved by early|rely on|they part\b|nobody is here|\bmend|"
    r"told again by|\bno fault\b|used again|from scratch|one door|is of no use|\bis sound\b|"
    r"the run is on\b|a run is on\b|Last lines|goes on where"
)
PRINTING = ("api", "cli", "history/ask", "report", "runtime", "store", "ui", "verify")


def texts_of(path: Path) -> list[str]:
    """Return the texts of a module but for its docstrings, or a file's own."""
    if path.suffix != ".py":
        return [path.read_text("utf-8")]
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
            and isinstance(node.value, str) and id(node) not in docs]  # fmt: skip


def test_what_is_printed_is_said_in_the_words_of_the_field() -> None:
    files = [path for room in PRINTING for path in (ROOT / "skilltrail" / room).rglob("*")
             if path.suffix in (".py", ".js", ".html")]  # fmt: skip
    assert len(files) > 150
    found = [
        (path.relative_to(ROOT).as_posix(), match[0])
        for path in files
        for text in texts_of(path)
        for match in OURS.finditer(text)
    ]
    assert found == []


def test_the_help_imports_no_command() -> None:
    code = (
        "import sys; from skilltrail.cli.main import run; run(['--help']); "
        "heavy = {'typer', 'dvc', 'numpy', 'openai', 'anthropic', 'ruamel.yaml', 'git'}; "
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert done.returncode == 0


def test_an_interrupted_command_exits_75_and_says_what_is_kept() -> None:
    def wait() -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="Every finished call is kept") as caught:
        invoke("wait", wait, ["wait"])
    assert caught.value.exit_code == 75


def test_a_command_that_found_a_fault_exits_1() -> None:
    def check() -> None:
        raise typer.Exit(1)

    assert invoke("check", check, ["check"]) == 1


def test_the_version_is_the_packages() -> None:
    assert skilltrail("--version").stdout == f"skilltrail {__version__}\n"


@pytest.mark.parametrize("typed", ["parms", "param", "docter", "sumary"])
def test_a_mistyped_command_is_told_the_nearest(typed: str) -> None:
    with pytest.raises(UsageError, match="The nearest is `skilltrail (params|doctor|summary)`"):
        find_command(typed)


def test_wrong_use_exits_2_with_nothing_on_stdout() -> None:
    for args in (["nonsense"], ["params", "--bogus"], [], ["--bogus"]):
        done = skilltrail(*args)
        assert done.returncode == 2, args
        assert done.stdout == ""
        assert done.stderr
        assert "Traceback" not in done.stderr


def test_a_fault_in_params_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("lr: 0\nepoch: 3\n", encoding="utf-8", newline="\n")
    done = skilltrail("params", "--file", str(path))
    assert done.returncode == 2
    assert done.stderr.startswith("error: params.yaml has ")
    assert "line 1, lr: expected a whole number of at least 1, found 0" in done.stderr
    assert "line 2, epoch: no such key; the nearest is epochs" in done.stderr


def test_params_tell_value_and_origin_as_json(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("lr: 8\n", encoding="utf-8", newline="\n")
    done = skilltrail("params", "--json", "--changed", "--file", str(path))
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)
    assert (row["key"], row["value"], row["default"], row["origin"]) == (
        "lr", 8, 4, "params.yaml",
    )  # fmt: skip
    assert row["changes_results"] is True


@pytest.mark.parametrize("place", [">&-", ">/dev/full"])
@pytest.mark.parametrize("args", ["--help", "params --json"])
def test_an_answer_that_nobody_can_be_given_is_one_message(args: str, place: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m skilltrail {args} {place}"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 1
    assert done.stderr.startswith(("error: Standard output", "error: Writing to standard"))
    assert "Traceback" not in done.stderr

"""The `skilltrail` command: finds the command asked for, and turns errors into one message.

Exit codes: 0 fine, 1 found a fault, 2 wrong use, 75 interrupted. Only the module of the command
asked for is imported, so the help is fast.
"""

from __future__ import annotations

import difflib
import gc
import sys
from typing import Any

from skilltrail import __version__
from skilltrail.cli.commands import COMMANDS, Command
from skilltrail.core.errors import Interrupted, SkilltrailError, UsageError
from skilltrail.core.files import refused

HELP = """Usage: skilltrail COMMAND [ARGS]...

Train skill documents for a frozen language model, and ask why each line is there.

Examples, from the root of the repository:
  dvc repro                          train, evaluate, report
  dvc exp run -S lr=8                the same with another learning rate
  skilltrail params                  the values of this run and where they come from
  skilltrail doctor                  what is missing or broken here

Commands (`skilltrail COMMAND --help` tells more):
{commands}

Options:
  --version  Print the version.
  --help     Print this.
"""
SIGINT_BY_SHELLS = 130


def help_text() -> str:
    """Return the help, made from the table of commands alone."""
    width = max(len(command.name) for command in COMMANDS)
    return HELP.format(
        commands="\n".join(f"  {name:{width}}  {summary}" for name, _, summary in COMMANDS)
    )


def find_command(name: str) -> Command:
    """Return the command of this name.

    Raises:
        UsageError: there is none; the nearest is named.
    """
    by_name = {command.name: command for command in COMMANDS}
    if name in by_name:
        return by_name[name]
    close = difflib.get_close_matches(name, by_name, n=1, cutoff=0.5)
    remedy = f"The nearest is `skilltrail {close[0]}`" if close else "See `skilltrail --help`"
    raise UsageError(f"`skilltrail {name}`", "there is no such command", remedy)


def run(args: list[str]) -> int:
    """Run one command line and return its exit code; every error is one message on stderr."""
    from skilltrail.runtime.console import complain, emit, prepare_streams, say

    prepare_streams()
    try:
        if not args:
            say(help_text())
            return UsageError.exit_code
        if args[0] in ("--help", "-h"):
            emit(help_text())
            return 0
        if args[0] == "--version":
            emit(f"skilltrail {__version__}")
            return 0
        command = find_command(args[0])
        return invoke(command.name, command.load(), args)
    except BrokenPipeError:
        raise  # the reader went away: it had enough
    except (SkilltrailError, OSError) as error:
        told = refused(error) if isinstance(error, OSError) else error
        complain(told)
        return told.exit_code


def invoke(name: str, command: Any, args: list[str]) -> int:
    """Run one command line by the function, or family of commands, of that name; return its
    exit code.

    Raises:
        Interrupted: by SIGINT.
        SkilltrailError: what the command raises.
    """
    try:
        application(name, command).main(args, prog_name="skilltrail")
    except SystemExit as stop:
        if stop.code == SIGINT_BY_SHELLS:
            remedy = "Every finished call is kept: run the same command again"
            raise Interrupted("Interrupted", "", remedy) from stop
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def application(name: str, command: Any) -> Any:
    """Return the parser of `skilltrail` with this one command, or family of commands."""
    import typer

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)  # else a lone command would be the whole application
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name)(command)
    made = typer.main.get_command(app)
    _part_examples(made)
    return made


def _part_examples(command: Any) -> None:
    """Keep each example in the help a line of its own, to be pasted: lines are else joined."""
    if command.help is not None:
        command.help = command.help.replace("\n\nExample: ", "\n\n\b\nExample: ")
    for inner in getattr(command, "commands", {}).values():
        _part_examples(inner)


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(100_000)  # what a command reads holds no cycles: seldom look for some
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

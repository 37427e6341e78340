"""What a person can type after `skilltrail`: one module per command or family of commands.

Each module has `register(app)`, which adds its commands to a typer application. It is imported
only when one of its commands is asked for, so `skilltrail --help` stays fast.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command: what is typed, the module that registers it, and one line for the help."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("summary", "summary", "Show scores, gain, calls and time of the last run."),
    Command("evaluate", "evaluate", "Measure any skill on any split."),
    Command("doctor", "doctor", "Check the set-up and say how to mend what is wrong."),
    Command("params", "params", "Show every param of this run, its value and its origin."),
)

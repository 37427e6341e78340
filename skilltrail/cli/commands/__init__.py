"""What a person can type after `skilltrail`: one module per command or family of commands,
by theme.

A command is the function of its name, or a typer application of that name for a family. Its
module is imported only when it is asked for, so `skilltrail --help` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command: what is typed, the module that has it, and one line for the help."""

    name: str
    module: str
    summary: str

    def load(self) -> Any:
        """Return its function, or the typer application of a family."""
        module = import_module(f"{__name__}.{self.module}")
        return getattr(module, self.name.replace("-", "_"))


COMMANDS = (
    Command("init", "start.init", "Write a workspace into your own git repository."),
    Command("summary", "ask.summary", "Show scores, gain, calls and time of the last run."),
    Command("log", "ask.log", "Show a run's events, one line each; --follow a running one."),
    Command("replay", "ask.history", "Rebuild any version of the skill from the log alone."),
    Command("diff", "ask.runs", "Compare two skills: the text, and the scores item by item."),
    Command("blame", "ask.audit", "Show where every line of a version comes from."),
    Command("audit", "ask.audit", "Answer why a change was made."),
    Command("bisect", "ask.audit", "Find the version that first broke, or fixed, an item."),
    Command("runs", "ask.runs", "List all runs, where they forked and what differed."),
    Command("note", "ask.note", "Tag a run, or write a note on it."),
    Command(
        "arena", "measure.arena", "Train by several methods with one budget, and compare them."
    ),
    Command("compare", "ask.runs", "Compare runs by a param, over seeds."),
    Command("fork", "ask.runs", "Start the next training from any version of any run."),
    Command("verify", "ask.history", "Check a run: log, recorded calls, commits."),
    Command("rebuild", "keep.refs", "Make all refs/evolution again from the logs."),
    Command("history", "keep.history", "Pack the commits of long runs, so that git is fast."),
    Command("share", "keep.refs", "Put your runs on a remote, under a name of your own."),
    Command("fetch", "keep.refs", "Bring others' runs from a remote."),
    Command("anchor", "keep.refs", "Sign a run's last commit, or print the hash to publish."),
    Command(
        "erase", "keep.refs", "Take a secret out of recorded calls, logs, outputs and commits."
    ),
    Command("plan", "start.plan", "Forecast calls, tokens and money of a run."),
    Command("evaluate", "measure.evaluate", "Measure any skill on any split."),
    Command(
        "aa-check", "measure.aa_check", "Measure one skill twice: how noisy is the gate here?"
    ),
    Command("store", "keep.store", "Show what is recorded, and care for it."),
    Command("doctor", "start.doctor", "Check the set-up and say how to fix what is wrong."),
    Command("back", "start.doctor", "After an experiment: everything as HEAD's run left it."),
    Command("ui", "ask.ui", "Follow, start and stop runs on a live page."),
    Command(
        "export", "deliver.export", "Write tables, the curve, audits or a SKILL.md to files."
    ),
    Command(
        "adopt",
        "deliver.adopt",
        "Show a skill's diff to a live skill file, then write it there.",
    ),
    Command("ci", "deliver.review", "Write a comment for a pull request; hold a threshold."),
    Command("pr", "deliver.review", "Write a branch with the last run, and its page."),
    Command("check-commit", "deliver.review", "Refuse a best skill that no training wrote."),
    Command(
        "nightly", "deliver.nightly", "Harvest, train within a budget and propose; never adopt."
    ),
    Command("new-env", "start.envs", "Make a new environment from the template."),
    Command("harvest", "start.harvest", "Propose items from the sessions of agent programs."),
    Command("data", "start.envs", "Join a released split manifest with your download."),
    Command(
        "params", "start.params", "Show every param of this run, its value and its origin."
    ),
    Command(
        "preset", "start.params", "Print or write a named set of params, e.g. the reference's."
    ),
)

"""What the side branches hold: each run's events, its evaluations, and their tips.

A run's commits are those of its training; the commits of an evaluation go on from the last of
them, the first one's on the run's own ref (see `ref_names`). So the tip of a ref is the tip of
a training until that is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skilltrail.core.errors import FaultError
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.events import Event, parse_event
from skilltrail.history.log.log import chained

OPENED = "test.opened"
EVALUATING = ("rollouts.scored", "skill.evaluated", "skill.transferred", "text.erased")
_CHUNK = 64  # commits read at a time


@dataclass(frozen=True)
class Branch:
    """One ref's events: those of the training, and those of the evaluation that follows it.

    Attributes:
        commits: of the training, then of the evaluation, oldest first.
    """

    ref: str
    training: list[Event]
    evaluation: list[Event]
    commits: list[str]

    @property
    def events(self) -> list[Event]:
        return [*self.training, *self.evaluation]


@dataclass(frozen=True)
class RunTips:
    """The last commits of a run: of its training, and of each evaluation by its ref."""

    training: str
    evaluations: Mapping[str, str]


def parted(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Return the events of a training and those of the evaluation that goes on from it."""
    at = next((n for n, event in enumerate(events) if event.type == OPENED), len(events))
    return list(events[:at]), list(events[at:])


def branch_of(door: Git, ref: str) -> Branch:
    """Return what a ref (or a commit) of a run holds, checked as a log is.

    Raises:
        FaultError: a commit's event is damaged or does not follow the one before.
        GitError: a commit holds no event.
    """
    commits = door.history(ref)[::-1]
    lines = (content.removesuffix(b"\n") for content in door.files(commits, "event.json"))
    events = list(chained(lines, f"commit {commits[-1][:10]}"))
    return Branch(ref, *parted(events), commits)


def run_tips(door: Git) -> Iterator[tuple[str, str]]:
    """Yield (name, tip) of every run, by name."""
    for ref, sha in sorted(door.refs(RUNS).items()):
        yield ref.removeprefix(RUNS), sha


def tips_of(door: Git, run: str) -> RunTips:
    """Return the tips of a run: its last training commit and its evaluations' last ones.

    Raises:
        FaultError, GitError: see `branch_of`; there is no such run.
    """
    own = branch_of(door, RUNS + run)
    training = own.commits[len(own.training) - 1]
    found = {own.ref: own.commits[-1]} if own.evaluation else {}
    for ref, tip in door.refs(EVALUATIONS).items():
        if training in door.history(tip):
            found[ref] = tip
    return RunTips(training, found)


def evaluations_in(door: Git) -> Iterator[list[Event]]:
    """Yield the events of every evaluation among the commits; a damaged one says nothing."""
    for ref in door.refs(RUNS, EVALUATIONS):
        try:
            lines = _evaluation_lines(door, ref)
            events = list(chained(lines, ref, continues=True))
        except (FaultError, GitError):
            continue
        if events:
            yield events


def _evaluation_lines(door: Git, ref: str) -> list[bytes]:
    """Return the log lines of the evaluation that a ref ends with, [] where it ends with none.

    Read from the tip backwards, so that a long training costs nothing.
    """
    commits, found = door.history(ref), list[bytes]()
    for at in range(0, len(commits), _CHUNK):
        for content in door.files(commits[at : at + _CHUNK], "event.json"):
            found.append(content.removesuffix(b"\n"))
            type = parse_event(found[-1], ref).type
            if type == OPENED:
                return found[::-1]
            if type not in EVALUATING:
                return []
    return []


def name_of_run(door: Git, last: Event, label: str) -> str | None:
    """Return the name of the run whose training ends with event `last`; None where no ref
    holds it. Of several names it is `label`, if that is one of them."""
    names = names_of_run(door, last)
    return label if label in names else next(iter(names), None)


def names_of_run(door: Git, last: Event) -> list[str]:
    """Return the names of the run whose training ends with event `last`."""
    asked = ("--fixed-strings", f"--grep={last.id}", "--max-count=1", "--format=%H")
    found = door.run("log", f"--glob={RUNS}*", *asked).decode().strip()
    return runs_holding(door, found) if found else []


def run_holding(door: Git, commit: str, label: str) -> str | None:
    """Return a run that holds a commit, the one called `label` first; None where none does."""
    names = runs_holding(door, commit)
    return label if label in names else next(iter(names), None)


def runs_holding(door: Git, commit: str) -> list[str]:
    """Return the runs that hold a commit."""
    try:
        out = door.run("for-each-ref", "--contains", commit, "--format=%(refname)", RUNS)
    except GitError:  # this repository has no such commit
        return []
    return [ref.removeprefix(RUNS) for ref in out.decode().split()]

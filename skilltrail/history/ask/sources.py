"""Where a log can come from: a file, a run's name, a DVC experiment, a git revision.

    (nothing)          skills/events.jsonl, or the live log of the run that is on
    FILE               an event log
    DIGEST             a live log, by the first digits of its run's digest
    RUN                refs/evolution/RUN: every commit holds its log line
    EXPERIMENT         the log that a DVC experiment committed
    REVISION           skills/events.jsonl at a git revision, or a run up to one of its commits

A skill is named `RUN:vN` (any source in place of RUN), `vN`, `seed`, `best`, `last`, or by
a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skilltrail.core.errors import FaultError, UsageError
from skilltrail.core.layout import BEST_SKILL, EVENTS
from skilltrail.history.git.ref_names import RUNS
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import chained, read_whole
from skilltrail.history.log.run_log import RunLog
from skilltrail.skill.folder import MAIN, read_folder

if TYPE_CHECKING:
    from skilltrail.history.git.repository import Git

LIVE_LOGS = ".skilltrail/runs"
VERSION = re.compile(r"(?:v?(?P<number>[0-9]+)|(?P<word>seed|best|last))\Z")


@dataclass(frozen=True)
class Project:
    """The folders to look in: what a person works in, and where the live state lies."""

    workspace: Path
    root: Path

    @staticmethod
    def here(folder: Path | None = None) -> Project:
        """Return the project around `folder` (default: the working directory)."""
        start = (Path.cwd() if folder is None else folder).resolve()
        for candidate in (start, *start.parents):
            if (candidate / "dvc.yaml").exists():
                return Project(candidate, candidate)
        return Project(start, start)


@dataclass(frozen=True)
class LogFound:
    """A log that was found: how it was named, what it was found to be, its events.

    Attributes:
        evaluation: the events of the evaluation that goes on from it, where its commits do.
        torn: why its events end before the file does, None where all were read.
        unfinished: only the last line is missing its end, as a run that is on leaves it.
    """

    name: str
    kind: str
    events: list[Event]
    evaluation: list[Event] = field(default_factory=list)
    torn: FaultError | None = None
    unfinished: bool = False

    @staticmethod
    def of_file(name: str, kind: str, path: Path, *, continues: bool = False) -> LogFound:
        """Return what is whole of a log file.

        Raises:
            FaultError: not even its first line is.
        """
        read = read_whole(path, continues=continues)
        if read.torn is not None and not read.events:
            raise read.torn
        return LogFound(name, kind, read.events, [], read.torn, read.unfinished)

    def before(self, seq: int, why: FaultError) -> LogFound:
        """Return the same log up to event `seq`, which cannot be read, and that left out."""
        events = [event for event in self.events if event.seq < seq]
        return replace(self, events=events, evaluation=[], torn=why, unfinished=False)

    @property
    def log(self) -> RunLog:
        return RunLog(self.events)


def open_source(project: Project, name: str | None) -> LogFound:
    """Return the log that `name` names.

    Raises:
        UsageError: nothing has that name; the places looked in are said.
        FaultError: the log is damaged.
    """
    if name is None:
        return _default(project)
    path = project.workspace / name
    if path.is_file():
        return LogFound.of_file(name, "file", path, continues=True)
    for live in live_logs(project):
        if len(name) >= 6 and live.parent.name.startswith(name):
            return LogFound.of_file(name, "live log", live)
    found = _from_git(project, name)
    if found is None:
        raise UsageError(
            f"log {name!r}",
            "no file, run, DVC experiment or git revision with a log has that name",
            "`skilltrail runs` lists the runs",
        )
    return found


def live_logs(project: Project) -> list[Path]:
    """Return the live logs, the newest first."""
    logs = (project.root / LIVE_LOGS).glob("*/events.jsonl")
    return sorted(logs, key=lambda log: (-log.stat().st_mtime, log))


def fallback(project: Project) -> str | None:
    """Return, in words, whose log answers where none is named, where that may surprise."""
    path, live = project.workspace / EVENTS, live_logs(project)
    if not live:
        return None
    events, run = read_whole(live[0]).events, live[0].parent.name
    if path.exists():
        if finished(events) or live[0].stat().st_mtime < path.stat().st_mtime:
            return None
        return (
            f"this is the run that finished last; run {run} has {len(events)} events so far "
            f"(`skilltrail log --follow`, or `--run {run}`)"
        )
    state = "is finished" if finished(events) else "has not finished"
    other = _finished_name(project, live[1:])
    remedy = "no finished run is here" if other is None else f"a finished one is {other}"
    return f"no {EVENTS}: this is run {run}, which {state} ({len(events)} events); {remedy}"


def finished(events: list[Event]) -> bool:
    """Return whether a training log has come to its end."""
    return end_of(events) is not None


def _finished_name(project: Project, live: list[Path]) -> str | None:
    try:
        if finished(open_source(project, "HEAD").events):
            return "HEAD (`--run HEAD`, `HEAD:best`)"
    except (UsageError, FaultError):
        pass  # nothing sound is committed: a live log may do
    for log in live:
        if finished(read_whole(log).events):
            name = log.parent.name
            return f"{name} (`--run {name}`, `{name}:best`)"
    return None


def _default(project: Project) -> LogFound:
    path = project.workspace / EVENTS
    if path.exists():
        return LogFound.of_file(EVENTS.as_posix(), "file", path)
    live = live_logs(project)
    if live:
        return LogFound.of_file(live[0].parent.name, "live log", live[0])
    raise UsageError("event log", f"no {EVENTS} and no run has begun", "Train first: dvc repro")


def _from_git(project: Project, name: str) -> LogFound | None:
    from skilltrail.history.git.branches import branch_of
    from skilltrail.history.git.repository import Git, GitError

    door = Git.find(project.workspace)
    if door is None:
        return None
    refs = door.refs(RUNS, "refs/exps")
    if RUNS + name in refs:
        branch = branch_of(door, RUNS + name)
        return LogFound(name, "run", branch.training, branch.evaluation)
    prefix = door.prefix
    for ref, sha in refs.items():
        if ref.startswith("refs/exps/") and ref.endswith(f"/{name}"):
            return LogFound(name, "experiment", _committed_log(door, sha, prefix))
    try:
        sha = door.resolve(name)
        if door.has(sha, "event.json"):
            branch = branch_of(door, sha)
            return LogFound(name, "revision", branch.training, branch.evaluation)
        return LogFound(name, "revision", _committed_log(door, sha, prefix))
    except GitError:
        return None


def experiment_log(project: Project, name: str, baseline: str) -> list[Event] | None:
    """Return the log that a DVC experiment on a commit left; None where there is none.

    Raises:
        FaultError, GitError: it cannot be read.
    """
    from skilltrail.history.git.repository import Git

    door = Git.find(project.root)
    ref = f"refs/exps/{baseline[:2]}/{baseline[2:]}/{name}"
    tip = None if door is None else door.refs(ref).get(ref)
    return None if door is None or tip is None else _committed_log(door, tip, door.prefix)


def _committed_log(door: Git, sha: str, prefix: str) -> list[Event]:
    data = next(iter(door.files([sha], f"{prefix}{EVENTS.as_posix()}")))
    return list(chained(data.split(b"\n")[:-1], f"{EVENTS} at {sha[:10]}"))


@dataclass(frozen=True)
class SkillFound:
    """A skill document that was named, with the run and version it is, where it is one."""

    name: str
    text: str
    log: RunLog | None = None
    version: int | None = None


def find_skill(project: Project, name: str) -> SkillFound:
    """Return the skill that `name` names.

    Raises:
        UsageError: nothing has that name.
    """
    path = project.workspace / name
    if path.is_file() and path.suffix != ".jsonl":
        return SkillFound(name, path.read_bytes().decode("utf-8"))
    if (path / MAIN).is_file():
        return SkillFound(name, read_folder(path))
    run, colon, version = name.rpartition(":")
    word = version if colon and run else name
    if VERSION.match(word) is not None:
        log = open_source(project, run if colon and run else None).log
        return _version(name, log, word)
    try:
        return _version(name, open_source(project, name).log, "last")
    except UsageError as error:
        text = _committed_skill(project, name)
        if text is None:
            raise UsageError(
                f"skill {name!r}",
                "no file, version, run, DVC experiment or git revision has that name",
                "Name a file, vN, seed, best, last or RUN:vN; `skilltrail runs` lists the runs",
            ) from error
        return SkillFound(name, text)


def number_of(word: str, asked: str | None = None) -> int | str:
    """Return a version as typed: a number, or `seed`, `best`, `last`."""
    match = VERSION.match(word)
    if match is None:
        asked = f"version {word!r}" if asked is None else asked
        raise UsageError(asked, "no version", "A number, seed, best or last")
    return word if match["number"] is None else int(match["number"])


def names_no_run(project: Project, skill: str) -> bool:
    """Return whether `skill` is a bare version, which `find_skill` seeks in the default log."""
    return VERSION.match(skill) is not None and not (project.workspace / skill).is_file()


def _version(name: str, log: RunLog, word: str) -> SkillFound:
    found = log.version(number_of(word))
    return SkillFound(name, found.text, log, found.number)


def _committed_skill(project: Project, revision: str) -> str | None:
    from skilltrail.history.git.repository import Git, GitError

    door = Git.find(project.workspace)
    if door is None:
        return None
    path = f"{door.prefix}{BEST_SKILL.as_posix()}"
    try:
        return next(iter(door.files([door.resolve(revision)], path))).decode()
    except GitError:
        return None


def skill_text(name: str, folder: Path | None = None) -> str:
    """Return the text of the skill that `name` names; see `find_skill`."""
    return find_skill(Project.here(folder), name).text

"""Rebuild: drop every `refs/evolution*` and make them again from logs, with the same hashes.

Logs are the live ones, the workspace's, and those that the refs themselves hold (a run fetched
from elsewhere has no other). New commits are written first under a name of their own; then one
transaction moves every ref. A ref whose commits hold no valid log is dropped and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skilltrail.core.errors import FaultError
from skilltrail.history.ask.sources import commit_events, run_tips
from skilltrail.history.git.branch import import_stream
from skilltrail.history.git.commits import Commit, commits_of
from skilltrail.history.git.ref_names import RUNS, VERSIONS, names
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.events import Event

SCRATCH = "refs/evolution-rebuild/"


@dataclass(frozen=True)
class Rebuilt:
    """What became of one ref: `same`, `moved`, `new` or `dropped`, and why."""

    name: str
    outcome: str
    tip: str | None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rebuild(door: Git, logs: Sequence[Sequence[Event]], label: str) -> list[Rebuilt]:
    """Rebuild all refs; `label` names runs that only a log knows.

    Raises:
        GitError: git refused; the old refs still stand.
    """
    door.update_refs(f"delete {ref}" for ref in door.refs(SCRATCH))
    old = door.refs(RUNS, VERSIONS)
    chains: dict[str, list[Event]] = {}
    rows: list[Rebuilt] = []
    for name, tip in run_tips(door):
        try:
            chains[name] = commit_events(door, tip)
        except (FaultError, GitError) as error:
            rows.append(Rebuilt(name, "dropped", None, str(error)))
    for log in logs:
        _adopt(chains, log, label)
    fresh: dict[str, str] = {}
    for name, events in chains.items():
        commits = list(commits_of(events, door.object_format()))
        fresh |= _refs_of(name, commits)
        door.fast_import(import_stream(commits, SCRATCH + name, None))
        rows.append(_row(name, old.get(RUNS + name), commits[-1].sha))
    door.update_refs(_moves(old, fresh, [SCRATCH + name for name in chains]))
    return rows


def _adopt(chains: dict[str, list[Event]], log: Sequence[Event], label: str) -> None:
    """Give a log a name, unless a run holds it; a run that it continues takes it over."""
    for name, events in chains.items():
        short, long = sorted((events, list(log)), key=len)
        if short and short[-1].id == long[len(short) - 1].id:
            chains[name] = long
            return
    if log:
        refs = {RUNS + name: "" for name in chains}
        free = next(name for name in names(label, refs) if name not in chains)
        chains[free] = list(log)


def _refs_of(name: str, commits: Sequence[Commit]) -> dict[str, str]:
    versions = {
        f"{VERSIONS}{name}/v{c.version}": c.sha for c in commits if c.version is not None
    }
    return {RUNS + name: commits[-1].sha} | versions


def _row(name: str, before: str | None, tip: str) -> Rebuilt:
    if before is None:
        return Rebuilt(name, "new", tip)
    if before == tip:
        return Rebuilt(name, "same", tip)
    return Rebuilt(name, "moved", tip, f"was {before[:12]}")


def _moves(
    old: Mapping[str, str], fresh: Mapping[str, str], scratch: Sequence[str]
) -> list[str]:
    moves = [f"delete {ref} {sha}" for ref, sha in old.items() if ref not in fresh]
    moves += [
        f"update {ref} {sha} {old[ref]}" if ref in old else f"create {ref} {sha}"
        for ref, sha in fresh.items()
        if old.get(ref) != sha
    ]
    return moves + [f"delete {ref}" for ref in scratch]

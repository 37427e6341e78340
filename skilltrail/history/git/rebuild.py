"""Rebuild: drop every `refs/evolution*` and make them again from logs, with the same hashes.

Logs are the live ones, the workspace's, those of evaluations, and those that the refs
themselves hold (a run fetched from elsewhere has no other). New commits are written first under
names of their own; then one transaction moves every ref. A ref whose commits hold no valid log
is dropped and named, and so is an evaluation whose training is not at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skilltrail.core.errors import FaultError
from skilltrail.history.git.branch import import_stream
from skilltrail.history.git.branches import branch_of, parted
from skilltrail.history.git.commits import Commit, commits_of
from skilltrail.history.git.ref_names import (
    EVALUATIONS,
    RUNS,
    VERSIONS,
    evaluation_refs,
    ref_label,
    run_refs,
)
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.events import Event

SCRATCH = "refs/evolution-rebuild/"
Chains = dict[str, list[Event]]  # full ref -> its events, a training's and an evaluation's


@dataclass(frozen=True)
class Rebuilt:
    """What became of one ref: `same`, `moved`, `new` or `dropped`, and why.

    `name` is the run's; an evaluation with a ref of its own is called `run/n`.
    """

    name: str
    outcome: str
    tip: str | None
    detail: str = ""


def rebuild(
    door: Git,
    logs: Sequence[Sequence[Event]],
    label: str,
    evaluations: Iterable[tuple[Sequence[Event], bool]] = (),
) -> list[Rebuilt]:
    """Rebuild all refs; `label` names runs that only a log knows.

    Args:
        evaluations: evaluations' logs, the oldest first, and whether a person asked for it.

    Raises:
        GitError: git refused; the old refs still stand.
    """
    chains: Chains = {}
    rows: list[Rebuilt] = []
    for ref in door.refs(RUNS, EVALUATIONS):
        try:
            chains[ref] = branch_of(door, ref).events
        except (FaultError, GitError) as error:
            rows.append(Rebuilt(_name(ref), "dropped", None, str(error)))
    for log in logs:
        _adopt(chains, log, label)
    for log, apart in evaluations:
        if not _adopt_evaluation(chains, log, label, apart=apart):
            detail = "the log of the training that it follows is not here"
            rows.append(Rebuilt(f"evaluation {log[0].id[:12]}", "dropped", None, detail))
    return rows + write_refs(door, chains)


def write_refs(door: Git, chains: Mapping[str, Sequence[Event]]) -> list[Rebuilt]:
    """Make `chains` all there is under refs/evolution*; say what became of each ref.

    Raises:
        GitError: git refused; the old refs still stand.
    """
    door.update_refs(f"delete {ref}" for ref in door.refs(SCRATCH))
    old = door.refs(RUNS, VERSIONS, EVALUATIONS)
    fresh: dict[str, str] = {}
    rows = []
    for ref, events in chains.items():
        commits = list(commits_of(events, door.object_format()))
        fresh |= _refs_of(ref, commits)
        door.fast_import(import_stream(commits, _scratch(ref), None))
        rows.append(_row(ref, old.get(ref), commits[-1].sha))
    door.update_refs(_moves(old, fresh, [_scratch(ref) for ref in chains]))
    return rows


def _adopt(chains: Chains, log: Sequence[Event], label: str) -> None:
    """Give a training's log a ref, unless a run holds it; a run that it continues takes it."""
    for ref, events in chains.items():
        short, long = sorted((events, list(log)), key=len)
        if ref.startswith(RUNS) and short and short[-1].id == long[len(short) - 1].id:
            chains[ref] = long
            return
    if log:
        refs = dict.fromkeys(chains, "")
        chains[next(ref for ref in run_refs(label, refs) if ref not in chains)] = list(log)


def _adopt_evaluation(chains: Chains, log: Sequence[Event], label: str, *, apart: bool) -> bool:
    """Give an evaluation's log a ref, unless one holds it; False where its run is unknown."""
    run, training = ref_label(label), list[Event]()
    if log[0].prev is not None:
        for ref, events in chains.items():
            training = parted(events)[0]
            if ref.startswith(RUNS) and training and training[-1].id == log[0].prev:
                run = ref.removeprefix(RUNS)
                break
        else:
            return False
    whole = [*training, *log]
    if any(_begins(whole, events) for events in chains.values()):
        return True
    for ref in evaluation_refs(run, apart=apart or not training):
        if _begins(chains.get(ref, []), whole):
            chains[ref] = whole
            return True
    raise AssertionError("names never end")


def _begins(short: Sequence[Event], long: Sequence[Event]) -> bool:
    """True when `long` begins with all of `short`; an id covers the whole past."""
    return not short or (len(short) <= len(long) and short[-1].id == long[len(short) - 1].id)


def _refs_of(ref: str, commits: Sequence[Commit]) -> dict[str, str]:
    if ref.startswith(EVALUATIONS):
        return {ref: commits[-1].sha}
    versions = {
        f"{VERSIONS}{_name(ref)}/v{c.version}": c.sha for c in commits if c.version is not None
    }
    return {ref: commits[-1].sha} | versions


def _row(ref: str, before: str | None, tip: str) -> Rebuilt:
    if before is None:
        return Rebuilt(_name(ref), "new", tip)
    if before == tip:
        return Rebuilt(_name(ref), "same", tip)
    return Rebuilt(_name(ref), "moved", tip, f"was {before[:12]}")


def _name(ref: str) -> str:
    return ref.removeprefix(RUNS).removeprefix(EVALUATIONS)


def _scratch(ref: str) -> str:
    return SCRATCH + ref.removeprefix("refs/")


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

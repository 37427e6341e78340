"""Erase: take a text out of all that Skilltrail, DVC and git keep of this project.

    facts and exports     the text is replaced, keys stay
    logs and commits      chained anew from the first event that held it, with a tombstone
    splits, outputs       the text is replaced; items and documents get new digests
    DVC's cache           files that held it are deleted

What is a person's own (sources of data, seeds, branches) is changed only where that is asked
for, and named otherwise. To be killed and done again is safe: commits and logs come before
facts, since their tombstones tell of the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic, writing
from skilltrail.core.held import is_held
from skilltrail.core.layout import EVALUATION, EVENTS
from skilltrail.data.splits import rewrite_split
from skilltrail.history.git import erasing as in_git
from skilltrail.history.git.repository import Git
from skilltrail.runtime.erase.dvc import cached_files, settle, settled_stages
from skilltrail.runtime.erase.search import (
    EXPORTS,
    WHOLE,
    Found,
    TextSearch,
    follows_a_run,
    matches,
)
from skilltrail.store.erasing import clean_lines, replace_rows
from skilltrail.store.ops import Ops
from skilltrail.store.place import Place

__all__ = ["Found", "TextSearch", "erase"]
SHORT = 16  # digits of an event's id that name its evaluations and ledger


def erase(
    place: Place, text: str, report: Callable[[], None], *, everywhere: bool
) -> list[Found]:
    """Take a text out and return where it is left.

    Args:
        report: writes the report's outputs anew.
        everywhere: also in what is a person's own.

    Raises:
        UsageError: a run is on, or the text is a word of the records' own form.
        SkilltrailError: a file, the store or git refused; doing it again goes on.
    """
    _refuse_while_on(place)
    found = TextSearch(place, text)
    found.find()
    stages = settled_stages(place.workspace)
    facts = [found.clean_fact(fact) for fact in found.facts]
    # All is read before anything is written: what is written changes what would be found.
    files = {p: found.clean(p.read_bytes()) for p, name in found.files.items()
             if everywhere or follows_a_run(name)}  # fmt: skip
    if found.git is not None:
        in_git.drop_replaced(found.git, found.dirty)
        in_git.clean_side_branches(found.git, found.branches, found.cleaning)
    for path, data in files.items():
        _write(path, data)
    for name, records in found.splits.items():
        rewrite_split(place.workspace, name, map(found.eraser.value, records))
    _rename(place, found)
    replace_rows(found.store, facts)
    for folder in EXPORTS:
        clean_lines(place.workspace / folder, found.eraser.holds, found.clean_fact)
    if (place.workspace / EVENTS).exists() and (place.workspace / EVALUATION).exists():
        report()
    rewritten = [] if found.git is None else _rewrite(found.git, found, everywhere=everywhere)
    unsettled = settle(place.workspace, stages)
    for path in cached_files(place.workspace, found.eraser.holds):
        with writing(path):
            path.unlink()
    if found.git is not None:
        in_git.forget(found.git, [*in_git.side_refs(found.git), *rewritten])
    Ops(place.state / "ops.jsonl").write("text.erased", facts=len(facts), files=len(files))
    left = TextSearch(place, text).find()
    return [*left, *(Found(f"stage {name}", "dvc.lock is as before") for name in unsettled)]


def _refuse_while_on(place: Place) -> None:
    locks = (*place.state.glob("runs/*/lock"), *place.state.glob("evaluations/*/*.lock"))
    for lock in filter(is_held, locks):
        raise UsageError("skilltrail erase", f"run {lock.parent.name} is running", "Let it end")


def _rewrite(git: Git, found: TextSearch, *, everywhere: bool) -> list[str]:
    """Write commits outside of the side branches anew and return their refs."""
    own = in_git.holders(git, found.dirty, *in_git.OWN)
    theirs = in_git.holders(git, found.dirty, *in_git.EXPERIMENTS)
    refs = [*own, *theirs] if everywhere else theirs
    in_git.rewrite_refs(
        git, refs, found.clean, () if everywhere else list(git.refs(*in_git.OWN))
    )

    def wanted(path: str) -> bool:
        name = path.removeprefix(git.prefix)
        return everywhere or matches(name, WHOLE)

    for path in in_git.messages(git, found.eraser.holds) if everywhere else ():
        write_atomic(path, found.eraser.data(path.read_bytes()))
    in_git.clean_index(git, found.dirty, found.clean, wanted)
    return [*refs, "HEAD"] if everywhere else refs


def _rename(place: Place, found: TextSearch) -> None:
    """Let folders and ledgers that an event's id names follow it."""
    names = {old[:SHORT]: new[:SHORT] for old, new in found.names.items()}
    for path in (*place.state.glob("evaluations/*"), *place.state.glob("spent/evaluate-*")):
        old = path.stem.removeprefix("evaluate-")
        if names.get(old, old) != old:
            with writing(path):
                path.rename(path.with_name(path.name.replace(old, names[old])))


def _write(path: Path, data: bytes) -> None:
    if data or path.name == EVALUATION.name:
        write_atomic(path, data)
    else:  # a log of which nothing is left
        with writing(path):
            path.unlink()

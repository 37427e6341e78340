"""All repairs, in the order in which one needs the other; what they find, and fixing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skilltrail.cli.repair.aside import PutAside
from skilltrail.cli.repair.at_work import Worker, workers
from skilltrail.cli.repair.branch import DetachedHead
from skilltrail.cli.repair.case import Finding, Repair, Site
from skilltrail.cli.repair.files import DvcConfig, LockFile, Merged, ParamsFile, Pipeline
from skilltrail.cli.repair.git_files import GitFiles
from skilltrail.cli.repair.locks import DeadWorkspaces, Drafts, DvcLocks, GitLocks
from skilltrail.core.errors import UsageError

# Git must be able to work; changes come back before HEAD and DVC's marks, which tell of them,
# go; DVC's locks tell what it was at, and go last.
REPAIRS: tuple[Callable[[Site], Repair], ...] = (
    GitLocks, GitFiles, PutAside, ParamsFile, LockFile, Pipeline, DvcConfig, Merged,
    DetachedHead, DvcLocks, Drafts, DeadWorkspaces,
)  # fmt: skip
# What these would change, a merge or rebase under way rests on, or a person has half chosen.
WAITING = (PutAside, ParamsFile, DetachedHead)


def findings(case: Site) -> list[Finding]:
    """Return all that is wrong. Not to be asked while DVC is at work: it is in the middle."""
    return [finding for repair in REPAIRS for finding in repair(case).findings()]


def fix_all(case: Site) -> Iterator[str]:
    """Put right all that can be, and yield what was done.

    Raises:
        UsageError: DVC, or a stage, is at work here; or only a person can choose.
        SkilltrailError: the system refused.
    """
    refuse_at_work(case, "Fixing what killed experiments left")
    for repair in REPAIRS:
        one, busy = repair(case), case.under_way
        if busy is None or repair not in WAITING:
            yield from one.fix()
            continue
        for finding in one.findings():
            yield f"left for now, {busy.found}: {finding.found}; first {busy.remedy}"


def refuse_at_work(case: Site, asked: str) -> None:
    """Refuse while an experiment, or any run, is on.

    Raises:
        UsageError: names the process, and how to stop it.
    """
    busy = workers(case.root)
    if busy:
        raise UsageError(asked, f"{busy[0]} is at work here", _wait(busy[0]))


def refuse_under_way(case: Site, asked: str) -> None:
    """Refuse while a person's own git is in the middle of something.

    Raises:
        UsageError: names it, and how to end it.
    """
    if case.under_way is not None:
        raise UsageError(asked, case.under_way.found, case.under_way.remedy)


def _wait(worker: Worker) -> str:
    return f"Wait for it to end, or stop it (`kill {worker.pid}`): every finished call is kept"

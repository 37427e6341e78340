"""HEAD that a killed experiment left on no branch, and DVC's marks of it."""

from __future__ import annotations

from skilltrail.cli.repair.case import MARKS, Finding, Repair
from skilltrail.cli.repair.locks import REMEDY
from skilltrail.core.errors import UsageError
from skilltrail.history.git.head import attach


class DetachedHead(Repair):
    """HEAD and the marks by which DVC knows that it runs an experiment."""

    def findings(self) -> list[Finding]:
        case, head = self._case, self._case.head
        if head is not None and case.left_by_dvc:
            where = "" if head.left is None else f", it was on {head.left}"
            found = (
                f"a killed experiment left HEAD detached{where}: a commit would be on no branch"
            )
            return [Finding("HEAD", found, _choose(head.left))]
        if case.marks:
            busy = case.under_way
            first = "" if busy is None else f"first {busy.remedy}; then "
            names = ", ".join(mark.rpartition("/")[2] for mark in case.marks)
            return [Finding("experiments", f"a killed experiment left {names}", first + REMEDY)]
        return []

    def fix(self) -> list[str]:
        case, head, done = self._case, self._case.head, []
        if head is not None and case.left_by_dvc and case.git is not None:
            if head.left is None:
                raise UsageError(
                    "Attaching HEAD to its branch",
                    "neither its log nor a single branch at its commit tells which",
                    "Choose it yourself: `git switch BRANCH`, then run this again",
                )
            attach(case.git, head.left)
            done.append(f"HEAD is on {head.left} again")
        for mark in case.marks:
            assert case.git is not None
            kind = ("symbolic-ref", "-d") if mark == MARKS[2] else ("update-ref", "-d")
            case.git.here(*kind, mark)
        return done


def _choose(branch: str | None) -> str:
    return "`git switch BRANCH`" if branch is None else REMEDY

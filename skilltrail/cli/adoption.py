"""A proposal: what adopting a trained skill would change, as a page to read and a branch.

Nothing that a person works with changes: the page lies in `reports/out/proposal/`, and the
branch is one commit on HEAD made without touching HEAD, index or work tree.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.errors import UsageError
from skilltrail.history.ask.audit_text import audit_markdown, fenced
from skilltrail.history.ask.sources import SkillFound
from skilltrail.history.git.commits import AUTHOR
from skilltrail.history.git.proposing import commit_stream
from skilltrail.history.git.repository import Git
from skilltrail.runtime.console import safe
from skilltrail.skill.document import unified_diff
from skilltrail.skill.risks import RiskyLine, risks_text, risky_lines

_MARK = "Skilltrail-Proposal"
Risk = tuple[str, RiskyLine]  # the file's name, "" for the skill's first


@dataclass(frozen=True)
class FileChange:
    """A file of the skill that differs from the live one.

    Attributes:
        name: its path in the skill.
        text: as it is to be; None = training has removed it.
    """

    name: str
    path: Path
    live: str
    text: str | None

    @property
    def new(self) -> str:
        return "" if self.text is None else self.text

    @property
    def diff(self) -> str:
        return unified_diff(self.live, self.new, self.name)

    @property
    def risks(self) -> list[Risk]:
        """Each risky new line, with the file's name where it is not the first file."""
        lines = risky_lines(self.new, self.live)
        return [("" if self.name == self.path.name else self.name, line) for line in lines]


def risk_text(risk: Risk) -> str:
    """Return a risky line as a line of text: file, number, risks, what it says."""
    file, line = risk
    where = f"{file}:" if file else ""
    kinds = ", ".join(one.value for one in line.risks)
    return safe(f"{where}{line.line}: [{kinds}] {line.text}") + "\n"


def page(
    found: SkillFound,
    path: Path,
    changes: Sequence[FileChange],
    scores: str = "",
    branch: str = "",
) -> str:
    """Return the proposal as a Markdown page for review."""
    risks = [risk for one in changes for risk in one.risks]
    which = found.name if found.version is None else f"{found.name} (v{found.version})"
    parts = [f"# Proposal: {path.name} from {which}", scores]
    parts += ["## What changes", fenced("".join(one.diff for one in changes), "diff")]
    if risks:
        summary = f"New lines to look at: {risks_text(line for _, line in risks)}."
        parts += ["## Look twice", summary, fenced("".join(map(risk_text, risks)))]
    if found.log is not None and found.version:
        from skilltrail.cli.commands.ask.audit import audits_of

        audits = audits_of(found.log, range(1, found.version + 1))
        parts += ["## Why", "\n".join(map(audit_markdown, audits))]
    take = f"git merge {branch}\n" if branch else ""
    take += f"skilltrail adopt {path} --skill {found.name}\n"
    parts += ["## To take it", fenced(take, "sh"), "Nothing was adopted by itself."]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def put_on_branch(
    folder: Path, branch: str, changes: Sequence[FileChange], message: str
) -> str:
    """Put the changes on a branch as one commit on HEAD; return the commit.

    An earlier proposal on that branch is replaced, other work is not.

    Raises:
        UsageError: no repository, a file outside of it, or a branch with other work.
    """
    git = Git.find(folder)
    head = None if git is None else git.ask("rev-parse", "--verify", "--quiet", "HEAD")
    if git is None or head is None:
        raise UsageError(f"--branch {branch}", "no commit is here", "Commit something first")
    if git.ask("check-ref-format", "--branch", branch) is None:
        raise UsageError(f"--branch {branch}", "no name of a branch", "Choose another")
    if git.branch() == branch:
        raise UsageError(f"--branch {branch}", "it is checked out", "Choose another name")
    ref = f"refs/heads/{branch}"
    tip = git.refs(ref).get(ref)
    if tip is not None and _MARK.encode() not in git.run("log", "-1", "--format=%B", tip):
        raise UsageError(f"--branch {branch}", "it holds other work", "Choose another name")
    root = Path(os.fsdecode(git.here("rev-parse", "--show-toplevel")).rstrip("\n")).resolve()
    stamp = f"{AUTHOR} {int(time.time())} +0000".encode()
    body = f"{message.rstrip()}\n\n{_MARK}: {branch}\n"
    files = dict(_contents(root, changes))
    at = head.decode().strip()
    stream = commit_stream(git, ref, at, body, files, author=stamp, committer=stamp)
    git.run("fast-import", "--quiet", "--force", "--done", stdin=b"".join(stream))
    return git.resolve(ref)


def _contents(root: Path, changes: Sequence[FileChange]) -> Iterator[tuple[str, bytes | None]]:
    """Yield path from the repository's root and new content, None where it goes."""
    for one in changes:
        path = one.path.parent.resolve() / one.path.name
        if not path.is_relative_to(root):
            remedy = "Name a live skill inside it, or leave --branch out"
            raise UsageError(f"{one.path}", f"outside of the repository {root}", remedy)
        text = None if one.text is None else one.text.encode()
        yield path.relative_to(root).as_posix(), text

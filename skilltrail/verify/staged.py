"""What is about to be committed: is the best skill the one that the staged log tells of?"""

from __future__ import annotations

import hashlib
from pathlib import Path

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.layout import BEST_SKILL, EVENTS
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.log import chained
from skilltrail.history.log.replay import version_of

# In any folder of the repository: a workspace may lie in one.
_OURS = tuple(f":(top,glob)**/{path.as_posix()}" for path in (BEST_SKILL, EVENTS))


def staged_faults(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the best skills that were looked at, and (path, what is wrong) of those refused.

    Looked at is where the commit changes the skill or its log; paths are from the root.

    Raises:
        GitError: `folder` is in no repository.
    """
    git = Git.find(folder)
    if git is None:
        raise GitError("skilltrail check-commit", "this is no git repository", "Run `git init`")
    changed = git.staged("diff", "--cached", "--name-only", "-z", "--", *_OURS)
    names = [name for name in changed.decode().split("\0") if name]
    tail = BEST_SKILL.as_posix()
    roots = {name.removesuffix(tail).removesuffix(EVENTS.as_posix()) for name in names}
    checked, faults = [], []
    for root in sorted(roots):
        skill = _staged_file(git, root + tail)
        if skill is None:
            continue  # a workspace that nothing was trained in, or the skill is removed
        checked.append(root + tail)
        found = _fault(skill, _staged_file(git, root + EVENTS.as_posix()))
        if found is not None:
            faults.append((root + tail, found))
    return checked, faults


def _fault(skill: bytes, log: bytes | None) -> str | None:
    if log is None:
        return f"no {EVENTS} is staged beside it"
    try:
        events = list(chained(log.split(b"\n")[:-1], EVENTS.as_posix()))
        best = version_of(events, "best")
    except SkilltrailError as error:
        return str(error)
    texts = (skill, skill.replace(b"\r\n", b"\n"))
    if best.digest in (hashlib.sha256(text).hexdigest() for text in texts):
        return None
    return f"it is not version {best.number}, the best of the staged {EVENTS}"


def _staged_file(git: Git, path: str) -> bytes | None:
    try:
        return git.staged("cat-file", "blob", f":{path}")
    except GitError:
        return None

"""What a person's own git is in the middle of: a merge, rebase, cherry-pick, revert or bisect.

It is theirs to end: the repair neither goes on nor gives up, moves no HEAD from under it, and
leaves files alone in which their half-made choices may stand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from skilltrail.history.git.repository import Git

_SHOWN = 4
# Files of git's own folder for this work tree, by which git itself tells what is under way.
_SIGNS = (
    ("rebase-apply/applying", "am"), ("rebase-merge", "rebase"), ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert"),
)  # fmt: skip


@dataclass(frozen=True)
class UnderWay:
    """What git is in the middle of.

    Attributes:
        names: the commands that began it; () where files alone are unmerged, as a stash
            leaves them.
        unmerged: the files, from the workspace's root, that wait for a choice.
    """

    names: tuple[str, ...]
    unmerged: tuple[str, ...]

    @property
    def found(self) -> str:
        """What it is, in words."""
        told = " and ".join(f"a {name}" for name in self.names)
        is_are = "is" if len(self.names) == 1 else "are"
        files = ", ".join(self.unmerged[:_SHOWN])
        more = f" and {len(self.unmerged) - _SHOWN} more" * (len(self.unmerged) > _SHOWN)
        parts = [f"{told} {is_are} under way"] * bool(told)
        return ", ".join([*parts, *([f"unmerged: {files}{more}"] if files else [])])

    @property
    def remedy(self) -> str:
        """How a person ends it, or gives it up."""
        first = [name for name in self.names if name != "bisect"][:1]
        steps = ["correct each file, then `git add` it"] if self.unmerged else []
        steps += [f"`git {name} --continue` (`--abort` gives it up)" for name in first]
        steps += ["`git bisect reset` ends it"] if "bisect" in self.names else []
        return ", then ".join(steps)


def under_way(git: Git | None) -> UnderWay | None:
    """Return what git is in the middle of here, None where it is in nothing."""
    if git is None:
        return None
    names, unmerged = tuple(dict.fromkeys(_names(git))), tuple(_unmerged(git))
    return UnderWay(names, unmerged) if names or unmerged else None


def _names(git: Git) -> Iterator[str]:
    there = (name for sign, name in _SIGNS if (git.own_dir / sign).exists())
    yield from islice(there, 1)  # a rebase picks commits, and leaves their signs as well
    todo = git.own_dir / "sequencer/todo"  # alone between two of several commits
    if todo.exists() and not any((git.own_dir / sign).exists() for sign, _ in _SIGNS):
        yield "revert" if todo.read_bytes().startswith(b"revert") else "cherry-pick"
    if (git.own_dir / "BISECT_LOG").exists():
        yield "bisect"


def _unmerged(git: Git) -> Iterator[str]:
    said = git.ask("diff", "--name-only", "--diff-filter=U", "--relative", "-z")
    yield from dict.fromkeys(os.fsdecode(name) for name in (said or b"").split(b"\0") if name)

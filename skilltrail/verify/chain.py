"""The commits that logs make, computed from the logs alone, and what refs have of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from pathlib import Path

from skilltrail.history.git.branches import names_of_run
from skilltrail.history.git.commits import Committing
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS, is_label
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.events import Event, parse_event

UNREPLACED = "--no-replace-objects"
_RUN = re.compile(r'<meta name="run" content="([^"]*)">')
_HEAD_CHARS = 5_000  # of a page


def name_on(page: Path) -> str | None:
    """Return the name that a page gives its run, None where it gives none that can be one."""
    try:
        head = page.read_text("utf-8", "replace")[:_HEAD_CHARS]
    except OSError:
        return None
    found = _RUN.search(head)
    name = None if found is None else unescape(found[1])
    return name if name is not None and is_label(name) else None


def names_here(root: Path, last: Event | None) -> list[str]:
    """Return the names that the run ending with `last` has among the refs of a project."""
    git = Git.find(root)
    return [] if git is None or last is None else names_of_run(git, last)


@dataclass(frozen=True)
class Held:
    """What one ref has of a chain: the first `shared` of its commits, and others on top."""

    ref: str
    shared: int
    on_top: Sequence[str]  # oldest first


class Chain:
    """The commits that logs make, and the refs of a repository beside them."""

    def __init__(
        self, git: Git, training: Sequence[Event], evaluation: Sequence[Event]
    ) -> None:
        self.git, self.events = git, [*training, *evaluation]
        self.trained = len(training)
        committing = Committing(git.object_format())
        made = [committing.feed(event) for event in training]
        self._after = copy(committing)  # what an evaluation tells changes no document
        made += [committing.feed(event) for event in evaluation]
        self.shas = [commit.sha for commit in made]
        self.versions = {c.version: c.sha for c in made if c.version is not None}
        self._index = {sha: at for at, sha in enumerate(self.shas)}

    @cached_property
    def refs(self) -> dict[str, str]:
        return self.git.refs(RUNS, EVALUATIONS, VERSIONS)

    @cached_property
    def held(self) -> list[Held]:
        """What each ref of a run or an evaluation has of this chain, the most first."""
        found = []
        for ref, shas in self.histories.items():
            shared = next((self._index[s] + 1 for s in shas if s in self._index), 0)
            found.append(Held(ref, shared, shas[: len(shas) - shared][::-1]))
        return sorted(found, key=lambda one: -one.shared)

    @cached_property
    def histories(self) -> dict[str, list[str]]:
        """The commits of each ref of a run or an evaluation, newest first; [] = unreadable."""
        refs = {ref: tip for ref, tip in self.refs.items() if not ref.startswith(VERSIONS)}
        return {ref: self._history(tip) for ref, tip in sorted(refs.items())}

    def _history(self, tip: str) -> list[str]:
        try:
            out = self.git.run(UNREPLACED, "rev-list", "--first-parent", tip, "--")
        except GitError:
            return []
        return out.decode().split()

    def commits_after(self, evaluation: Sequence[Event]) -> list[str]:
        """Return the commits of an evaluation that goes on from the training."""
        committing = copy(self._after)
        return [committing.feed(event).sha for event in evaluation]

    def best(self, length: int, *prefixes: str) -> Held | None:
        """Return the ref that holds most of the first `length` commits, best nothing else."""
        found = [one for one in self.held if one.shared and one.ref.startswith(prefixes)]
        return max(
            found, key=lambda one: (min(one.shared, length), not one.on_top), default=None
        )

    def event(self, sha: str) -> Event:
        """Return the event that a commit holds.

        Raises:
            FaultError, GitError: it holds none.
        """
        line = self.git.run(UNREPLACED, "cat-file", "blob", f"{sha}:event.json")
        return parse_event(line.removesuffix(b"\n"), f"commit {sha[:10]}")

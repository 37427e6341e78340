"""The commits that logs make, computed from the logs alone, and what refs have of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event, parse_event


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
        made = list(commits_of(self.events, git.object_format()))
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
        for ref, tip in sorted(self.refs.items()):
            if not ref.startswith(VERSIONS):
                shas = self.git.history(tip)
                shared = next((self._index[s] + 1 for s in shas if s in self._index), 0)
                found.append(Held(ref, shared, shas[: len(shas) - shared][::-1]))
        return sorted(found, key=lambda one: -one.shared)

    def best(self, length: int, *prefixes: str) -> Held | None:
        """Return the ref that holds most of the first `length` commits, best nothing else."""
        found = [one for one in self.held if one.shared and one.ref.startswith(prefixes)]
        return max(
            found, key=lambda one: (min(one.shared, length), not one.on_top), default=None
        )

    def event(self, sha: str) -> Event:
        """Return the event that a commit holds.

        Raises:
            FaultError: it holds none.
        """
        line = next(iter(self.git.files([sha], "event.json"))).removesuffix(b"\n")
        return parse_event(line, f"commit {sha[:10]}")

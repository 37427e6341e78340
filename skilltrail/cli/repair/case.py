"""A workspace under repair: what all repairs look at, and what each must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from skilltrail.cli.repair.kept import KeptCopies
from skilltrail.cli.repair.rwlock import begun_to_stash
from skilltrail.history.git.head import Head, head_of
from skilltrail.history.git.repository import Git
from skilltrail.history.git.under_way import UnderWay, under_way
from skilltrail.store.place import Place

# What DVC sets while an experiment runs here, and takes away when it ends well or badly.
MARKS = tuple(f"refs/exps/exec/EXEC_{name}" for name in ("BASELINE", "MERGE", "BRANCH"))
MERGE = MARKS[1]

Ask = Callable[[str], bool]


@dataclass(frozen=True)
class Finding:
    """What was found and what it blocks, and the command that fixes it."""

    what: str
    found: str
    remedy: str


class Site:
    """A workspace, its repository, and the copies kept during the repair.

    Args:
        ask: asks a person a question; True is yes.
    """

    def __init__(
        self, place: Place, git: Git | None, ask: Ask = lambda question: False
    ) -> None:
        self.place = place
        self.git = git
        self.ask = ask
        self.kept = KeptCopies(place)
        self.params_are_back = False  # with what DVC had put aside

    @property
    def root(self) -> Path:
        return self.place.root

    @cached_property
    def head(self) -> Head | None:
        """HEAD as the repair found it; None without a commit."""
        if self.git is None or self.git.ask("rev-parse", "--verify", "-q", "HEAD") is None:
            return None
        return head_of(self.git)

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """DVC's marks of a running experiment, as the repair found them."""
        if self.git is None:
            return ()
        asked = ("rev-parse", "--quiet", "--verify")
        return tuple(ref for ref in MARKS if self.git.ask(*asked, ref) is not None)

    @cached_property
    def under_way(self) -> UnderWay | None:
        """What a person's own git is in the middle of; None where it is in nothing."""
        found = under_way(self.git)
        return found if found is not None and found.names else None

    @property
    def left_by_dvc(self) -> bool:
        """Whether HEAD is detached and DVC did it; a rebase or bisect detaches it too."""
        head = self.head
        return (
            head is not None
            and self.under_way is None
            and head.detached
            and not head.by_person
            and bool(self.marks or head.by_dvc or self.put_aside_since is not None)
        )

    @cached_property
    def put_aside_since(self) -> float | None:
        """When a DVC that is gone began to put uncommitted changes aside (a Unix time); None
        where it was not at that."""
        return begun_to_stash(self.root)

    @property
    def ground(self) -> str | None:
        """The commit that things go back to: the branch that DVC left, else HEAD."""
        head = self.head
        if head is None:
            return None
        if self.left_by_dvc and head.left is not None:
            return f"refs/heads/{head.left}"
        return "HEAD"

    def at_ground(self, name: str) -> bytes | None:
        """Return a file of the workspace as it is at `ground`, None where it is not there."""
        if self.git is None or self.ground is None:
            return None
        return self.git.ask("cat-file", "--filters", f"{self.ground}:./{name}")


class Repair(ABC):
    """One thing that may be wrong."""

    def __init__(self, case: Site) -> None:
        self._case = case

    @abstractmethod
    def findings(self) -> list[Finding]:
        """Return what is wrong; nothing is changed."""

    def fix(self) -> list[str]:
        """Put right what can be, and return what was done, in words.

        Raises:
            SkilltrailError: it could not, and a person has to.
        """
        return []

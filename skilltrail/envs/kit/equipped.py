"""What an environment needs besides Python: software that may not be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Lack:
    """Software that an environment would use and does not find here.

    `needed`: without it there are no rollouts; else they are only measured otherwise.
    """

    what: str
    found: str
    remedy: str
    needed: bool = True


@runtime_checkable
class Equipped(Protocol):
    """An environment that needs such software; `skilltrail doctor` names what is not there."""

    def lacks(self) -> Sequence[Lack]:
        """Return what is not there; nothing is started but a probe."""

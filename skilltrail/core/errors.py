"""Every error a person can meet, in one tree.

    SkilltrailError            exit 1   something is wrong; the message says what to do
    ├── UsageError             exit 2   wrong command, params, or data file
    │   ├── ParamError                  a key of params.yaml
    │   ├── DataError                   an item file: names file, line, field
    │   └── SkillError                  a skill document that cannot be used
    ├── FaultError             exit 1   a check found a fault (verify, a damaged log or store)
    ├── IncompleteError        exit 1   items are missing for infrastructure reasons; run again
    ├── BudgetError            exit 1   a call, token or money budget is used up
    ├── Interrupted            exit 75  SIGINT, SIGTERM or SIGHUP; what is paid for is kept
    └── ModelError             exit 1   a model call failed (see `skilltrail.models.errors`)

An error says what was asked, what was found and what to do, and keeps its cause.
"""

from __future__ import annotations

import traceback
from pathlib import Path


class SkilltrailError(Exception):
    """Base of all errors; `str(error)` is one message for a person."""

    exit_code = 1

    def __init__(self, asked: str, found: str = "", remedy: str = "") -> None:
        self.asked, self.found, self.remedy = asked, found, remedy
        parts = [asked if not found else f"{asked}: {found}"]
        if remedy:
            parts.append(remedy)
        super().__init__(". ".join(part.rstrip(".") for part in parts) + ".")


class UsageError(SkilltrailError):
    exit_code = 2


class ParamError(UsageError):
    pass


class DataError(UsageError):
    pass


class SkillError(UsageError):
    pass


class FaultError(SkilltrailError):
    pass


class IncompleteError(SkilltrailError):
    pass


class BudgetError(SkilltrailError):
    pass


class Interrupted(SkilltrailError):
    exit_code = 75


def raised_at(error: BaseException) -> str:
    """Return what foreign code raised, and on which line of which file."""
    if isinstance(error, SkilltrailError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = "/".join(Path(last.filename).parts[-2:])
    return f"{type(error).__name__}: {error} ({place}, line {last.lineno})"

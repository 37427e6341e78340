"""The contract of an environment, checked with fake models: shapes, ranges, repeatability, ids.

Every check is an equality between two ways to the same thing, so none needs to know what the
benchmark is about. Gold cannot leak into a prompt when an item whose gold is swapped for other
text leads to the very same requests. An id is data when nothing opens a file that bears it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import Item
from skilltrail.envs.contract import checks
from skilltrail.envs.contract.fakes import Broken
from skilltrail.envs.contract.reasons import check_reasons
from skilltrail.envs.protocol import Environment, Where

# What foreign code raises when it is broken; each is a finding.
FOREIGN = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, OSError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One check of the contract: its name, what was found, and what to do when it is broken."""

    name: str
    found: str
    remedy: str = ""

    @property
    def sound(self) -> bool:
        return not self.remedy


def check_contract(
    environment: Environment,
    items: Sequence[Item],
    parse: Callable[[str], Item] | None = None,
) -> list[Finding]:
    """Return all findings for a few items of an environment.

    Args:
        items: items of its own data; at least one.
        parse: returns the first record's item under another id; None skips that check.
    """
    todo: list[tuple[str, Callable[[], str]]] = [
        ("items", lambda: checks.check_items(environment, items)),
        ("rollouts", lambda: checks.check_rollouts(environment, items)),
        ("repeatable", lambda: checks.check_repeatable(environment, items)),
        ("no gold in prompts", lambda: checks.check_no_leak(environment, items)),
        ("scores", lambda: checks.check_scores(environment, items)),
        ("judge", lambda: checks.check_cases(environment, items)),
        ("lessons", lambda: checks.check_lessons(environment, items)),
        ("gold and nothing", lambda: checks.check_known(environment, items)),
        ("reasons", lambda: check_reasons(environment, items)),
        ("failures", lambda: checks.check_failures(environment, items[0])),
        ("limits", lambda: checks.check_limits(environment, items[0])),
    ]
    if parse is not None:
        todo.append(("ids", lambda: checks.check_ids(environment, parse)))
    return [_finding(name, check) for name, check in todo]


def _finding(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, check())
    except Broken as broken:
        return Finding(name, str(broken), broken.remedy)
    except SkilltrailError as error:
        return Finding(name, str(error), "See the message")
    except FOREIGN as error:
        return Finding(
            name,
            f"{type(error).__name__}: {error}",
            "Fix the environment: nothing may be raised",
        )


def parser_of(
    environment: Environment, record: Mapping[str, Any], where: Where
) -> Callable[[str], Item]:
    """Return a function that parses `record` under another id."""
    original = environment.parse(record, where).id
    names = [
        name
        for name, value in record.items()
        if isinstance(value, (str, int)) and str(value) == original
    ]
    field = names[0] if names else "id"
    return lambda id: environment.parse({**record, field: id}, where)

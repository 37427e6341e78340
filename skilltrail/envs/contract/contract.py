"""The contract of an environment, checked with fake models: shapes, ranges, repeatability, ids.

Every check is an equality between two ways to the same thing, so none needs to know what the
benchmark is about. Gold cannot leak into a prompt when an item whose gold is swapped for other
text leads to the very same requests. An id is data when nothing opens a file that bears it.

`rules.yaml` is to know every reason that the scorer gives for a wrong answer. Reasons are
gathered by scoring answers of many kinds, and by reading the words that the environment's own
code hands to `Score.scored`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.contract import checks
from skilltrail.envs.contract.fakes import STRANGE_ANSWERS, Broken, require
from skilltrail.envs.protocol import BrokenItem, Environment, ScoredBy, Where, case_of
from skilltrail.envs.scoring import by_rule

_RIGHT = {"correct"}  # the common word; others are learnt from right answers
_ALWAYS = ("refused", "too_long")  # how any agent may end


def check_reasons(environment: Environment, items: Sequence[Item]) -> str:
    """Check that each reason of a wrong answer stands for a failure type."""
    if not environment.supports_rules:
        return "no catalogue"
    known = {reason for kind in environment.catalogue.types for reason in kind.reasons}
    right, wrong = _given(environment, items)
    unknown = sorted((wrong | {*_ALWAYS} | set(_written(environment))) - right - _RIGHT - known)
    listed = ", ".join(map(repr, unknown))
    found = f"rules.yaml does not know the reasons {listed}"
    require(not unknown, found, "List each under `reasons` of a failure type")
    return f"{len(wrong)} reasons of wrong answers are known to rules.yaml"


def _given(environment: Environment, items: Sequence[Item]) -> tuple[set[str], set[str]]:
    """Return the reasons given for right answers and for wrong ones."""
    reasons: tuple[set[str], set[str]] = set(), set()
    for item in items:
        for trajectory in _answers(environment, item, items):
            if case_of(environment, item, trajectory) is not None:
                continue
            try:
                score = by_rule(environment, item, trajectory)
            except BrokenItem:
                if environment.scored_by is not ScoredBy.RUN:
                    raise
                continue  # an answer alone is no run
            reasons[score.hard != 1.0].add(score.reason)
    return reasons


def _answers(
    environment: Environment, item: Item, items: Sequence[Item]
) -> Iterator[Trajectory]:
    """Yield right answers, such as are nearly right, right ones of others, and strange ones."""
    yield from environment.known_answers(item).right
    golds = [gold for one in items for gold in environment.golds(one)]
    near = [f"It is {g}." for g in golds] + [g[: len(g) // 2] for g in golds]
    for answer in [*golds, *near, *(g.split(" ")[0] for g in golds), *STRANGE_ANSWERS]:
        for ending in ("answered", "truncated"):
            yield Trajectory((), answer, ending)


def _written(environment: Environment) -> Iterator[str]:
    """Yield the words that its code gives as reasons of scores below 1."""
    folder = Path(inspect.getfile(type(environment))).parent
    for path in sorted(folder.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "Score.scored":
                continue
            full = call.args[:1] and ast.unparse(call.args[0]) in ("1", "1.0")
            said = [*call.args[2:], *(k.value for k in call.keywords if k.arg == "reason")]
            yield from (word for one in said for word in _words(one) if not full)


def _words(said: ast.expr) -> Iterator[str]:
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        yield said.value
    elif isinstance(said, ast.IfExp):
        yield from (*_words(said.body), *_words(said.orelse))


# What foreign code raises when it is broken; each is a finding.
FOREIGN = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, OSError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True)
class ContractCheck:
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
) -> list[ContractCheck]:
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


def _finding(name: str, check: Callable[[], str]) -> ContractCheck:
    try:
        return ContractCheck(name, check())
    except Broken as broken:
        return ContractCheck(name, str(broken), broken.remedy)
    except SkilltrailError as error:
        return ContractCheck(name, str(error), "See the message")
    except FOREIGN as error:
        return ContractCheck(
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

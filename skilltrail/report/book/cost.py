"""Calls and tokens by role and phase: what the run rests on, and what it used again.

Counted from events and facts, so it is the same wherever the run is read; what was paid in the
last session is in `.skilltrail/usage.json` and on the live page. Money is at the list prices of
the models that gave the replies: a price of one's own is a param, which no event holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from skilltrail.core.score import Outcome
from skilltrail.core.served import served_by
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.outcomes import RolloutsScored, RunStarted
from skilltrail.models.client.prices import is_known, list_price
from skilltrail.params.model_options import EMBEDDED_BACKENDS
from skilltrail.report.book.facts import RunFacts

OPTIMIZER = {
    "patch.proposed": "reflect",
    "patch.merged": "merge",
    "edits.selected": "select",
    "budget.decided": "budget",
    "candidate.built": "rewrite",
    "appendix.proposed": "notes",
    "slow_update.proposed": "slow update",
    "compaction.proposed": "compaction",
    "meta_skill.written": "meta skill",
    "reply.rejected": "unusable replies",
}
TOKENS = ("input", "output", "cached", "reasoning")


def cost_rows(events: Iterable[Event], facts: RunFacts) -> list[dict[str, Any]]:
    """Return a row per role and phase.

    `made` counts facts at their first use, `reused` every further use; tokens and US dollars
    (`usd`, None where a price is not known) are of those `made`. `unknown` counts facts whose
    usage is not at hand.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    dollars: dict[tuple[str, str], Fraction | None] = {}
    seen: set[str] = set()
    for role, phase, key, free in _uses(events):
        row = rows.setdefault(
            (role, phase),
            {"role": role, "phase": phase, "made": 0, "reused": 0, "unknown": 0}
            | dict.fromkeys(TOKENS, 0),
        )
        if key in seen:
            row["reused"] += 1
            continue
        seen.add(key)
        row["made"] += 1
        usage = facts.usage(key)
        if usage is None:
            row["unknown"] += 1
            continue
        for name in TOKENS:
            row[name] += int(usage.get(name, 0))
        before = dollars.get((role, phase), Fraction(0))
        more = Fraction(0) if free else _usd(facts, key)
        known = before is not None and more is not None
        dollars[role, phase] = before + more if known else None  # type: ignore[operator]
    for place, row in rows.items():
        usd = None if row["unknown"] else dollars.get(place, Fraction(0))
        row["usd"] = None if usd is None else float(usd)
    return list(rows.values())


def _usd(facts: RunFacts, key: str) -> Fraction | None:
    """Return what a fact costs at list prices, None where its model has none."""
    usage, value = facts.usage(key), facts.values.get(key, {})
    models = {one.model for one in served_by(value)}
    if usage is None or not is_known(usage) or len(models) != 1:
        return None
    price = list_price(models.pop())
    return None if price is None else price.cost(usage)


def totals(events: Iterable[Event], facts: RunFacts) -> dict[str, int]:
    """Return `calls` (rollouts, replies and judgements) and `tokens` (input and output).

    Each fact that the events name counts once, whoever paid for it and when: what else was in
    flight, looked up or tried again does not count. So the numbers are those of the run, the
    same after any stop, at any concurrency and in any clone. `tokens` is left out while the
    usage of a fact is not at hand.
    """
    rows = cost_rows(events, facts)
    numbers = {"calls": sum(row["made"] for row in rows)}
    if all(row["unknown"] == 0 for row in rows):
        numbers["tokens"] = sum(row["input"] + row["output"] for row in rows)
    return numbers


def _uses(events: Iterable[Event]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield role, phase, fact key, and whether the model runs here and so costs nothing."""
    embedded = False
    for event in events:
        said = event.said
        if isinstance(said, RunStarted):
            embedded = said.target.get("backend") in EMBEDDED_BACKENDS
        elif isinstance(said, RolloutsScored):
            phase, free = said.purpose.replace("_", " "), embedded and said.target is None
            for row in said.items:
                if row.key is not None and row.outcome is Outcome.SCORED:
                    role = "target" if row.target is None else f"targets.{row.target}"
                    yield role, phase, row.key, free
                if row.judgement is not None:
                    yield "judge", phase, row.judgement, False
        elif (reply := getattr(said, "reply", None)) is not None:
            yield "optimizer", OPTIMIZER.get(event.type, event.type), reply, False

"""Calls and tokens by role and phase: what the run rests on, and what it used again.

Counted from events and facts, so it is the same wherever the run is read; what was paid in the
last session is in `.skilltrail/usage.json` and on the live page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skilltrail.history.log.events import Event
from skilltrail.report.book.facts import Facts

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


def cost_rows(events: Iterable[Event], facts: Facts) -> list[dict[str, Any]]:
    """Return a row per role and phase.

    `made` counts facts at their first use, `reused` every further use; tokens are of those
    `made`. `unknown` counts facts whose usage is not at hand.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    seen: set[str] = set()
    for role, phase, key in _uses(events):
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
    return list(rows.values())


def totals(events: Iterable[Event], facts: Facts) -> dict[str, int]:
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


def _uses(events: Iterable[Event]) -> Iterator[tuple[str, str, str]]:
    for event in events:
        data = event.data
        if event.type == "rollouts.scored":
            for row in data["items"]:
                if row["key"] is not None and row["outcome"] == "scored":
                    yield "target", data["purpose"].replace("_", " "), row["key"]
                if "judgement" in row:
                    yield "judge", data["purpose"].replace("_", " "), row["judgement"]
        elif data.get("reply") is not None:
            yield "optimizer", OPTIMIZER.get(event.type, event.type), data["reply"]

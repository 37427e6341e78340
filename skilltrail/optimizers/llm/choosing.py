"""Choose: which edits come first, and how many a step may apply.

    support/1     edits by the number of items behind them, then in order
    scheduled/1   as many as the schedule allows

The model's answer counts only when it is exact: distinct whole numbers within range. "3-5",
"about 2", true and -2 are none, and then the rule decides and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.merging import proposals_text
from skilltrail.optimizers.llm.question import Parsed, Query, reasoning_of
from skilltrail.optimizers.llm.shown.past import step_state
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.skill.edit import Edit


async def rank(asker: Asker, view: StepView, edits: Sequence[Edit]) -> Answer:
    """Return all indices of `edits`: those the model chose, best first, then by support."""
    by_support = sorted(range(len(edits)), key=lambda index: (-edits[index].support, index))
    chosen = len(edits) if view.budget is None else min(view.budget, len(edits))
    if chosen == 0 or len(edits) < 2:
        return Answer(by_support, "there is nothing to choose", "support/1")
    if view.update_mode == "full_rewrite_minibatch":
        return Answer(by_support, "whole documents go by support", "support/1")
    kind = "patch" if view.update_mode == "patch" else "suggest"
    values = {
        **step_state(view, asker.options, "rank"),
        "count": str(len(edits)),
        "chosen": str(chosen),
        "last": str(len(edits) - 1),
        "proposals": proposals_text(edits, numbered=True, failed=failed_items(view)),
    }
    asked = await asker.ask(
        Query(
            stage="rank",
            options="rank",
            prompt=asker.fill(f"rank_{kind}", values),
            schema="ranking",
            read=partial(_read_order, total=len(edits), chosen=chosen),
            otherwise="ranked by support",
        )
    )
    found = asked.answer(by_support, "no usable ranking from the model", "support/1")
    rest = [index for index in by_support if index not in found.value]
    return replace(found, value=[*found.value, *rest])


async def choose_budget(asker: Asker, view: StepView, edits: Sequence[Edit]) -> Answer:
    """Return how many of `edits` to apply, within the schedule's budget where it has one."""
    most = len(edits) if view.budget is None else min(view.budget, len(edits))
    if most == 0:
        return Answer(0, "there is nothing to apply", "scheduled/1")
    failed = len(failed_items(view))
    free = view.budget is None
    otherwise = "no edit is applied" if free else "the scheduled budget holds"
    values = {
        **step_state(view, asker.options, "lr"),
        "count": str(len(edits)),
        "most": str(most),
        "runs": f"{len(view.observations)}, of which {failed} failed",
        "proposals": proposals_text(edits),
    }
    asked = await asker.ask(
        Query(
            stage="budget",
            options="lr",
            prompt=asker.fill("budget", values),
            schema="budget",
            read=partial(_read_budget, most=most),
            otherwise=otherwise,
        )
    )
    why = f"no usable number from the model: {otherwise}"
    return asked.answer(0 if free else most, why, "scheduled/1")


def failed_items(view: StepView) -> frozenset[str]:
    """Return the ids of the items that failed in this step."""
    return frozenset(
        o.item.id
        for o in view.observations
        if o.score.hard is not None and o.score.hard < view.success_threshold
    )


def _read_order(
    found: Mapping[str, Any], total: int, chosen: int
) -> Parsed[tuple[list[int], str]]:
    order = found["order"]
    if not all(_is_whole(number) and 0 <= number < total for number in order):
        return Parsed(None, (f"out_of_range: order holds whole numbers 0 to {total - 1}",))
    if len(set(order)) != len(order):
        return Parsed(None, ("repeated: order names a number twice",))
    if len(order) < chosen:
        return Parsed(None, (f"too_few: order names {len(order)}, asked for {chosen}",))
    return Parsed((order, reasoning_of(found)))


def _read_budget(found: Mapping[str, Any], most: int) -> Parsed[tuple[int, str]]:
    budget = found["budget"]
    if not _is_whole(budget) or not 0 <= budget <= most:
        return Parsed(None, (f"out_of_range: budget is one whole number 0 to {most}",))
    return Parsed((budget, reasoning_of(found)))


def _is_whole(value: object) -> bool:
    # 3.0 is an integer to JSON Schema and True is one to Python; neither is an answer.
    return isinstance(value, int) and not isinstance(value, bool)

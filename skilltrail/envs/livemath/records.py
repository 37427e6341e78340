"""The official monthly files of LiveMathematicianBench (`qa_YYYYMM_final.json`).

`mcq.choices` lists the wrong options only (labels B to E); the right one stands in
`mcq.correct_choice` alone and is labelled A in every item. So the two are merged, shuffled and
labelled anew, or else "always A" would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.envs.kit.choices import LABELS, shuffled
from skilltrail.envs.kit.fields import ident, optional_text, shown, text
from skilltrail.envs.protocol import Where


@dataclass(frozen=True)
class Options:
    """An item's options as the agent sees them.

    Attributes:
        texts: new label -> text, in order.
        correct: new label of the right option.
        weaker: new label of the option that is true but not the strongest, or None.
    """

    texts: Mapping[str, str]
    correct: str
    weaker: str | None


def id_of(record: Mapping[str, Any], where: Where) -> str:
    """Return `<month>:<no>`, or the record's own `id` where it has one."""
    if record.get("id") is not None:
        return ident(record, ("id",), where)
    return f"{ident(record, ('month',), where)}:{ident(record, ('no',), where)}"


def mcq_of(record: Mapping[str, Any], where: Where) -> Mapping[str, Any]:
    """Return the multiple-choice part of a record."""
    mcq = record.get("mcq")
    if not isinstance(mcq, Mapping):
        raise where.error(
            "mcq", shown(mcq), "Use an official monthly file: qa_YYYYMM_final.json"
        )
    return mcq


def options_of(mcq: Mapping[str, Any], id: str, seed: int | None, where: Where) -> Options:
    """Return the merged options, in the order of seed and id (as they stand without a seed).

    Raises:
        DataError: an option has no label or text, a label or a text stands twice, or there are
            fewer than two options.
    """
    right = _option(mcq.get("correct_choice"), "mcq.correct_choice", where)
    listed = mcq.get("choices")
    if not isinstance(listed, list) or not listed:
        raise where.error("mcq.choices", shown(listed), "List the options as {label, text}")
    wrong = [_option(one, "mcq.choices", where) for one in listed]
    merged = sorted({right, *wrong})
    labels = [label for label, _ in merged]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise where.error("mcq.choices", f"label {twice} twice", "Give each option its own")
    if sum(words.strip() == right[1].strip() for _, words in merged) > 1:
        raise where.error(
            "mcq.choices", "a wrong option reads like the right one", "Reword or remove it"
        )
    if not 2 <= len(merged) <= len(LABELS):
        raise where.error("mcq.choices", f"{len(merged)} options", "Give 2 to 26 options")
    order = merged if seed is None else shuffled(merged, seed, id)
    new = {old: label for (old, _), label in zip(order, LABELS, strict=False)}
    weaker = _weaker(mcq, where)
    return Options(
        texts={new[old]: words for old, words in order},
        correct=new[right[0]],
        weaker=None if weaker is None else new.get(weaker),
    )


def theorem_types(record: Mapping[str, Any], where: Where) -> list[str]:
    """Return the kinds of theorem; the first is the item's task type."""
    found = record.get("theorem_type")
    if found is None:
        return []
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise where.error("theorem_type", shown(found), "Give a list of texts")
    return list(found)


def _option(value: Any, field: str, where: Where) -> tuple[str, str]:
    if not isinstance(value, Mapping):
        raise where.error(field, shown(value), "Write the option as {label, text}")
    return text(value, "label", where).strip().upper(), text(value, "text", where)


def _weaker(mcq: Mapping[str, Any], where: Where) -> str | None:
    meta = mcq.get("meta")
    if not isinstance(meta, Mapping):
        return None
    label = optional_text(meta, "weaker_true_label", where)
    return None if label is None else label.strip().upper()

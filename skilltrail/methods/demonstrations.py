"""Worked examples of train items, as edits that add them to a document.

An environment says how it writes a solved item; where it does not, what was asked and answered
in a rollout that succeeded is shown as it went.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.skill.edit import Edit, Patch


def labelled(env: Environment, item: Item) -> str | None:
    """Return a train item with its right answer, or None where the environment has no form."""
    return env.example(item)


def solved(env: Environment, item: Item, trajectory: Trajectory) -> str | None:
    """Return a train item as a rollout solved it; None where there is nothing to show."""
    known = env.example(item)
    if known is not None:
        return known
    asked = _one_line(_texts(trajectory.turns[0].sent)) if trajectory.turns else ""
    answer = _one_line([trajectory.answer])
    return f"- asked: {asked} / answered: {answer}" if asked and answer else None


def as_patch(
    examples: Sequence[tuple[str, str]], reasoning: str, asked: Sequence[str] = ()
) -> Patch:
    """Return the patch that adds examples (item id, text) in their order.

    Args:
        asked: the items that were rolled out to find them.
    """
    edits = tuple(
        Edit("append", content=text, kind="example", reason="a solved item", items=(id,))
        for id, text in examples
    )
    return Patch("success", tuple(asked), edits, reasoning)


def _texts(sent: Any) -> Iterable[str]:
    """Yield the texts of what was sent: a prompt, or messages with parts."""
    if isinstance(sent, str):
        yield sent
    elif isinstance(sent, dict):
        for name, value in sent.items():
            if name in ("text", "content", "parts", "prompt"):
                yield from _texts(value)
    elif isinstance(sent, list):
        for one in sent:
            yield from _texts(one)


def _one_line(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())

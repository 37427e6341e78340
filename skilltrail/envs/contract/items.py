"""The one contract of items, checked when they are read and before any call.

An item is worth asking when its gold scores 1, and doing nothing scores 0: the empty answer,
and whatever leaves things unchanged. Otherwise nobody can pass it, or everybody does.
"""

from __future__ import annotations

from skilltrail.core.item import Item
from skilltrail.envs.protocol import BrokenItem, Environment, KnownAnswers
from skilltrail.envs.scoring import by_rule


def item_fault(
    env: Environment, item: Item, known: KnownAnswers, *, empty_is_right: bool = False
) -> str | None:
    """Return why an item breaks the contract, or None.

    Args:
        empty_is_right: the record declares that doing nothing is right.

    Raises:
        DataError: the scorer raised.
    """
    try:
        for trajectory in known.right:
            score = by_rule(env, item, trajectory)
            if score.hard != 1.0:
                return f"its own gold scores {score.hard:g} ({score.reason})"
        for what, trajectory in known.idle.items():
            hard = 0.0 if empty_is_right else by_rule(env, item, trajectory).hard
            if hard != 0.0:
                return f"{what} scores {hard:g}"
    except BrokenItem as error:
        return error.found
    return None

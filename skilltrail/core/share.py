"""The share of a gain that carries over to another target: gain there / gain at home.

Its interval is Fieller's, see `skilltrail.core.stats.share_interval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from skilltrail.core.stats import share_interval, share_tag

Values = Sequence[Fraction | None]


def share_of(
    home_first: Values,
    home: Values,
    there_first: Values,
    there: Values,
    *,
    tag: str | None = None,
) -> dict[str, float | str | None]:
    """Return `share`, `share_low`, `share_high` and the interval's tag.

    Each argument has the value (in [0, 1]) of every item, in one order: of the first skill and
    of the skill asked about, on the target trained on and on the other one. An item counts
    when it has all four. Without a gain at home there is no share; without one that is clear
    of 0 there are no bounds. `tag` names the interval, None the one in use.
    """
    pairs = [
        (b - a, d - c)
        for a, b, c, d in zip(home_first, home, there_first, there, strict=True)
        if a is not None and b is not None and c is not None and d is not None
    ]
    gained = sum((at_home for at_home, _ in pairs), Fraction(0))
    kept = sum((elsewhere for _, elsewhere in pairs), Fraction(0))
    tag = share_tag(pairs) if tag is None else tag
    interval = share_interval(pairs, tag)
    return {
        "share": float(kept / gained) if gained else None,
        "share_low": None if interval is None else interval[0],
        "share_high": None if interval is None else interval[1],
        "share_interval": tag,
    }

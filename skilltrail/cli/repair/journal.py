"""Lines of the operations journal that a full disk or a kill cut."""

from __future__ import annotations

from skilltrail.store.ops import FILE, read_ops
from skilltrail.store.place import Place

_SHOWN = 3


def torn_lines(place: Place) -> str:
    """Return, in words, which lines of `ops.jsonl` are torn; "" where none is."""
    torn: list[str] = []
    for _ in read_ops(place.state / FILE, lambda number: torn.append(str(number))):
        pass
    if not torn[1:]:
        return "".join(f"line {number} is" for number in torn)
    more = f" and {len(torn) - _SHOWN} more" if len(torn) > _SHOWN else ""
    return f"lines {', '.join(torn[:_SHOWN])}{more} are"

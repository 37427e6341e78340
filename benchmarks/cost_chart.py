"""Draw what things cost against their number, both logarithmic, from what benchmarks measured.

    python -m benchmarks.cost_chart OUT.svg --scale SCALE.json --history HISTORY.json

`bench_scale.py` and `bench_history.py` write the two with `--json`. Each line ends in its name
and its exponent: 1 is a cost that stays the same for each.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.bench_scale import exponent
from skilltrail.report.svg import TOP, n, standalone, svg

WIDTH, HEIGHT, GAP, ROOM = 330.0, 330.0, 60.0, 165.0
LOW, HIGH = 1e-2, 1e3
FEWEST, MOST = 500, 1e5
OF_ROLLOUTS = {
    "train": "train cpu s", "again, recorded": "restart cpu s", "verify": "verify cpu s",
    "report": "report cpu s", "import": "import cpu s", "memory, MiB": "peak MiB",
}  # fmt: skip
Line = Sequence[tuple[float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--scale", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    asked = parser.parse_args()
    rows = json.loads(asked.scale.read_text("utf-8"))
    rollouts = {
        name: [(row["rollouts"], row[field]) for row in rows]
        for name, field in OF_ROLLOUTS.items()
    }
    events: dict[str, list[tuple[float, float]]] = {}
    for row in json.loads(asked.history.read_text("utf-8")):
        events.setdefault(row["operation"], []).append((row["events"], row["cpu_s"]))
    asked.out.write_text(picture(rollouts, events), encoding="utf-8", newline="\n")


def picture(rollouts: Mapping[str, Line], events: Mapping[str, Line]) -> str:
    """Return the picture of both, as a file."""
    second = GAP + WIDTH + ROOM + GAP
    parts = [
        *panel(rollouts, GAP, "rollouts"),
        *panel(events, second, "events"),
    ]
    told = "Seconds of CPU, and memory, by the number of rollouts and of events"
    return standalone(svg(second + WIDTH + ROOM, TOP + HEIGHT + 40, told, parts, role="img"))


def panel(lines: Mapping[str, Line], left: float, unit: str) -> list[str]:
    """Return one plot: grid, a line each with its name and exponent."""

    def x(value: float) -> float:
        return left + WIDTH * math.log(value / FEWEST) / math.log(MOST / FEWEST)

    def y(value: float) -> float:
        share = math.log(max(value, LOW) / LOW) / math.log(HIGH / LOW)
        return TOP + HEIGHT * (1 - share)

    parts = [f'<text class="axis" x="{n(left)}" y="{n(TOP - 9)}">seconds of CPU</text>']
    for power in range(-2, 4):
        at = n(y(10.0**power))
        parts.append(f'<path class="grid" d="M{n(left)} {at}h{n(WIDTH)}"/>')
        parts.append(_text(left - 6, y(10.0**power) + 4, f"{10.0**power:g}", "end"))
    for power in (3, 4, 5):
        parts.append(_text(x(10.0**power), TOP + HEIGHT + 17, f"{10**power:,}", "middle"))
    parts.append(_text(left + WIDTH / 2, TOP + HEIGHT + 34, unit, "middle"))
    floor = math.inf
    for name in sorted(lines, key=lambda name: lines[name][-1][1]):
        points = " ".join(f"{n(x(of))} {n(y(cost))}" for of, cost in lines[name])
        kind = "train" if name.startswith("memory") else "best"
        parts.append(f'<path class="{kind}" d="M{points}"/>')
        parts += [f'<circle class="applied" r="3" cx="{n(x(of))}" cy="{n(y(cost))}"/>'
                  for of, cost in lines[name]]  # fmt: skip
        of, cost = lines[name][-1]
        floor = min(y(cost) + 4, floor - 14)  # names stand one above the other
        grows = f"{name}: {exponent(lines[name]):.2f}"
        parts.append(_text(left + WIDTH + 8, floor, grows, "start"))
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="axis" x="{n(x)}" y="{n(y)}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    main()

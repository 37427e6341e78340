"""What charts are drawn on: a frame, its axes, and the file that a chart can be saved as.

Colours are classes, so that the page's light and dark themes hold; a chart saved as a file
carries its own (`standalone`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

LEFT, RIGHT, TOP = 40.0, 46.0, 22.0
_LINK = re.compile(r'<a class="([a-z]+)" href="[^"]*" data-step="\d+" aria-label=')
STYLE = """
svg{background:#fff;font:12px system-ui,sans-serif}
.grid{stroke:#e4e2dd}.axis{fill:#6b6862}.epoch{stroke:#cfccc5;stroke-dasharray:2 4}
.best{fill:none;stroke:#0b62a4;stroke-width:2.5}.train{fill:none;stroke:#9a968e;stroke-width:1.3}
.accepted{fill:#0b7a55;stroke:#0b7a55}.rejected{fill:none;stroke:#b4480b;stroke-width:2}
.indecisive{fill:#fff;stroke:#6d5a9c;stroke-width:2}.none{stroke:#9a968e;stroke-width:2}
.budget{fill:none;stroke:#9a968e}.applied{fill:#0b62a4}.saved{fill:#b9b5ac}.end{fill:#0b62a4}
.whisker{stroke:#6b6862}.seed{fill:#9a968e}
"""


@dataclass(frozen=True)
class Frame:
    """Where a chart's plot stands, in user units, and the scores at its bottom and top."""

    width: float
    height: float
    low: float
    high: float
    steps: int

    def x(self, step: float) -> float:
        return LEFT + (self.width - LEFT - RIGHT) * step / max(self.steps, 1)

    def y(self, score: float) -> float:
        share = (score - self.low) / (self.high - self.low)
        return TOP + (self.height - TOP) * (1 - share)


def standalone(svg: str) -> str:
    """Return a chart as a file of its own, with light colours and without links."""
    head, _, rest = svg.partition(">")
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head} xmlns="http://www.w3.org/2000/svg">'
        f"<style>{STYLE.strip()}</style>{_unlinked(rest)}\n"
    )


def n(value: float) -> str:
    """Return a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def svg(
    width: float, height: float, told: str, parts: Sequence[str], *, role: str, more: str = ""
) -> str:
    return (
        f'<svg viewBox="0 0 {n(width)} {n(height)}" role="{role}" '
        f'aria-label="{escape(told)}"{more}>{"".join(parts)}</svg>'
    )


def grid(frame: Frame) -> list[str]:
    step = 0.1 if frame.high - frame.low <= 0.5 else 0.2
    first = math.ceil(frame.low / step - 1e-9)
    last = math.floor(frame.high / step + 1e-9)
    return [
        f'<path class="grid" d="M{LEFT:g} {n(frame.y(k * step))}H{n(frame.width - RIGHT)}"/>'
        f'<text class="axis" x="{LEFT - 8:g}" y="{n(frame.y(k * step) + 4)}" '
        f'text-anchor="end">{k * step:.1f}</text>'
        for k in range(first, last + 1)
    ]


def step_axis(frame: Frame, y: float, name: str = "step") -> str:
    """Write step numbers below, as many as there is room for."""
    every = max(1, math.ceil(frame.steps * 34 / (frame.width - LEFT - RIGHT)))
    every = next(k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, every) if k >= every)
    ticks = [
        f'<text class="axis" x="{n(frame.x(step))}" y="{n(y)}" text-anchor="middle">{step}'
        "</text>"
        for step in range(every, frame.steps + 1, every)
    ]
    return f'<text class="axis" x="0" y="{n(y)}">{name}</text>{"".join(ticks)}'


def _unlinked(svg: str) -> str:
    """Return marks as groups: links to the page lead nowhere from a file."""
    svg = _LINK.sub(r'<g class="\1" aria-label=', svg).replace("</a>", "</g>")
    return svg.replace('<circle class="hit" r="11"/>', "")

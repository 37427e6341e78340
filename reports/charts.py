"""Charts as inline SVG, drawn from rows; no script and no library on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, TOP = 720, 260, 44, 16


def score_chart(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the best score by step as a line, and each fully measured candidate as a mark."""

    def x(step: int) -> float:
        return LEFT + (WIDTH - LEFT - 16) * step / max(len(rows), 1)

    def y(score: float) -> float:
        return TOP + (HEIGHT - 2 * TOP) * (1 - score)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(_told(rows))}">'
    ]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
            f'stroke="currentColor" opacity=".15"/><text x="4" y="{y(tick) + 4:.1f}" '
            f'font-size="12" fill="currentColor">{tick:.2f}</text>'
        )
    best = [(x(row["step"]), y(row["best"])) for row in rows if row["best"] is not None]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in best)
    parts.append(
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="2"/>'
    )
    for row in rows:
        if row["after"] is None:
            continue
        colour = "var(--good)" if row["verdict"] == "accepted" else "var(--bad)"
        parts.append(
            f'<circle cx="{x(row["step"]):.1f}" cy="{y(row["after"]):.1f}" r="5" '
            f'fill="{colour}"><title>step {row["step"]}: {escape(str(row["verdict"]))}, '
            f"{row['after']:.3f}</title></circle>"
        )
    parts.append("</svg>")
    return "".join(parts)


def _told(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "No steps"
    accepted = sum(row["verdict"] == "accepted" for row in rows)
    return f"{len(rows)} steps, {accepted} accepted; best score at the end {rows[-1]['best']}"

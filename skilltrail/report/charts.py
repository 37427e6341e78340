"""Charts as SVG, drawn from rows: no script and no library, the same bytes every time.

Verdicts differ by shape as well as by colour. Marks are links, so that a keyboard reaches them
and a screen reader reads them. `skilltrail.report.svg` has the frame and the axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import escape

from skilltrail.report.svg import LEFT, RIGHT, Frame, grid, n, step_axis, svg

Point = Mapping[str, Any]

GAP = 14.0
STRIP = 34.0  # height of the strip of edits, and of the one of saved rollouts
MOST_MARKS = 300  # of more steps, those that were not accepted are one path, not links
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SHAPES = {
    "accepted": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "rejected": "M-4.5-4.5L4.5 4.5M-4.5 4.5L4.5-4.5",
    "indecisive": "M0-6L6 0L0 6L-6 0z",
    "none": "M-4 0H4",
}
SMALL = {
    "rejected": "m-2-2l4 4m0-4l-4 4",
    "indecisive": "m0-3l3 3l-3 3l-3-3z",
    "none": "m-1 0h2",
}


def run_chart(
    points: Sequence[Point], start: float | None, *, width: int = 960, strips: bool = True
) -> str:
    """Return the chart of a run.

    Args:
        points: one per step, see `skilltrail.report.book.summary.points_of`.
        start: the seed skill's score on the selection split.
        width: in user units; the height follows.
        strips: also draw train scores, edits against budget, and rollouts saved.
    """
    low, high = _range(points, start, train=strips)
    height = 250.0 if width > 500 else 210.0
    frame = Frame(width, height, low, high, len(points))
    parts = [*grid(frame), *_epochs(frame, points)]
    if strips:
        parts.append(_train(frame, points))
    parts += [_best(frame, points, start), *_marks(frame, points), _end(frame, points)]
    total = height
    if strips:
        parts += _strips(frame, points)
        total += 2 * (STRIP + GAP)
    total += 22
    parts.append(step_axis(frame, total - 4))
    dense = ""
    if len(points) > MOST_MARKS:  # the page's script finds the step by the pointer's place
        dense = f' data-steps="{len(points)}" data-from="{LEFT:g}" data-to="{width - RIGHT:g}"'
    return svg(width, total, _told(points, start), parts, role="group", more=dense)


def curves_chart(curves: Mapping[str, Sequence[tuple[int, float]]], axis: str = "step") -> str:
    """Return several runs in one chart: the best score by step, a staircase each.

    `curves` are (step, score) by name; `axis` says what is counted in place of steps. Curves
    that coincide lie a little apart, so that each is seen.
    """
    width, height = 720.0, 330.0
    scores = [score for curve in curves.values() for _, score in curve]
    low, high = _rounded(scores)
    frame = Frame(width - 200, height, low, high, max(s for c in curves.values() for s, _ in c))
    parts = grid(frame)
    for place, (name, curve) in enumerate(curves.items()):
        colour, shift = COLOURS[place % len(COLOURS)], 2 * place
        first, *rest = [(n(frame.x(step)), n(frame.y(score) - shift)) for step, score in curve]
        path = f"M{first[0]} {first[1]}" + "".join(f"H{x}V{y}" for x, y in rest)
        dash = "" if place == 0 else f' stroke-dasharray="{4 + 4 * place} 4"'
        parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            f'<text x="{n(width - 220)}" y="{40 + 18 * place}" fill="{colour}">'
            f"{escape(name)} {curve[-1][1]:.3f}</text>"
        )
    parts.append(step_axis(frame, height + 18, axis))
    told = "; ".join(f"{name} {curve[-1][1]:.3f}" for name, curve in curves.items())
    return svg(width, height + 22, f"Best selection score by {axis}: {told}", parts, role="img")


def interval_chart(rows: Sequence[tuple[str, str, float, float, float]]) -> str:
    """Return dots with intervals on one axis from 0 to 1.

    `rows` are (label, class, mean, low, high).
    """
    width, left, height = 352.0, 44.0, 22.0 * len(rows) + 30

    def x(score: float) -> float:
        return left + (width - left - 20) * score

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<path class="grid" d="M{n(x(tick))} 4V{n(height - 22)}"/>'
            f'<text class="axis" x="{n(x(tick))}" y="{n(height - 6)}" '
            f'text-anchor="middle">{tick:g}</text>'
        )
    for place, (label, kind, mean, low, high) in enumerate(rows):
        y = 16 + 22 * place
        parts.append(
            f'<text class="axis" x="0" y="{y + 4}">{escape(label)}</text>'
            f'<path class="whisker" d="M{n(x(low))} {y}H{n(x(high))}M{n(x(low))} {y - 4}v8'
            f'M{n(x(high))} {y - 4}v8"/>'
            f'<circle class="{kind}" cx="{n(x(mean))}" cy="{y}" r="5"/>'
        )
    told = "; ".join(
        f"{label} {mean:.3f}, 95 % interval {low:.3f} to {high:.3f}"
        for label, _, mean, low, high in rows
    )
    return svg(width, height, told, parts, role="img")


def _range(points: Sequence[Point], start: float | None, *, train: bool) -> tuple[float, float]:
    names = ("best", "after", "after_max", *(("train_hard",) if train else ()))
    values = [p[name] for p in points for name in names if p.get(name) is not None]
    return _rounded(values + ([] if start is None else [start]))


def _rounded(values: Sequence[float]) -> tuple[float, float]:
    """Return round scores below and above everything drawn, at least 0.2 apart."""
    low = math.floor(min(values, default=0.0) * 10 - 1e-9) / 10
    high = math.ceil(max(values, default=1.0) * 10 + 1e-9) / 10
    low, high = max(0.0, low), min(1.0, high)
    if high - low < 0.2:
        low, high = max(0.0, high - 0.2), max(high, 0.2)
    return low, high


def _epochs(frame: Frame, points: Sequence[Point]) -> list[str]:
    starts = [
        after for before, after in zip(points, points[1:], strict=False)
        if after["epoch"] != before["epoch"]
    ]  # fmt: skip
    if not points or len(starts) > 12:
        return []
    parts = []
    for point in [points[0], *starts]:
        x = frame.x(point["step"] - 0.5) if point in starts else LEFT
        if point in starts:
            parts.append(f'<path class="epoch" d="M{n(x)} 6V{n(frame.height)}"/>')
        parts.append(f'<text class="axis" x="{n(x + 5)}" y="12">epoch {point["epoch"]}</text>')
    return parts


def _train(frame: Frame, points: Sequence[Point]) -> str:
    known = [p for p in points if p["train_hard"] is not None]
    line = " ".join(f"{n(frame.x(p['step']))},{n(frame.y(p['train_hard']))}" for p in known)
    return f'<polyline class="train" points="{line}"/>'


def _best(frame: Frame, points: Sequence[Point], start: float | None) -> str:
    """Draw the best score as a staircase: it holds until a better skill is found."""
    score = start
    path = "" if score is None else f"M{n(frame.x(0))} {n(frame.y(score))}"
    for point in points:
        if point["best"] is None:
            continue
        path += ("H" if path else "M") + n(frame.x(point["step"]))
        path += f"{'V' if path[0] == 'M' and 'H' in path else ' '}{n(frame.y(point['best']))}"
    return f'<path class="best" d="{path}"/>'


def _marks(frame: Frame, points: Sequence[Point]) -> list[str]:
    if len(points) <= MOST_MARKS:
        return [_mark(frame, point) for point in points]
    paths = dict.fromkeys(SMALL, "")
    links = []
    for point in points:
        kind, y, _ = _placed(frame, point)
        if kind == "accepted":
            links.append(_mark(frame, point))
        else:
            paths[kind] += f"M{n(frame.x(point['step']))} {n(y)}{SMALL[kind]}"
    return [f'<path class="{kind}" d="{path}"/>' for kind, path in paths.items()] + links


def _placed(frame: Frame, point: Point) -> tuple[str, float, bool]:
    """Return a mark's kind, its height on the plot, and whether the score is only a bound."""
    score, least = point["after"], False
    if score is None:
        score, least = point["after_max"], True
    if score is None:
        return "none", frame.height, False
    kind = point["verdict"] if point["verdict"] in SHAPES else "none"
    return kind, frame.y(score), least


def _mark(frame: Frame, point: Point) -> str:
    kind, y, least = _placed(frame, point)
    below = '<path d="M0 6v7m-3-3l3 3l3-3"/>' if least else ""
    return (
        f'<a class="{kind}" href="#/audit/step/{point["step"]}" data-step="{point["step"]}" '
        f'aria-label="{escape(told_step(point))}" '
        f'transform="translate({n(frame.x(point["step"]))} {n(y)})">'
        f'<circle class="hit" r="11"/><path d="{SHAPES[kind]}"/>{below}</a>'
    )


def _end(frame: Frame, points: Sequence[Point]) -> str:
    known = [point for point in points if point["best"] is not None]
    if not known:
        return ""
    last = known[-1]
    x, y = frame.x(len(points)) + 9, frame.y(last["best"]) + 4
    return f'<text class="end" x="{n(x)}" y="{n(y)}">{last["best"]:.3f}</text>'


def _strips(frame: Frame, points: Sequence[Point]) -> list[str]:
    """Draw edits applied within the budget, and the share of rollouts that were not needed."""
    most = max((max(p["lr"] or 0, p["applied"] or 0) for p in points), default=0)
    top = frame.height + GAP
    bar = min(14.0, max(1.0, 0.6 * (frame.width - LEFT - RIGHT) / max(len(points), 1)))
    parts = [_label("edits", top), _label("skips", top + STRIP + GAP)]
    outlines: list[str] = []
    fills: list[str] = []
    saved: list[str] = []
    for point in points:
        x = frame.x(point["step"]) - bar / 2
        for amount, paths in ((point["lr"], outlines), (point["applied"], fills)):
            tall = STRIP * (amount or 0) / max(most, 1)
            if tall:
                paths.append(_bar(x, top + STRIP, bar, tall))
        if point["saved"]:
            tall = STRIP * point["saved"] / point["total"]
            saved.append(_bar(x, top + 2 * STRIP + GAP, bar, tall))
    for kind, paths in (("budget", outlines), ("applied", fills), ("saved", saved)):
        parts.append(f'<path class="{kind}" d="{"".join(paths)}"/>')
    for floor in (top + STRIP, top + 2 * STRIP + GAP):
        parts.append(f'<path class="grid" d="M{LEFT:g} {n(floor)}H{n(frame.width - RIGHT)}"/>')
    return parts


def _bar(x: float, floor: float, wide: float, tall: float) -> str:
    return f"M{n(x)} {n(floor)}v{n(-tall)}h{n(wide)}v{n(tall)}z"


def _label(text: str, top: float) -> str:
    return (
        f'<text class="axis" x="{LEFT - 8:g}" y="{n(top + STRIP / 2 + 4)}" '
        f'text-anchor="end">{text}</text>'
    )


def told_step(point: Point) -> str:
    """Return a step in words."""
    words = f"Step {point['step']}: {str(point['verdict']).replace('_', ' ')}"
    if point["after"] is not None:
        words += f", {point['before']:.3f} to {point['after']:.3f}"
    elif point["after_max"] is not None:
        words += f", {point['before']:.3f} to at most {point['after_max']:.3f}"
    return words


def _told(points: Sequence[Point], start: float | None) -> str:
    if not points:
        return "No step yet"
    accepted = sum(point["verdict"] == "accepted" for point in points)
    words = f"Score on the selection split over {len(points)} steps, {accepted} accepted"
    best = points[-1]["best"]
    return words if start is None or best is None else f"{words}: {start:.3f} to {best:.3f}"

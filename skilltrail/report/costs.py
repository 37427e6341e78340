"""Score against cost: what each document that was judged in full scored, and what the agent
used for it. Drawn where the gate counts cost (rule `pareto`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

from skilltrail.core.score import Cost
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.outcomes import GateJudged, RolloutsScored
from skilltrail.history.log.types.parts import Purpose, RowScored, Source
from skilltrail.report.charts import SHAPES
from skilltrail.report.svg import LEFT, RIGHT, TOP, Frame, grid, n, svg
from skilltrail.report.tables import baseline_mean

_WIDTH, _HEIGHT = 660.0, 250.0


@dataclass(frozen=True)
class Priced:
    """One document on the selection split; `tokens` and `calls` are means over its rollouts."""

    name: str
    verdict: str
    score: float
    tokens: float
    calls: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.score:.3f}, {self.tokens:.0f} tokens, {self.calls:.1f} calls"
        )


def priced(training: Sequence[Event]) -> list[Priced]:
    """Return the seed skill and each candidate judged in full, in the order of the log; those
    whose tokens no provider told are left out."""
    found: list[Priced] = []
    rows: Sequence[RowScored] = ()
    for event in training:
        said = event.said
        if isinstance(said, RolloutsScored):
            rows = said.items
            baseline = said.purpose is Purpose.BASELINE
            score = baseline_mean(training) if baseline else None
            found += _priced("seed", "seed", score, rows)
        elif isinstance(said, GateJudged) and said.split is None:
            found += _priced(_name(said), said.verdict.value, said.after, rows)
    return found


def _name(said: GateJudged) -> str:
    apart = said.source is not Source.STEP
    return f"step {said.step}" + (f" ({said.source.replace('_', ' ')})" if apart else "")


def _priced(
    name: str, verdict: str, score: float | None, rows: Sequence[RowScored]
) -> list[Priced]:
    costs = [Cost(row.cost.tokens, row.cost.calls) for row in rows if row.cost is not None]
    total = Cost.total(costs)
    if score is None or not costs or total.tokens is None:
        return []
    return [Priced(name, verdict, score, total.tokens / len(costs), total.calls / len(costs))]


def score_against_cost(training: Sequence[Event]) -> str:
    """Return the chart of a run; "" where its gate did not count cost."""
    points = priced(training)
    return cost_chart(points) if points else ""


def cost_chart(points: Sequence[Priced]) -> str:
    """Return the chart: tokens a rollout from left to right, the score upwards."""
    scores = [point.score for point in points]
    low, high = math.floor(min(scores) * 10) / 10, math.ceil(max(scores) * 10) / 10
    frame = Frame(_WIDTH, _HEIGHT, max(0.0, min(low, high - 0.2)), max(high, 0.2), 1)
    least, most = min(p.tokens for p in points), max(p.tokens for p in points)
    wide = _WIDTH - LEFT - RIGHT - 40

    def x(tokens: float) -> float:
        return LEFT + 20 + (wide * (tokens - least) / (most - least) if most > least else 0.0)

    marks = [
        f'<g class="{_kind(point)}" transform="translate({n(x(point.tokens))} '
        f'{n(frame.y(point.score))})"><title>{escape(point)}</title>'
        f'<path d="{SHAPES.get(point.verdict, SHAPES["accepted"])}"/></g>'
        for point in points
    ]
    ends = [
        f'<text class="axis" x="{n(x(tokens))}" y="{n(_HEIGHT + 18)}" '
        f'text-anchor="middle">{tokens:.0f}</text>'
        for tokens in dict.fromkeys((least, most))
    ]
    axis = f'<text class="axis" x="0" y="{n(TOP - 8)}">score</text>'
    name = f'<text class="axis" x="0" y="{n(_HEIGHT + 18)}">tokens</text>'
    told = f"Score against tokens a rollout: {'; '.join(map(str, points))}"
    parts = [*grid(frame), axis, name, *ends, *marks]
    return svg(_WIDTH, _HEIGHT + 24, told, parts, role="img")


def _kind(point: Priced) -> str:
    return "seed" if point.verdict == "seed" else point.verdict

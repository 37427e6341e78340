"""The arena as Markdown, CSV and a chart; each number names what it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skilltrail.core.tokens import TAG as TOKENS
from skilltrail.history.ask.arena import Arena, Entry, Interval
from skilltrail.report.charts import curves_chart
from skilltrail.report.flat import csv_text
from skilltrail.report.svg import standalone

COLUMNS = (
    "method", "held-out gain (95 %)", "best score", "calls", "calls to best", "tokens to best",
    "USD to best", "size", "train s", "ended by",
)  # fmt: skip
CSV = (
    "method", "seed", "run", "ended_by", "stop_calls", "calls", "calls_to_best", "tokens",
    "tokens_to_best", "usd", "usd_to_best", "selection_seed", "selection_best", "test_gain",
    "size_tokens", "train_s",
)  # fmt: skip


def markdown(arena: Arena, command: str, about: str, chart: str, missing: Sequence[str]) -> str:
    """Return the page.

    Args:
        command: what makes it again.
        about: on which data and model, in a sentence or two.
        chart: the chart's file, seen from the page.
        missing: runs that are not there, and so in no number.
    """
    told = [
        f"# The arena\n\n{about} Made by\n\n    {command}\n",
        _table(COLUMNS, [_row(arena, method) for method in arena.methods]),
        _notes(arena),
        "## In pairs\n\nHeld-out score of the row's method minus the column's, paired by item "
        "and seed, with its 95 % interval; bold where it leaves out 0.\n",
        _table(("", *arena.methods), [_pairs(arena, one) for one in arena.methods]),
        f"## Gain by calls\n\n![Best selection score by target calls]({chart})\n\n"
        "The best skill's score on the selection split, mean over seeds: the split that chose "
        "it, so it looks better there than it is.\n",
    ]
    if missing:
        told.append(f"Not there, and in no number: {', '.join(missing)}.\n")
    return "\n".join(told)


def table_rows(arena: Arena) -> list[tuple[str, ...]]:
    """Return the table's rows, for a terminal."""
    return [_row(arena, method) for method in arena.methods]


def _row(arena: Arena, method: str) -> tuple[str, ...]:
    some = arena.of(method)
    last = [entry.curve[-1] for entry in some if entry.curve]
    return (
        method,
        _interval(arena.gains[method]),
        _mean([point.mean for point in last], "{:.3f}"),
        _mean([entry.spent for entry in some]),
        _mean([point.calls for point in last]),
        _mean([entry.best_tokens for entry in some]),
        _mean([entry.best_usd for entry in some], "{:.4g}"),
        _mean([point.tokens for point in last]),
        _mean([entry.wall_s for entry in some]),
        ", ".join(f"{why} {n}×" for why, n in _tally(some)),
    )


def _tally(entries: Sequence[Entry]) -> list[tuple[str, int]]:
    whys = [entry.why for entry in entries]
    return [(why, whys.count(why)) for why in dict.fromkeys(whys)]


def _mean(values: Sequence[float | None], form: str = "{:.0f}") -> str:
    known = [value for value in values if value is not None]
    return form.format(sum(known) / len(known)) if known and len(known) == len(values) else "–"


def _interval(found: Interval | None) -> str:
    if found is None:
        return "–"
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def _pairs(arena: Arena, one: str) -> tuple[str, ...]:
    cells = [one]
    for two in arena.methods:
        found = None if one == two else arena.contrasts[one, two]
        words = "" if one == two else _interval(found)
        clear = found is not None and (found.low > 0 or found.high < 0)
        cells.append(f"**{words}**" if clear else words)
    return tuple(cells)


def _notes(arena: Arena) -> str:
    gains = [gain for gain in arena.gains.values() if gain is not None]
    items = max((gain.items for gain in gains), default=0)
    seeds = max((len(arena.of(method)) for method in arena.methods), default=0)
    starts = {f"{entry.curve[0].mean:.3f}" for entry in arena.entries if entry.curve}
    return (
        f"Gain: best skill minus seed skill over {items} test items, up to {seeds} seeds "
        "averaged within an item. Other columns are means over seeds: best score on the "
        f"selection split (the seed skill has {', '.join(sorted(starts))} there), target calls "
        "of training and those until the best skill was accepted, recorded ones counted as if "
        "made; tokens read and written by the target until then, and their price; the "
        f"document's size in tokens ({TOKENS}); seconds of training as it went here, where a "
        "recorded call takes none.\n"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_csv(arena: Arena) -> str:
    """Return a row per run."""
    rows = []
    for entry in arena.entries:
        first, last = (entry.curve[0], entry.curve[-1]) if entry.curve else (None, None)
        values = (
            entry.method,
            entry.seed,
            entry.name,
            entry.why,
            entry.limit,
            entry.calls,
            None if last is None else last.calls,
            entry.tokens,
            entry.best_tokens,
            entry.usd,
            entry.best_usd,
            None if first is None else first.mean,
            None if last is None else last.mean,
            None if entry.test is None else entry.test.gain,
            None if last is None else last.tokens,
            entry.wall_s,
        )
        rows.append(dict(zip(CSV, values, strict=True)))
    return csv_text(rows, CSV)


def chart(arena: Arena) -> str:
    """Return the best selection score by calls, a curve per method, as an SVG file."""
    curves = {method: _averaged(arena.of(method)) for method in arena.methods}
    return standalone(curves_chart({n: c for n, c in curves.items() if c}, "calls"))


def _averaged(entries: Sequence[Entry]) -> list[tuple[int, float]]:
    """Return (calls, mean over seeds), from where every seed's first skill is measured."""
    known = [entry for entry in entries if entry.curve]
    if not known:
        return []
    start = max(entry.curve[0].calls for entry in known)
    places = {point.calls for entry in known for point in entry.curve}
    places |= {min(entry.spent for entry in known)}
    at = _at(known)
    return [(place, at(place)) for place in sorted(places) if place >= start]


def _at(entries: Sequence[Entry]) -> Callable[[int], float]:
    def mean(calls: int) -> float:
        reached = [[p.mean for p in e.curve if p.calls <= calls][-1] for e in entries]
        return sum(reached) / len(reached)

    return mean

"""The page: one self-contained HTML file with the score curve, the skill's versions, a table.

No script, no network, deterministic bytes for the same logs. Everything that comes from items,
skills or models is escaped text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from reports.charts import score_chart
from stages.core.diffs import unified_diff
from stages.history.events import Event
from stages.history.replay import versions

STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --bad: #b35900; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .7rem; white-space: pre-wrap; }
ins { color: var(--good); text-decoration: none; } del { color: var(--bad); text-decoration: none; }
svg { width: 100%; height: auto; }
"""  # noqa: E501


def page(
    training: Sequence[Event],
    evaluation: Sequence[Event],
    numbers: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """Return the whole page."""
    started = training[0].data
    title = f"Skilltrail: {started['env']}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f"<p>{len(started['train'])} train and {len(started['selection'])} selection items; "
            f"run {escape(training[-1].id[:12])}.</p>",
            _table(numbers),
            "<h2>Score on the selection split, by step</h2>",
            score_chart(rows),
            "<h2>How the skill came about</h2>",
            _versions(training),
            "</body></html>",
            "",
        ]
    )


def _table(numbers: Mapping[str, Any]) -> str:
    body = [_row("selection", numbers["selection"])]
    if "test" in numbers:
        body.append(_row("test", numbers["test"]))
    else:
        body.append("<tr><td>test</td><td colspan=3>sealed</td></tr>")
    return (
        "<table><thead><tr><th>split</th><th>seed skill</th><th>best skill</th>"
        "<th>gain (95 % interval)</th></tr></thead><tbody>" + "".join(body) + "</tbody></table>"
    )


def _row(name: str, means: Mapping[str, Any]) -> str:
    gain = "measured on items that chose it"
    if "gain" in means:
        gain = f"{means['gain']:+.3f} ({means['gain_low']:+.3f} to {means['gain_high']:+.3f})"
    return (
        f"<tr><td>{escape(name)}</td><td>{means['seed']:.3f}</td>"
        f"<td>{means['best']:.3f}</td><td>{escape(gain)}</td></tr>"
    )


def _versions(training: Sequence[Event]) -> str:
    found = versions(training)
    parts = [f"<h3>v0, the seed</h3><pre>{escape(found[0].text)}</pre>"]
    for before, after in zip(found, found[1:], strict=False):
        step = after.event.data.get("step")
        diff = unified_diff(before.text, after.text)
        lines = "\n".join(_marked(line) for line in diff.split("\n"))
        parts.append(f"<h3>v{after.number}, step {step}</h3><pre>{lines}</pre>")
    return "".join(parts)


def _marked(line: str) -> str:
    text = escape(line)
    if line.startswith("+") and not line.startswith("+++"):
        return f"<ins>{text}</ins>"
    if line.startswith("-") and not line.startswith("---"):
        return f"<del>{text}</del>"
    return text

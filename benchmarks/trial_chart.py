"""Draw the best selection score against calls, one curve a log, in one picture (SVG).

    python -m benchmarks.trial_chart OUT.svg NAME=EVENTS.jsonl...

A call is a rollout that no earlier event of the log asked for: what the run costs from an empty
store, without the evaluation on the test split. `python -m benchmarks.trial --into FOLDER`
keeps the logs, `--rev COMMIT` makes those of another version of the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skilltrail.report.charts import curves_chart
from skilltrail.report.svg import standalone


def curve_of(events: Iterable[dict[str, Any]]) -> list[tuple[int, float]]:
    """Return (calls so far, best selection score so far) at the baseline and each verdict."""
    asked: set[str] = set()
    curve: list[tuple[int, float]] = []
    for event in events:
        data = event["data"]
        if event["type"] == "rollouts.scored":
            asked.update(row["key"] for row in data["items"])
            if data["purpose"] == "baseline":
                scores = [row["hard"] for row in data["items"]]
                curve.append((len(asked), sum(scores) / len(scores)))
        elif event["type"] == "gate.judged":
            after = data["after"] if data["verdict"] == "accepted" else 0.0
            curve.append((len(asked), max(curve[-1][1], after)))
    return curve


def main(args: list[str]) -> None:
    curves = {}
    for named in args[1:]:
        name, _, path = named.partition("=")
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        curves[name] = curve_of(map(json.loads, lines))
    text = standalone(curves_chart(curves)).replace(">step</text>", ">calls</text>")
    Path(args[0]).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

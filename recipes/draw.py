"""Draw the curves of several experiments in one picture (SVG), from git alone.

    python recipes/draw.py OUT.svg EXPERIMENT...

Each curve is the best selection score by step, column `best` of `reports/out/curve.tsv`.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

from skilltrail.report.charts import curves_chart
from skilltrail.report.svg import standalone

Curve = list[tuple[int, float]]


def git(*args: str) -> str:
    """Return what a git command says."""
    done = subprocess.run(["git", *args], capture_output=True, check=True, encoding="utf-8")
    return done.stdout


def curve_of(experiment: str) -> Curve:
    """Return (step, best score so far) of an experiment, from its committed table."""
    refs = git("for-each-ref", "--format=%(refname)", "refs/exps").split()
    ref = next((ref for ref in refs if ref.endswith(f"/{experiment}")), experiment)
    text = git("show", f"{ref}:reports/out/curve.tsv")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return [(int(row["step"]), float(row["best"])) for row in rows]


def main(args: list[str]) -> None:
    out, names = Path(args[0]), args[1:]
    out.parent.mkdir(parents=True, exist_ok=True)
    text = standalone(curves_chart({name: curve_of(name) for name in names}))
    out.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

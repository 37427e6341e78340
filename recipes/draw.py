"""Draw the curves of several experiments in one picture (SVG), from git alone.

    python recipes/draw.py OUT.svg EXPERIMENT...

Each curve is the best selection score by step, column `best` of `reports/out/curve.tsv`.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT, EDGE = 720, 360, 48
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
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


def picture(curves: dict[str, Curve]) -> str:
    """Return the SVG: step to the right, score from 0 to 1 upwards.

    Curves that coincide lie a little apart, so that each is seen.
    """
    steps = max(step for curve in curves.values() for step, _ in curve)
    parts = [_axes(steps)]
    for number, (name, curve) in enumerate(curves.items()):
        colour, shift = COLOURS[number % len(COLOURS)], 2 * number
        points = " ".join(
            f"{_x(step, steps):.1f},{_y(score) - shift:.1f}" for step, score in curve
        )
        dash = "" if number == 0 else f' stroke-dasharray="{4 + 4 * number} 4"'
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"'
            f"{dash}/>"
        )
        end = f"{escape(name)} {curve[-1][1]:.3f}"
        parts.append(
            f'<text x="{WIDTH - 200}" y="{HEIGHT - 130 + 18 * number}"'
            f' fill="{colour}">{end}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="13">'
        '<rect width="100%" height="100%" fill="#fff"/>' + "".join(parts) + "</svg>\n"
    )


def _axes(steps: int) -> str:
    lines = [
        f'<text x="{EDGE - 8}" y="{_y(share) + 4:.1f}" text-anchor="end">{share:.1f}</text>'
        f'<path d="M{EDGE} {_y(share):.1f}H{WIDTH - EDGE}" stroke="#ddd"/>'
        for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    lines += [
        f'<text x="{_x(step, steps):.1f}" y="{HEIGHT - 26}" text-anchor="middle">{step}</text>'
        for step in range(1, steps + 1)
    ]
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">step</text>')
    lines.append(f'<text x="{EDGE}" y="22">best score on the selection split</text>')
    return "".join(lines)


def _x(step: int, steps: int) -> float:
    return EDGE + (WIDTH - 2 * EDGE) * (step - 1) / max(steps - 1, 1)


def _y(score: float) -> float:
    return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * score


def main(args: list[str]) -> None:
    out, names = Path(args[0]), args[1:]
    out.parent.mkdir(parents=True, exist_ok=True)
    text = picture({name: curve_of(name) for name in names})
    out.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The `report` stage: tables, curves and the page, from the two logs alone.

in    skills/events.jsonl, reports/out/evaluation.jsonl, data/rollouts, data/splits
out   reports/out/metrics.json, reports/out/curve.tsv, reports/out/index.html
"""

from __future__ import annotations

from skilltrail.report.build import build
from skilltrail.runtime.command import run_stage
from skilltrail.store.place import find_place


async def main() -> None:
    """Build all outputs in the project that the stage runs in."""
    place = find_place()
    build(place.workspace, place.root, place.experiment)


if __name__ == "__main__":
    run_stage(main)

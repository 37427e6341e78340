"""The `report` stage: metrics.json, curve.tsv and the page, from the two logs."""

from __future__ import annotations

from skilltrail.report.build import main
from skilltrail.runtime.command import run_stage

if __name__ == "__main__":
    run_stage(main)

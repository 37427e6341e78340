"""The `evaluate` stage: open the test split once and measure seed, best and last skill."""

from __future__ import annotations

from skilltrail.runtime.command import run_stage
from skilltrail.runtime.evaluation import main

if __name__ == "__main__":
    run_stage(main)

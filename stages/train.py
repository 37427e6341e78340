"""The `train` stage: train on the frozen splits; the loop is `skilltrail/method/loop.py`."""

from __future__ import annotations

from skilltrail.runtime.command import run_stage
from skilltrail.runtime.training import main

if __name__ == "__main__":
    run_stage(main)

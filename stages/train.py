"""The `train` stage: train the skill document on the frozen splits.

    in    data/splits/{train,selection}.jsonl, the seed skill, data/rollouts/train (if any)
    out   skills/events.jsonl, skills/best_skill.md, data/rollouts/train

The method itself is `skilltrail/method/loop.py`, or the one that `method` names
(`skilltrail/methods/`). It always starts from the beginning; what the
store holds costs nothing, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

from skilltrail.methods.registry import train
from skilltrail.runtime.command import run_stage
from skilltrail.runtime.session import open_session
from skilltrail.runtime.training import open_training


async def main() -> None:
    """Train, then write the outputs."""
    async with open_session("train") as session, open_training(session) as training:
        state = await train(training.run)
        training.write_outputs(state)


if __name__ == "__main__":
    run_stage(main)

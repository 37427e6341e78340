"""The `evaluate` stage: open the test split once and measure seed, best and last skill on it.

    in    skills/events.jsonl, data/splits, data/rollouts/test (if any)
    out   reports/out/evaluation.jsonl, data/rollouts/test

`evaluate.skills` and `evaluate.split` choose otherwise, `evaluate.targets` names further
models. `evaluate.enabled: false` keeps the test split sealed. How skills are measured is
`skilltrail/runtime/evaluation`.
"""

from __future__ import annotations

from skilltrail.core.layout import EVENTS
from skilltrail.history.log.log import read_log
from skilltrail.runtime.command import run_stage
from skilltrail.runtime.evaluation import asked_by_params, evaluate, write_outputs
from skilltrail.runtime.outputs import TEST_ROLLOUTS
from skilltrail.runtime.session import open_session
from skilltrail.store.exports import import_shards


async def main() -> None:
    """Measure the skills of the training log, then write the outputs."""
    async with open_session("evaluate") as session:
        workspace = session.place.workspace
        training = read_log(workspace / EVENTS)
        session.meter.belongs_to(training[-1].id)
        if session.params.evaluate.enabled:
            import_shards(session.store, workspace / TEST_ROLLOUTS)
            events = await evaluate(session, asked_by_params(session, training))
        else:
            events = []
        write_outputs(session, events)


if __name__ == "__main__":
    run_stage(main)

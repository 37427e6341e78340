"""The log of one evaluation: kept beside the live state, committed on the run's side branch.

    .skilltrail/evaluations/RUN/NNNN-DIGEST.jsonl

RUN is the first digits of the last training event's id, NNNN counts evaluations in the order
they began, DIGEST tells them apart. The pipeline's is copied to the workspace at its end; those
that a person asks for stay here and among the commits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skilltrail.core.canon import digest, text_digest
from skilltrail.core.item import Item
from skilltrail.history.ask.evaluations import LOGS, SEALED, WITHOUT_RUN, evaluations, openings
from skilltrail.history.ask.sources import Project
from skilltrail.history.git.branch import EvaluationBranch
from skilltrail.history.git.opening import open_side_branch
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.history.log.recorder import Recorder
from skilltrail.params.knob import result_values
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.evaluation.named_skill import NamedSkill
from skilltrail.runtime.session import Session
from skilltrail.store.lock import run_lock

RUN_DIGITS = 16


@dataclass(frozen=True)
class EvaluationAsked:
    """What is to be measured.

    Attributes:
        training: the log that the evaluation goes on from; empty where there is none.
        targets: further targets by name.
        opened_before: how many openings of the test split stood on record for the run when a
            person asked for this one; None in the pipeline.
    """

    training: Sequence[Event]
    split: str
    items: Sequence[Item]
    skills: Sequence[NamedSkill]
    targets: Mapping[str, RoleOptions] = field(default_factory=dict)
    opened_before: int | None = None

    @property
    def unseals(self) -> bool:
        return self.split in SEALED


@asynccontextmanager
async def open_log(session: Session, asked: EvaluationAsked) -> AsyncIterator[Recorder]:
    """Open the log of an evaluation; one process at a time has it."""
    training = asked.training
    last = training[-1] if training else None
    path = _path(session.place.root, last, _digest(session, asked))

    def side(git: Git, label: str) -> EvaluationBranch:
        return EvaluationBranch(git, label, training, apart=asked.opened_before is not None)

    async with run_lock(path.with_suffix(".lock"), session.ops):
        place = session.place
        projection = open_side_branch(place.root, place.experiment, session.report, side)
        recorder = Recorder(path, after=last, projection=projection, report=session.report)
        try:
            yield recorder
        finally:
            recorder.close()


def openings_before(session: Session, training: Sequence[Event]) -> int:
    """Return how many openings of the test split are on record for a run."""
    here = Project(session.place.workspace, session.place.root)
    return openings(evaluations(here), training[-1].id if training else None).run


def _path(root: Path, last: Event | None, name: str) -> Path:
    folder = root / LOGS / (WITHOUT_RUN if last is None else last.id[:RUN_DIGITS])
    existing = sorted(folder.glob("*.jsonl"))
    for path in existing:
        if path.stem.endswith(f"-{name}"):
            return path
    return folder / f"{len(existing) + 1:04}-{name}.jsonl"


def _digest(session: Session, asked: EvaluationAsked) -> str:
    """Return the digest (12 hex digits) of what tells an evaluation of one run from others."""
    rule = session.params.gate
    return digest(
        "evaluation/1",
        {
            "split": asked.split,
            "items": [item.content_digest for item in asked.items],
            "skills": [[skill.name, text_digest(skill.text)] for skill in asked.skills],
            "target": dict(session.target.identity),
            "targets": {n: result_values(role) for n, role in asked.targets.items()},
            "judge": None if session.judge is None else session.judge.identity,
            "metric": [rule.metric, rule.mixed_weight],
            "opened_before": asked.opened_before,
        },
    )[:12]

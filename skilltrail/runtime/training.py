"""Opening a training run on a session, and writing what it leaves.

The live log and the store lie in `.skilltrail/` of the main repository, so that a killed
experiment loses nothing; the outputs are written at the end. The page is `stages/train.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skilltrail.core.canon import digest, text_digest
from skilltrail.core.errors import SkillError
from skilltrail.core.files import write_atomic
from skilltrail.core.item import Item
from skilltrail.core.layout import BEST_SKILL, EVENTS
from skilltrail.data.splits import read_split
from skilltrail.history.git.opening import open_side_branch
from skilltrail.history.log.recorder import Recorder
from skilltrail.method.calls import limited
from skilltrail.method.run import Run, State
from skilltrail.optimizers.registry import open_optimizer
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.params.read import run_digest_params
from skilltrail.runtime.call_estimate import Size, most_rollouts
from skilltrail.runtime.code_identity import code_digest, own_code
from skilltrail.runtime.console import say
from skilltrail.runtime.outputs import TRAIN_ROLLOUTS, facts_named, keep_hand_edits
from skilltrail.runtime.progress import FILE as PROGRESS
from skilltrail.runtime.session import Session
from skilltrail.skill.document import BOM, frontmatter_text
from skilltrail.skill.folder import read_folder
from skilltrail.skill.skill_file import refuse_bare_cr
from skilltrail.skill.structure import structure_faults
from skilltrail.store.exports import export_shards, import_shards
from skilltrail.store.lock import run_lock
from skilltrail.store.owner import Owner

LEDGER = "spent.jsonl"  # beside the live log, see `skilltrail.runtime.spending`


@dataclass(frozen=True)
class Training:
    """A run that is open: its live log, and what the loop works with."""

    session: Session
    recorder: Recorder
    run: Run

    def write_outputs(self, state: State) -> None:
        """Write what DVC tracks: the log, the best skill, the rollouts that the run used."""
        workspace, events = self.session.place.workspace, self.recorder.events
        self.recorder.finish()
        self.session.meter.belongs_to(events[-1].id)
        export_shards(
            self.session.store,
            facts_named(events, self.recorder.path.parent.name),
            workspace / TRAIN_ROLLOUTS,
        )
        write_atomic(workspace / BEST_SKILL, state.best_skill)
        write_atomic(workspace / EVENTS, self.recorder.path.read_text(encoding="utf-8"))


@asynccontextmanager
async def open_training(session: Session) -> AsyncIterator[Training]:
    """Open the run that params, splits and seed skill determine; one process at a time has it.

    Raises:
        SkilltrailError: a split or the seed skill cannot be read, or `skills/best_skill.md`
            holds text that no run has written.
    """
    workspace = session.place.workspace
    items = read_split(workspace, "train"), read_split(workspace, "selection")
    seed_skill = read_seed_skill(workspace / seed_skill_path(session.params))
    keep_hand_edits(session.place)
    import_shards(session.store, workspace / TRAIN_ROLLOUTS)
    folder = session.place.state / "runs" / run_name(session, *items, seed_skill)
    async with run_lock(folder / "lock", session.ops, waiting=say_who):
        side = open_side_branch(session.place.root, session.place.experiment, session.report)
        session.accounts.keep_in(folder / LEDGER)
        session.progress.keep_in(folder / PROGRESS)
        recorder = Recorder(folder / "events.jsonl", projection=side, report=session.report)
        try:
            async with run_of(session, recorder, *items, seed_skill) as run:
                yield Training(session, recorder, run)
        finally:
            recorder.close()


@asynccontextmanager
async def run_of(
    session: Session,
    recorder: Recorder,
    train_items: list[Item],
    selection_items: list[Item],
    seed_skill: str,
) -> AsyncIterator[Run]:
    """Open the optimizer and yield all that the loop works with."""
    params = session.params
    size = Size(len(train_items), len(selection_items), test=0)
    endless = replace(params, stop=replace(params.stop, calls=0))
    session.progress.expect(
        most_rollouts(endless, size),
        most=params.stop.calls,
        gate_items=size.selection * len(params.target_roles),
        repeats=params.gate.repeats,
    )
    account = session.accounts.of("optimizer")
    optimizer = open_optimizer(params, session.env, session.store, session.count_reply, account)
    try:
        yield Run(
            params=params,
            train=tuple(train_items),
            selection=tuple(selection_items),
            seed_skill=seed_skill,
            rollouts=limited(
                session.rollouts(gaps=recorder.path.parent.name), params.stop.calls
            ),
            optimizer=optimizer,
            history=recorder,
            parent=params.skill.parent,
            say=session.progress.step,
        )
    finally:
        await optimizer.close()


def say_who(holder: Owner | None) -> None:
    """Tell a person why this run waits: the same run is on elsewhere."""
    by = "" if holder is None else f" ({holder})"
    say(
        f"train: the same run is running in another process{by}; waiting to reuse what it makes"
    )


def read_seed_skill(path: Path) -> str:
    """Return the text of the seed skill, checked as every candidate is; a folder's as one.

    Raises:
        SkillError: there is no such file, or it is no well-formed document.
    """
    if path.is_dir():
        text = read_folder(path)
        faults = structure_faults(text)
        if faults:
            raise SkillError(f"The seed skill {path.name}", "; ".join(faults), "Fix the files")
        return text
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise SkillError(
            f"The seed skill {path.name}",
            f"no file at {path}",
            "Create it (an empty file is a valid seed) or set `skill.seed` in params.yaml",
        ) from error
    except UnicodeDecodeError as error:
        raise SkillError(
            f"The seed skill {path.name}", f"not UTF-8 ({error})", "Save it as UTF-8"
        ) from error
    except (OSError, ValueError) as error:
        raise SkillError(
            f"The seed skill {path.name}", str(error), "Name a readable file in `skill.seed`"
        ) from error
    refuse_bare_cr(text)
    if not frontmatter_text(text):
        # Without a frontmatter to keep as it is, a document is written in one way.
        text = text.removeprefix(BOM).replace("\r\n", "\n")
    faults = structure_faults(text)
    if faults:
        raise SkillError(f"The seed skill {path.name}", "; ".join(faults), "Fix the file")
    return text


def run_name(
    session: Session, train_items: list[Item], selection_items: list[Item], seed_skill: str
) -> str:
    """Return the digest (16 hex digits) of all that determines a run's events."""
    judge = None if session.judge is None else session.judge.identity
    target = dict(session.target.identity)
    return name_of(session.params, target, judge, train_items, selection_items, seed_skill)


def name_of(
    params: Params,
    target: Mapping[str, Any],
    judge: Mapping[str, Any] | None,
    train_items: Sequence[Item],
    selection_items: Sequence[Item],
    seed_skill: str,
) -> str:
    """Return a run's name; `target` and `judge` are identities."""
    return digest(
        "run/1",
        {
            "params": run_digest_params(params),
            "train": [[item.id, item.content_digest] for item in train_items],
            "selection": [[item.id, item.content_digest] for item in selection_items],
            "seed_skill": text_digest(seed_skill),
            "target": dict(target),
            "judge": judge,
            "code": code_digest(),
            **own_code(),
        },
    )[:16]

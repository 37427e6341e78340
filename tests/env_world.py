"""What tests of environments share: the project's own items, shared data, scripted models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.data.find import NOTHING, find_source
from skilltrail.data.load import Loaded, read_items
from skilltrail.envs.contract.fakes import FakeModel
from skilltrail.envs.protocol import Environment, Where
from skilltrail.envs.registry import environment_class
from skilltrail.models.protocol import Reply, Request

ROOT = Path(__file__).resolve().parents[1]
OURS = ("docvqa", "korqa", "livemath", "officeqa", "qa", "searchqa")
WHERE = Where("items.jsonl", 3)


def env_of(name: str, **params: Any) -> Environment:
    """Return an environment with some params set."""
    made = environment_class(name)
    environment: Environment = made(made.Params(**params))
    return environment


def own_items(name: str, root: Path = ROOT, **params: Any) -> list[Loaded]:
    """Return the items of `data/<name>`; the working directory must be `root`."""
    source = find_source(root, name, NOTHING, NOTHING)
    return read_items(source, env_of(name, **params), root).items


def shared(*parts: str) -> Path:
    """Return a path of the shared real data; the test is skipped where it is absent."""
    base = Path(os.environ.get("SKILLTRAIL_SHARED", ROOT.parent / "shared"))
    path = base.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"needs the shared data {'/'.join(parts)} (see SKILLTRAIL_SHARED)")
    return path


def scripted(replies: Sequence[str | Reply], **about: Any) -> FakeModel:
    """Return a model that gives these replies in order."""
    made = [Reply(one) if isinstance(one, str) else one for one in replies]
    return FakeModel(answer=lambda turn: made[turn], **about)


def roll(
    environment: Environment, item: Item, model: FakeModel, skill: str = "Be brief."
) -> Trajectory:
    """Return the trajectory of one rollout."""
    return asyncio.run(environment.rollout(item, skill, model))


def record(env: str, **fields: Any) -> Mapping[str, Any]:
    """Return a sound record of an environment, with fields replaced; None takes one away."""
    return {
        key: value for key, value in {**RECORDS[env], **fields}.items() if value is not None
    }


RECORDS: Mapping[str, Mapping[str, Any]] = {
    "searchqa": {"id": "1", "question": "q", "context": "c of x", "answers": ["x"]},
    "korqa": {"id": "1", "question": "q", "context": "c of x", "answers": ["x"]},
    "qa": {"id": "1", "question": "q", "answers": ["x"]},
    "docvqa": {
        "questionId": 1,
        "question": "q",
        "image": "documents/own01_1.png",
        "ucsf_document_id": "own01",
        "answers": ["x"],
    },
    "officeqa": {
        "uid": "U1",
        "question": "q",
        "answer": "3",
        "source_files": "own_bulletin_1951.txt",
        "source_docs": "https://x.invalid/?page=2",
    },
    "livemath": {
        "month": "202601",
        "no": 4,
        "mcq": {
            "question": "q",
            "correct_choice": {"label": "A", "text": "right"},
            "choices": [{"label": label, "text": f"wrong {label}"} for label in "BCDE"],
            "meta": {"weaker_true_label": "C"},
        },
    },
}

Answer = Callable[[Request], Reply]

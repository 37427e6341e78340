"""Verification for tests: of a whole project, and of a log whose surroundings a test gives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from toy_world import ToyParams

from skilltrail.core.item import Item
from skilltrail.envs.protocol import Environment
from skilltrail.history.log.events import Event, make_event
from skilltrail.params.read import params_of
from skilltrail.report.build import drawn
from skilltrail.store.place import Place
from skilltrail.verify.evidence import Evidence
from skilltrail.verify.recorded import RecordedFacts
from skilltrail.verify.result import Verification
from skilltrail.verify.table import verify

# A model that is reached by its recorded replies alone, and can do nothing but complete.
TARGET = {
    "backend": "openai", "api": "completions", "model": "toy", "provider": "toy",
    "base_url": "http://127.0.0.1:9", "abilities": [],
}  # fmt: skip


def verified(folder: Path, **options: Any) -> Verification:
    """Verify the project in `folder`."""
    return verify(Evidence(Place(folder, folder), drawn, **options))


def evidence_of(
    folder: Path,
    events: Sequence[Event],
    env: Environment,
    items: Iterable[Item] = (),
    **params: Any,
) -> Evidence:
    """Return the evidence on a log of the toy world, with the store in `folder`."""
    data = b"".join(event.line + b"\n" for event in events)
    evidence = Evidence(Place(folder, folder), drawn, named=("log", data))
    facts = RecordedFacts(folder, ())
    values = {"env": "toy", "target": TARGET} | params
    vars(evidence).update(
        env=env,
        params=params_of(values, {"toy": ToyParams}),
        items={item.content_digest: item for item in items},
        facts=facts,
    )
    return evidence


def told_again(
    events: Sequence[Event], index: int, change: Callable[[dict[str, Any]], None]
) -> list[Event]:
    """Return the events with one's data changed and every hash after it made right."""
    made = list(events[:index])
    for event in events[index:]:
        data = copy.deepcopy(dict(event.data))
        if event is events[index]:
            change(data)
        prev = made[-1].id if made else event.prev
        made.append(make_event(event.type, data, seq=event.seq, prev=prev))
    return made

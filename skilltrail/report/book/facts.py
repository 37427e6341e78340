"""What was said: trajectories and optimizer replies, read from exports of the store.

An export is a folder of `shard*.jsonl` (see `store.exports`). A folder that is not here
(a fresh clone before `dvc pull`) leaves the page without trajectories, and the page says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skilltrail.core.canon import canonical, loaded
from skilltrail.core.errors import FaultError
from skilltrail.core.item import Item
from skilltrail.data.splits import FOLDER as SPLITS_FOLDER
from skilltrail.history.ask.evaluations import Evaluation, evaluations
from skilltrail.history.ask.served import drift, served_in
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.erasure import items_listed
from skilltrail.history.log.events import Event
from skilltrail.runtime.outputs import TEST_ROLLOUTS, TRAIN_ROLLOUTS, facts_named
from skilltrail.store.exports import shard_files


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run.

    Attributes:
        values: by fact key.
        present: whether any export was found.
        expected: what the scorer compares an answer with, as text, by item id.
        evaluations: those at hand, of any run.
        name: of the run, a label; None where it is not known.
    """

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    present: bool = False
    expected: Mapping[str, str] = field(default_factory=dict)
    evaluations: Sequence[Evaluation] = ()
    name: str | None = None

    def trajectory(self, key: str) -> Mapping[str, Any] | None:
        """Return the trajectory of a rollout, None when it is not here."""
        value = self.values.get(key)
        found: Mapping[str, Any] | None = None if value is None else value.get("trajectory")
        return found

    def drift(self, *logs: Sequence[Event]) -> list[str]:
        """Return a sentence for each role that several models served in these logs."""
        events = [event for log in logs for event in log]
        return drift(served_in(events, self._of))

    def _of(self, keys: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        return {key: self.values[key] for key in keys if key in self.values}

    def usage(self, key: str) -> Mapping[str, int] | None:
        """Return the token counts of a rollout or of replies, None when it is not here."""
        value = self.values.get(key)
        if value is None:
            return None
        usage: Counter[str] = Counter()
        for part in ("trajectory", "reply", "rejected"):  # a judge may reply twice
            usage.update(value.get(part, {}).get("usage", {}))
        return usage


def read_facts(
    workspace: Path,
    events: Sequence[Event],
    root: Path | None = None,
    name: str | None = None,
) -> RunFacts:
    """Return the facts that `events` rest on, as far as `workspace` holds them.

    Evaluations are looked for in `root` too, the main repository's project.

    Raises:
        FaultError: an export is damaged.
    """
    folders = (workspace / folder for folder in (TRAIN_ROLLOUTS, TEST_ROLLOUTS))
    values, present = read_exports(folders, facts_named(events))
    project = Project(workspace, workspace if root is None else root)
    expected = read_expected(workspace / SPLITS_FOLDER, events)
    return RunFacts(values, present, expected, evaluations(project), name)


def read_exports(
    folders: Iterable[Path], wanted: set[str]
) -> tuple[dict[str, Mapping[str, Any]], bool]:
    """Return the facts of `wanted` keys in `folders`, and whether any export was there.

    Digests of lines are not checked: that is for `skilltrail verify`.

    Raises:
        FaultError: a line is not JSON.
    """
    values: dict[str, Mapping[str, Any]] = {}
    present = False
    for folder in folders:
        for path in shard_files(folder):
            present = True
            with path.open(encoding="utf-8", newline="\n") as file:
                for number, line in enumerate(file, 1):
                    _take(line, f"{path.name}, line {number}", wanted, values)
    return values, present


def read_expected(folder: Path, events: Iterable[Event]) -> dict[str, str]:
    """Return the gold of every item that the run used and that is still the same here."""
    digests = {row.item: row.digest for event in events for row in items_listed(event)}
    expected: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                item = _item(line, path)
                if digests.get(item.id) == item.content_digest and item.gold is not None:
                    expected[item.id] = _text(item.gold)
    return expected


def _item(line: str, path: Path) -> Item:
    try:
        return Item.from_json(loaded(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "The splits are made anew by `dvc repro -f split`"
        raise FaultError(f"{path.name} is damaged", str(error), remedy) from error


def _text(gold: Any) -> str:
    if isinstance(gold, str):
        return gold
    if isinstance(gold, list) and all(isinstance(one, str) for one in gold):
        return " | ".join(gold)
    return canonical(gold)


def _take(
    line: str, where: str, wanted: set[str], values: dict[str, Mapping[str, Any]]
) -> None:
    try:
        record = loaded(line)
        key, value = record["key"], record["value"]
    except (ValueError, KeyError, TypeError) as error:
        raise FaultError(
            f"{where} is damaged", str(error), "Restore it: `dvc checkout`"
        ) from error
    if key in wanted:
        values[key] = value

"""What was said: trajectories and optimizer replies, read from exports of the store.

An export is a folder of `shard*.jsonl` (see `stages.store.exports`). A folder that is not here
(a fresh clone before `dvc pull`) leaves the page without trajectories, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.core.errors import FaultError
from stages.store.exports import shard_files


@dataclass(frozen=True)
class Facts:
    """Values by fact key; `present` tells whether any export was found."""

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    present: bool = False

    def trajectory(self, key: str) -> Mapping[str, Any] | None:
        """Return the trajectory of a rollout, None when it is not here."""
        value = self.values.get(key)
        found: Mapping[str, Any] | None = None if value is None else value.get("trajectory")
        return found

    def usage(self, key: str) -> Mapping[str, int] | None:
        """Return the token counts of a rollout or a reply, None when it is not here."""
        value = self.values.get(key)
        if value is None:
            return None
        inner = value.get("trajectory", value.get("reply", {}))
        usage: Mapping[str, int] = inner.get("usage", {})
        return usage


def read_facts(folders: Iterable[Path], wanted: set[str]) -> Facts:
    """Return the facts of `wanted` keys that the exports in `folders` hold.

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
    return Facts(values, present)


def _take(
    line: str, where: str, wanted: set[str], values: dict[str, Mapping[str, Any]]
) -> None:
    try:
        record = json.loads(line)
        key, value = record["key"], record["value"]
    except (ValueError, KeyError, TypeError) as error:
        raise FaultError(f"{where} is damaged", str(error), "dvc checkout") from error
    if key in wanted:
        values[key] = value

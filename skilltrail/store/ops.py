"""The operations journal: what happened when, for people; the method never reads it.

`.skilltrail/ops.jsonl` holds attempts, retries, locks, repairs, times and openings, one JSON
object a line with `time` (UTC), `pid`, `type` and the writer's fields. Each line is one write
in append mode, so that lines of several processes never mix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from skilltrail.core.canon import cleaned, loaded
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.files import writing

FILE = "ops.jsonl"


def unchanged(text: str) -> str:
    """The redaction that hides nothing."""
    return text


class Ops:
    """Appends lines to one journal. `redact` sees every string and key before it is written."""

    def __init__(self, path: Path, redact: Callable[[str], str] = unchanged) -> None:
        self.path = path
        self._redact = redact
        self._torn = False

    def write(self, type: str, **fields: Any) -> None:
        """Append one line.

        Raises:
            SkilltrailError: the system refused the write.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        record = {"time": now, "pid": os.getpid(), "type": type, **self._redacted(fields)}
        line = json.dumps(cleaned(record), ensure_ascii=False) + "\n"
        self._append(("\n" + line if self._torn else line).encode("utf-8"))

    def _append(self, data: bytes) -> None:
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                written = file.write(data)
        self._torn = written < len(data)
        if self._torn:
            raise SkilltrailError(
                f"Cannot write {self.path}",
                f"{written} of {len(data)} bytes fit",
                "Free some disk space and run again",
            )

    def _redacted(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, dict):
            return {self._redact(str(k)): self._redacted(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._redacted(item) for item in value]
        return self._redact(str(value))


class NullOps(Ops):
    """A journal that keeps nothing: for runs that must leave no file."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))

    def write(self, type: str, **fields: Any) -> None:
        return None


def read_ops(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the journal's lines, oldest first; a line torn by a full disk is passed over."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for raw in file:
            try:
                record = loaded(raw)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record

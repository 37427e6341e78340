"""The operations journal: what happened when, for people; the method never reads it.

`.skilltrail/ops.jsonl` holds attempts, retries, locks, repairs, times and openings, one JSON
object a line with `time` (UTC), `pid`, `type` and the writer's fields. Each line is one write
in append mode, so that lines of several processes never mix.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from io import FileIO
from pathlib import Path
from typing import Any

from skilltrail.core.canon import cleaned, loaded
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.files import writing

FILE = "ops.jsonl"


class Ops:
    """Appends lines to one journal. `hide` takes the secrets out of a line's fields."""

    def __init__(self, path: Path, hide: Callable[[Any], Any] = lambda fields: fields) -> None:
        self.path = path
        self._hide = hide

    def write(self, type: str, **fields: Any) -> None:
        """Append one line.

        Raises:
            SkilltrailError: the system refused the write.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        told = self._hide(json.loads(json.dumps(fields, default=str)))
        record = {"time": now, "pid": os.getpid(), "type": type, **told}
        text = json.dumps(cleaned(record), ensure_ascii=False)
        self._append(f"{text}\n".encode())

    def _append(self, data: bytes) -> None:
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # else another's half line looks torn
                data = _begun(file) + data
                written = file.write(data)
        if written < len(data):
            raise SkilltrailError(
                f"Cannot write {self.path}",
                f"{written} of {len(data)} bytes fit",
                "Free some disk space and run again",
            )


class NullOps(Ops):
    """A journal that keeps nothing: for runs that must leave no file."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))

    def write(self, type: str, **fields: Any) -> None:
        return None


def _begun(file: FileIO) -> bytes:
    """Return what ends the line that a full disk or a kill left unfinished, if one did."""
    if not file.seekable() or file.seek(0, os.SEEK_END) == 0:
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def read_ops(
    path: Path, torn: Callable[[int], None] = lambda number: None
) -> Iterator[dict[str, Any]]:
    """Yield the journal's lines, oldest first; `torn` is told the number of a broken one."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                record = loaded(raw)
            except ValueError:
                record = None
            if isinstance(record, dict):
                yield record
            elif raw.strip():
                torn(number)

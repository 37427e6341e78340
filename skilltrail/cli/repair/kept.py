"""Copies of what is about to be written over: nobody's edit is lost by a repair."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path

from skilltrail.core.files import write_atomic, writing
from skilltrail.store.place import Place

FOLDER = "kept"


class KeptCopies:
    """A folder `.skilltrail/kept/<time>`, made when the first copy is.

    Attributes:
        names: the files that have a copy there, from the workspace's root.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder: Path | None = None
        self.names: list[str] = []

    @property
    def folder(self) -> str | None:
        """Where the copies are, from the root; None where there are none."""
        if self._folder is None:
            return None
        return self._folder.relative_to(self._place.root).as_posix()

    def __str__(self) -> str:
        return f"as they were before: {', '.join(self.names)} in {self.folder}"

    def keep(self, name: str, data: bytes | None = None) -> None:
        """Copy the file `name` of the workspace, or `data` under its name, if there is any.

        Raises:
            SkilltrailError: the copy cannot be written.
        """
        source = self._place.workspace / name
        if name in self.names or (data is None and not source.is_file()):
            return
        target = self._opened() / name
        if data is not None:
            write_atomic(target, data)
        else:
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        self.names.append(name)

    def _opened(self) -> Path:
        if self._folder is None:
            now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
            base = self._place.state / FOLDER / now
            number = 1
            while (folder := base.with_name(f"{now}-{number}")).exists():
                number += 1
            with writing(folder):
                folder.mkdir(parents=True)
            self._folder = folder
        return self._folder

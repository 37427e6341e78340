"""Formulas get their values by LibreOffice, where it is installed.

openpyxl writes formulas without values, and an untouched formula cell then reads as nothing.
The official evaluation recalculates every output by LibreOffice 7.5 or later (or Excel) first.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skilltrail.sandbox.protocol import Job, Limits, Sandbox

HOW_TO_INSTALL = (
    "Debian, Ubuntu: `apt-get install --no-install-recommends libreoffice-calc` (200 MB), or "
    "envs.spreadsheet.recalculate: false"
)
_LIMITS = Limits(wall_s=180, cpu_s=150, memory_mb=4096, processes=200, file_mb=40, disk_mb=256)
_FORMAT = "xlsx:Calc MS Excel 2007 XML"
_SHOWN = ("/etc/fonts", "/etc/libreoffice", "/usr/share", "/var/cache/fontconfig", "/opt")


def program() -> str | None:
    """Return LibreOffice's program, or None where it is not installed."""
    return shutil.which("soffice")


@dataclass
class Recalculator:
    """Recalculates workbooks, or says by `version() is None` that it cannot."""

    sandbox: Sandbox
    enabled: bool = True
    _version: str | None = field(default=None, init=False)

    async def version(self) -> str | None:
        """Return the program's name and version, or None when it is off or not installed."""
        office = program()
        if not self.enabled or office is None:
            return None
        if self._version is None:
            ran = await self.sandbox.run(self._job(office, ("--version",), {}))
            self._version = " ".join(ran.stdout.split()[:2]) if ran.ok else None
        return self._version

    async def recalculated(self, books: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the workbooks with values for their formulas, all in one run of the program.

        One that LibreOffice could not convert stays as it is.
        """
        office = program()
        if office is None or not books:
            return dict(books)
        files = {f"in/{name}.xlsx": content for name, content in books.items()}
        arguments = ("--convert-to", _FORMAT, "--outdir", "out", *files)
        ran = await self.sandbox.run(self._job(office, arguments, files))
        return {
            name: ran.files.get(f"out/{name}.xlsx", content) for name, content in books.items()
        }

    def _job(self, office: str, arguments: tuple[str, ...], files: Mapping[str, bytes]) -> Job:
        real = str(Path(office).resolve())
        fixed = ("--headless", "--norestore", "-env:UserInstallation=file:///tmp/profile")
        shown = tuple(path for name in _SHOWN if (path := Path(name)).is_dir())
        return Job((real, *fixed, *arguments), files, ".", _LIMITS, shown, is_program=True)

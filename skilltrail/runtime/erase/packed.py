"""Files whose bytes are laid out by length and checksum: archives, databases, columns.

A text is looked for inside ZIP (a workbook is one) and gzip. None of them is written over: what
is left of such a file after its bytes changed would open nowhere. Each is named instead.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_MAGIC = (
    b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"BZh",
    b"7z\xbc\xaf\x27\x1c",
    b"SQLite format 3\x00", b"PAR1",
)  # fmt: skip
_ZIP, _GZIP = _MAGIC[:2]
_DATABASE = _MAGIC[6]  # texts stand in it as they are, as in a tar
_TAR = (257, b"ustar")
_MOST_BYTES = 256_000_000  # looked at of one file, so that a bomb fills no memory


def is_packed(data: bytes) -> bool:
    return data.startswith(_MAGIC) or data.startswith(_TAR[1], _TAR[0])


def repositories_in(folder: Path, left_out: Container[str]) -> list[str]:
    """Return the folders below `folder` that are repositories of their own, sorted."""
    found = []
    for here, folders, files in os.walk(folder):
        if Path(here) != folder and ".git" in (*folders, *files):
            found.append(Path(here).relative_to(folder).as_posix())
        folders[:] = [name for name in folders if name not in left_out]
    return sorted(found)


def packed_holds(data: bytes, holds: Callable[[bytes], bool]) -> bool | None:
    """Return whether a packed file holds the text; None where not all of it can be read."""
    if holds(data):
        return True
    if not data.startswith((_ZIP, _GZIP)):
        return None if data.startswith(_MAGIC) and not data.startswith(_DATABASE) else False
    try:
        return any(map(holds, _parts(data)))
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        OSError,
        EOFError,
    ):
        return None


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield what a ZIP or gzip file holds, its names too.

    Raises:
        NotImplementedError: a way of packing that is not known here, or too much.
        RuntimeError: it asks for a password.
    """
    if data.startswith(_GZIP):
        yield _unpacked(data)
        return
    with suppress(ImportError):
        import_module("zipfile_zstd")  # teaches `zipfile` what Inspect packs with by now
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        yield "\n".join(archive.namelist()).encode()
        if sum(one.file_size for one in archive.infolist()) > _MOST_BYTES:
            raise NotImplementedError("too much")
        for one in archive.infolist():
            yield archive.read(one)


def _unpacked(data: bytes) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    found = reader.decompress(data, _MOST_BYTES)
    if reader.unconsumed_tail:
        raise NotImplementedError("too much")
    return found

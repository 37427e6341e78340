"""Files that come out of a sandbox as a tar stream: untrusted bytes, read with care.

Only plain files count. Links, devices and names that lead elsewhere are passed over: they can
stand for nothing outside, because nothing is ever unpacked to the disk.
"""

from __future__ import annotations

import io
import tarfile

from skilltrail.sandbox.protocol import is_plain_name

_MOST_FILES = 1000


def files_in(stream: bytes, most_bytes: int) -> dict[str, bytes]:
    """Return name -> content of the plain files of a tar stream, sorted by name.

    At most `_MOST_FILES` files and `most_bytes` bytes in all; what is over, and what follows a
    damaged place, is left out.
    """
    found: dict[str, bytes] = {}
    left = most_bytes
    try:
        with tarfile.open(fileobj=io.BytesIO(stream), mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if not member.isreg() or not is_plain_name(name):
                    continue
                if len(found) >= _MOST_FILES or member.size > left:
                    break
                content = archive.extractfile(member)
                found[name] = b"" if content is None else content.read(left)
                left -= len(found[name])
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError):
        pass
    return dict(sorted(found.items()))

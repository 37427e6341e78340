"""One commit on a branch, as a `git fast-import` stream: HEAD, index and work tree stay as they
are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skilltrail.history.git.branch import data_block
from skilltrail.history.git.repository import Git


def commit_stream(
    git: Git,
    ref: str,
    head: str,
    message: str,
    files: Mapping[str, bytes | None],
    *,
    author: bytes,
    committer: bytes,
) -> Iterator[bytes]:
    """Yield the stream of one commit on `head`; a file that is executable there stays so.

    Args:
        files: path from the repository's root -> content; None = it is removed.
        author, committer: as git writes them, name, address, seconds and zone.
    """
    yield f"commit {ref}\n".encode()
    yield b"author %b\ncommitter %b\n" % (author, committer)
    yield data_block(message.encode())
    yield f"from {head}\n".encode()
    for path, content in files.items():
        if content is None:
            yield b"D %b\n" % _quoted(path)
            continue
        row = git.run("ls-tree", head, "--", f":(top,literal){path}")
        mode = b"100755" if row.startswith(b"100755") else b"100644"
        yield b"M %b inline %b\n" % (mode, _quoted(path)) + data_block(content)
    yield b"\ndone\n"


def _quoted(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode()

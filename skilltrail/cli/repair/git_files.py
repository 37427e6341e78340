"""Files of git that a power cut leaves empty, torn or full of NULs: HEAD, refs, index, objects.

Git does not sync most of what it writes. What its own logs tell is put back; a ref of the side
branches is dropped, since the log makes it again; the index is made anew from HEAD, and objects
that hold nothing go, so that what is missing is told as missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from skilltrail.cli.repair.case import Finding, Repair, Site
from skilltrail.cli.repair.locks import REMEDY
from skilltrail.core.files import write_atomic
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS
from skilltrail.history.git.repository import Git
from skilltrail.history.log.words import count

_WHOLE = re.compile(rb"(?:ref: refs/[^\0\s]+|[0-9a-f]{40}|[0-9a-f]{64})\s*")
_LOGGED = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\n]*")
_MADE_AGAIN = (RUNS, EVALUATIONS, VERSIONS)
_HEADS = "refs/heads/"


class GitFiles(Repair):
    """What git itself must read before anything else works."""

    def __init__(self, case: Site) -> None:
        super().__init__(case)
        above = (case.root, *case.root.parents)
        found = (path for one in above if (path := one / ".git").is_dir())
        self._folder = next(found, None)  # none in a linked work tree

    def findings(self) -> list[Finding]:
        if self._folder is None:
            return []
        if self._torn("HEAD"):
            name = self._branch()
            lost = "git sees no repository here"
            write = "write `ref: refs/heads/BRANCH` into .git/HEAD"
            return [_finding("HEAD", "HEAD", lost, REMEDY if name is not None else write)]
        found = []
        for ref in self._refs():
            known = ref.startswith(_MADE_AGAIN) or self._last(ref) is not None
            name = f"`git update-ref {ref} COMMIT`, or delete .git/{ref}"
            found.append(_finding("refs", ref, "git refuses it", REMEDY if known else name))
        if self._index_is_torn():
            found.append(_finding("index", "the index", "git commits no more", REMEDY))
        empty = len(list(self._empty()))
        if empty:
            lost = "git refuses what rests on them"
            found.append(_finding("objects", count(empty, "object"), lost, REMEDY))
        return found

    def fix(self) -> list[str]:
        return list(self._mend())

    def _mend(self) -> Iterator[str]:
        if self._folder is None:
            return
        if self._torn("HEAD"):
            name = self._branch()
            if name is None:
                return
            write_atomic(self._folder / "HEAD", f"ref: {_HEADS}{name}\n")
            self._case.git = Git.at_hand(self._case.root)
            yield f"HEAD is on {name} again, as its log says"
        yield from map(self._mended, list(self._refs()))
        empty = list(self._empty())
        for path in empty:
            path.unlink()
        if empty:
            removed = count(len(empty), "empty object")
            yield f"removed {removed}: `git fsck` tells what is missing now"
        if self._index_is_torn():
            path = self._index
            self._case.kept.keep("git-index", path.read_bytes())
            path.unlink()
            assert self._case.git is not None
            self._case.git.ask("read-tree", "HEAD")  # `reset` would end a merge under way
            self._case.git.ask("update-index", "-q", "--refresh")
            yield "made the index anew from HEAD: add again what you had added"

    def _mended(self, ref: str) -> str:
        assert self._folder is not None
        if ref.startswith(_MADE_AGAIN):
            (self._folder / ref).unlink()
            return f"dropped {ref}: `skilltrail rebuild` makes it again from the log"
        last = self._last(ref)
        if last is None:
            return f"left {ref}: its log tells no commit"
        write_atomic(self._folder / ref, f"{last}\n")
        return f"{ref} is at {last[:12]} again, as its log says"

    def _torn(self, name: str) -> bool:
        assert self._folder is not None
        path = self._folder / name
        return path.is_file() and _WHOLE.fullmatch(path.read_bytes()) is None

    def _refs(self) -> Iterator[str]:
        """Yield the names of refs that hold no commit."""
        assert self._folder is not None
        for path in sorted((self._folder / "refs").rglob("*")):
            name = path.relative_to(self._folder).as_posix()
            if path.suffix != ".lock" and self._torn(name):
                yield name

    def _last(self, ref: str) -> str | None:
        """Return the commit that a ref's own log names last."""
        assert self._folder is not None
        try:
            lines = (self._folder / "logs" / ref).read_bytes().split(b"\n")
        except OSError:
            return None
        told = [found[1].decode() for line in lines if (found := _LOGGED.fullmatch(line))]
        return told[-1] if told and set(told[-1]) != {"0"} else None

    def _branch(self) -> str | None:
        """Return the one branch that HEAD can have been on, else None."""
        assert self._folder is not None
        logs = self._folder / "logs" / _HEADS
        names = [p.relative_to(logs).as_posix() for p in logs.rglob("*") if p.is_file()]
        at = self._last("HEAD")
        same = [name for name in names if self._last(_HEADS + name) == at]
        return same[0] if len(same) == 1 else None

    @property
    def _index(self) -> Path:
        assert self._folder is not None
        return self._folder / "index"

    def _index_is_torn(self) -> bool:
        """Return whether the index is not what its last bytes, a digest, say."""
        git = self._case.git
        if git is None or not self._index.is_file():
            return False
        data, digest = self._index.read_bytes(), hashlib.new(git.object_format())
        size = digest.digest_size
        digest.update(data[:-size])
        unsigned = data[-size:] == bytes(size)  # index.skipHash
        return len(data) < 12 + size or not (unsigned or digest.digest() == data[-size:])

    def _empty(self) -> Iterator[Path]:
        assert self._folder is not None
        for path in (self._folder / "objects").glob("[0-9a-f][0-9a-f]/*"):
            if path.is_file() and not path.stat().st_size:
                yield path


def _finding(what: str, name: str, lost: str, remedy: str) -> Finding:
    return Finding(what, f"{name} of git is empty or damaged: {lost}", remedy)

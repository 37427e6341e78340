"""Facts in a place that many machines share: a folder, S3 or Google Cloud Storage.

    packs/<sha256 of its lines>              export lines (`store.exports`), compressed
    index/<pack>-<sha256 of the keys>        the keys of that pack, one a line

Objects are named by what they hold and never changed, so any number of writers need no lock:
two that keep the same facts write the same object twice. The index comes after its pack, and
an object whose bytes are not what its name says, as one half written, is passed over.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from skilltrail.core.errors import ParamError, SkilltrailError
from skilltrail.core.files import write_atomic
from skilltrail.store.exports import SHARD_BYTES, line_of
from skilltrail.store.protocol import Fact

SCHEMES = {"file": "", "s3": "s3", "gs": "gs"}  # and the extra that it needs
_MOST_PACK_BYTES = (
    64 * SHARD_BYTES
)  # one fact may exceed SHARD_BYTES, a trap may not fill memory
_AT_ONCE = 16  # packs in memory together
_NAMED = 64  # hex digits of a pack's name
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "file": {"auto_mkdir": True},
    # Its own patience is minutes; without the place the work goes on.
    "s3": {"config_kwargs": {"connect_timeout": 5, "retries": {"max_attempts": 1}}},
    "gs": {},
}


class RemotePacks:
    """The objects at one address. Everything here waits for the network: not for an event loop.

    `cache` is a folder of this machine that keeps indexes, which never change.
    """

    def __init__(self, url: str, cache: Path) -> None:
        """Open the address; nothing is sent yet.

        Raises:
            ParamError: no address of a kind that is known, or one that holds a secret.
            SkilltrailError: what the kind needs is not installed.
        """
        scheme = checked(url)
        try:
            from fsspec.core import url_to_fs

            self._files, root = url_to_fs(url, **_OPTIONS[scheme])
        except ImportError as error:
            remedy = f'Install it: pip install "skilltrail[{SCHEMES[scheme]}]"'
            raise SkilltrailError(f"store.remote: {url}", str(error), remedy) from error
        self._root = str(root).rstrip("/")
        self._cache = cache / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
        self._known: set[str] = set()
        self.packs: dict[str, tuple[str, ...]] = {}  # those that hold a key, by name

    def look(self) -> None:
        """Take in the indexes that others have written since the last look."""
        self._files.invalidate_cache()
        there = f"{self._root}/index"
        if not self._files.exists(there):
            return
        names = {str(path).rsplit("/", 1)[-1] for path in self._files.ls(there, detail=False)}
        unread = sorted(names - self._known)
        cached = {
            n: (self._cache / n).read_bytes() for n in unread if (self._cache / n).is_file()
        }
        fetched = self._read("index", [name for name in unread if name not in cached])
        for name, data in sorted((cached | fetched).items()):
            pack, _, digest = name.partition("-")
            if len(pack) != _NAMED or hashlib.sha256(data).hexdigest() != digest:
                continue  # half written, or no index: looked at again next time
            self._known.add(name)
            for key in data.decode("ascii", "replace").split("\n"):
                self._note(key, pack)
            if name in fetched:
                self._cache.mkdir(parents=True, exist_ok=True)
                write_atomic(self._cache / name, data.decode("ascii"))

    def lines(self, packs: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """Yield the name and the lines of each pack; None where its bytes are not its own."""
        left = list(packs)
        while left:
            names, left = left[:_AT_ONCE], left[_AT_ONCE:]
            found = self._read("packs", names)
            for name in names:
                packed = found.get(name)
                yield name, None if packed is None else _unpacked(name, packed)

    def write(self, facts: Iterable[Fact]) -> int:
        """Keep facts, sorted by key, in packs of some megabytes; return how many."""
        number = 0
        for lines in _batches(facts):
            data = b"".join(line for _, line in lines)
            keys = "\n".join(key for key, _ in lines).encode("ascii")
            pack = hashlib.sha256(data).hexdigest()
            index = f"{pack}-{hashlib.sha256(keys).hexdigest()}"
            self._write({f"packs/{pack}": zlib.compress(data)})
            self._write({f"index/{index}": keys})
            self._known.add(index)
            for key, _ in lines:
                self._note(key, pack)
            number += len(lines)
        return number

    def forget(self, pack: str) -> None:
        """Count no more on a damaged pack: what it alone held is made and sent anew."""
        for key in [key for key, names in self.packs.items() if pack in names]:
            left = tuple(name for name in self.packs.pop(key) if name != pack)
            if left:
                self.packs[key] = left

    def _note(self, key: str, pack: str) -> None:
        self.packs[key] = tuple(sorted({*self.packs.get(key, ()), pack}))

    def _read(self, folder: str, names: list[str]) -> dict[str, bytes]:
        """Return the objects that are there by name, all asked for at once."""
        paths = {f"{self._root}/{folder}/{name}": name for name in names}
        found = self._files.cat(list(paths), on_error="return") if paths else {}
        read: dict[str, bytes] = {}
        for path, data in found.items():
            if isinstance(data, FileNotFoundError):
                continue
            if isinstance(data, Exception):
                raise data
            read[str(path).rsplit("/", 1)[-1]] = data
        return read

    def _write(self, objects: Mapping[str, bytes]) -> None:
        for name, data in objects.items():
            self._files.pipe_file(f"{self._root}/{name}", data)


def checked(url: str) -> str:
    """Return the scheme of an address.

    Raises:
        ParamError: it is of no known kind, incomplete, or holds a name or key.
    """
    try:
        parts = urlsplit(url)
        secret = "@" in parts.netloc or parts.query != ""
    except ValueError as error:
        raise ParamError("store.remote", repr(url), "Write s3://BUCKET/FOLDER") from error
    if parts.scheme not in SCHEMES:
        remedy = "Write file:///FOLDER, s3://BUCKET/FOLDER or gs://BUCKET/FOLDER"
        raise ParamError("store.remote", repr(url), remedy)
    if secret:
        remedy = "Keys belong into the environment (AWS_ACCESS_KEY_ID and its like)"
        raise ParamError("store.remote", "an address with a name, a key or options", remedy)
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise ParamError("store.remote", repr(url), "Write file:/// and the whole path")
    if parts.scheme != "file" and not parts.netloc:
        raise ParamError("store.remote", repr(url), "Name the bucket")
    return parts.scheme


def _batches(facts: Iterable[Fact]) -> Iterator[list[tuple[str, bytes]]]:
    batch: list[tuple[str, bytes]] = []
    size = 0
    for fact in facts:
        line = line_of(fact)
        if batch and size + len(line) > SHARD_BYTES:
            yield batch
            batch, size = [], 0
        batch.append((fact.key, line))
        size += len(line)
    if batch:
        yield batch


def _unpacked(name: str, packed: Any) -> bytes | None:
    worker = zlib.decompressobj()
    try:
        data = worker.decompress(packed, _MOST_PACK_BYTES)
    except zlib.error:
        return None
    return data if hashlib.sha256(data).hexdigest() == name else None

"""Facts as sharded JSON lines, so that `dvc push` and `dvc pull` carry a run.

A line is canonical JSON, `{"digest","key","kind","value"}`, where `digest` is the SHA-256 of
the canonical form without it. Lines are sorted by key; a shard holds the keys of one hex
prefix, as short as keeps every shard within `shard_bytes`. So the same facts give the same
bytes, and a new fact changes one shard.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from skilltrail.core.canon import canonical, loaded
from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.core.files import write_atomic, writing
from skilltrail.store.facts import FactStore
from skilltrail.store.protocol import KINDS, Fact, Store

SHARD_BYTES = 4_000_000
_LINE_OVERHEAD_BYTES = 200
_LONGEST_PREFIX = 8


def line_of(fact: Fact) -> bytes:
    """Return the export line of a fact, newline included."""
    rest = f'"key":{canonical(fact.key)},"kind":{canonical(fact.kind)},"value":{fact.text}}}'
    digest = hashlib.sha256(f"{{{rest}".encode()).hexdigest()
    return f'{{"digest":"{digest}",{rest}\n'.encode()


def fact_of(line: bytes) -> Fact:
    """Return the fact of an export line.

    Raises:
        ValueError: the line is not exactly what `line_of` writes; says what is wrong.
    """
    if not line.endswith(b"\n"):
        raise ValueError("the line has no end")
    record = loaded(line)
    if not isinstance(record, dict) or set(record) != {"digest", "key", "kind", "value"}:
        raise ValueError("not an object with digest, key, kind and value")
    if record["kind"] not in KINDS:
        raise ValueError(f"unknown kind {record['kind']!r}")
    fact = Fact.of(record["kind"], str(record["key"]), record["value"])
    if line_of(fact) != line:
        raise ValueError("the line does not match its digest")
    return fact


def export_shards(
    store: Store, keys: Iterable[str], folder: Path, shard_bytes: int = SHARD_BYTES
) -> int:
    """Make `folder` hold exactly the facts of `keys`; return their number.

    All shards are written beside the folder first and then renamed one by one; whenever that
    is cut short, every line in the folder is a whole fact.

    Raises:
        FaultError: the store lacks one of the facts.
        SkilltrailError: the disk is full or not writable; the old export stands.
    """
    wanted = sorted(set(keys))
    sizes = store.sizes(wanted)
    absent = [key for key in wanted if key not in sizes]
    if absent:
        raise FaultError(
            f"Cannot export {folder.name}",
            f"{len(absent)} recorded calls are not in the store, first {absent[0]}",
            "Run the stage again",
        )
    draft = folder.with_name(f".{folder.name}.draft")
    with writing(folder):
        _clear(draft)
        draft.mkdir(parents=True)
        try:
            digests = _write_shards(store, wanted, prefix_length(sizes, shard_bytes), draft)
            folder.mkdir(exist_ok=True)
            _swap(draft, folder, set(digests))
        finally:
            _clear(draft)
    if isinstance(store, FactStore):
        store.remember_shards(digests.values())
    return len(wanted)


def import_shards(store: Store, folder: Path) -> int:
    """Read an export into the store, where there is one; return how many facts were new.

    Shards that the store has read or written before are known by digest and passed over.

    Raises:
        FaultError: a line is damaged; names file and line, nothing of that file is taken.
    """
    if not isinstance(store, FactStore):
        return 0
    new = 0
    for path in shard_files(folder):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SkilltrailError(f"Cannot read {path}", str(error)) from error
        digest = hashlib.sha256(data).hexdigest()
        if not store.knows_shard(digest):
            new += store.put_facts(read_shard(path, data), shard=digest)
    return new


def read_shard(path: Path, data: bytes) -> list[Fact]:
    """Return the facts of one shard.

    Raises:
        FaultError: a line is damaged; names file and line.
    """
    facts = []
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            facts.append(fact_of(line))
        except (ValueError, TypeError) as error:
            raise FaultError(
                f"{path}, line {number} is damaged",
                str(error),
                "Restore the folder with `dvc checkout`, or delete it: calls in the store stay",
            ) from error
    return facts


def shard_files(folder: Path) -> list[Path]:
    """Return the shards of an export, sorted; none where the folder is absent."""
    return sorted(folder.glob("shard*.jsonl")) if folder.is_dir() else []


def prefix_length(sizes: Mapping[str, int], shard_bytes: int = SHARD_BYTES) -> int:
    """Return the shortest prefix length at which no shard exceeds `shard_bytes`.

    `sizes` is the bytes of each fact's value by key. A single fact may exceed the limit.
    """
    for length in range(_LONGEST_PREFIX):
        shards: Counter[str] = Counter()
        for key, size in sizes.items():
            shards[key[:length]] += size + _LINE_OVERHEAD_BYTES
        if not shards or max(shards.values()) <= shard_bytes:
            return length
    return _LONGEST_PREFIX


def _write_shards(store: Store, keys: list[str], length: int, draft: Path) -> dict[str, str]:
    """Write all shards to `draft`; return their digests by file name."""
    digests: dict[str, str] = {}
    for prefix, facts in groupby(store.facts(keys), key=lambda fact: fact.key[:length]):
        data = b"".join(map(line_of, facts))
        name = f"shard-{prefix}.jsonl" if length else "shard.jsonl"
        _write_synced(draft / name, data)
        digests[name] = hashlib.sha256(data).hexdigest()
    if not digests:
        # An output folder must exist, and tools forget empty ones.
        _write_synced(draft / "shard.jsonl", b"")
        digests["shard.jsonl"] = hashlib.sha256(b"").hexdigest()
    return digests


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _swap(draft: Path, folder: Path, names: set[str]) -> None:
    for name in sorted(names):
        (draft / name).replace(folder / name)
    for path in folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _clear(draft: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(draft)


def drop_kind(folder: Path, kind: str) -> int:
    """Rewrite an export without the facts of `kind`; return how many went."""
    dropped = 0
    for path in shard_files(folder):
        facts = read_shard(path, path.read_bytes())
        kept = [fact for fact in facts if fact.kind != kind]
        if len(kept) < len(facts):
            write_atomic(path, b"".join(map(line_of, kept)).decode("utf-8"))
            dropped += len(facts) - len(kept)
    return dropped

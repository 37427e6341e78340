"""What a person asks of the store: its size, another try at gaps, the end of stale claims."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.errors import SkilltrailError
from skilltrail.store import database
from skilltrail.store.errors import explain, not_ours
from skilltrail.store.exports import drop_kind, shard_files
from skilltrail.store.facts import FactStore
from skilltrail.store.place import STATE
from skilltrail.store.protocol import KINDS
from skilltrail.store.reader import open_reading


@dataclass(frozen=True)
class ExportStats:
    """One export folder: number of shards, bytes of all and of the largest."""

    folder: str
    shards: int
    total_bytes: int
    largest_bytes: int


@dataclass(frozen=True)
class StoreStats:
    """The store at a glance.

    Attributes:
        rows: facts by kind; every kind is named.
        value_bytes: canonical JSON bytes of the values by kind, before compression.
        file_bytes: the database and its log on the disk.
        claims: keys that are being made now, or were when their process died.
        exports: the export folders that exist.
    """

    path: str
    rows: Mapping[str, int]
    value_bytes: Mapping[str, int]
    file_bytes: int
    claims: int
    exports: tuple[ExportStats, ...]


@dataclass(frozen=True)
class RetryReport:
    """Gaps dropped from the store and from export folders; their items are tried again."""

    store: int
    exports: int


def store_stats(root: Path, folders: Iterable[Path] = ()) -> StoreStats:
    """Return the figures of the project at `root`; creates nothing where there is no store.

    Raises:
        SkilltrailError: the store cannot be used.
    """
    path = root / STATE / database.FILE
    if path.parent.exists() and not path.parent.is_dir():
        raise SkilltrailError(
            f"The folder {path.parent}", "a file stands in its place", "Move the file away"
        )
    rows = dict.fromkeys(KINDS, 0)
    sizes = dict.fromkeys(KINDS, 0)
    claims = 0
    with open_reading(root) as store:
        if store is not None:
            for kind, count, size in store.query(
                "SELECT kind, COUNT(*), SUM(size) FROM facts GROUP BY kind"
            ):
                rows[kind], sizes[kind] = count, size
            ((claims,),) = store.query("SELECT COUNT(*) FROM claims")
    companions = (path, path.with_name(path.name + "-wal"))
    return StoreStats(
        path=str(path),
        rows=rows,
        value_bytes=sizes,
        file_bytes=sum(file.stat().st_size for file in companions if file.exists()),
        claims=claims,
        exports=tuple(_export_stats(folder) for folder in folders if folder.is_dir()),
    )


def examine(root: Path) -> None:
    """Read every page of the store of the project at `root`, where there is one.

    Raises:
        FaultError: it is damaged.
        SkilltrailError: it, or what SQLite keeps beside it, cannot be read or written.
    """
    path = root / STATE / database.FILE
    if path.exists() and (locked := database.read_only(path)):
        raise not_ours(path, locked)
    with open_reading(root) as store:
        found = "ok" if store is None else store.query("PRAGMA quick_check(1)")[0][0]
    if found != "ok":
        raise explain(sqlite3.DatabaseError(f"malformed: {found.splitlines()[-1]}"), path)


def _export_stats(folder: Path) -> ExportStats:
    sizes = [path.stat().st_size for path in shard_files(folder)]
    return ExportStats(str(folder), len(sizes), sum(sizes), max(sizes, default=0))


def retry_missing(store: FactStore, folders: Iterable[Path] = ()) -> RetryReport:
    """Drop every gap, so that the next run asks for those items again.

    Exports lose theirs too, which also shows DVC that the stage has to run; and the store
    remembers the keys, so that an older export cannot bring them back.

    Raises:
        FaultError: an export is damaged; then the store is as it was.
    """
    from_exports = sum(drop_kind(folder, "gap") for folder in folders)

    def work(connection: sqlite3.Connection) -> int:
        connection.execute(
            "INSERT OR IGNORE INTO dropped SELECT key FROM facts WHERE kind = 'gap'"
        )
        return connection.execute("DELETE FROM facts WHERE kind = 'gap'").rowcount

    dropped = store.do(work)
    if dropped:
        store.ops.write("gaps.dropped", facts=dropped)
    return RetryReport(dropped, from_exports)


def release_claims(store: FactStore, host: str) -> int:
    """Free all claims of `host`, whose runs are known to be over; return how many.

    For hosts that were renamed (containers) or that share the folder: the store itself never
    overrules another host's claim.
    """

    def work(connection: sqlite3.Connection) -> int:
        return connection.execute("DELETE FROM claims WHERE host = ?", (host,)).rowcount

    released = store.do(work)
    store.ops.write("claims.released", host=host, claims=released)
    return released

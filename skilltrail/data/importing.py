"""Joining a released split manifest with a person's own download of a benchmark.

A manifest is a folder with one file of ids per split (SkillOpt released six); it holds no
questions. The download holds them under a key of its own. The result is a folder of ready-made
splits: records as downloaded, with what only the manifest says, in the manifest's order.

Where the download itself is a tree with a folder per split, as ALFWorld's games are, no
manifest is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skilltrail.core.canon import canonical
from skilltrail.core.errors import DataError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.item import SPLITS
from skilltrail.data.find import NOTHING, find_source, shown
from skilltrail.data.read import SUFFIXES, read_records
from skilltrail.data.record import Record

_EXAMPLES = 10  # missing ids shown in a message; the count is always whole


@dataclass(frozen=True)
class Layout:
    """How one benchmark names its items.

    Attributes:
        keys: fields that may hold the id, the first that is there counts; several joined by
            `+` are joined by a colon.
        sources: fields that name the document an item comes from, the first that is there.
        folder: True when the download is a folder of files and not a file of records.
    """

    keys: tuple[str, ...]
    sources: tuple[str, ...] = ()
    folder: bool = False


LAYOUTS: Mapping[str, Layout] = {
    "searchqa": Layout(("key", "id")),
    "docvqa": Layout(("questionId", "id"), ("ucsf_document_id", "docId")),
    "livemath": Layout(("month+no", "id"), ("paper_link",)),
    "officeqa": Layout(("uid", "id"), ("source_files",)),
    "spreadsheet": Layout(("id",)),
    "alfworld": Layout(("gamefile",), folder=True),
}
_ANY = Layout(("id",))


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        counts: items written, by split.
        missing: ids of the manifest that the download lacks, by split.
        shared: per later split, how many items share a source document with an earlier one.
    """

    folder: Path
    counts: Mapping[str, int]
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)


def import_splits(
    root: Path,
    env: str,
    manifest: Path,
    sources: Sequence[Path],
    out: Path,
    *,
    skip_missing: bool = False,
) -> Imported:
    """Write `out`/{train,selection,test}.jsonl and say what was found.

    Raises:
        DataError: a file cannot be read, an id is missing (unless `skip_missing`) or stands for
            two different records.
        UsageError: `out` holds files already.
    """
    layout = LAYOUTS.get(env, _ANY)
    wanted = _manifest(root, env, manifest)
    find = _games(sources) if layout.folder else _records(root, sources, layout)
    made: dict[str, list[dict[str, Any]]] = {}
    missing: dict[str, list[str]] = {}
    for split, records in wanted.items():
        made[split] = []
        for record in records:
            key = key_of(record, layout)
            found = find(key)
            if found is None:
                missing.setdefault(split, []).append(key)
            else:
                # What the download says wins; the manifest adds ids and source paths.
                made[split].append(dict(record.data) | dict(found))
    if missing and not skip_missing:
        raise _missing(missing, sum(map(len, wanted.values())))
    counts = _write(root, out, made)
    return Imported(out, counts, missing, _shared(made, layout))


def import_tree(root: Path, env: str, source: Path, out: Path) -> Imported:
    """Write `out`/{train,selection,test}.jsonl from a tree that has a folder for each split.

    Raises:
        DataError: a split has no games.
        UsageError: the benchmark's download has no such folders, or `out` holds files already.
    """
    if env != "alfworld":
        raise UsageError(
            f"data import {env}", "no --manifest", "Name the folder of the released ids"
        )
    # Only this environment's games know how their records are made.
    from skilltrail.envs.alfworld.games import SPLIT_FOLDERS, records_below

    made: dict[str, list[dict[str, Any]]] = {}
    for split, name in SPLIT_FOLDERS.items():
        folder = next(
            (f for f in (source / name, *source.glob(f"*/{name}")) if f.is_dir()), None
        )
        made[split] = [] if folder is None else list(records_below(folder, source))
        if not made[split]:
            raise DataError(
                f"The folder {source.name}",
                f"no games for the split {split}: none below {name}/",
                "Name the folder json_2.1.1, or the one above it",
            )
    return Imported(out, _write(root, out, made))


def _write(root: Path, out: Path, made: Mapping[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Write the splits and return how many items each has."""
    if any((out / f"{split}.jsonl").exists() for split in SPLITS):
        raise UsageError(
            f"{shown(root, out)}",
            "it holds splits already",
            "Remove them, or choose another --out",
        )
    for split, rows in made.items():
        text = "".join(canonical(row) + "\n" for row in rows)
        write_atomic(out / f"{split}.jsonl", text)
    return {split: len(rows) for split, rows in made.items()}


def key_of(record: Record, layout: Layout) -> str:
    """Return the id by which a record is joined, as text.

    Raises:
        DataError: it has none of the layout's key fields.
    """
    for key in layout.keys:
        values = [record.data.get(name) for name in key.split("+")]
        if all(isinstance(value, (str, int)) and str(value).strip() for value in values):
            return ":".join(str(value).strip() for value in values)
    raise record.where.error(
        layout.keys[0], "nothing", f"Records are joined by {' or '.join(layout.keys)}"
    )


def _manifest(root: Path, env: str, folder: Path) -> dict[str, list[Record]]:
    if not folder.is_dir():
        raise DataError(
            f"The manifest {shown(root, folder)}",
            "there is no such folder",
            "Name the folder that holds train, val and test",
        )
    files = find_source(root, env, NOTHING, str(folder)).files
    return {split: read_records(path, shown(root, path)) for split, path in files.items()}


def _records(
    root: Path, sources: Sequence[Path], layout: Layout
) -> Callable[[str], Mapping[str, Any] | None]:
    """Return a look-up in the records of all files of the download."""
    by_key: dict[str, Record] = {}
    for path in [file for source in sources for file in _files(source)]:
        for record in read_records(path, shown(root, path)):
            key = key_of(record, layout)
            other = by_key.setdefault(key, record)
            if other is not record and other.data != record.data:
                raise DataError(
                    f"Id {key!r} stands for two different records",
                    f"{other.where} and {record.where}",
                    "Import one edition of the download only",
                )
    return lambda key: None if key not in by_key else by_key[key].data


def _files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    files = [path for path in source.rglob("*") if path.suffix.lower() in SUFFIXES]
    if not files:
        raise DataError(
            f"The folder {source.name}",
            "no file of records in it",
            f"Records are in files with one of the suffixes {', '.join(SUFFIXES)}",
        )
    return sorted(files)


def _games(sources: Sequence[Path]) -> Callable[[str], Mapping[str, Any] | None]:
    """Return a look-up of files by their path below a folder of the download.

    The folder may be the one that a path starts with (`json_2.1.1`) or the one above.
    """

    def find(path: str) -> Mapping[str, Any] | None:
        tail = path.split("/", 1)[-1]
        here = any((source / path).is_file() or (source / tail).is_file() for source in sources)
        return {} if here and ".." not in path.split("/") else None

    return find


def _shared(made: Mapping[str, list[dict[str, Any]]], layout: Layout) -> dict[str, int]:
    """Return how many items of a split have a source that an earlier split has too."""
    seen: set[str] = set()
    shared: dict[str, int] = {}
    for split, rows in made.items():
        sources = [_source(row, layout) for row in rows]
        count = sum(bool(one & seen) for one in sources)
        if count:
            shared[split] = count
        seen |= {name for one in sources for name in one}
    return shared


def _source(row: Mapping[str, Any], layout: Layout) -> set[str]:
    for name in layout.sources:
        value = row.get(name)
        if value is not None and str(value).strip():
            lines = value if isinstance(value, list) else str(value).split("\n")
            return {str(line).strip() for line in lines if str(line).strip()}
    return set()


def _missing(missing: Mapping[str, Sequence[str]], n_wanted: int) -> DataError:
    ids = [id for split in missing.values() for id in split]
    more = f" and {len(ids) - _EXAMPLES} more" if len(ids) > _EXAMPLES else ""
    by_split = ", ".join(f"{split} {len(lacking)}" for split, lacking in missing.items())
    return DataError(
        f"{len(ids)} of {n_wanted} ids of the manifest are not in the download ({by_split})",
        ", ".join(map(repr, ids[:_EXAMPLES])) + more,
        "Name every file of the download by --source, or leave them out with --skip-missing",
    )

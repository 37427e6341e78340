"""The frozen splits: `data/splits/{train,selection,test}.jsonl` and their `manifest.json`.

Lines are canonical JSON of items in the order of their ids, so the bytes depend on the items
and nothing else. The manifest says how the splits were made and holds a digest of each; it
names no path. Readers check the digest and never repair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skilltrail.core.canon import canonical, digest
from skilltrail.core.errors import FaultError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.item import SPLITS, Item

FOLDER = Path("data") / "splits"
_REMEDY = "Make the splits again: `dvc repro --force split`"


def split_digest(items: Iterable[Item]) -> str:
    """Return the digest of a split: ids and whole contents, in the order of ids."""
    ordered = sorted(items, key=lambda item: item.id)
    return digest("split/1", [item.content_digest for item in ordered])


def write_splits(
    root: Path, splits: Mapping[str, Iterable[Item]], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the three splits and the manifest, and return the manifest.

    Args:
        root: the project root.
        splits: items by split name, in any order.
        about: what the manifest says besides counts and digests; JSON without paths.
    """
    manifest = manifest_of(splits, about)
    for name in SPLITS:
        items = sorted(splits[name], key=lambda item: item.id)
        lines = [canonical(item.to_json()) + "\n" for item in items]
        write_atomic(root / FOLDER / f"{name}.jsonl", "".join(lines))
    _write_manifest(root, manifest)
    return manifest


def manifest_of(
    splits: Mapping[str, Iterable[Item]], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the manifest of `splits` says; `about` is as in `write_splits`."""
    counts = {}
    for name in SPLITS:
        items = list(splits[name])
        counts[name] = {
            "items": len(items),
            "groups": len({(item.group is None, item.group or item.id) for item in items}),
            "digest": split_digest(items),
        }
    return {"v": 1, **about, "splits": counts}


def rewrite_split(root: Path, name: str, records: Iterable[Mapping[str, Any]]) -> None:
    """Write other records in place of a split's, and their digest into the manifest.

    Raises:
        FaultError: there is no manifest.
    """
    manifest = read_manifest(root)
    ordered = sorted(map(Item.from_json, records), key=lambda item: item.id)
    lines = [canonical(item.to_json()) + "\n" for item in ordered]
    write_atomic(root / FOLDER / f"{name}.jsonl", "".join(lines))
    manifest["splits"][name]["digest"] = split_digest(ordered)
    _write_manifest(root, manifest)


def _write_manifest(root: Path, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomic(root / FOLDER / "manifest.json", text)


def read_manifest(root: Path) -> dict[str, Any]:
    """Return the manifest of the frozen splits.

    Raises:
        FaultError: it is not there, or is not the manifest that `split` writes.
    """
    try:
        text = (root / FOLDER / "manifest.json").read_bytes().decode("utf-8")
        manifest = json.loads(text)
        digests = [manifest["splits"][name]["digest"] for name in SPLITS]
    except OSError as error:
        raise _fault("manifest.json", "cannot be read", error) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _fault("manifest.json", "is damaged", error) from error
    if not all(isinstance(value, str) for value in digests):
        raise _fault("manifest.json", "is damaged", "no digest")
    return dict(manifest)


def read_split(root: Path, name: str) -> list[Item]:
    """Return the items of one frozen split in the order of their ids.

    Raises:
        UsageError: there is no split of that name.
        FaultError: the file is missing, or is not what the manifest's digest says.
    """
    if name not in SPLITS:
        raise UsageError(f"Split {name!r}", f"the splits are {', '.join(SPLITS)}")
    expected = read_manifest(root)["splits"][name]["digest"]
    file = f"{name}.jsonl"
    try:
        text = (root / FOLDER / file).read_bytes().decode("utf-8")
        records = [json.loads(line) for line in text.split("\n") if line]
        found = digest("split/1", [digest("item/1", record) for record in records])
    except OSError as error:
        raise _fault(file, "cannot be read", error) from error
    except (ValueError, RecursionError) as error:
        raise _fault(file, "is damaged", error) from error
    # Digests are compared before an item is built, so whatever differs is refused here.
    if found != expected:
        raise _fault(file, "is damaged", "it differs from the digest in manifest.json")
    return [
        replace(Item.from_json(record), place=f"{FOLDER.as_posix()}/{file}, line {line}")
        for line, record in enumerate(records, 1)
    ]


def _fault(file: str, what: str, cause: object) -> FaultError:
    if isinstance(cause, RecursionError):
        cause = "nested too deeply"
    found = str(cause.strerror if isinstance(cause, OSError) else cause)
    return FaultError(f"{FOLDER.as_posix()}/{file} {what}", found, _REMEDY)

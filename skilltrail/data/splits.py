"""The frozen splits: `data/splits/{train,selection,test}.jsonl` and their `manifest.json`.

Lines are canonical JSON of items in the order of their ids, so the bytes depend on the items
and nothing else. The manifest says how the splits were made and holds a digest of each; it
names no path. Readers check the digest and never repair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
    manifest: dict[str, Any] = {"v": 1, **about, "splits": {}}
    for name in SPLITS:
        items = sorted(splits[name], key=lambda item: item.id)
        lines = [canonical(item.to_json()) + "\n" for item in items]
        write_atomic(root / FOLDER / f"{name}.jsonl", "".join(lines))
        manifest["splits"][name] = {
            "items": len(items),
            "groups": len({(item.group is None, item.group or item.id) for item in items}),
            "digest": split_digest(items),
        }
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomic(root / FOLDER / "manifest.json", text)
    return manifest


def read_manifest(root: Path) -> dict[str, Any]:
    """Return the manifest of the frozen splits.

    Raises:
        FaultError: it is not there, or is not the manifest that `split` writes.
    """
    path = root / FOLDER / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        digests = [manifest["splits"][name]["digest"] for name in SPLITS]
    except OSError as error:
        raise FaultError(
            "The frozen splits cannot be read", f"manifest.json: {error.strerror}", _REMEDY
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise FaultError(
            "The manifest of the splits is damaged", str(error), _REMEDY
        ) from error
    if not all(isinstance(value, str) for value in digests):
        raise FaultError("The manifest of the splits is damaged", "no digest", _REMEDY)
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
    try:
        text = (root / FOLDER / f"{name}.jsonl").read_bytes().decode("utf-8")
        records = [json.loads(line) for line in text.split("\n") if line]
        found = digest("split/1", [digest("item/1", record) for record in records])
    except OSError as error:
        raise FaultError(f"The {name} split cannot be read", str(error), _REMEDY) from error
    except ValueError as error:
        raise FaultError(f"The {name} split is damaged", str(error), _REMEDY) from error
    # Digests are compared before an item is built, so whatever differs is refused here.
    if found != expected:
        raise FaultError(
            f"The {name} split is damaged", "it differs from the manifest's digest", _REMEDY
        )
    return [Item.from_json(record) for record in records]

"""Where the items are, and whether they come in ready-made splits.

`data.split_dir` names a folder with one file (or a folder holding one) per split; `data.path`
names one items file for ratio mode; with neither, the environment's own `data/<env>/` is looked
at in the same two ways. A choice between several files is never made for the user.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.errors import DataError, ParamError
from skilltrail.core.item import SPLITS
from skilltrail.data.read import SUFFIXES
from skilltrail.envs.protocol import Environment
from skilltrail.envs.registry import environment_class, environment_folders

NOTHING = "data/none"  # the default of both params: DVC cannot track an empty path

# What each split may be called in a ready-made folder: ours first, then other projects' words.
NAMES: Mapping[str, tuple[str, ...]] = {
    "train": ("train",),
    "selection": ("selection", "val", "valid", "validation", "dev", "valid_seen"),
    "test": ("test", "valid_unseen"),
}


FEEDBACK_FILE = "feedback.jsonl"  # beside the items: what people say of them


@dataclass(frozen=True)
class DataSource:
    """The files that items come from.

    Attributes:
        files: one file per split name when ready made; `{"": file}` for ratio mode; none where
            the environment itself has the records.
    """

    files: Mapping[str, Path]

    @property
    def ready_made(self) -> bool:
        return bool(self.files) and "" not in self.files


def find_source(root: Path, env: str, path: str, split_dir: str) -> DataSource:
    """Return the files that the params name.

    Raises:
        ParamError: both `data.path` and `data.split_dir` are set.
        DataError: a file is missing, or there are several where one is needed.
    """
    has_path, has_dir = (is_set(root, value) for value in (path, split_dir))
    if has_path and has_dir:
        raise ParamError(
            "data.path and data.split_dir are both set",
            f"{path} and {split_dir}",
            f"Set one of them back to {NOTHING}",
        )
    if has_dir:
        return DataSource(_split_files(root, root / split_dir, "data.split_dir"))
    if has_path:
        return DataSource({"": _items_file(root, root / path, "data.path")})
    if env in environment_folders() and _has_own_records(env):
        return DataSource({})
    own = root / "data" / env
    if own.is_dir() and any(_candidates(own, names) for names in NAMES.values()):
        return DataSource(_split_files(root, own, "env"))
    return DataSource({"": _items_file(root, own, "env")})


def _has_own_records(env: str) -> bool:
    """Return whether an environment has its records from no file."""
    return environment_class(env).records is not Environment.records


def is_set(root: Path, value: str) -> bool:
    """Return whether a path param names something other than `data/none`."""
    return os.path.normpath(root / value) != os.path.normpath(root / NOTHING)


def shown(root: Path, path: Path) -> str:
    """Return `path` as messages call it: relative to the project where it lies inside."""
    inside = os.path.relpath(path, root)
    return str(path) if inside.startswith("..") else Path(inside).as_posix()


def _split_files(root: Path, folder: Path, param: str) -> dict[str, Path]:
    if not folder.is_dir():
        raise _nothing_there(root, folder, param, "a folder with ready-made splits")
    return {split: _split_file(root, folder, split) for split in SPLITS}


def _split_file(root: Path, folder: Path, split: str) -> Path:
    found = _candidates(folder, NAMES[split])
    if not found:
        present = ", ".join(sorted(p.name for p in _visible(folder))) or "nothing"
        raise DataError(
            f"No {split} split in {shown(root, folder)}",
            f"the folder holds {present}",
            f"Add a file (or a folder with one file) named {' or '.join(NAMES[split])}, "
            f"with one of the suffixes {', '.join(SUFFIXES)}",
        )
    if len(found) > 1:
        raise _several(root, folder, found, f"for the {split} split")
    if found[0].is_dir():
        return _only_file(root, found[0], f"for the {split} split")
    return found[0]


def _candidates(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """Return the item files, and subfolders with item files, that bear one of `names`."""
    return [
        path
        for path in _visible(folder)
        if (path.name in names and path.is_dir() and any(map(_is_items, _visible(path))))
        or (path.stem in names and _is_items(path))
    ]


def _items_file(root: Path, path: Path, param: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise _nothing_there(root, path, param, "an items file")
    return _only_file(root, path, "of items")


def _only_file(root: Path, folder: Path, purpose: str) -> Path:
    files = [p for p in _visible(folder) if _is_items(p) and p.name != FEEDBACK_FILE]
    if not files:
        raise DataError(
            f"No file {purpose} in {shown(root, folder)}",
            "none has a suffix of items",
            f"Put one file there with one of the suffixes {', '.join(SUFFIXES)}",
        )
    if len(files) > 1:
        raise _several(root, folder, files, purpose)
    return files[0]


def _is_items(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in SUFFIXES


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise DataError(
            f"The folder {folder.name} cannot be read",
            str(error.strerror),
            "Check its permissions",
        ) from error


def _several(root: Path, folder: Path, found: list[Path], purpose: str) -> DataError:
    return DataError(
        f"More than one file {purpose} in {shown(root, folder)}",
        ", ".join(path.name for path in found),
        "Keep one of them there",
    )


def _nothing_there(root: Path, path: Path, param: str, wanted: str) -> DataError:
    return DataError(
        f"{shown(root, path)} (from the param {param}) should be {wanted}",
        "it is a file" if path.is_file() else "there is nothing at that path",
        "Correct the param; paths are relative to the project root",
    )

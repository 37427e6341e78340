"""What a stage read then and what is here now, as `dvc.lock` tells it.

Somebody who edits a param or updates the library has changed what a log is held against; the
log is then not at fault, it is not checked. Files that a stage wrote excuse nothing while they
are not what that stage wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pathspec import PathSpec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.params.read import FILE as PARAMS

LOCK, IGNORE = "dvc.lock", ".dvcignore"
_ABSENT = object()


class Inputs:
    """The inputs of a workspace's stages."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._hashes: dict[str, str | None] = {}

    def changed(self, stage: str) -> list[str]:
        """Return the inputs of `stage` that are no longer what it read, params first; none
        where no lock tells."""
        recorded = self._stages.get(stage, {})
        asked = recorded.get("params", {}).get(PARAMS, {})
        params = [key for key, value in asked.items() if _at(self._params, key) != value]
        return params + [dep["path"] for dep in recorded.get("deps", ()) if self._moved(dep)]

    def _moved(self, dep: Mapping[str, Any]) -> bool:
        path = str(dep["path"])
        if self._hash(path) == dep.get("md5"):
            return False
        return all(self._hash(out["path"]) == out.get("md5") for out in self._writers(path))

    def _writers(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Yield the outputs of stages that hold the file `path`."""
        for stage in self._stages.values():
            for out in stage.get("outs", ()):
                if f"{path}/".startswith(f"{out['path']}/"):
                    yield out

    @cached_property
    def _stages(self) -> Mapping[str, Any]:
        found = self._yaml(LOCK)
        stages: Mapping[str, Any] = found.get("stages", {}) if isinstance(found, dict) else {}
        return stages

    @cached_property
    def _params(self) -> Any:
        return self._yaml(PARAMS)

    def _yaml(self, name: str) -> Any:
        path = self._workspace / name
        try:
            return (
                YAML(typ="safe").load(path.read_text("utf-8-sig")) if path.is_file() else None
            )
        except (OSError, ValueError, YAMLError):
            return None

    @cached_property
    def _ignored(self) -> PathSpec[Any]:
        path = self._workspace / IGNORE
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        return PathSpec.from_lines("gitignore", lines)

    def _hash(self, name: str) -> str | None:
        """Return what DVC records of a file or folder; None where there is none."""
        if name not in self._hashes:
            path = self._workspace / name
            self._hashes[name] = self._folder(path) if path.is_dir() else _md5(path)
        return self._hashes[name]

    def _folder(self, folder: Path) -> str:
        files = [
            {"md5": _md5(path), "relpath": path.relative_to(folder).as_posix()}
            for path in folder.rglob("*")
            if path.is_file() and not self._ignored.match_file(self._name(path))
        ]
        files.sort(key=lambda file: str(file["relpath"]))
        return f"{hashlib.md5(json.dumps(files, sort_keys=True).encode()).hexdigest()}.dir"

    def _name(self, path: Path) -> str:
        return path.relative_to(self._workspace).as_posix()


def _md5(path: Path) -> str | None:
    return hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else None


def _at(values: Any, key: str) -> Any:
    """Return the value of a dotted key."""
    for name in key.split("."):
        values = values.get(name, _ABSENT) if isinstance(values, dict) else _ABSENT
    return values

"""What DVC keeps of the files that are erased from: its lock and its cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


def settled_stages(workspace: Path) -> list[str]:
    """Return the stages whose files are those that dvc.lock names; [] without DVC."""
    if not (workspace / ".dvc").is_dir() or not (workspace / "dvc.lock").is_file():
        return []
    done = _dvc(workspace, "status", "--json")
    try:
        changed = json.loads(done.stdout)
        lock = YAML(typ="safe").load((workspace / "dvc.lock").read_text(encoding="utf-8"))
        return [name for name in lock["stages"] if name not in changed]
    except (ValueError, YAMLError, KeyError, TypeError):
        return []


def settle(workspace: Path, stages: Sequence[str]) -> list[str]:
    """Let dvc.lock and the cache follow what stages' files are now; return those it refused."""
    return [name for name in stages if _dvc(workspace, "commit", "-f", "-q", name).returncode]


def cached_files(workspace: Path, holds: Callable[[bytes], bool]) -> Iterator[Path]:
    """Yield the files of DVC's cache that hold the text."""
    said = _dvc(workspace, "cache", "dir") if (workspace / ".dvc").is_dir() else None
    if said is None or said.returncode:
        return
    for path in sorted(Path(said.stdout.strip()).rglob("*")):
        if path.is_file() and holds(path.read_bytes()):
            yield path


def _dvc(workspace: Path, *args: str) -> subprocess.CompletedProcess[str]:
    # Of a stage around this process; dvc would take it for its own.
    environ = {n: v for n, v in os.environ.items() if not n.startswith("DVC_")}
    command = [sys.executable, "-m", "dvc", *args]
    return subprocess.run(command, cwd=workspace, env=environ, capture_output=True, text=True)

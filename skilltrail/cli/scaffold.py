"""`new-env`: an environment of the workspace from `_template/`, with seed and first items."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic
from skilltrail.envs.registry import OWN, environment_names

TEMPLATE = Path(__file__).resolve().parents[1] / "envs" / "_template"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Folders of data/ and skills/seeds/ with another meaning, and names no Windows file may have.
_TAKEN = frozenset(
    {"none", "splits", "rollouts", "default", "prompts", "con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
)


def new_environment(root: Path, name: str) -> list[Path]:
    """Write a new environment below the project root and return its files.

    Nothing that exists is written over.

    Raises:
        UsageError: the name cannot be used, or a file of that environment exists.
    """
    _check_name(name)
    files = {
        target: _named(source.read_text(encoding="utf-8"), name)
        for source, target in _plan(root, name)
    }
    taken = [path for path in (*files, root / OWN / name) if path.exists()]
    if taken:
        raise UsageError(
            f"new-env {name}",
            f"{taken[0].relative_to(root).as_posix()} exists already",
            "Choose another name, or remove what stands there",
        )
    for path, text in files.items():
        write_atomic(path, text)
    return list(files)


def _check_name(name: str) -> None:
    if name in environment_names():
        raise UsageError(f"new-env {name}", "there is one so called", "Choose another name")
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in _TAKEN:
        raise UsageError(
            f"new-env {name[:60]}",
            "an environment's name is a folder, a Python module and a key of params.yaml",
            "Choose a lower-case word of letters, digits and underscores, such as my_benchmark",
        )


def _plan(root: Path, name: str) -> list[tuple[Path, Path]]:
    """Return (template file, where it goes) for each file."""
    plan = []
    for source in sorted(TEMPLATE.rglob("*")):
        inside = source.relative_to(TEMPLATE)
        if not source.is_file() or "__pycache__" in inside.parts:
            continue
        if inside.as_posix() == "seed.md":
            target = root / "skills" / "seeds" / f"{name}.md"
        elif inside.parts[0] == "data":
            target = root / "data" / name / inside.name
        else:
            target = root / OWN / name / inside
        plan.append((source, target))
    return plan


def _named(text: str, name: str) -> str:
    """Return a template's text with the new name in place of its own."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    return re.sub(r"\bTemplate(?=\b|Params)", camel, text.replace("_template", name))

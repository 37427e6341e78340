"""A trained skill as the SKILL.md of an agent, and what stands there now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.runtime.console import say
from skilltrail.skill.skill_file import SKILL_MD, skill_md, slug


def as_skill_md(
    text: str, started: Any, name: str | None, description: str | None, path: Path, live: str
) -> str:
    """Return a trained skill as the SKILL.md for `path`, where `live` stands now.

    What neither options nor a frontmatter tell is made from folder and run.
    """
    folder = None
    if path.name == SKILL_MD:
        folder = Path(os.path.realpath(path)).parent.name
        if name is not None and name != folder:
            say(f"note: the folder is {folder}; agents look for a skill {name} in one named so")
    env = str(started["env"])
    told = f"Use for tasks like those of {env}. Trained on {len(started['train'])} examples."
    otherwise = (slug(env), told)
    return skill_md(text, name, description, live=live, folder=folder, otherwise=otherwise)


def place_of(target: Path) -> Path:
    """Return where a skill goes that is to go to `target`: a file, or SKILL.md in a folder."""
    is_folder = target.is_dir() or (target.suffix == "" and not target.exists())
    return target / SKILL_MD if is_folder else target


def live_text(path: Path) -> str:
    """Return what stands at `path` now, "" for nothing (and for stdout).

    Raises:
        UsageError: it is no UTF-8 text.
    """
    try:
        return "" if str(path) == "-" else path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read", str(error), "Name a UTF-8 text file"
        ) from error

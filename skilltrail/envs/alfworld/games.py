"""Which game a record names, and what kinds of task there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from skilltrail.envs.kit.fields import optional_text, shown, text
from skilltrail.envs.kit.files import find_named
from skilltrail.envs.protocol import Where

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
GAME = "game.tw-pddl"
_NEEDED = ("pddl_domain", "grammar", "pddl_problem")
# The official folders of the three splits.
SPLIT_FOLDERS = {"train": "train", "selection": "valid_seen", "test": "valid_unseen"}


def find_game(
    record: Mapping[str, Any], folders: Sequence[Path], where: Where
) -> tuple[str, Path, str | None]:
    """Return (name, file, task words) of a record's game.

    `gamefile` names a `game.tw-pddl`; our own items have `problem` (PDDL) and `task` instead.

    Raises:
        DataError: no such file, or it is no game.
    """
    if record.get("problem") is not None:
        name = text(record, "problem", where)
        return name, find_named(name, folders, "problem", where), text(record, "task", where)
    name = text(record, "gamefile", where)
    path = find_named(name, folders, "gamefile", where)
    _check(path, where)
    return name, path, None


def task_type_of(record: Mapping[str, Any], name: str, where: Where) -> str:
    """Return the record's task type, or else that of the game's folder name.

    Raises:
        DataError: it is none of `TASK_TYPES`.
    """
    said = optional_text(record, "task_type", where)
    found = said if said is not None else _type_in(name)
    if found not in TASK_TYPES:
        raise where.error("task_type", shown(found), f"Choose of {', '.join(TASK_TYPES)}")
    return found


def records_below(folder: Path, root: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield a record for every game below `folder`, in order of their paths.

    Works with whole trees of json_2.1.1 and with game files alone; `traj_data.json` is not
    needed. Files are named from `root` on (default: `folder`); ids are the folder's name and a
    number of four digits, counted in that order.
    """
    paths = sorted(folder.rglob(GAME), key=lambda path: path.as_posix())
    for number, path in enumerate(paths):
        name = path.relative_to(folder if root is None else root).as_posix()
        kind = _type_in(path.as_posix())
        if kind is not None:
            yield {"id": f"{folder.name}:{number:04d}", "gamefile": name, "task_type": kind}


def _type_in(name: str) -> str | None:
    """Return the task type that a folder `<type>-<Object>-…` of a path begins with."""
    for part in reversed(PurePosixPath(name).parts):
        kind = part.partition("-")[0]
        if kind in TASK_TYPES:
            return kind
    return None


def _check(path: Path, where: Where) -> None:
    try:
        game = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise where.error(
            "gamefile", f"{path.name} cannot be read: {shown(str(error))}", "Download it again"
        ) from error
    absent = [key for key in _NEEDED if not isinstance(game, dict) or key not in game]
    if absent:
        raise where.error(
            "gamefile",
            f"{path.name} has no {', '.join(absent)}",
            f"Name a {GAME} of json_2.1.1",
        )

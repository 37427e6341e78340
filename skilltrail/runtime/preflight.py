"""What a run in a workspace of its own (`dvc exp run --temp`, the queue) would not find.

DVC fills such a workspace from git: a file that git does not know stays behind. A missing file
stops the run; a folder that travels without some of its files would silently train on less.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skilltrail.core.errors import UsageError
from skilltrail.history.git.repository import Git
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.store.place import Place

CODE = ("dvc.yaml", "params.yaml", "stages", "envs", "skilltrail", "schemas")
OUTPUTS = ":(exclude)reports/out"
SHOWN = 10


def input_paths(params: Params) -> list[str]:
    """Return the paths a run reads, relative to the project: code, items, seed skill."""
    data = params.data
    named = [f"data/{params.env}", data.path, data.split_dir, seed_skill_path(params)]
    named.append(params.judge.rubric)
    return list(dict.fromkeys([*CODE, *named]))


def left_behind(root: Path, paths: Sequence[str]) -> list[str]:
    """Return the files below `paths` that would not reach another workspace, sorted.

    These are files that neither git nor DVC tracks, and paths that lead out of the project.
    Outside a git repository there is no other workspace: nothing is left behind.
    """
    outside = [path for path in paths if leads_out(path)]
    inside = [path for path in paths if path not in outside and (root / path).exists()]
    git = Git.at_hand(root)
    if git is None:
        return []
    untracked: list[str] = []
    for path in inside:
        # Git says no to a path outside of it, or beyond a link: nothing to add there.
        said = git.ask("ls-files", "-z", "-o", "--exclude-standard", "--", path, OUTPUTS)
        untracked += [] if said is None else [os.fsdecode(n) for n in said.split(b"\0") if n]
    # What git ignores travels only when DVC tracks it; code that git ignores is no input.
    mute = ("check-ignore", "--quiet", "--")
    ignored = [p for p in inside if p not in CODE and git.ask(*mute, p) is not None]
    return sorted({*outside, *untracked, *(path for path in ignored if not by_dvc(root, path))})


def refuse_left_behind(place: Place, params: Params) -> None:
    """Stop a run in a temporary workspace that lacks files of the main one.

    Raises:
        UsageError: names the files.
    """
    if not place.is_temporary:
        return
    files = left_behind(place.root, input_paths(params))
    if files:
        more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
        raise UsageError(
            "This experiment runs in a workspace of its own",
            f"git does not track these files, so they are not in it: "
            f"{', '.join(files[:SHOWN])}{more}",
            "`git add` them (or remove them) and start the experiment again",
        )


def leads_out(path: str) -> bool:
    """Return whether a relative path leads out of the project; an absolute one is found."""
    return not os.path.isabs(path) and os.path.normpath(path).split(os.sep)[0] == os.pardir


def by_dvc(root: Path, path: str) -> bool:
    """Return whether a `.dvc` file beside a path, or beside a folder above it, tracks it."""
    place = Path(path)
    return any((root / f"{one}.dvc").is_file() for one in (place, *place.parents[:-1]))

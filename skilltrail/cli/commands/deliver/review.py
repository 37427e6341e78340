"""`skilltrail ci`, `pr`, `check-commit`: a run before the eyes of those who merge it."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.options import JSON
from skilltrail.core.errors import FaultError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.runtime.console import emit, emit_exact, emit_json, say

PAGE = ".skilltrail/pr.md"


def ci(
    min_gain: Annotated[
        float | None,
        typer.Option(help="Fail unless the lower end of the gain's interval is above this."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of `evaluate --json`, in place of the last run."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="- is stdout.")
    ] = Path("-"),
    as_json: JSON = False,
) -> None:
    """Write a comment for a pull request: scores, the skill's diff, why each change was made.

    Exit 1 where a threshold was set and is not passed.

    Example: skilltrail ci --min-gain 0 -o comment.md
    """
    from skilltrail.cli import review
    from skilltrail.report.comment import markdown, verdict

    if min_gain is not None and not math.isfinite(min_gain):
        raise UsageError(f"--min-gain {min_gain}", "no number to be above", "Say 0, or 0.05")
    told = (
        review.of_run(min_gain) if measured is None else review.of_measured(measured, min_gain)
    )
    text = markdown(told)
    if as_json:
        gain = None if told.gain is None else vars(told.gain)
        emit_json({"passed": told.passed, "gain": gain, "least": min_gain, "comment": text})
    elif str(output) == "-":
        emit_exact(text)
    if str(output) != "-":
        write_atomic(output, text)
        say(f"wrote {output}")
    if not told.passed:
        remedy = "Train longer or on more items, or lower --min-gain"
        raise FaultError("The gain on held-out items", verdict(told), remedy)


def pr(
    branch: Annotated[
        str | None, typer.Option(help="Its name; default: skilltrail/ and the run's name.")
    ] = None,
    adopt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A live skill file that is to hold the best skill."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Write a branch that holds the last run, and the page for its pull request.

    The branch is one commit on HEAD: the run's results, its params, its seed skill and its
    items. HEAD, index and work tree stay as they are.

    Example: skilltrail pr --adopt .claude/skills/prices/SKILL.md
    """
    from skilltrail.cli import review
    from skilltrail.cli.proposal import propose
    from skilltrail.report.comment import markdown
    from skilltrail.store.place import find_place

    place, told = find_place(), review.of_run(None)
    made = propose(place, told, branch, adopt)
    page = place.workspace / PAGE
    write_atomic(page, markdown(told))
    push = f"git push {made.remote} {shlex.quote(made.branch)}"
    title = shlex.quote(made.title)
    open_ = f"gh pr create --head {shlex.quote(made.branch)} --title {title} --body-file {PAGE}"
    if as_json:
        about = {"branch": made.branch, "commit": made.commit, "files": made.files}
        emit_json(about | {"page": PAGE, "title": made.title, "next": [push, open_]})
        return
    emit(f"branch  {made.branch}, {made.commit[:12]}: {made.title}")
    for name in made.files:
        emit(f"        {name}")
    emit(f"page    {PAGE}")
    emit("next:")
    emit(f"  {push}")
    emit(f"  {open_}")


def check_commit(as_json: JSON = False) -> None:
    """Refuse a commit whose best skill no training wrote: what git's pre-commit hook runs.

    Looks at what is staged: each `skills/best_skill.md` must be the best version of the
    `skills/events.jsonl` beside it.

    Example: skilltrail check-commit
    """
    from skilltrail.verify.staged import staged_faults

    checked, faults = staged_faults(Path.cwd())
    if as_json:
        emit_json({"checked": checked, "faults": [list(fault) for fault in faults]})
    if not faults:
        if not as_json:
            emit(f"{len(checked)} best skill{'' if len(checked) == 1 else 's'} as trained")
        return
    for path, found in faults[1:]:
        say(f"{path}: {found}")
    path, found = faults[0]
    name = shlex.quote(path)
    raise FaultError(
        f"{path} is not what training wrote",
        found,
        f"To train on from your text: `skilltrail fork {name}`, then `git restore --staged "
        f"--worktree {name}`; a run's files are committed together",
    )

"""`skilltrail adopt`: show what a trained skill changes in a live skill file, then write it.

Exit codes: 0 there is something to adopt, and the file (with --propose: the proposal) holds it;
1 there is nothing, because the run accepted no change or the person said no; 2 wrong use.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.commands.export import as_skill_md
from skilltrail.cli.commands.history import skill_of
from skilltrail.core.errors import SkillError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.history.ask.sources import Project, Skill
from skilltrail.runtime.console import emit, say
from skilltrail.skill.diffs import unified_diff
from skilltrail.skill.structure import structure_faults
from skilltrail.store.place import find_place

PROPOSAL = Path("reports/out/proposal")
SKILL_MD = "SKILL.md"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("adopt")(adopt)


def adopt(
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="Live skill file, or folder for SKILL.md.")
    ],
    skill: Annotated[
        str, typer.Option(help="best, last, vN, RUN:vN, a DVC experiment, a revision, a file.")
    ] = "best",
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    propose: Annotated[
        bool, typer.Option("--propose", help=f"Only write {PROPOSAL}/, for review elsewhere.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name in SKILL.md.")] = None,
    description: Annotated[str | None, typer.Option(help="Description in SKILL.md.")] = None,
) -> None:
    """Show the diff that a trained skill makes to a live skill file; write it if you agree.

    Writes that one file and nothing else; params, code and data stay as they are.

    Example: skilltrail adopt .claude/skills/trees --skill best
    """
    place = find_place()
    found = skill_of(Project(place.workspace, place.root), skill)
    path = target / SKILL_MD if target.is_dir() or target.suffix == "" else target
    proposal = place.workspace / PROPOSAL
    clear(proposal)
    if found.story is not None and found.version == 0:
        emit(f"nothing to adopt: {skill} is the seed skill, no change was accepted")
        raise typer.Exit(1)
    text = _text(found, path, name, description)
    standing = _standing(path)
    diff = unified_diff(standing, text, path.name)
    if not diff:
        emit(f"{path} holds this skill already")
        return
    emit(diff)
    if propose:
        write_atomic(proposal / path.name, text)
        write_atomic(proposal / f"{path.name}.diff", diff)
        say(f"proposed in {PROPOSAL}/; {path} is untouched")
        return
    if not yes and not _agreed(path):
        say(f"{path} is untouched")
        raise typer.Exit(1)
    write_atomic(path, text)
    say(f"wrote {path}")


def clear(proposal: Path) -> None:
    """Remove an earlier proposal, so that one stands exactly when something was accepted."""
    if proposal.is_dir():
        for file in proposal.iterdir():
            file.unlink()
        proposal.rmdir()


def _text(found: Skill, path: Path, name: str | None, description: str | None) -> str:
    faults = structure_faults(found.text)
    if faults:
        raise SkillError(f"skill {found.name}", "; ".join(faults), "Choose another version")
    if path.name != SKILL_MD and name is None and description is None:
        return found.text
    started = {"env": Path(os.path.realpath(path)).parent.name, "train": []}
    if found.story is not None:
        started = dict(found.story.start.data)
    return as_skill_md(found.text, started, name, description)


def _standing(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read", str(error), "Name a UTF-8 text file"
        ) from error


def _agreed(path: Path) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            f"Writing {path}", "nobody is here to agree", "--yes to write, --propose to propose"
        )
    return typer.confirm(f"Write {path}?", default=False, err=True)

"""`skilltrail adopt`: show what a trained skill changes in a live skill file, then write it.

New lines that carry a risk (comments, paths, credentials, sending, tools, links, …) are shown
apart, and each is asked about. Exit codes: 0 there is something to adopt, and the file (with
--propose: the proposal) holds it; 1 there is nothing, because the run accepted no change or the
person said no; 2 wrong use.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.skill_files import as_skill_md, live_text
from skilltrail.cli.sources import project, skill_of
from skilltrail.core.errors import SkillError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.history.ask.sources import Skill
from skilltrail.runtime.console import emit, safe, say
from skilltrail.skill.document import unified_diff
from skilltrail.skill.risks import RiskyLine, risks_told, risky_lines
from skilltrail.skill.skill_file import SKILL_MD
from skilltrail.skill.structure import structure_faults

PROPOSAL = Path("reports/out/proposal")


def adopt(
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="Live skill file, or folder for SKILL.md.")
    ],
    skill: Annotated[
        str, typer.Option(help="best, last, vN, RUN:vN, a DVC experiment, a revision, a file.")
    ] = "best",
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    risky: Annotated[
        bool, typer.Option("--risky", help="With --yes: take risky lines too, unasked.")
    ] = False,
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
    here = project()
    found = skill_of(here, skill)
    path = target / SKILL_MD if target.is_dir() or target.suffix == "" else target
    proposal = here.workspace / PROPOSAL
    clear(proposal)
    if found.story is not None and found.version == 0:
        emit(f"nothing to adopt: {skill} is the seed skill, no change was accepted")
        raise typer.Exit(1)
    live = live_text(path)
    text = _text(found, path, live, name, description)
    if not (diff := unified_diff(live, text, path.name)):
        emit(f"{path} holds this skill already")
        return
    emit(diff)
    lines = risky_lines(text, live)
    if lines:
        say(f"new lines to review: {risks_told(lines)}")
    if propose:
        risks = "".join(map(_told, lines))
        for end, told in {"": text, ".diff": diff, ".risks.txt": risks}.items():
            write_atomic(proposal / f"{path.name}{end}", told)
        say(f"proposed in {PROPOSAL}/; {path} is untouched")
        return
    _require_yes(path, lines, yes=yes, risky=risky)
    write_atomic(path, text)
    say(f"wrote {path}")


def clear(proposal: Path) -> None:
    """Remove an earlier proposal, so that one stands exactly when something was accepted."""
    if proposal.is_dir():
        for file in proposal.iterdir():
            file.unlink()
        proposal.rmdir()


def _text(
    found: Skill, path: Path, live: str, name: str | None, description: str | None
) -> str:
    faults = structure_faults(found.text)
    if faults:
        raise SkillError(f"skill {found.name}", "; ".join(faults), "Choose another version")
    if path.name != SKILL_MD and name is None and description is None:
        return found.text
    started = {"env": "skill", "train": []} if found.story is None else found.story.start.data
    return as_skill_md(found.text, started, name, description, path, live)


def _told(line: RiskyLine) -> str:
    """Return a risky line as a line of text: number, risks, what it says."""
    return safe(f"{line.line}: [{', '.join(r.value for r in line.risks)}] {line.text}") + "\n"


def _require_yes(path: Path, lines: Sequence[RiskyLine], *, yes: bool, risky: bool) -> None:
    """Ask about each risky line, then about the file; the first no ends the command.

    Raises:
        UsageError: there is something to ask and nobody to answer.
    """
    if yes and (risky or not lines):
        return
    if not sys.stdin.isatty():
        for line in lines:
            say(_told(line).removesuffix("\n"))
        told = f"{len(lines)} new lines need a yes each" if lines else "not interactive"
        remedy = "Use --yes --risky to take them unasked" if lines else "use --yes to write"
        raise UsageError(f"Writing {path}", told, f"{remedy}, --propose to propose")
    questions = [f"{_told(line)}Keep this line?" for line in lines]
    for question in questions if yes else [*questions, f"Write {path}?"]:
        if not typer.confirm(question, default=False, err=True):
            say(f"{path} is untouched")
            raise typer.Exit(1)

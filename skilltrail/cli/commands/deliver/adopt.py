"""`skilltrail adopt`: show what a trained skill changes in a live skill file, then write it.

New lines that carry a risk (comments, paths, credentials, sending, tools, links, …) are shown
apart, and each is asked about. Exit codes: 0 there is something to adopt, and the file (with
--propose: the proposal) holds it; 1 there is nothing, because the run accepted no change or the
person said no; 2 wrong use.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.adoption import FileChange, Risk, page, put_on_branch, risk_text
from skilltrail.cli.skill_files import as_skill_md, live_text, place_of
from skilltrail.cli.sources import project, skill_of
from skilltrail.core.errors import SkillError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.history.ask.sources import Project, SkillFound
from skilltrail.runtime.console import emit, say
from skilltrail.skill.folder import files_of, main_text
from skilltrail.skill.risks import risks_text
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
    branch: Annotated[
        str | None, typer.Option(help="With --propose: also a commit on HEAD on this branch.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name in SKILL.md.")] = None,
    description: Annotated[str | None, typer.Option(help="Description in SKILL.md.")] = None,
) -> None:
    """Show the diff that a trained skill makes to a live skill file; write it if you agree.

    Writes that one file (of a skill folder its files) and nothing else; params, code and data
    stay as they are.

    Example: skilltrail adopt .claude/skills/trees --skill best
    Example: skilltrail adopt .claude/skills/trees --propose --branch proposal/trees
    """
    if branch is not None and not propose:
        raise UsageError("--branch", "no --propose", "Use both: nothing live is written then")
    here = project()
    found = skill_of(here, skill)
    path = place_of(target)
    clear(here.workspace / PROPOSAL)
    if found.log is not None and found.version == 0:
        emit(f"nothing to adopt: {skill} is the seed skill, no change was accepted")
        raise typer.Exit(1)
    changes = changes_of(found, path, name, description)
    if not changes:
        emit(f"{path} holds this skill already")
        return
    emit("".join(one.diff for one in changes))
    risks = [risk for one in changes for risk in one.risks]
    if risks:
        say(f"new lines to review: {risks_text(line for _, line in risks)}")
    if propose:
        write_proposal(here, found, path, changes, branch)
        return
    _require_yes(path, risks, yes=yes, risky=risky)
    _write(changes)


def _write(changes: Sequence[FileChange]) -> None:
    for one in changes:
        if one.text is None:
            one.path.unlink()
            say(f"removed {one.path}")
        else:
            write_atomic(one.path, one.text)
            say(f"wrote {one.path}")


def changes_of(
    found: SkillFound, path: Path, name: str | None, description: str | None
) -> list[FileChange]:
    """Return the files that adopting changes, the skill's first; files beside them stay.

    One that an earlier version of the run has, and the skill has not, goes.
    """
    rest = list(files_of(found.text))[1:]
    if rest and path.name != SKILL_MD:
        raise UsageError(f"{path}", "the skill is a folder", "Name a folder")
    changes = [FileChange(path.name, path, live := live_text(path),
                      _text(found, path, live, name, description))]  # fmt: skip
    for inner in rest:
        there = path.parent / inner
        changes.append(FileChange(inner, there, live_text(there), files_of(found.text)[inner]))
    for inner in _removed(found):
        there = path.parent / inner
        if there.is_file():
            changes.append(FileChange(inner, there, live_text(there), None))
    return [one for one in changes if one.live != one.text]


def _removed(found: SkillFound) -> list[str]:
    """Return the files of earlier versions that a run's skill no longer has."""
    if found.log is None or found.version is None:
        return []
    earlier = found.log.versions[: found.version]
    had = {path for version in earlier for path in files_of(version.text)}
    return sorted(had - files_of(found.text).keys())


def write_proposal(
    here: Project,
    found: SkillFound,
    path: Path,
    changes: Sequence[FileChange],
    branch: str | None,
    scores: str = "",
) -> None:
    """Write the files as they would be, their diff, the lines to look at and the page."""
    folder = here.workspace / PROPOSAL
    text = page(found, path, changes, scores, "" if branch is None else branch)
    if branch is not None:
        commit = put_on_branch(here.workspace, branch, changes, text.removeprefix("# "))
        say(f"branch {branch} holds it as {commit[:10]}; HEAD is where it was")
    texts = {one.name: one.text for one in changes if one.text is not None}
    texts |= {"proposal.md": text}
    texts[f"{path.name}.diff"] = "".join(one.diff for one in changes)
    risks = (risk for one in changes for risk in one.risks)
    texts[f"{path.name}.risks.txt"] = "".join(map(risk_text, risks))
    for name, one in texts.items():
        write_atomic(folder / name, one)
    say(f"proposed in {PROPOSAL}/; {path} is untouched")


def clear(proposal: Path) -> None:
    """Remove an earlier proposal, so that one stands exactly when something was accepted."""
    if proposal.is_dir():
        shutil.rmtree(proposal)


def _text(
    found: SkillFound, path: Path, live: str, name: str | None, description: str | None
) -> str:
    faults = structure_faults(found.text)
    if faults:
        raise SkillError(f"skill {found.name}", "; ".join(faults), "Choose another version")
    if path.name != SKILL_MD and name is None and description is None:
        return main_text(found.text)
    started = {"env": "skill", "train": []} if found.log is None else found.log.start.data
    return as_skill_md(main_text(found.text), started, name, description, path, live)


def _require_yes(path: Path, lines: Sequence[Risk], *, yes: bool, risky: bool) -> None:
    """Ask about each risky line, then about the file; the first no ends the command.

    Raises:
        UsageError: there is something to ask and nobody to answer.
    """
    if yes and (risky or not lines):
        return
    if not sys.stdin.isatty():
        for line in lines:
            say(risk_text(line).removesuffix("\n"))
        why = f"{len(lines)} new lines need a yes each" if lines else "not interactive"
        remedy = "Use --yes --risky to take them unasked" if lines else "use --yes to write"
        raise UsageError(f"Writing {path}", why, f"{remedy}, --propose to propose")
    questions = [f"{risk_text(line)}Keep this line?" for line in lines]
    for question in questions if yes else [*questions, f"Write {path}?"]:
        if not typer.confirm(question, default=False, err=True):
            say(f"{path} is untouched")
            raise typer.Exit(1)

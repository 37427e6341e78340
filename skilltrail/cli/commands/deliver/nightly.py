"""`skilltrail nightly`: harvest, train within a budget, evaluate, propose; never adopt.

For cron and CI. The training is a DVC experiment in a workspace of its own, so nothing of the
work tree changes; what it gives is a page and a branch for a person. Items that nobody has
accepted are proposed (`skilltrail harvest review`) and never trained on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from skilltrail.cli.commands.deliver.adopt import PROPOSAL, changes_of, clear, write_proposal
from skilltrail.cli.commands.measure.arena import dvc
from skilltrail.cli.options import JSON
from skilltrail.cli.skill_files import place_of
from skilltrail.cli.sources import project
from skilltrail.core.canon import digest
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.core.layout import METRICS
from skilltrail.data.sessions.proposals import ITEMS
from skilltrail.history.ask.sources import Project, experiment_log, find_skill
from skilltrail.params.sections import NO_DATA
from skilltrail.runtime.console import emit, emit_json, say


def nightly(
    target: Annotated[Path, typer.Argument(metavar="SKILL", help="Live skill: file or folder")],
    source: Annotated[
        str | None, typer.Option("--from", help="Sessions: claude, codex, or a folder.")
    ] = None,
    into: Annotated[Path, typer.Option("--into", help="Folder of their items.")] = Path(
        "data/sessions"
    ),
    calls: Annotated[
        int, typer.Option(min=1, help="Target calls that the training may make.")
    ] = 500,
    set_param: Annotated[
        list[str] | None, typer.Option("-S", metavar="KEY=VALUE", help="A param, as for DVC.")
    ] = None,
    branch: Annotated[
        str, typer.Option(help="Branch of the proposal; it replaces the last night's.")
    ] = "skilltrail/nightly",
    as_json: JSON = False,
) -> None:
    """Harvest, train within a budget, evaluate and propose; a person adopts, or does not.

    Exit code 0: there is a proposal; 1: there is none. What is trained on must be committed.

    Example: skilltrail nightly .claude/skills/trees --from claude --calls 500
    """
    here = project()
    clear(here.workspace / PROPOSAL)
    asked = [f"stop.calls={calls}", *([] if set_param is None else set_param)]
    told: dict[str, Any] = {"proposed": None, "branch": None, "experiment": None}
    if source is not None:
        told["harvested"] = _harvest(here, source, into, as_json=as_json)
        if not (here.workspace / into / ITEMS).is_file():
            _end(told, f"no item of {into} is accepted yet: skilltrail harvest review",
                 as_json=as_json)  # fmt: skip
        items = f"data.path={(into / ITEMS).as_posix()}"
        asked = ["env=qa", items, f"data.split_dir={NO_DATA}", *asked]
    name, baseline = _train(here, asked)
    told["experiment"] = name
    why = _propose(
        here, f"{name}:best", place_of(target), branch, _scores(here, name, baseline)
    )
    if why is not None:
        _end(told, why, as_json=as_json)
    told |= {"proposed": f"{PROPOSAL.as_posix()}/proposal.md", "branch": branch}
    if as_json:
        emit_json(told)
    else:
        emit(f"{told['proposed']}, on branch {branch}")


def _propose(here: Project, skill: str, path: Path, branch: str, scores: str) -> str | None:
    """Write the proposal; return why there is nothing to propose, None where there is."""
    found = find_skill(here, skill)
    if not found.version:
        return f"{skill} is the seed skill, no change was accepted"
    changes = changes_of(found, path, None, None)
    if not changes:
        return f"{path} holds this skill already"
    write_proposal(here, found, path, changes, branch, scores)
    return None


def _end(told: dict[str, Any], why: str, *, as_json: bool) -> None:
    if as_json:
        emit_json(told | {"why": why})
    else:
        emit(f"nothing to propose: {why}")
    raise typer.Exit(1)


def _harvest(here: Project, source: str, into: Path, *, as_json: bool) -> int:
    """Write proposed items for a person, and return how many they are."""
    from skilltrail.cli.commands.start.harvest import collected

    done, waiting = collected(source, here.workspace / into)
    if waiting:
        say(f"{waiting} items wait for a person: skilltrail harvest review")
    return len(done.proposals)


def _train(here: Project, asked: list[str]) -> tuple[str, str]:
    """Train and evaluate as an experiment on HEAD, unless it is there; return its name, and
    the commit it is on.

    Raises:
        UsageError: there is no commit.
        SkilltrailError: the experiment failed; what it paid for is kept.
    """
    from skilltrail.history.git.repository import Git
    from skilltrail.history.log.erasure import end_of

    git = Git.find(here.root)
    if git is None or git.ask("rev-parse", "--verify", "--quiet", "HEAD") is None:
        raise UsageError("skilltrail nightly", "no commit is here", "Commit the workspace")
    baseline = git.resolve("HEAD")
    name = f"nightly-{digest('nightly/1', [baseline, *asked])[:10]}"
    events = experiment_log(here, name, baseline)
    if events is not None and end_of(events) is not None:
        say(f"{name} is there: nothing new is committed since")
        return name, baseline
    options = [word for one in asked for word in ("-S", one)]
    done = dvc(here, "exp", "run", "--temp", "--force", "--name", name, *options, shown=True)
    if done.returncode or experiment_log(here, name, baseline) is None:
        raise SkilltrailError(
            f"dvc exp run --temp --name {name}",
            f"exit code {done.returncode}",
            "The lines above say why; the same command resumes",
        )
    return name, baseline


def _scores(here: Project, name: str, baseline: str) -> str:
    """Return what the experiment's metrics say, as a table of the page."""
    from skilltrail.history.git.repository import Git

    git = Git.find(here.root)
    ref = f"refs/exps/{baseline[:2]}/{baseline[2:]}/{name}"
    raw = None if git is None else git.ask("show", f"{ref}:{git.prefix}{METRICS.as_posix()}")
    test = {} if raw is None else json.loads(raw).get("test") or {}
    rows = [f"| {key} | {value} |" for key, value in sorted(test.items())
            if isinstance(value, (int, float, str))]  # fmt: skip
    if not rows:
        return "The test split was not opened."
    return "\n".join(["## Test split", "", "| | |", "|---|---|", *rows])

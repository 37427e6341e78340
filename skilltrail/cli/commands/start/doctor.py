"""`skilltrail doctor` and `back`: what is broken here, and the way back to HEAD's run."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from skilltrail.cli.checks import FAULT, probe_checks, run_checks
from skilltrail.cli.commands.start.envs import contract_checks
from skilltrail.cli.options import JSON, SET_PARAM
from skilltrail.cli.repair.back import back as take_back
from skilltrail.cli.repair.case import Site
from skilltrail.cli.repair.doctor import findings, fix_all
from skilltrail.history.git.repository import Git
from skilltrail.models.environ import redactor
from skilltrail.runtime.console import asked, emit, emit_json, say, table
from skilltrail.runtime.workspace import changes_of, params_with
from skilltrail.store.place import find_place


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Fix what kills left in git, .dvc and dvc.lock.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: ask nothing.")] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Inputs that git does not track are a fault.")
    ] = False,
    env: Annotated[
        str | None, typer.Option("--env", help="Check this environment's contract instead.")
    ] = None,
    probe: Annotated[
        bool, typer.Option(help="Make one call to each configured model that is not embedded.")
    ] = True,
    set_param: SET_PARAM = None,
    as_json: JSON = False,
) -> None:
    """Check the set-up and say how to fix what is wrong; exit 1 when something is.

    `--fix` loses nothing: what it writes over is kept in .skilltrail/kept.

    Example: skilltrail doctor -S env=qa
    Example: skilltrail doctor --fix --yes
    Example: skilltrail doctor --queue && dvc exp run --queue -S lr=8
    """
    place, changes = find_place(), changes_of([] if set_param is None else set_param)
    if fix:
        case = Site(place, Git.at_hand(place.root), ask=lambda text: yes or asked(text))
        if findings(case):
            for done in fix_all(case):
                say(done)
            if case.kept.names:
                say(str(case.kept))
    if env is None:
        checks = run_checks(place, changes, queue=queue)
        if probe and not any(
            check.name == "params" and check.verdict == FAULT for check in checks
        ):
            checks += probe_checks(params_with(place.workspace, changes))
    else:
        checks = contract_checks(place.workspace, env)
    hide = redactor().text  # a key that was put where a name belongs is not printed
    checks = [replace(one, found=hide(one.found), remedy=hide(one.remedy)) for one in checks]
    if as_json:
        emit_json(checks)
    else:
        rows = [(check.verdict, check.name, check.found, check.remedy) for check in checks]
        table(("", "what", "found", "to do"), rows)
    if any(check.verdict == FAULT for check in checks):
        raise typer.Exit(1)


def back(as_json: JSON = False) -> None:
    """Take branch, params, dvc.lock, data, skill and report back to the run of HEAD.

    After an experiment, finished, killed or stopped. Whatever no commit holds is copied to
    .skilltrail/kept first; recorded calls, and files that no stage writes, stay as they are.

    Example: dvc exp run -S lr=8; skilltrail back
    """
    place = find_place()
    case = Site(place, Git.find(place.root), ask=lambda question: True)
    steps = []
    for done in take_back(case):
        steps.append(done)
        if not as_json:
            emit(done)
    if as_json:
        emit_json({"done": steps, "kept": case.kept.folder})
    elif case.kept.names:
        emit(str(case.kept))

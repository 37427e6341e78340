"""The checks of `skilltrail doctor`: each says what it found and how to fix it.

Every role that calls a model is probed with one call.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from skilltrail import __version__
from skilltrail.cli.forecast import roles_of
from skilltrail.cli.repair.at_work import Worker, workers
from skilltrail.cli.repair.case import Site
from skilltrail.cli.repair.doctor import findings
from skilltrail.cli.repair.journal import torn_lines
from skilltrail.core.errors import SkilltrailError
from skilltrail.data.freeze import look_at_items
from skilltrail.data.load import SourceRead
from skilltrail.envs.protocol import Environment
from skilltrail.history.git.head import Head, head_of
from skilltrail.history.git.merging import meeting_of
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.git.under_way import UnderWay, under_way
from skilltrail.models.backends.weights import find_weights
from skilltrail.models.judge import read_rubric
from skilltrail.models.probe import ProbeResult, probe
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.params.model_options import EMBEDDED_BACKENDS
from skilltrail.runtime.preflight import input_paths, left_behind
from skilltrail.runtime.template import require_library
from skilltrail.runtime.workspace import environment_of, params_with
from skilltrail.skill.folder import MAIN
from skilltrail.store.maintenance import examine
from skilltrail.store.place import Place

OK, WARNING, FAULT = "ok", "warning", "fault"
_FEW = 4  # files that a warning names


@dataclass(frozen=True)
class Health:
    """One check: its name, `ok`, `warning` or `fault`, what was found, what to do."""

    name: str
    verdict: str
    found: str
    remedy: str = ""


def run_checks(
    place: Place, changes: Mapping[str, Any] | None = None, *, queue: bool = False
) -> list[Health]:
    """Return all checks of a run, here with `changes` to params.yaml.

    `queue`: files that git does not track are faults, not warnings.
    """
    busy = workers(place.root)
    checks = [python_check(), git_check(place.root, busy), package_check("dvc")]
    checks += [store_check(place), library_check(place.workspace), *state_checks(place, busy)]
    checks += merge_checks(place.workspace)
    try:
        params = params_with(place.workspace, {} if changes is None else changes)
    except SkilltrailError as error:
        return [*checks, Health("params", FAULT, str(error), "Correct params.yaml")]
    checks += [Health("params", OK, "params.yaml is valid"), *model_checks(params)]
    checks += [seed_check(params, place.workspace), *judge_checks(params, place.workspace)]
    checks += software_checks(environment_of(params))
    checks += data_checks(params, place.workspace)
    return [*checks, untracked_check(params, place.root, queue=queue)]


def software_checks(environment: Environment) -> list[Health]:
    """Check what an environment needs besides Python; [] where it finds all."""
    return [
        Health(
            f"{environment.name}: {one.what}",
            FAULT if one.needed else WARNING,
            one.found,
            one.remedy,
        )
        for one in environment.requirements()
    ]


def python_check() -> Health:
    """Check the Python that runs this."""
    found = f"Python {platform.python_version()} in {Path(sys.prefix).name}"
    if sys.prefix == sys.base_prefix:
        return Health("python", WARNING, f"{found}, not in a virtual environment", "make setup")
    return Health("python", OK, found)


def git_check(root: Path, busy: Sequence[Worker] = ()) -> Health:
    """Check that git is there and that the project stands in a repository."""
    try:
        git = Git.find(root)
    except GitError as error:
        return Health("git", FAULT, str(error), error.remedy)
    if git is None:
        remedy = "`git init` and commit, so that experiments and the history can be kept"
        return Health("git", WARNING, "the project is in no git repository", remedy)
    head, doing = head_of(git), under_way(git)
    if doing is not None and not busy:
        return Health("git", WARNING, f"{doing.found}{_besides(head, doing)}", doing.remedy)
    if head.detached and not busy:
        found = "HEAD is on no branch: a commit would be lost with it"
        name = "BRANCH" if head.left is None else head.left
        return Health("git", WARNING, found, f"`git switch {name}`")
    return Health("git", OK, "the project is in a git repository")


def _besides(head: Head, doing: UnderWay) -> str:
    """Return what is to be said of HEAD: a rebase and a bisect put it back themselves."""
    if not head.detached or {"rebase", "bisect"} & {*doing.names}:
        return ""
    return "; HEAD is on no branch: `git switch -c NAME` after it, or its commit is lost"


def merge_checks(workspace: Path) -> Iterator[Health]:
    """Say where two runs meet in a merge, and the command that chooses one of them."""
    git = Git.at_hand(workspace)
    meeting = None if git is None else meeting_of(git)
    if meeting is None:
        return
    other = "" if meeting.take is None else f"; the other side's: `{meeting.take}`"
    yield Health(
        "merge",
        FAULT,
        f"both sides have a run: {', '.join(meeting.unmerged)} are of this side for now",
        f"this side's run: `{meeting.keep}`{other}; then `dvc checkout`",
    )


def package_check(name: str) -> Health:
    """Check that a package is installed beside this one."""
    try:
        return Health(name, OK, f"{name} {version(name)}")
    except PackageNotFoundError:
        return Health(name, FAULT, f"{name} is not installed", "make setup")


def library_check(workspace: Path) -> Health:
    """Check that the workspace was written for the library that runs here."""
    try:
        require_library(workspace)
    except SkilltrailError as error:
        return Health("library", FAULT, str(error), "`skilltrail init --upgrade`")
    return Health("library", OK, f"skilltrail {__version__}")


def store_check(place: Place) -> Health:
    """Check that recorded facts can be read and written."""
    folder = place.state if place.state.exists() else place.root
    if not folder.is_dir():
        return Health("store", FAULT, f"{folder} is a file, not a folder", "Move it away")
    if not os.access(folder, os.W_OK):
        return Health("store", FAULT, f"{folder} cannot be written", "Change its owner or mode")
    try:
        examine(place.root)
    except SkilltrailError as error:
        found = f"{error.asked}: {error.found}; no run starts"
        return Health("store", FAULT, found, error.remedy)
    torn = torn_lines(place)
    if torn:
        found = (
            f"{place.state.name} can be written; the journal's {torn} torn, which stops nothing"
        )
        return Health("store", WARNING, found, "nothing: `skilltrail summary` leaves it out")
    return Health("store", OK, f"{place.state.name} can be written")


def model_checks(params: Params) -> Iterator[Health]:
    """Check that a target's weights are there; other backends are probed by a call."""
    for role, options in params.target_roles.items():
        if options.backend not in EMBEDDED_BACKENDS:
            yield Health(role, OK, f"backend {options.backend}, model {options.model}")
            continue
        try:
            weights = find_weights(options.model)
        except SkilltrailError as error:
            yield Health(role, FAULT, str(error), "make setup")
        else:
            yield Health(role, OK, f"{options.model}, sha256 {weights.sha256[:12]}")


def seed_check(params: Params, workspace: Path) -> Health:
    """Check that the seed skill is there."""
    path = seed_skill_path(params)
    if (workspace / path).is_file() or (workspace / path / MAIN).is_file():
        return Health("seed skill", OK, path)
    return Health("seed skill", FAULT, f"there is no {path}", "Create it, or set skill.seed")


def judge_checks(params: Params, workspace: Path) -> Iterator[Health]:
    """Check that the rubric is there, where there is a judge."""
    if params.judge.backend == "none":
        return
    try:
        read_rubric(workspace / params.judge.rubric)
    except SkilltrailError as error:
        yield Health("rubric", FAULT, str(error), "Write it, or set judge.rubric")
    else:
        yield Health("rubric", OK, params.judge.rubric)


def data_checks(params: Params, workspace: Path) -> Iterator[Health]:
    """Read the items and say what a person should look at in them."""
    try:
        reading, warnings = look_at_items(params, environment_of(params), workspace)
    except SkilltrailError as error:
        yield Health("items", FAULT, str(error), "Correct the file or the params of `data`")
        return
    for warning in warnings:
        yield Health("items", WARNING, warning.message)
    found = f"{len(reading.items)} items of {params.env} can be read"
    yield Health("items", OK, found + not_checked(reading))


def not_checked(reading: SourceRead) -> str:
    """Return of how many items the contract was not checked, and why; "" of none."""
    needs = ", ".join(f"{n} by {what.value}" for what, n in sorted(reading.unchecked.items()))
    return f"; not checked whether gold scores 1 and nothing 0: scored {needs}" if needs else ""


def untracked_check(params: Params, root: Path, *, queue: bool) -> Health:
    """List inputs that an experiment in a workspace of its own would not find."""
    files = left_behind(root, input_paths(params))
    if not files:
        return Health("inputs", OK, "git tracks every input")
    shown = files if queue else files[:_FEW]
    more = f" and {len(files) - len(shown)} more" if len(files) > len(shown) else ""
    return Health(
        "inputs",
        FAULT if queue else WARNING,
        f"git does not track {', '.join(shown)}{more}",
        "`git add` them before `dvc exp run --temp` or `--queue`",
    )


def state_checks(place: Place, busy: Sequence[Worker]) -> list[Health]:
    """Say what kills, full disks and merges left of the files that every command reads."""
    if busy:
        told = ", ".join(map(str, busy))
        return [
            Health(
                "experiments",
                OK,
                f"a run is in progress ({told}): what it writes is not checked",
            )
        ]
    found = findings(Site(place, Git.at_hand(place.root)))
    if not found:
        return [Health("experiments", OK, "no killed experiment left anything")]
    return [Health(one.what, FAULT, one.found, one.remedy) for one in found]


def probe_checks(params: Params) -> list[Health]:
    """Return a check of each role that has a model, made by one real call.

    The embedded model is checked by its file; a replay makes no call and a handoff none that a
    check should wait for: none of them is probed.
    """
    asked = {
        role: options
        for role, options in roles_of(params).items()
        if options.backend not in (*EMBEDDED_BACKENDS, "rules", "handoff", "replay")
    }

    async def all_of_them() -> list[ProbeResult]:
        return list(await asyncio.gather(*(probe(*pair) for pair in asked.items())))

    return [_check(result) for result in asyncio.run(all_of_them())] if asked else []


def _check(result: ProbeResult) -> Health:
    name = f"{result.role} model"
    if not result.ok:
        return Health(name, FAULT, result.problem, "See docs/models")
    said = [f"{result.answered} at {result.provider} answers"]
    if result.api:
        said.append(f"api {result.api}")
    said.append(f"abilities {', '.join(result.abilities) if result.abilities else 'none'}")
    if not result.priced:
        said.append(f"its price is unknown ({result.role}.price)")
    if result.warning:
        return Health(name, WARNING, "; ".join([*said, result.warning]))
    return Health(name, OK, "; ".join(said))

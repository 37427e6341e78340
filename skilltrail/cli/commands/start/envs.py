"""`skilltrail new-env`, `skilltrail data import`, and the contract check of `doctor --env`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from skilltrail.cli.checks import (
    FAULT,
    OK,
    WARNING,
    Health,
    not_checked,
    software_checks,
)
from skilltrail.cli.options import JSON
from skilltrail.cli.scaffold import new_environment
from skilltrail.core.errors import SkilltrailError
from skilltrail.data.find import NOTHING, find_source, shown
from skilltrail.data.importing import Imported, import_splits, import_tree
from skilltrail.data.load import read_items
from skilltrail.envs.contract.contract import check_contract, parser_of
from skilltrail.envs.protocol import Environment
from skilltrail.envs.registry import environment_class, environment_folders
from skilltrail.params.read import FILE
from skilltrail.runtime.console import emit, emit_json, say
from skilltrail.runtime.workspace import environment_of, load_params
from skilltrail.store.place import find_place

N_ITEMS = 3  # items the contract is checked with
N_TURNS = 4  # most turns of a rollout then, where each needs more than a model


def new_env(
    name: Annotated[str, typer.Argument(help="A lower-case word, such as my_benchmark.")],
    as_json: JSON = False,
) -> None:
    """Make a new environment from the template, with a seed skill and first items.

    Example: skilltrail new-env my_benchmark && skilltrail doctor --env my_benchmark
    """
    root = find_place().workspace
    paths = [path.relative_to(root).as_posix() for path in new_environment(root, name)]
    if as_json:
        emit_json({"name": name, "files": paths})
        return
    for path in paths:
        emit(f"wrote {path}")
    say(f"next: skilltrail doctor --env {name}, then dvc exp run -S env={name}")


def import_data(
    env: Annotated[str, typer.Argument(help="The environment whose items they are.")],
    source: Annotated[list[Path], typer.Option(help="A file or folder of your download.")],
    further: Annotated[
        list[Path] | None,
        typer.Argument(help="Further files of it, as `--source *.jsonl` names them."),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(help="Folder with train, val and test ids; alfworld's tree needs none."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Default: data/ENV-imported.")] = None,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out ids that the download lacks.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Join a released split manifest with your download of a benchmark.

    Example: skilltrail data import docvqa --manifest docvqa_id_split --source validation.csv
    Example: skilltrail data import alfworld --source json_2.1.1
    """
    environment_class(env)
    root = find_place().workspace
    folder = root / "data" / f"{env}-imported" if out is None else out.resolve()
    sources = [path.resolve() for path in (*source, *([] if further is None else further))]
    if manifest is None:
        done = import_tree(root, env, sources[0], folder)
    else:
        done = import_splits(
            root, env, manifest.resolve(), sources, folder, skip_missing=skip_missing
        )
    place = shown(root, done.folder)
    if as_json:
        emit_json(
            {
                "folder": place,
                "counts": dict(done.counts),
                "missing": {split: list(ids) for split, ids in done.missing.items()},
                "shared": dict(done.shared),
            }
        )
        return
    emit(f"wrote {place}: " + ", ".join(f"{split} {n}" for split, n in done.counts.items()))
    _warn(done)
    more = _files_of(env, root, sources)
    more += " -S data.allow_overlap=true" if done.shared else ""
    say(f"next: dvc exp run -S env={env} -S data.split_dir={place}{more}")


def _warn(done: Imported) -> None:
    """Say which ids are missing, and which splits share source documents."""
    for split, ids in done.missing.items():
        say(f"warning: {len(ids)} ids of {split} are not in the download, such as {ids[0]!r}")
    for split, n in done.shared.items():
        say(
            f"warning: {n} of {done.counts[split]} items of {split} share a source document "
            "with an earlier split; data.allow_overlap=true lets them stand and says so"
        )


data = typer.Typer(help="Bring items in.", no_args_is_help=True)
data.callback()(lambda: None)  # else a lone command would swallow its own name
data.command("import")(import_data)


def _files_of(env: str, root: Path, sources: list[Path]) -> str:
    """Return the words that name the folder of an environment's files, where it has any."""
    names = {knob.name for knob in fields(environment_class(env).Params)}
    folders = [path if path.is_dir() else path.parent for path in sources]
    if "data_dirs" not in names:
        return ""
    named = ",".join(dict.fromkeys(shown(root, folder) for folder in folders))
    return f" -S '+envs.{env}.data_dirs=[{named}]'"


def contract_checks(root: Path, name: str) -> list[Health]:
    """Return the findings of the contract check of one environment, on its own items.

    Raises:
        UsageError: there is no such environment.
    """
    environment = _environment(root, name)
    lacking = software_checks(environment)
    checks = [*_file_checks(root, name), *lacking]
    try:
        source = find_source(root, name, NOTHING, NOTHING)
        reading = read_items(source, environment, root)
        loaded = reading.items
    except SkilltrailError as error:
        return [*checks, Health(f"{name}: items", FAULT, str(error), "Correct the file")]
    if any(check.verdict == FAULT for check in lacking):  # no rollouts, so nothing to check
        return [*checks, Health(f"{name}: items", OK, f"{len(loaded)} items are read")]
    if reading.apart:
        checks.append(Health(f"{name}: items", WARNING, reading.told_apart()))
    checks.append(
        Health(f"{name}: contract", OK, f"of {len(loaded)} items{not_checked(reading)}")
    )
    first = loaded[0]
    parse = parser_of(environment, first.record, first.where)
    if environment.runs_software:
        loaded, environment = loaded[:1], _brief(environment)
    found = check_contract(environment, [one.item for one in loaded[:N_ITEMS]], parse)
    return checks + [
        Health(f"{name}: {one.name}", OK if one.sound else FAULT, one.found, one.remedy)
        for one in found
    ]


def _brief(environment: Environment) -> Environment:
    """Return the environment with few turns an item: as many as its contract needs."""
    params = environment.params
    limits = replace(params.limits, turns=min(N_TURNS, params.limits.turns))
    made: type[Any] = type(environment)
    brief: Environment = made(replace(params, limits=limits))
    return brief


def _environment(root: Path, name: str) -> Environment:
    """Return an environment: with the params of the project where they choose it."""
    if (root / FILE).is_file():
        params = load_params(root)
        if params.env == name:
            return environment_of(params)
    made = environment_class(name)
    environment: Environment = made(made.Params())
    return environment


def _file_checks(root: Path, name: str) -> list[Health]:
    """Check what stands beside the code: README and seed skill."""
    folder = environment_folders()[name]
    checks = []
    for path in (folder / "README.md", root / "skills" / "seeds" / f"{name}.md"):
        told = path.relative_to(root) if path.is_relative_to(root) else Path(name, path.name)
        lacks = "" if path.is_file() else "there is no "
        verdict, remedy = (FAULT, "Write it") if lacks else (OK, "")
        checks.append(Health(f"{name}: {path.name}", verdict, lacks + told.as_posix(), remedy))
    return checks

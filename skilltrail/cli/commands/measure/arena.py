"""`skilltrail arena`: methods side by side, as a queue of DVC experiments and one table."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skilltrail.cli.options import JSON, SET_PARAM
from skilltrail.cli.sources import project
from skilltrail.core.canon import digest
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.history.ask.sources import Project, experiment_log
from skilltrail.params.fields import Params
from skilltrail.params.methods import METHODS
from skilltrail.runtime.console import emit_json, say, table
from skilltrail.runtime.workspace import changes_of, params_with
from skilltrail.store.ops import read_ops

if TYPE_CHECKING:
    from skilltrail.history.ask.arena import Arena, Entry

# What every run of an arena has, where -S says nothing else: nobody gives up early, and the
# test split is opened for the two skills that are compared.
COMMON = ("patience=0", "evaluate.skills=[seed,best]")


@dataclass(frozen=True)
class Bout:
    """One run that the arena asks for: a DVC experiment by this name."""

    method: str
    seed: int
    name: str
    overrides: tuple[str, ...]


def arena(
    methods: Annotated[str, typer.Option(help="Names, with commas between them.")],
    seeds: Annotated[int, typer.Option(min=1, help="Runs a method, each with its seed.")] = 3,
    calls: Annotated[int, typer.Option(min=1, help="Target calls of one training.")] = 600,
    set_param: SET_PARAM = None,
    out: Annotated[
        Path, typer.Option(help="Folder for arena.md, arena.csv and arena.svg.")
    ] = Path("reports/out/arena"),
    run: Annotated[bool, typer.Option(help="--no-run: only show what is there.")] = True,
    as_json: JSON = False,
) -> None:
    """Train by several methods with the same budget over the same seeds, and compare them.

    Runs are DVC experiments in workspaces of their own. What is there already is not run again,
    so a stopped arena resumes. A run that fails is named, and the others stand.

    Example: skilltrail arena --methods skillopt,bootstrap,random_search --seeds 3 --calls 600
    """
    from skilltrail.history.git.repository import Git

    here, asked = project(), [] if set_param is None else list(set_param)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    params = checked(here, names, calls, asked)
    bouts = bouts_of(names, [params.seed + n for n in range(seeds)], calls, asked)
    git = Git.find(here.root)
    if git is None:
        raise UsageError("skilltrail arena", "no git repository is here", "Run `git init`")
    baseline = git.resolve("HEAD")
    if run:
        run_all(here, [bout for bout in bouts if not is_there(here, bout, baseline)])
    found = collected(here, bouts, baseline, params)
    there = {entry.name for entry in found.entries}
    missing = [bout.name for bout in bouts if bout.name not in there]
    write(found, here.workspace / out, command_of(methods, seeds, calls, asked, out), params,
          missing)  # fmt: skip
    show(found, as_json=as_json)
    say(f"arena: {out}/arena.md, arena.csv and arena.svg are written")
    if missing:
        raise SkilltrailError(
            f"{len(missing)} of {len(bouts)} runs", f"not there: {', '.join(missing)}",
            f"`dvc queue logs {missing[0]}` says why; run the same command again to go on",
        )  # fmt: skip


def checked(here: Project, names: Sequence[str], calls: int, asked: Sequence[str]) -> Params:
    """Return the params that all runs share, after every method was tried with them.

    Raises:
        UsageError: a method is not known, or params do not let it run.
    """
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names or len(set(names)) < len(names):
        found = f"no method {unknown[0]!r}" if unknown else "each is to be named once"
        raise UsageError("--methods", found, f"There are {', '.join(METHODS)}")
    kept = [one.partition("=")[0] for one in asked]
    if clash := [key for key in kept if key in ("method", "seed", "stop.calls")]:
        remedy = "Use --methods, --seeds and --calls; `seed` in params.yaml is the first seed"
        raise UsageError(f"-S {clash[0]}", "the arena sets it", remedy)
    for name in names:
        changes = changes_of([*COMMON, *asked, f"method={name}", f"stop.calls={calls}"])
        params = params_with(here.workspace, changes)
    return params


def bouts_of(
    methods: Sequence[str], seeds: Sequence[int], calls: int, asked: Sequence[str]
) -> list[Bout]:
    """Return the runs, seed by seed: a stopped arena has whole seeds of all methods."""
    settings = (*COMMON, *asked, f"stop.calls={calls}")
    mark = digest("arena/1", list(settings))[:6]
    return [
        Bout(method, seed, f"arena-{mark}-{method.replace('_', '-')}-{seed}",
             (*settings, f"method={method}", f"seed={seed}"))
        for seed in seeds
        for method in methods
    ]  # fmt: skip


def is_there(here: Project, bout: Bout, baseline: str) -> bool:
    """Return whether an experiment on this commit has finished the run."""
    from skilltrail.history.log.erasure import end_of

    events = experiment_log(here, bout.name, baseline)
    return events is not None and end_of(events) is not None


def run_all(here: Project, bouts: Sequence[Bout]) -> None:
    """Queue the runs that are not there, and let DVC work the queue off."""
    say(f"arena: {len(bouts)} runs to make")
    if not bouts:
        return
    for bout in bouts:
        options = [word for override in bout.overrides for word in ("-S", override)]
        done = dvc(here, "exp", "run", "--queue", "--force", "--name", bout.name, *options)
        if done.returncode:
            raise SkilltrailError(
                f"dvc exp run --queue --name {bout.name}", done.stderr.strip()[-600:]
            )
    dvc(here, "exp", "run", "--run-all", shown=True)


def dvc(here: Project, *args: str, shown: bool = False) -> subprocess.CompletedProcess[str]:
    """Run DVC; `shown` lets it speak for itself, on stderr."""
    import os

    environ = {name: value for name, value in os.environ.items() if not name.startswith("DVC_")}
    own = str(Path(sys.executable).parent)  # stages are started as `python`
    environ["PATH"] = os.pathsep.join([own, environ.get("PATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "dvc", *args], cwd=here.workspace, env=environ, text=True,
        check=False, stdout=2 if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.PIPE,
    )  # fmt: skip


def collected(here: Project, bouts: Sequence[Bout], baseline: str, params: Params) -> Arena:
    """Return what the runs that are there say."""
    from skilltrail.history.ask.arena import arena_of, entry_of
    from skilltrail.history.ask.evaluations import held_out
    from skilltrail.store.reader import open_reading

    tests, walls = held_out(here), wall_times(here)
    entries: list[Entry] = []
    with open_reading(here.root) as store:
        get = (lambda keys: {}) if store is None else store.get_many
        for bout in bouts:
            events = experiment_log(here, bout.name, baseline)
            if events is None:
                continue
            cost = cost_of(get, params)
            wall = walls.get(bout.name)
            entry = entry_of(bout.method, bout.name, events, tests, cost, wall)
            entries += [] if entry is None else [entry]
    return arena_of(sorted(entries, key=lambda entry: entry.seed))


def cost_of(
    get: Callable[[Iterable[str]], Mapping[str, Mapping[str, Any]]], params: Params
) -> Callable[[Iterable[str]], tuple[int | None, float | None]]:
    """Return what tells the tokens and the price of rollouts; None where one is not known."""
    from skilltrail.models.client.prices import cost_usd, price_of

    price = price_of("target", params.target)

    def cost(keys: Iterable[str]) -> tuple[int | None, float | None]:
        wanted = list(keys)
        facts = get(wanted)
        usages = [
            facts[key].get("trajectory", {}).get("usage") for key in wanted if key in facts
        ]
        if len(usages) < len(wanted) or None in usages:
            return None, None
        tokens = sum(
            int(usage.get(name, 0)) for usage in usages for name in ("input", "output")
        )
        prices = [cost_usd(price, usage) for usage in usages]
        known = [one for one in prices if one is not None]
        return tokens, sum(known) if len(known) == len(prices) else None

    return cost


def wall_times(here: Project) -> dict[str, float]:
    """Return how long the trainings of experiments took, over all their starts."""
    found: dict[str, float] = defaultdict(float)
    for row in read_ops(here.root / ".skilltrail" / "ops.jsonl"):
        if row.get("type") == "stage.ended" and row.get("stage") == "train":
            found[str(row.get("experiment"))] += float(row.get("wall_s", 0.0))
    return found


def command_of(methods: str, seeds: int, calls: int, asked: Sequence[str], out: Path) -> str:
    """Return the command that makes this arena again."""
    words = ["skilltrail", "arena", "--methods", methods, "--seeds", str(seeds), "--calls",
             str(calls)]  # fmt: skip
    words += [word for one in asked for word in ("-S", one)]
    return shlex.join([*words, "--out", out.as_posix()])


def write(
    found: Arena, folder: Path, command: str, params: Params, missing: Sequence[str]
) -> None:
    """Write the page, the rows and the chart."""
    from skilltrail.report.arena import as_csv, chart, markdown

    if not found.entries:
        return
    target = f"{params.target.model} ({params.target.backend})"
    about = (
        f"Methods side by side on `{params.env}` with target {target} and optimizer "
        f"`{params.optimizer.backend}`: each with the same seeds and {params.stop.calls} "
        "target calls a training."
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "arena.md", markdown(found, command, about, "arena.svg", missing))
    write_atomic(folder / "arena.csv", as_csv(found))
    write_atomic(folder / "arena.svg", chart(found))


def show(found: Arena, *, as_json: bool) -> None:
    """Print the table, or all of it as JSON."""
    from skilltrail.report.arena import COLUMNS, table_rows

    if not as_json:
        table(COLUMNS, table_rows(found))
        return
    emit_json(
        {
            "entries": [
                {k: v for k, v in asdict(entry).items() if k != "test"}
                | {"test_gain": None if entry.test is None else entry.test.gain}
                for entry in found.entries
            ],
            "gains": found.gains,
            "contrasts": [
                {"method": one, "against": two, **({} if c is None else asdict(c))}
                for (one, two), c in found.contrasts.items()
            ],
        }
    )

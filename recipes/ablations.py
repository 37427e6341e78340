"""The paper's ablations as one queue of experiments, and docs/ablations.md made from the runs.

    python recipes/ablations.py --plan      # the rows, calls and hours; nothing runs
    python recipes/ablations.py             # queue what is missing, run it, write the page
    python recipes/ablations.py --no-run    # write the page from what is there

Every row changes one setting of the base (params.yaml with what `BASE` says). First each row
runs with one seed; those that the paper names, and those that moved by `MOVED` or more against
the base, then run with all seeds. Runs are DVC experiments of this commit by names that stand
for their settings (`ablation-…`): a stopped recipe goes on where it was, and one that is done
makes no call. `-S` changes the base, e.g. `-S data.limit.test=40`, or the optimizer. The row
"rejected-edit memory off" needs a prompted optimizer: no param takes from `rules` what earlier
steps tried, so that with it the row does not run, and the page says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skilltrail.cli.commands.measure.arena import Bout, collected, is_there, run_all
from skilltrail.cli.sources import project
from skilltrail.core.canon import digest
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.files import write_atomic
from skilltrail.data.freeze import split_sizes
from skilltrail.history.ask.arena import Arena, Interval
from skilltrail.history.ask.sources import Project
from skilltrail.history.git.repository import Git
from skilltrail.params.fields import Params
from skilltrail.runtime.call_estimate import Size, call_ranges
from skilltrail.runtime.workspace import changes_of, environment_of, params_with

BASE = ("patience=0", "evaluate.skills=[seed,best]")
MOVED = 0.03  # of the held-out gain
PACE = 5.0  # rollouts a second of the embedded model on two idle cores
PAGE = Path("docs/ablations.md")


@dataclass(frozen=True)
class Row:
    """One setting changed; `named` where the paper has the row, `prompted` where only an
    optimizer that is asked by prompts reads the setting."""

    group: str
    name: str
    changes: tuple[str, ...] = ()
    named: bool = True
    prompted: bool = False

    def runs_with(self, optimizer: str) -> bool:
        """Whether the setting can change a run of the optimizer's backend."""
        return not self.prompted or optimizer != "rules"


ROWS = (
    Row("base", "base"),
    *(Row("learning rate", f"lr={lr}", (f"lr={lr}",)) for lr in (1, 2, 8, 16)),
    Row("learning rate", "no budget", ("lr_schedule=none",)),
    Row("schedule", "constant", ("lr_schedule=constant",)),
    Row("schedule", "linear", ("lr_schedule=linear",)),
    Row("schedule", "autonomous", ("lr_schedule=autonomous",)),
    *(Row("batch", f"batch_size={size}", (f"batch_size={size}",)) for size in (8, 40)),
    Row("batch", "accumulation=2", ("accumulation=2",), named=False),
    Row("gate", "gate off", ("use_gate=false",)),
    Row("gate", "no shorter ties", ("gate.prefer_shorter=false",), named=False),
    Row("momentum", "slow update on", ("slow_update.enabled=true",)),
    Row("momentum", "meta skill on", ("meta_skill.enabled=true",)),
    Row("momentum", "both on", ("slow_update.enabled=true", "meta_skill.enabled=true")),
    Row("memory", "rejected-edit memory off", ("optimizer.past_to=[]",), prompted=True),
    *(Row("epochs", f"epochs={n}", (f"epochs={n}",)) for n in (1, 2, 4)),
)


def bouts_of(rows: Sequence[Row], seeds: Sequence[int], asked: Sequence[str]) -> list[Bout]:
    """Return the runs of rows, seed by seed; a name stands for its settings."""
    found = []
    for seed in seeds:
        for row in rows:
            settings = (*BASE, *asked, *row.changes)
            mark = digest("ablation/1", list(settings))[:8]
            words = (*settings, f"seed={seed}")
            found.append(Bout(row.name, seed, f"ablation-{mark}-{seed}", words))
    return found


def wanted(rows: Sequence[Row], screened: Arena) -> list[Row]:
    """Return the rows that run with all seeds: those that the paper names, and that moved."""
    base = screened.gains.get("base")
    moved = []
    for row in rows:
        gain = screened.gains.get(row.name)
        far = gain is not None and base is not None and abs(gain.mean - base.mean) >= MOVED
        moved += [row] if row.named or far else []
    return moved


def size_of(here: Project, params: Params) -> Size:
    """Return how many items each split has here, after limits."""
    sizes = split_sizes(params, environment_of(params), here.workspace)
    return Size(sizes["train"], sizes["selection"], sizes["test"])


def planned(here: Project, bouts: Sequence[Bout], size: Size) -> tuple[int, float]:
    """Return the target calls that runs likely make, and the hours at `PACE`."""
    calls = 0
    for bout in bouts:
        params = params_with(here.workspace, changes_of(bout.overrides))
        rows = call_ranges(params, size)
        calls += sum(row.likely for row in rows if row.role == "target")
    return calls, calls / PACE / 3600


def page(found: Arena, rows: Sequence[Row], optimizer: str, command: str, about: str) -> str:
    """Return docs/ablations.md of runs with an optimizer's backend."""
    lines = [
        "# Ablations",
        "",
        about,
        "",
        "The gain is the best skill's score on the test split minus the seed skill's; the "
        "difference is the row's best skill minus the base's, paired by item and seed. "
        "Intervals are of 95 %; items are the units. Calls are target calls of training, those "
        "that were recorded already counted as if made. Written by",
        "",
        f"    {command}",
        "",
        "| | setting | held-out gain | against the base | seeds | calls |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        entries = found.of(row.name)
        if not entries:
            idle = "not run" if row.runs_with(optimizer) else "needs a prompted optimizer"
            lines.append(f"| {row.group} | {row.name} | {idle} | | 0 | |")
            continue
        calls = round(sum(entry.spent for entry in entries) / len(entries))
        against = found.contrasts.get((row.name, "base"))
        words = "" if row.name == "base" else interval(against)
        gain = interval(found.gains.get(row.name))
        lines.append(
            f"| {row.group} | {row.name} | {gain} | {words} | {len(entries)} | {calls} |"
        )
    return "\n".join(lines) + "\n"


def interval(found: Interval | None) -> str:
    """Return a mean difference with its interval in words."""
    if found is None:
        return "not measured"
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}, {found.items} items)"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", action="store_true", help="say what would run, and how long")
    parser.add_argument("--no-run", action="store_true", help="only write the page")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of rows, with commas; base is added")
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("-S", dest="asked", action="append", default=[], metavar="KEY=VALUE")
    told = parser.parse_args(argv)
    here, only = project(), [one.strip() for one in told.only.split(",") if one.strip()]
    unknown = sorted(set(only) - {row.name for row in ROWS})
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are {', '.join(r.name for r in ROWS)}")
    rows = [row for row in ROWS if not only or row.name in (*only, "base")]
    params = params_with(here.workspace, changes_of([*BASE, *told.asked]))
    seeds = [params.seed + n for n in range(told.seeds)]
    able = [row for row in rows if row.runs_with(params.optimizer.backend)]
    for row in rows:
        if row not in able:
            sys.stderr.write(f"ablations: {row.name!r} needs a prompted optimizer: left out\n")
    screen, every = bouts_of(able, seeds[:1], told.asked), bouts_of(able, seeds, told.asked)
    if told.plan:
        return tell_plan(here, able, screen, every, size_of(here, params))
    git = Git.find(here.root)
    baseline = None if git is None else git.resolve("HEAD")
    if baseline is None:
        parser.error("run it in a clone that has a commit")
    if not told.no_run:
        run_all(here, [bout for bout in screen if not is_there(here, bout, baseline)])
        more = wanted(able, collected(here, screen, baseline, params))
        rest = bouts_of(more, seeds[1:], told.asked)
        run_all(here, [bout for bout in rest if not is_there(here, bout, baseline)])
    found = collected(here, every, baseline, params)
    if not found.entries:
        sys.stderr.write("ablations: no run is there yet\n")
        return 1
    asked = [word for word in argv if word != "--no-run"]
    command = " ".join(["python recipes/ablations.py", *asked])
    write_atomic(told.out, page(found, rows, params.optimizer.backend, command, about(params)))
    sys.stdout.write(f"{told.out}\n")
    return 0


def about(params: Params) -> str:
    return (
        f"One setting at a time, on `{params.env}` with target {params.target.model} "
        f"({params.target.backend}) and optimizer `{params.optimizer.backend}`; the base is "
        "`params.yaml` without early stopping by patience."
    )


def tell_plan(
    here: Project,
    rows: Sequence[Row],
    screen: Sequence[Bout],
    every: Sequence[Bout],
    size: Size,
) -> int:
    """Print the rows with their calls, and the hours of the screen and of all."""
    for row, bout in zip(rows, screen, strict=True):
        calls, hours = planned(here, [bout], size)
        sys.stdout.write(
            f"{row.group:14} {row.name:24} {calls:6} calls {60 * hours:6.0f} min\n"
        )
    for words, bouts in (("one seed", screen), ("all seeds", every)):
        calls, hours = planned(here, bouts, size)
        said = f"{words}: {len(bouts)} runs, about {calls} calls, {hours:.1f} hours at {PACE:g}"
        sys.stdout.write(f"{said} rollouts a second at most; what is recorded costs nothing\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SkilltrailError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)

"""`skilltrail runs`, `compare`, `diff`, `fork`: several runs and versions side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skilltrail.cli.options import JSON
from skilltrail.cli.sources import project, skill_of, tell_fallback
from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.events import Event
from skilltrail.history.log.words import score
from skilltrail.runtime.console import emit, emit_json, say, table
from skilltrail.store.place import find_place

if TYPE_CHECKING:
    from skilltrail.history.ask.compare import Contrast, Group, Paired
    from skilltrail.history.ask.evaluations import HeldOut
    from skilltrail.history.ask.runs import RunRow

COLUMNS = (
    "run", "from", "what differs", "seed", "best", "test gain", "skill", "accepted", "params",
    "test opened",
)  # fmt: skip


def all_runs(here: Project) -> dict[str, list[Event]]:
    """Return the events of every run; what of them is damaged is said."""
    from skilltrail.history.ask.runs import runs_at_hand

    found, faults = runs_at_hand(here)
    for fault in faults:
        say(f"{fault} What is whole before it is shown; `skilltrail verify` tells more.")
    return found


def runs(as_json: JSON = False) -> None:
    """List every run: where it forked from which, what differed there, its scores.

    Seed and best are scores on the selection split, the test gain is the best skill's over the
    seed skill where an evaluation is available; params are those that differ between the runs.

    Example: skilltrail runs
    """
    from skilltrail.history.ask.evaluations import evaluations, held_out
    from skilltrail.history.ask.runs import differing_params, run_tree
    from skilltrail.report.notes import notes_of

    here = project()
    found = all_runs(here)
    rows = run_tree(found, trunk_of(here), evaluations(here)) if found else []
    by_end = held_out(here)
    tests = {name: by_end.get(events[-1].id) for name, events in found.items()}
    gains = {name: None if test is None else test.gain for name, test in tests.items()}
    noted = notes_of(find_place().state / "ops.jsonl", found)
    if as_json:
        emit_json(
            [
                asdict(row)
                | {"test_gain": gains[row.name]}
                | {"tags": noted[row.name].tags, "notes": noted[row.name].notes}
                for row in rows
            ]
        )
        return
    params = differing_params(rows)
    shown = [_run_row(row, tests[row.name], params) for row in rows]
    if any(noted.values()):
        table(
            (*COLUMNS, "noted"),
            [(*cells, str(noted[row.name])) for cells, row in zip(shown, rows, strict=True)],
        )
    else:
        table(COLUMNS, shown)


def _run_row(row: RunRow, test: HeldOut | None, params: Sequence[str]) -> tuple[str, ...]:
    return (
        row.name if row.finished else f"{row.name} …",
        _origin(row.forked_from, row.shared, row.parent),
        row.differs,
        score(row.seed_score, "-"),
        score(row.best_score, "-"),
        "-" if test is None else _gain(test.gain, len(test.best)),
        "-" if row.best_version is None else f"v{row.best_version}",
        f"{row.accepted} of {row.steps} steps",
        " ".join(f"{name}={row.params.get(name, '-')}" for name in params),
        f"{row.openings}×",
    )


def trunk_of(here: Project) -> str:
    """Return the label of runs on the branch that is checked out: the tree grows from there."""
    from skilltrail.history.git.opening import label_of
    from skilltrail.history.git.repository import Git

    git = Git.find(here.root)
    return "main" if git is None else label_of(git, None)


def _origin(trunk: str | None, shared: int, parent: tuple[str, int] | None) -> str:
    parts = [] if trunk is None else [f"{trunk} after event {shared}"]
    if parent is not None:
        name, version = parent
        parts.append(f"fork of {name}" + (f":v{version}" if version >= 0 else ""))
    return "; ".join(parts) if parts else "-"


def compare(
    group_by: Annotated[str, typer.Option(help="A param, e.g. lr or gate.rule.")],
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only runs with this value; repeatable."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Compare finished runs by a param, over seeds, with paired intervals.

    Items are the units of an interval. Runs of different environments, data or targets are not
    pooled: --where chooses.

    Example: skilltrail compare --group-by lr --where env=textqa
    """
    from skilltrail.history.ask.compare import compare_runs
    from skilltrail.history.ask.evaluations import held_out
    from skilltrail.store.reader import open_reading

    here = project()
    wanted = dict(key_value("--where", one) for one in ([] if where is None else where))
    with open_reading(here.root) as store:
        get = (lambda keys: {}) if store is None else store.get_many
        found = compare_runs(all_runs(here), group_by, held_out(here), wanted, get)
    if as_json:
        emit_json(found.to_json())
        return
    against = {one.value: one for one in found.contrasts}
    versus = f"vs {group_by}={found.groups[0].value} (95 %)"
    table(
        (
            *(group_by, "runs", "seeds", "skills", "selection gain", versus),
            *("test gain", versus, "note"),
        ),
        [_group_row(group, against.get(group.value)) for group in found.groups],
    )
    if found.not_evaluated:
        names = ", ".join(found.not_evaluated)
        say(f"no evaluation available of {names}: test gains leave it out")
    for name, values in found.also_differ.items():
        emit(f"also differs: {name} ({', '.join(values)})")
    if all(len(set(group.seeds)) == 1 for group in found.groups):
        say("one seed per group is noise: run other seeds, e.g. `dvc exp run -S seed=1`")


def key_value(option: str, text: str) -> tuple[str, str]:
    """Return the two parts of KEY=VALUE.

    Raises:
        UsageError: it is not of that form.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"{option} {text}", "no KEY=VALUE", f"Write {option} env=textqa")
    return key, value


def _group_row(group: Group, other: Contrast | None) -> tuple[Any, ...]:
    selection, test = (None, None) if other is None else (other.selection, other.held_out)
    return (
        group.value,
        len(group.runs),
        ", ".join(map(str, sorted(set(group.seeds)))),
        group.skills,
        _gain(group.mean_gain, group.items),
        _difference(selection),
        _gain(group.mean_held_out, group.held_out_items),
        _difference(test),
        "-" if other is None else other.note,
    )


def _gain(value: float | None, items: int) -> str:
    return "-" if value is None else f"{value:+.3f} on {items} items"


def _difference(of: Paired | None) -> str:
    if of is None:
        return "-"
    units = f"{of.items} items, {of.seeds} seed{'' if of.seeds == 1 else 's'}"
    return f"{of.difference:+.3f} ({of.low:+.3f} to {of.high:+.3f}; {units})"


def diff(
    before: Annotated[str, typer.Argument(help="RUN:vN, vN, seed, best, a file, a revision.")],
    after: Annotated[str, typer.Argument(help="The same.")],
    as_json: JSON = False,
) -> None:
    """Compare two skills: a unified diff, and the items whose scores differ.

    Example: skilltrail diff v3 main-2:best
    """
    from skilltrail.history.ask.differences import skill_diff
    from skilltrail.history.ask.sources import find_skill, names_no_run

    here = project()
    found = skill_diff(find_skill(here, before), find_skill(here, after))
    if names_no_run(here, before) or names_no_run(here, after):
        tell_fallback(here)
    if as_json:
        emit_json(found)
        return
    emit(found.diff if found.diff else "the texts are the same")
    if not found.items:
        emit("no item is recorded under both skills: no scores to compare")
        return
    pairs = [("hard", *found.mean_hard), ("soft", *found.mean_soft)]
    means = ", ".join(f"{name} {score(a, '-')} → {score(b, '-')}" for name, a, b in pairs)
    emit(f"{found.items} selection items under both: {means}; {found.same} the same")
    if not found.changed:
        return
    table(
        ("item", "hard", "soft"),
        [
            (
                one.item,
                f"{score(one.hard_before, '-')} → {score(one.hard_after, '-')}",
                f"{score(one.soft_before, '-')} → {score(one.soft_after, '-')}",
            )
            for one in found.changed
        ],
    )


def fork(
    skill: Annotated[str, typer.Argument(help="RUN:vN, vN, best, or a file.")],
    as_json: JSON = False,
) -> None:
    """Start the next training from any version of any run.

    Example: skilltrail fork main:v3
    """
    from skilltrail.params.edit import set_params

    here = project()
    found = skill_of(here, skill)
    parent = None
    if found.log is not None and found.version is not None:
        parent = found.log.versions[found.version].event.id
    run = skill.rpartition(":")[0]
    name = re.sub(r"[^\w.-]+", "-", run) if run else "main"
    stem = f"{name}-v{found.version}" if found.version is not None else "edited"
    path = here.workspace / "skills/seeds" / f"{stem}.md"
    if path.exists() and path.read_bytes() != found.text.encode():
        raise UsageError(f"fork {skill}", f"{path.name} is another text", "Move it away first")
    write_atomic(path, found.text)
    seed = path.relative_to(here.workspace).as_posix()
    set_params(here.workspace / "params.yaml", {"skill.seed": seed, "skill.parent": parent})
    if as_json:
        emit_json({"seed": seed, "parent": parent, "version": found.version})
        return
    emit(f"wrote {seed} and set skill.seed and skill.parent; train with `dvc repro`")

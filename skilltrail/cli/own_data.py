"""`skilltrail init --data`: from a file of one's own to a workspace that can be trained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from skilltrail.core.canon import canonical
from skilltrail.core.errors import DataError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.item import SPLITS
from skilltrail.data.assign import parse_ratio
from skilltrail.data.find import find_source
from skilltrail.data.intake.choose import Choice, choose
from skilltrail.data.intake.columns import Columns, find_columns
from skilltrail.data.intake.exact import assign_exactly, shares
from skilltrail.data.intake.power import size_warnings
from skilltrail.data.intake.records import RecordsMade, known_columns, make_records
from skilltrail.data.intake.tables import Table, read_table
from skilltrail.data.load import SourceRead, read_items
from skilltrail.data.read import read_records
from skilltrail.envs.registry import load_environment
from skilltrail.params.edit import set_params

SEED = 42
_TAKEN = ("none", "splits", "rollouts")


@dataclass(frozen=True)
class Wanted:
    """What a person said; None and {} = to be found."""

    path: Path
    env: str | None = None
    scorer: str | None = None
    ratio: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass
class ImportPlan:
    """What would be written: records by split, the choice, and what to tell."""

    name: str
    kind: str
    n_rows: int
    columns: Columns
    choice: Choice
    splits: dict[str, list[dict[str, Any]]]
    how: str
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    n_types: int = 0

    @property
    def folder(self) -> str:
        return f"data/{self.name}"

    @property
    def counts(self) -> dict[str, int]:
        return {split: len(self.splits[split]) for split in SPLITS}


def plan_of(
    wanted: Wanted, root: Path, ask: Callable[[str, Sequence[str]], str] | None = None
) -> ImportPlan:
    """Return what `wanted` comes to; nothing is written.

    Args:
        root: the workspace, where earlier items of the same name may stand.
        ask: puts a question with its possible answers to a person; None = nobody to ask.

    Raises:
        DataError: the file cannot be read, a column cannot be told, or items are too few.
    """
    table = read_table(wanted.path)
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    columns = _columns(wanted, names, table, ask)
    made = make_records(table.rows, columns)
    choice = choose(made.records, wanted.env, wanted.scorer)
    records, apart = _valid(made, choice)
    name = _name(wanted.path)
    before = _standing(root / "data" / name)
    records = _with_old(records, before)
    splits, how = _split(records, wanted, before)
    plan = ImportPlan(name, table.kind, len(table.rows), columns, choice, splits, how)
    plan.ignored = known_columns(columns, names)
    plan.notes = [*table.notes, *made.notes, *apart]
    plan.n_types = len({one.get("task_type") for one in records} - {None})
    plan.warnings = list(size_warnings(plan.counts))
    return plan


def write_items(plan: ImportPlan, workspace: Path) -> list[str]:
    """Write the items, one file a split; return the names of the files."""
    written = []
    for split in SPLITS:
        path = workspace / plan.folder / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, "".join(canonical(one) + "\n" for one in plan.splits[split]))
        written.append(f"{plan.folder}/{split}.jsonl")
    return written


def set_up(plan: ImportPlan, workspace: Path, more: Mapping[str, Any]) -> None:
    """Set what the plan chose in params.yaml, whose comments stay, and say why at its top."""
    values: dict[str, Any] = {"env": plan.choice.env, "data.split_dir": plan.folder}
    if plan.choice.scorer is not None:
        values["envs"] = {plan.choice.env: {"scorer": plan.choice.scorer}}
    if plan.choice.metric != "hard":
        values["gate.metric"] = plan.choice.metric
    path = workspace / "params.yaml"
    set_params(path, values | dict(more))
    scored = "" if plan.choice.scorer is None else f", scorer {plan.choice.scorer}"
    counts = ", ".join(f"{split} {n}" for split, n in plan.counts.items())
    told = [
        f"env {plan.choice.env}{scored}: {plan.choice.why}",
        f"{plan.folder}: {counts}; an item keeps its split when others are added",
    ]
    head = "".join(f"# {' '.join(line.split())}\n" for line in told)
    write_atomic(path, head + path.read_text(encoding="utf-8"))


def plan_lines(plan: ImportPlan, file: str) -> list[str]:
    """Return what a plan says to a person, a line each."""
    roles = [f"{role} <- {name!r}" for role, name in plan.columns.of.items()]
    if plan.columns.options:
        roles.append(f"choices <- {', '.join(map(repr, plan.columns.options))}")
    scorer = "" if plan.choice.scorer is None else f", scorer {plan.choice.scorer}"
    types = f", even over {plan.n_types} task types" if plan.n_types > 1 else ""
    counts = ", ".join(f"{split} {n}" for split, n in plan.counts.items())
    lines = [
        f"{file}: {plan.n_rows} rows ({plan.kind})",
        f"columns      {', '.join(roles)}" + (" (guessed)" if plan.columns.guessed else ""),
    ]
    if plan.ignored:
        lines.append(f"not used     {', '.join(map(repr, plan.ignored[:12]))}")
    lines += [
        f"environment  {plan.choice.env}{scorer}: {plan.choice.why}",
        f"splits       {counts} in {plan.folder}/ ({plan.how}{types})",
    ]
    return lines


def _columns(
    wanted: Wanted,
    names: Sequence[str],
    table: Table,
    ask: Callable[[str, Sequence[str]], str] | None,
) -> Columns:
    lacking = [name for name in wanted.columns.values() if name not in names]
    if lacking:
        raise DataError(f"--column {lacking[0]}", f"there are {', '.join(names)}", "Name one")
    columns = find_columns(names, wanted.columns)
    given = dict(columns.of)
    checked = any("checks" in row for row in table.rows)
    roles = ("question",) if checked else ("question", "answer")
    unknown = [role for role in roles if role not in given]
    if unknown and ask is None:
        raise DataError(
            f"{wanted.path}: no column is known for the {' and the '.join(unknown)}",
            f"there are {', '.join(names)}",
            f"Name them: {' '.join(f'--column {role}=NAME' for role in unknown)}",
        )
    for role in roles:
        if ask is not None and (role in unknown or columns.guessed):
            given[role] = ask(role, names)
    return Columns(given, columns.options, columns.guessed and ask is None)


def _valid(made: RecordsMade, choice: Choice) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records that the environment itself takes, and what to tell of the others.

    Raises:
        DataError: a record is no item at all, named by its question.
    """
    import tempfile

    params = {} if choice.scorer is None else {"scorer": choice.scorer}
    kind = type(load_environment(choice.env, None))
    env = kind(kind.Params(**params))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "items.jsonl"
        bare = [{k: v for k, v in one.items() if k != "split"} for one in made.records]
        write_atomic(path, "".join(canonical(one) + "\n" for one in bare))
        reading: SourceRead = read_items(
            find_source(Path(place), choice.env, "items.jsonl", "data/none"), env, Path(place)
        )
    ids = {one.item.id for one in reading.items}
    apart = [reading.told_apart()] if reading.apart else []
    return [one for one in made.records if one["id"] in ids], apart


def _standing(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what an earlier `init --data` of this name wrote, by split; {} where nothing."""
    files = {split: folder / f"{split}.jsonl" for split in SPLITS}
    if not all(path.is_file() for path in files.values()):
        return {}
    return {split: [dict(r.data) for r in read_records(path)] for split, path in files.items()}


def _with_old(
    records: list[dict[str, Any]], before: Mapping[str, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return the new records, and the old ones that the file no longer has."""
    ids = {one["id"] for one in records}
    return records + [one for old in before.values() for one in old if one["id"] not in ids]


def _split(
    records: list[dict[str, Any]],
    wanted: Wanted,
    before: Mapping[str, list[dict[str, Any]]],
) -> tuple[dict[str, list[dict[str, Any]]], str]:
    named = Counter(one.get("split") for one in records)
    if set(named) == set(SPLITS) and not before and wanted.ratio is None:
        of, how = {one["id"]: one["split"] for one in records}, "as the data says"
    else:
        ratio: Sequence[Fraction] = (
            shares(len(records)) if wanted.ratio is None else parse_ratio(wanted.ratio)
        )
        known = {one["id"]: split for split, old in before.items() for one in old}
        of = assign_exactly(records, ratio, SEED, known)
        how = "new items beside the old" if before else "exact counts"
    splits: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    for one in sorted(records, key=lambda one: str(one["id"])):
        splits[of[one["id"]]].append({k: v for k, v in one.items() if k != "split"})
    return splits, how


def _name(path: Path) -> str:
    stem = (
        re.sub(r"[^\w-]+", "-", path.stem if path.is_file() else path.name).strip("-").lower()
    )
    return f"{stem}-items" if stem in _TAKEN or not stem else stem


def copy_skill(source: Path, workspace: Path, name: str) -> str:
    """Copy a skill into the workspace as its seed, a folder as a folder; return its path there.

    Raises:
        UsageError: there is no such file, or a seed of that name that says something else.
    """
    from skilltrail.runtime.training import read_seed_skill
    from skilltrail.skill.folder import write_folder

    text = read_seed_skill(source)
    path = f"skills/seeds/{name}" if source.is_dir() else f"skills/seeds/{name}.md"
    there = workspace / path
    if there.exists() and read_seed_skill(there) != text:
        raise UsageError(f"Writing {path}", "another text stands there", "Remove or rename it")
    if source.is_dir():
        write_folder(there, text)
    else:
        write_atomic(there, text)
    return path


def as_json(plan: ImportPlan) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "rows": plan.n_rows,
        "kind": plan.kind,
        "columns": dict(plan.columns.of),
        "env": plan.choice.env,
        "scorer": plan.choice.scorer,
        "why": plan.choice.why,
        "split_dir": plan.folder,
        "splits": plan.counts,
        "notes": plan.notes,
        "warnings": plan.warnings,
    }

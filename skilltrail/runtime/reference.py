"""Did this run reproduce the committed reference run bit for bit?

The repository carries the log, best skill and metrics of one run. When the items and every
param that can change a result equal HEAD's, what the pipeline has just written must equal them
too; another CPU may round the frozen model's arithmetic otherwise, so a difference is told and
is never a failure. Only what the run reads counts: a note beside the items changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.core.layout import BEST_SKILL, EVENTS, METRICS
from skilltrail.data.find import find_source, shown
from skilltrail.envs.registry import ParamClasses
from skilltrail.history.git.repository import Git
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.params.read import FILE, params_from_text, resolved, run_digest_params

# What a run reads there is part of its digest, so the digest leaves these params out.
_NAMING = ("data.", "skill.", "evaluate.", "judge.rubric")
_ABSENT = "absent"
_SHOWN = 3


@dataclass(frozen=True)
class Reproduction:
    """`same` is None where nothing was compared; `told` says it in a sentence, None where HEAD
    carries no run at all: of a new workspace there is nothing to say."""

    same: bool | None
    told: str | None


def compare_with_head(workspace: Path) -> Reproduction:
    """Compare the run's files in `workspace` with those committed at HEAD."""
    git = Git.at_hand(workspace)
    if git is None:
        return Reproduction(None, "not compared with a reference run: this is no git checkout")
    paths = (EVENTS, BEST_SKILL, METRICS)
    committed = {path: found for path in paths if (found := _committed(git, path)) is not None}
    if not committed:
        return Reproduction(None, None)
    if len(committed) < len(paths):
        lacking = " and ".join(path.as_posix() for path in paths if path not in committed)
        return Reproduction(None, f"not compared with the reference run: HEAD has no {lacking}")
    try:
        others = list(_other_inputs(git, workspace))
    except (UsageError, UnicodeDecodeError) as error:
        return Reproduction(None, f"not compared with the reference run: {error}")
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        told = f"not compared with the reference run: {'; '.join(others[:_SHOWN])}{more}"
        return Reproduction(None, told)
    for path, wanted in committed.items():
        found = (workspace / path).read_bytes() if (workspace / path).exists() else b""
        if found != wanted:
            return Reproduction(False, _difference(path, wanted, found))
    return Reproduction(True, "reproduced the committed reference run bit for bit")


def _other_inputs(git: Git, workspace: Path) -> Iterator[str]:
    """Yield, in words, each param and each file read that is not as HEAD has it.

    Raises:
        UsageError: params or items cannot be read.
    """
    params = params_from_text(_text((workspace / FILE).read_bytes()), FILE, ParamClasses())
    committed = _committed(git, Path(FILE))
    if committed is None:
        yield f"HEAD has no {FILE}"
        return
    # Values, not text: `dvc exp run -S` writes params.yaml in its own style.
    here = _values(params)
    there = _values(params_from_text(_text(committed), FILE, ParamClasses()))
    for key in sorted(here.keys() | there.keys()):
        mine, other = here.get(key, _ABSENT), there.get(key, _ABSENT)
        if mine != other:
            yield f"{key} is {mine}, {other} at HEAD"
    data = params.data
    source = find_source(workspace, params.env, data.path, data.split_dir)
    named = (workspace / path for path in (seed_skill_path(params), params.judge.rubric))
    for path in (*named, *source.files.values()):
        if git.ask("status", "--porcelain", "--", str(path)):
            yield f"{shown(workspace, path)} differs from HEAD's"


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig")


def _values(params: Params) -> dict[str, Any]:
    """Return what decides the files compared: also which data, seed and skills are meant."""
    named = {row.key: row.value for row in resolved(params) if row.key.startswith(_NAMING)}
    return run_digest_params(params) | named


def _committed(git: Git, path: Path) -> bytes | None:
    return git.ask("show", f"HEAD:./{path.as_posix()}")


def _difference(path: Path, committed: bytes, found: bytes) -> str:
    if path != EVENTS:
        return f"differs from the committed reference run in {path.as_posix()}"
    pairs = zip(committed.split(b"\n"), found.split(b"\n"), strict=False)
    seq = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), None)
    if seq == 1:
        return "is not the committed reference run: items, seed skill, model or code differ"
    where = "in length only" if seq is None else f"from event {seq} on"
    return (
        f"differs from the committed reference run {where} "
        "(another CPU may round the model's arithmetic otherwise)"
    )

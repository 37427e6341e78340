"""Did this run reproduce the committed reference run bit for bit?

The repository carries the log, best skill and metrics of one run. When the data and every param
that can change a result equal HEAD's, what the pipeline has just written must equal them too;
another CPU may round the frozen model's arithmetic otherwise, so a difference is told and is
never a failure.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.errors import ParamError
from skilltrail.core.layout import BEST_SKILL, EVENTS, METRICS
from skilltrail.envs.registry import ParamClasses
from skilltrail.params.fields import Params
from skilltrail.params.read import FILE, params_from_text, resolved, run_digest_params

INPUTS = ("data", "skills/seeds")
# What a run reads there is part of its digest, so the digest leaves these params out.
_NAMING = ("data.", "skill.", "evaluate.", "judge.rubric")


@dataclass(frozen=True)
class Reproduction:
    """`same` is None when there is nothing to compare with; `told` says it in a sentence."""

    same: bool | None
    told: str


def compare_with_head(workspace: Path) -> Reproduction:
    """Compare the run's files in `workspace` with those committed at HEAD."""
    changed = _git(workspace, "status", "--porcelain", "--", *INPUTS)
    if changed is None:
        return Reproduction(None, "not compared with a reference run: this is no git checkout")
    if changed.strip() or not _same_params(workspace):
        return Reproduction(
            None, "not compared with the reference run: params or data differ from HEAD's"
        )
    for path in (EVENTS, BEST_SKILL, METRICS):
        committed = _git(workspace, "show", f"HEAD:./{path.as_posix()}")
        if committed is None:
            return Reproduction(None, "not compared: HEAD carries no reference run")
        found = (workspace / path).read_bytes() if (workspace / path).exists() else b""
        if found != committed:
            return Reproduction(False, _difference(path, committed, found))
    return Reproduction(True, "reproduced the committed reference run bit for bit")


def _same_params(workspace: Path) -> bool:
    """Compare values, not text: `dvc exp run -S` writes params.yaml in its own style."""
    now = (workspace / FILE).read_bytes()
    committed = _git(workspace, "show", f"HEAD:./{FILE}")
    if committed is None:
        return False
    try:
        values, wanted = (
            _values(params_from_text(text.decode("utf-8-sig"), FILE, ParamClasses()))
            for text in (now, committed)
        )
    except (ParamError, UnicodeDecodeError):
        return False
    return values == wanted


def _values(params: Params) -> dict[str, Any]:
    """Return what decides the files compared: also which data, seed and skills are meant."""
    named = {row.key: row.value for row in resolved(params) if row.key.startswith(_NAMING)}
    return run_digest_params(params) | named


def _difference(path: Path, committed: bytes, found: bytes) -> str:
    if path != EVENTS:
        return f"differs from the committed reference run in {path.as_posix()}"
    pairs = zip(committed.split(b"\n"), found.split(b"\n"), strict=False)
    seq = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), None)
    where = "in length only" if seq is None else f"from event {seq} on"
    return (
        f"differs from the committed reference run {where} "
        "(another CPU may round the model's arithmetic otherwise)"
    )


def _git(workspace: Path, *args: str) -> bytes | None:
    """Return what git prints, or None when it fails."""
    done = subprocess.run(["git", *args], cwd=workspace, capture_output=True)
    return done.stdout if done.returncode == 0 else None

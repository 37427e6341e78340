"""What a reviewer is told of a run, from what stands in the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skilltrail.cli.commands.ask.audit import audits_of
from skilltrail.cli.commands.ask.summary import (
    evaluation_of,
    paid_lines,
    score_row,
    summarize,
)
from skilltrail.core.canon import loaded
from skilltrail.core.errors import UsageError
from skilltrail.core.layout import EVENTS
from skilltrail.history.ask.audit_record import Audit
from skilltrail.history.ask.sources import Project, SkillFound, find_skill
from skilltrail.history.log.log import read_log
from skilltrail.history.log.words import score
from skilltrail.report.comment import CommentContent, Gain
from skilltrail.skill.document import unified_diff
from skilltrail.skill.risks import risks_text, risky_lines
from skilltrail.store.place import find_place


def of_run(least: float | None) -> CommentContent:
    """Return what is told of the run of `skills/events.jsonl`.

    Raises:
        UsageError: no run has finished here.
    """
    place = find_place()
    told = summarize(place)
    training = read_log(place.workspace / EVENTS)
    evaluation_of(place.workspace, training[-1])
    scores, test = told["scores"], told["scores"].get("test", {})
    rows = [
        [str(cell) for cell in score_row(split, scores[split])]
        for split in ("selection", "test")
        if split in scores
    ]
    here = Project(place.workspace, place.root)
    seed, best = (find_skill(here, name) for name in ("seed", "best"))
    steps = f"steps: {scores['steps']} ({scores['accepted']} accepted)"
    return CommentContent(
        _gain(test, test.get("items", 0)),
        least,
        rows,
        [steps, *paid_lines(told), *_to_review(seed.text, best.text)],
        told["name"],
        unified_diff(seed.text, best.text, "skill.md"),
        _audits(best),
    )


def of_measured(path: Path, least: float | None) -> CommentContent:
    """Return what is told of skills measured by `skilltrail evaluate --json`: the last of them
    against the first.

    Raises:
        UsageError: the file holds no such result, or of one skill only.
    """
    rows = _read_measured(path)
    here = Project.here()
    first, last = (find_skill(here, str(row["skill"])) for row in (rows[0], rows[-1]))
    items = int(rows[-1]["coverage"]["scored"])
    cells = ["measured", str(items), *(score(row["mean_hard"]) for row in (rows[0], rows[-1]))]
    gain = _gain(rows[-1], items)
    return CommentContent(
        gain,
        least,
        [[*cells, "-" if gain is None else str(gain)]],
        _to_review(first.text, last.text),
        None,
        unified_diff(first.text, last.text, "skill.md"),
        _audits(last),
    )


def _audits(skill: SkillFound) -> list[Audit]:
    """Return the audits of the versions up to this one, the last first."""
    numbers = range(0 if skill.version is None else skill.version, 0, -1)
    return [] if skill.log is None else audits_of(skill.log, numbers)


def _gain(numbers: Any, items: int) -> Gain | None:
    if numbers.get("gain") is None:
        return None
    return Gain(numbers["gain"], numbers["gain_low"], numbers["gain_high"], items)


def _to_review(before: str, after: str) -> list[str]:
    lines = risky_lines(after, before)
    return [f"new lines to review: {risks_text(lines)}"] if lines else []


def _read_measured(path: Path) -> Sequence[dict[str, Any]]:
    remedy = "Write it: `skilltrail evaluate --skill seed --skill best --json > FILE`"
    try:
        rows = loaded(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"--measured {path}", "no such file", remedy) from error
    except ValueError as error:
        raise UsageError(f"--measured {path}", f"not JSON: {error}", remedy) from error
    wanted = {"skill", "coverage", "mean_hard", "gain"}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and wanted <= set(row) for row in rows
    ):
        raise UsageError(f"--measured {path}", "not what `evaluate --json` writes", remedy)
    if len(rows) < 2:
        raise UsageError(f"--measured {path}", f"{len(rows)} skill in it", remedy)
    return rows

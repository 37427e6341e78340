"""Proposed items on the live page: what waits for a person, and what the person decided.

A folder is one of those below `data/` that hold proposals, looked up by name and never opened
by a path that came in.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skilltrail.core.errors import DataError, SkilltrailError, UsageError
from skilltrail.core.hidden import UNSEEN, spelled_out
from skilltrail.data.sessions.proposals import ITEMS, PROPOSED, decide, proposed_in
from skilltrail.models.environ import redactor
from skilltrail.skill.risks import risks_of

_ONE_AT_A_TIME = threading.Lock()


def waiting(workspace: Path) -> list[dict[str, Any]]:
    """Return each folder with the proposals that are left in it, or `fault`: why none is."""
    found = []
    for name, path in _folders(workspace).items():
        told: dict[str, Any] = {"folder": name, "items": f"{name}/{ITEMS}", "left": []}
        try:
            told["left"] = [_shown(record) for record in proposed_in(path)]
        except (SkilltrailError, OSError, ValueError) as error:
            told["fault"] = str(error)
        found.append(told)
    return found


def decided(workspace: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a decision and return how many proposals are left.

    Args:
        asked: `folder`, `id`, `accepted`, and `question` and `answer` where they were edited.

    Raises:
        UsageError: there is no such proposal, or a value is not of its kind.
    """
    folder = _folders(workspace).get(str(asked.get("folder")))
    if folder is None:
        raise UsageError("The review", "no such folder of proposals", "Reload the page")
    accepted = asked.get("accepted")
    texts = {name: asked.get(name) for name in ("question", "answer") if name in asked}
    blank = [name for name, one in texts.items() if not isinstance(one, str) or _is_blank(one)]
    if not isinstance(accepted, bool) or blank:
        found = f"{blank[0]} is no text" if blank else "accepted is not true or false"
        raise UsageError("The review", found, "Reload the page")
    with _ONE_AT_A_TIME:
        left = {str(record["id"]): record for record in proposed_in(folder)}
        record = left.pop(str(asked.get("id")), None)
        if record is None:
            raise UsageError("The review", "this one is decided already", "Reload the page")
        hide = redactor()
        clean = {name: UNSEEN.sub("", hide.text(str(one))) for name, one in texts.items()}
        if "question" in clean:
            record["question"] = clean["question"].strip()
        if "answer" in clean:
            record["answers"] = [clean["answer"].strip()]
        decide(folder, record, accepted=accepted)
    return {"left": len(left)}


def _folders(workspace: Path) -> dict[str, Path]:
    found = sorted((workspace / "data").glob(f"*/{PROPOSED}"))
    return {
        path.parent.relative_to(workspace).as_posix(): path.parent
        for path in found
        # A link leads elsewhere: nothing there is shown, and nothing is written there.
        if path.is_file() and not (path.is_symlink() or path.parent.is_symlink())
    }


def _is_blank(text: str) -> bool:
    return not UNSEEN.sub("", text).strip()


def _shown(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a proposal, signs that nobody sees spelled out.

    Raises:
        DataError: it is none.
    """
    answers = record.get("answers")
    if "question" not in record or not (isinstance(answers, list) and answers):
        remedy = "Mend or remove its line"
        raise DataError(f"{PROPOSED}, {record['id']!r}", "no question and answers", remedy)
    texts = {name: str(record[name]) for name in ("question", "feedback", "command")
             if name in record} | {"answer": str(record["answers"][0])}  # fmt: skip
    lines = "\n".join(texts.values()).split("\n")
    return {
        "id": str(record["id"]),
        "found": str(record.get("found", "")),
        "sessions": record.get("sessions", 1),
        "risks": sorted({risk.value for line in lines for risk in risks_of(line)}),
        **{name: spelled_out(text) for name, text in texts.items()},
    }

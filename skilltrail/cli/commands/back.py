"""`skilltrail back`: after an experiment, everything as HEAD's run left it."""

from __future__ import annotations

from skilltrail.cli.options import JSON
from skilltrail.history.git.repository import Git
from skilltrail.repair.back import back as take_back
from skilltrail.repair.case import Case
from skilltrail.runtime.console import emit, emit_json
from skilltrail.store.place import find_place


def back(as_json: JSON = False) -> None:
    """Take branch, params, dvc.lock, data, skill and report back to the run of HEAD.

    After an experiment, finished, killed or stopped. Whatever no commit holds is copied to
    .skilltrail/kept first; recorded calls, and files that no stage writes, stay as they are.

    Example: dvc exp run -S lr=8; skilltrail back
    """
    place = find_place()
    case = Case(place, Git.find(place.root), ask=lambda question: True)
    steps = []
    for done in take_back(case):
        steps.append(done)
        if not as_json:
            emit(done)
    if as_json:
        emit_json({"done": steps, "kept": case.kept.folder})
    elif case.kept.names:
        emit(str(case.kept))

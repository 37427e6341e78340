"""The three files that every command reads: dvc.lock, params.yaml, dvc.yaml.

DVC empties and writes dvc.lock and params.yaml in place; a merge leaves its markers in them. A
dvc.lock is held against DVC's own schema.
"""

from __future__ import annotations

import re
from pathlib import Path

from skilltrail.cli.repair.case import Case, Finding
from skilltrail.cli.repair.locks import REMEDY
from skilltrail.core.errors import ParamError, SkilltrailError
from skilltrail.core.files import write_atomic
from skilltrail.envs.registry import ParamClasses
from skilltrail.params.read import FILE, params_from_text, resolved
from skilltrail.runtime.last_lock import LOCK, kept_lock

PIPELINE = "dvc.yaml"
_MARKER = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
_SHOWN = 3
ASKING = f"{REMEDY} --yes"


def conflict_in(data: bytes) -> bool:
    """Return whether a merge left its markers."""
    return _MARKER.search(data) is not None


def fault_of_lock(data: bytes) -> str | None:
    """Return why DVC would refuse this text of dvc.lock; None where it would not."""
    if conflict_in(data):
        return "holds the markers of a merge"
    if not data.strip():
        return "is empty"
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA  # a second, which few need
    from dvc.utils.serialize import parse_yaml

    try:
        COMPILED_LOCKFILE_SCHEMA(parse_yaml(data.decode("utf-8"), LOCK))
    except Exception:  # noqa: BLE001 (whatever a parser says of half a file)
        return "ends in the middle, or is damaged"
    return None


class LockFile:
    """dvc.lock: without it no dvc command knows what stands here."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def findings(self) -> list[Finding]:
        fault = self._fault()
        if fault is None:
            return []
        remedy = REMEDY if self._good() is not None else f"delete {LOCK}, then `dvc repro`"
        return [Finding(LOCK, f"{LOCK} {fault}: every dvc command refuses", remedy)]

    def mend(self) -> list[str]:
        good = self._good()
        if self._fault() is None or good is None:
            return []
        self._case.kept.keep(LOCK)
        text, source = good
        write_atomic(self._case.root / LOCK, text)
        return [f"restored {LOCK} from {source}"]

    def _fault(self) -> str | None:
        data = _bytes(self._case.root / LOCK)
        return None if data is None else fault_of_lock(data)

    def _good(self) -> tuple[bytes, str] | None:
        """Return the text to go back to: an experiment's way back is its branch's, any other's
        what the last stage found."""
        committed, last = self._case.at_ground(LOCK), kept_lock(self._case.place)
        choices = [(last, "the copy that the last stage kept"), (committed, "git")]
        for text, source in reversed(choices) if self._case.left_by_dvc else choices:
            if text is not None and fault_of_lock(text) is None:
                return text, source
        return None


class ParamsFile:
    """params.yaml: unreadable, or left with the values of an experiment that was killed."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def findings(self) -> list[Finding]:
        fault, known = self._fault(), self._case.at_ground(FILE) is not None
        if fault is not None:
            remedy = ASKING if known else f"Write {FILE} anew: HEAD has none"
            return [Finding(FILE, f"{FILE} {fault}: nothing runs", remedy)]
        other = self._of_the_experiment()
        if other is None:
            return []
        found = (
            f"{FILE} holds the values of a killed experiment ({other}): a run would use them"
        )
        return [Finding(FILE, found, ASKING)]

    def mend(self) -> list[str]:
        committed, fault = self._case.at_ground(FILE), self._fault()
        other = self._of_the_experiment() if fault is None else fault
        if committed is None or other is None or self._case.params_are_back:
            return []
        where = (
            "HEAD" if self._case.ground == "HEAD" else str(self._case.ground).split("/", 2)[2]
        )
        if not self._case.ask(f"{FILE}: {other}. Put back the one of {where}?"):
            return [f"left {FILE} as it is ({other}): `{ASKING}` puts back the one of {where}"]
        self._case.kept.keep(FILE)
        write_atomic(self._case.root / FILE, committed)
        kept = f"{self._case.kept.folder}/{FILE}"
        return [
            f"put {FILE} back as {where} has it ({other}). What you had edited in it yourself "
            f"is now in {kept} alone: `git diff --no-index {FILE} {kept}` shows it"
        ]

    def _fault(self) -> str | None:
        """Return why no params can be read at all; faults in single keys are a person's."""
        data = _bytes(self._case.root / FILE)
        if data is None:
            return "is gone"
        if conflict_in(data):
            return "holds the markers of a merge"
        if not data.strip():
            return "is empty"
        try:
            data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return "is not UTF-8"
        return None

    def _of_the_experiment(self) -> str | None:
        """Return, in words, what an experiment left in the file; None where it left nothing."""
        committed, data = self._case.at_ground(FILE), _bytes(self._case.root / FILE)
        if not self._case.left_by_dvc or committed is None or committed == data:
            return None
        return difference(committed, b"" if data is None else data)


class Pipeline:
    """dvc.yaml with the markers of a merge: only a person knows which side is right."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def findings(self) -> list[Finding]:
        data = _bytes(self._case.root / PIPELINE)
        if data is None or not conflict_in(data):
            return []
        found = f"{PIPELINE} holds the markers of a merge: every dvc command refuses"
        remedy = f"keep one side of each in an editor, then `git add {PIPELINE}`"
        return [Finding(PIPELINE, found, remedy)]

    def mend(self) -> list[str]:
        return []


def difference(committed: bytes, here: bytes) -> str:
    """Return in words which params differ: `lr is 8, 4 there`."""
    try:
        there, mine = _values(committed), _values(here)
    except (ParamError, SkilltrailError, UnicodeDecodeError):
        return "it differs"
    keys = [key for key in {**there, **mine} if there.get(key) != mine.get(key)]
    told = [f"{key} is {mine.get(key)}, {there.get(key)} there" for key in keys]
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return "; ".join(told[:_SHOWN]) + more if told else "it is written in another way"


def _values(data: bytes) -> dict[str, object]:
    params = params_from_text(data.decode("utf-8-sig"), FILE, ParamClasses())
    return {row.key: row.value for row in resolved(params)}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

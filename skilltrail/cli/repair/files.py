"""The files that every command reads: dvc.lock, params.yaml, dvc.yaml, DVC's own settings.

DVC empties and writes dvc.lock and params.yaml in place; a merge leaves its markers in them. A
dvc.lock is held against DVC's own schema.
"""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.cli.repair.case import Finding, Repair, Site
from skilltrail.cli.repair.locks import REMEDY
from skilltrail.core.errors import ParamError, SkilltrailError
from skilltrail.core.files import write_atomic
from skilltrail.core.layout import BEST_SKILL, EVENTS
from skilltrail.envs.registry import ParamClasses
from skilltrail.history.git.under_way import under_way
from skilltrail.params.read import FILE, params_from_text, resolved
from skilltrail.runtime.last_lock import LOCK, kept_lock

PIPELINE = "dvc.yaml"
_MARKER = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
_SETTING = re.compile(r"\s*(?:#.*|\[+[^\[\]]+\]+\s*(?:#.*)?|[^=\[\]]+=.*)?")
_SHOWN = 3
NO_YAML = "is not YAML"
MERGING = "holds the markers of a merge"
ASKING = f"{REMEDY} --yes"


def conflict_in(data: bytes) -> bool:
    """Return whether a merge left its markers."""
    return _MARKER.search(data) is not None


def fault_of_lock(data: bytes) -> str | None:
    """Return why DVC would refuse this text of dvc.lock; None where it would not."""
    if conflict_in(data):
        return MERGING
    if not data.strip():
        return "is empty"
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA  # a second, which few need
    from dvc.utils.serialize import parse_yaml

    try:
        COMPILED_LOCKFILE_SCHEMA(parse_yaml(data.decode("utf-8"), LOCK))
    except Exception:  # noqa: BLE001 (whatever a parser says of half a file)
        return "ends in the middle, or is damaged"
    return None


class LockFile(Repair):
    """dvc.lock: without it no dvc command knows what stands here."""

    def findings(self) -> list[Finding]:
        fault = self._fault()
        if fault is None:
            return []
        remedy = REMEDY if self._good() is not None else f"delete {LOCK}, then `dvc repro`"
        return [Finding(LOCK, f"{LOCK} {fault}: every dvc command refuses", remedy)]

    def fix(self) -> list[str]:
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


class ParamsFile(Repair):
    """params.yaml: unreadable, or left with the values of an experiment that was killed."""

    def findings(self) -> list[Finding]:
        fault, known = self._fault(), self._case.at_ground(FILE) is not None
        if fault is not None:
            remedy = ASKING if known else f"Write {FILE} anew: HEAD has none"
            if known and fault == NO_YAML:
                remedy = f"correct it, or {ASKING}"
            return [Finding(FILE, f"{FILE} {fault}: nothing runs", remedy)]
        other = self._of_the_experiment()
        if other is None:
            return []
        found = (
            f"{FILE} holds the values of a killed experiment ({other}): a run would use them"
        )
        return [Finding(FILE, found, ASKING)]

    def fix(self) -> list[str]:
        committed, fault = self._case.at_ground(FILE), self._fault()
        other = self._of_the_experiment() if fault is None else fault
        folder = (self._case.root / FILE).is_dir()
        if committed is None or other is None or folder or self._case.params_are_back:
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
        return _fault_of_yaml(self._case, FILE)

    def _of_the_experiment(self) -> str | None:
        """Return, in words, what an experiment left in the file; None where it left nothing."""
        committed, data = self._case.at_ground(FILE), _bytes(self._case.root / FILE)
        if not self._case.left_by_dvc or committed is None or committed == data:
            return None
        return difference(committed, b"" if data is None else data)


class Pipeline(Repair):
    """dvc.yaml: without it DVC knows no stage."""

    name, lost = PIPELINE, "every dvc command refuses"

    def findings(self) -> list[Finding]:
        fault = self._fault()
        if fault is None:
            return []
        known = self._case.at_ground(self.name) is not None
        remedy = f"correct it, or {ASKING}" if known else f"correct {self.name}: HEAD has none"
        if fault == MERGING:
            remedy = f"keep one side of each in an editor, then `git add {self.name}`"
        return [Finding(self.name, f"{self.name} {fault}: {self.lost}", remedy)]

    def fix(self) -> list[str]:
        committed, fault = self._case.at_ground(self.name), self._fault()
        if fault is None or fault == MERGING or committed is None:
            return []  # only a person knows which side of a merge is right
        if not self._case.ask(f"{self.name}: it {fault}. Put back the one of HEAD?"):
            told = f"`{ASKING}` puts back the one of HEAD"
            return [f"left {self.name} as it is (it {fault}): {told}"]
        self._case.kept.keep(self.name)
        write_atomic(self._case.root / self.name, committed)
        return [f"put {self.name} back as HEAD has it: it {fault}"]

    def _fault(self) -> str | None:
        here = (self._case.root / self.name).exists()
        if not here and self._case.at_ground(self.name) is None:
            return None  # no project of DVC
        return _fault_of_yaml(self._case, self.name)


class DvcConfig(Pipeline):
    """.dvc/config, which DVC reads before anything else; config.local is a person's alone."""

    name, local = ".dvc/config", ".dvc/config.local"

    def findings(self) -> list[Finding]:
        found, fault = super().findings(), _fault_of_settings(self._case.root / self.local)
        if fault is not None:
            told = f"{self.local} {fault}: {self.lost}"
            found.append(Finding(self.local, told, f"correct or delete {self.local}"))
        return found

    def _fault(self) -> str | None:
        return _fault_of_settings(self._case.root / self.name)


class Merged(Repair):
    """What a run writes, with the markers of a merge."""

    def findings(self) -> list[Finding]:
        return [
            Finding(name, f"{name} {MERGING}: it is no run's", self._remedy(name))
            for name in (EVENTS.as_posix(), BEST_SKILL.as_posix())
            if conflict_in(_bytes(self._case.place.workspace / name) or b"")
        ]

    def _remedy(self, name: str) -> str:
        """Return how to have a whole file again: while git merges it, from one side."""
        busy, committed = under_way(self._case.git), self._case.at_ground(name)
        if busy is not None and name in busy.unmerged:
            return f"`git checkout --ours {name}`, or `--theirs`, then `git add {name}`"
        if committed is not None and not conflict_in(committed):
            return f"`git checkout HEAD -- {name}`"
        return f"take it from a commit that has it whole (`git log -- {name}`), or `dvc repro`"


def _fault_of_yaml(case: Site, name: str) -> str | None:
    """Return why a file of YAML cannot be read; None where it can."""
    data = _bytes(case.root / name)
    if data is None:
        return "is a folder" if (case.root / name).is_dir() else "is gone"
    fault = _fault_of_text(data)
    committed = case.at_ground(name)
    if fault is not None:
        return fault
    if not data.strip():
        return "is empty"
    if committed is not None and data != committed and committed.startswith(data):
        return "ends in the middle"
    try:
        YAML(typ="safe", pure=True).load(data.decode("utf-8-sig"))
    except (YAMLError, ValueError, RecursionError):
        return NO_YAML
    return None


def _fault_of_settings(path: Path) -> str | None:
    """Return why DVC would refuse its settings; None where it would not."""
    data = _bytes(path)
    if data is None:
        return None
    lines = data.decode("utf-8", "replace").splitlines()
    wrong = [n for n, line in enumerate(lines, 1) if not _SETTING.fullmatch(line)]
    cut = f"is cut or damaged in line {wrong[0]}" if wrong else None
    return _fault_of_text(data) or cut


def _fault_of_text(data: bytes) -> str | None:
    if conflict_in(data):
        return MERGING
    if b"\0" in data:
        return "holds NUL bytes, as a power cut leaves them"
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None


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

"""From a tree to a section of params: every fault noted, the origin of each value kept.

A key that no section has is told the nearest one: by what other tools call it, by its last
part, or by spelling.
"""

from __future__ import annotations

import difflib
from typing import Any

from skilltrail.core.errors import ParamError
from skilltrail.params.fields import Params
from skilltrail.params.knob import Mismatch, convert, fields_of, found, knobs_of
from skilltrail.params.other_names import hint_of
from skilltrail.params.tree import Node, ParamFault


class SectionReader:
    """Builds sections from a tree, noting faults, the origin and the line of each key."""

    def __init__(self, faults: list[ParamFault]) -> None:
        self.faults = faults
        self.origins: dict[str, str] = {}
        self.lines: dict[str, int | None] = {}

    def fault(self, key: str, message: str, line: int | None) -> None:
        self.faults.append(ParamFault(key, message, line))

    def section(self, cls: type, node: Node, prefix: str, origin: str) -> Any:
        """Return an instance of `cls`; a field with a fault keeps its default."""
        if node.value is None:
            return cls()
        if not isinstance(node.value, dict):
            self.fault(
                prefix.rstrip("."), f"expected a mapping, found {found(node)}", node.line
            )
            return cls()
        values: dict[str, Any] = {}
        known = {field.key: field for field in fields_of(cls, prefix)}
        for name, entry in node.value.items():
            key = f"{prefix}{name}"
            self.lines[key] = entry.line
            if key not in known:
                self.unknown(cls, key, prefix, entry.line)
            elif known[key].is_section:
                values[name] = self.section(known[key].type, entry, f"{key}.", origin)
            else:
                try:
                    values[name] = convert(entry, known[key])
                    self.origins[key] = origin
                except Mismatch as mismatch:
                    self.fault(key, str(mismatch), entry.line)
        return self.checked(cls, values, prefix.rstrip("."), node.line)

    def checked(self, cls: type, values: dict[str, Any], key: str, line: int | None) -> Any:
        """Return `cls(**values)`, asked by its own `check(key)` too where it has one."""
        try:
            made = cls(**values)
            if hasattr(made, "check"):
                made.check(key)
        except ParamError as error:
            reported = {fault.key for fault in self.faults}
            if error.asked not in reported:
                message = f"{error.found}; {error.remedy}" if error.remedy else error.found
                self.fault(error.asked, message, self.lines.get(error.asked, line))
        except ValueError as error:
            self.fault(key, str(error), line)
        else:
            return made
        return cls()

    def unknown(self, cls: type, key: str, prefix: str, line: int | None) -> None:
        keys = [knob.key for knob in knobs_of(cls, prefix)]
        if prefix and not prefix.startswith("envs."):
            keys += [knob.key for knob in knobs_of(Params)]
        foreign = hint_of(key, keys)
        hint = nearest(key, keys) if foreign is None else f"; {foreign}"
        self.fault(key, f"no such key{hint}", line)


def nearest(key: str, keys: list[str]) -> str:
    """Return `; the nearest is ...`, by last part or by spelling."""
    last = key.rpartition(".")[2]
    same = [one for one in keys if one.rpartition(".")[2] == last]
    close = same or difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    if not close:
        lasts = {one.rpartition(".")[2]: one for one in reversed(keys)}
        near = difflib.get_close_matches(last, list(lasts), n=1, cutoff=0.5)
        close = [lasts[one] for one in near]
    if close:
        return f"; the nearest is {close[0]}"
    return "; there are " + ", ".join(keys) if 0 < len(keys) <= 12 else ""

"""YAML as a tree that remembers lines and quotes, so that every fault can be named at once.

YAML 1.2 by ruamel.yaml's composer. Duplicate keys, anchors that repeat themselves, and tags of
foreign types are faults, not surprises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

_MOST_VALUES = 100_000  # anchors of anchors of anchors would be read for ever


@dataclass(frozen=True)
class ParamFault:
    """One thing wrong with a params file. `line` is 1-based, None where there is no file."""

    key: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = [] if self.line is None else [f"line {self.line}"]
        return ", ".join(place + ([self.key] if self.key else [])) + f": {self.message}"


@dataclass(frozen=True)
class Node:
    """A YAML value where it stands.

    Attributes:
        value: a scalar, a list of nodes, or a dict of nodes.
        line: 1-based, of the key in a mapping; None where there is no file.
        quoted: whether a string stood in quotes (or in a block).
        text: a plain scalar as it was written.
    """

    value: Any
    line: int | None = None
    quoted: bool = False
    text: str = ""

    def at(self, *names: str) -> Node:
        """Return what stands below these names; where nothing does, an empty mapping."""
        node = self
        for name in names:
            node = node.value.get(name, Node({})) if isinstance(node.value, dict) else Node({})
        return node


def plain(node: Node) -> Any:
    """Return the bare value of a tree: scalars, lists, dicts."""
    if isinstance(node.value, dict):
        return {key: plain(entry) for key, entry in node.value.items()}
    if isinstance(node.value, list):
        return [plain(entry) for entry in node.value]
    return node.value


def node_of(value: Any) -> Node:
    """Return the tree of a bare value, without lines; nodes in it stay as they are."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Mapping):
        return Node({str(key): node_of(entry) for key, entry in value.items()})
    if isinstance(value, (list, tuple)):
        return Node([node_of(entry) for entry in value])
    return Node(value, quoted=isinstance(value, str))


def parse(text: str, faults: list[ParamFault]) -> Node:
    """Return the tree of a YAML text, adding what is wrong with it to `faults`."""
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
    except YAMLError as error:
        faults.append(_syntax_fault(error))
        return Node({})
    except RecursionError:
        faults.append(ParamFault("", "nested too deeply"))
        return Node({})
    if root is None:
        return Node({}, 1)
    return _Reader(yaml, faults).node(root, "", root.start_mark.line + 1, ())


class _Reader:
    def __init__(self, yaml: YAML, faults: list[ParamFault]) -> None:
        self.yaml = yaml
        self.faults = faults
        self.read = 0

    def node(self, node: Any, key: str, line: int, above: tuple[Any, ...]) -> Node:
        self.read += 1
        if self.read > _MOST_VALUES:
            if self.read == _MOST_VALUES + 1:
                self.faults.append(
                    ParamFault(key, f"more than {_MOST_VALUES} values so far", line)
                )
        elif any(node is one for one in above):
            self.faults.append(ParamFault(key, "an anchor that contains itself", line))
        elif isinstance(node, MappingNode):
            return Node(self.mapping(node, key, (*above, node)), line)
        elif isinstance(node, SequenceNode):
            entries = [
                self.node(one, key, one.start_mark.line + 1, (*above, node))
                for one in node.value
            ]
            return Node(entries, line)
        elif isinstance(node, ScalarNode):
            return self.scalar(node, key, line)
        return Node(None, line)

    def mapping(self, node: Any, key: str, above: tuple[Any, ...]) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for name_node, value_node in node.value:
            line = name_node.start_mark.line + 1
            name = name_node.value if isinstance(name_node, ScalarNode) else "?"
            path = f"{key}.{name}" if key else name
            if name in entries:
                first = entries[name].line
                self.faults.append(
                    ParamFault(path, f"given twice, first in line {first}", line)
                )
            entries[name] = self.node(value_node, path, line, above)
        return entries

    def scalar(self, node: Any, key: str, line: int) -> Node:
        kind = str(node.tag).rpartition(":")[2]
        if node.style is not None or kind in ("str", "timestamp", "value"):
            return Node(node.value, line, node.style is not None, node.value)
        if kind in ("int", "float", "bool", "null"):
            try:
                value = self.yaml.constructor.construct_object(node)
            except ValueError:
                self.faults.append(ParamFault(key, "a number of too many digits", line))
                return Node(None, line)
            return Node(value, line, text=node.value)
        self.faults.append(ParamFault(key, f"a value of the foreign type {node.tag}", line))
        return Node(None, line)


def _syntax_fault(error: YAMLError) -> ParamFault:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    problem = error.problem if isinstance(error, MarkedYAMLError) else str(error)
    words = re.sub(r"\s+", " ", str(problem)).strip()
    return ParamFault("", f"not YAML: {words}", None if mark is None else mark.line + 1)

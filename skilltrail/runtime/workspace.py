"""Reading a project's params together with the environment that they choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skilltrail.core.errors import ParamError, UsageError
from skilltrail.envs.protocol import Environment
from skilltrail.envs.registry import ParamClasses, load_environment
from skilltrail.params.fields import Params
from skilltrail.params.read import FILE, params_of
from skilltrail.params.read import load_params as read_params
from skilltrail.params.tree import Node, ParamFault, node_of, parse


def load_params(root: Path) -> Params:
    """Return the params of the project at `root`.

    Raises:
        ParamError: the file is absent or has faults; all of them are named.
    """
    return read_params(root / FILE, ParamClasses())


def params_with(root: Path, changes: Mapping[str, Any], name: str = FILE) -> Params:
    """Return the params that a run with `changes` (dotted key to value) would read from `name`.

    Raises:
        ParamError: the file is absent, or has faults with the changes in it.
    """
    path = root / name
    unchanged = read_params(path, ParamClasses())
    if not changes:
        return unchanged
    tree = parse(path.read_text(encoding="utf-8-sig"), [])
    for key, value in changes.items():
        *sections, name = key.split(".")
        entries = tree.value
        for section in sections:
            entries = entries.setdefault(section, Node({})).value
            if not isinstance(entries, dict):
                raise ParamError(key, f"{section} is no section of {name}")
        entries[name] = node_of(value)
    return params_of(tree, ParamClasses())


def changes_of(overrides: Iterable[str]) -> dict[str, Node]:
    """Return overrides as `dvc exp run -S` takes them (`lr=8`) by key, values read as YAML.

    A plus before a key, with which DVC adds what the file lacks, changes nothing here.

    A node knows whether a word stood in quotes: `no` alone is false where a switch is due.

    Raises:
        UsageError: one of them is not KEY=VALUE.
    """
    changes: dict[str, Node] = {}
    for override in overrides:
        key, equals, text = override.removeprefix("+").removeprefix("+").partition("=")
        if not equals or not key.replace(".", "").replace("_", "").isalnum():
            raise UsageError(f"-S {override}", "not KEY=VALUE", "For instance: -S lr=8")
        faults: list[ParamFault] = []
        node = parse(text, faults) if text.strip() else Node(None)
        if faults:
            raise UsageError(
                f"-S {override}", "the value cannot be read", "Put a text in quotes"
            )
        changes[key] = replace(node, line=None)
    return changes


def environment_of(params: Params) -> Environment:
    """Return the environment that `params` choose, with its own params."""
    return load_environment(params.env, params.env_params)

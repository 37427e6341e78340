"""Params are committed, so a secret in them is refused, and never repeated in a message.

A secret goes by its shape, or by the name of a key that is no knob. A knob that ends in `_env`
takes the name of an environment variable and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from skilltrail.core.redact import holds_secret, redact
from skilltrail.params.tree import Node, ParamFault

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
MESSAGE = (
    "this looks like a secret, and params are committed; put it into the environment or into "
    ".env and, if it was real, replace it at the provider"
)
VARIABLE_MESSAGE = "expected the name of an environment variable, not what it holds"


def secret_faults(tree: Node, knobs: Collection[str]) -> list[ParamFault]:
    """Return a fault for each secret in a tree; `knobs` are the last parts of known keys."""
    return list(_walk(tree, "", knobs))


def _walk(node: Node, key: str, knobs: Collection[str]) -> Iterator[ParamFault]:
    if isinstance(node.value, dict):
        for name, entry in node.value.items():
            yield from _walk(entry, f"{key}.{name}" if key else name, knobs)
    elif isinstance(node.value, list):
        for entry in node.value:
            yield from _walk(entry, key, knobs)
    elif isinstance(node.value, str) and node.value:
        name = key.rpartition(".")[2]
        if redact(node.value) != node.value or (name not in knobs and _is_secret_name(key)):
            yield ParamFault(key, MESSAGE, node.line)
        elif name.endswith("_env") and VARIABLE.fullmatch(node.value) is None:
            yield ParamFault(key, VARIABLE_MESSAGE, node.line)


def _is_secret_name(key: str) -> bool:
    """Return whether a key's last part names a secret. Below `envs` it may be a knob of an
    environment that is not chosen, so only values tell there."""
    name = key.rpartition(".")[2]
    return holds_secret(name) and not name.endswith("_env") and not key.startswith("envs.")

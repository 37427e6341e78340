"""What a module imports from this project, read from its text and never by importing it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("skilltrail", "stages")


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the project's modules that `module` imports at run time, wherever in its text.

    What stands under `if TYPE_CHECKING:` is not imported.
    """
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in _running(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name for name in names if name.split(".")[0] in ROOMS and is_module(name)}
    return frozenset(found)


def closure(module: str) -> set[str]:
    """Return `module` and everything of the project that importing it can import."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += imports_of(name)
    return seen


def modules(room: str) -> list[str]:
    """Return the names of all modules in a room, sorted."""
    files = sorted((ROOT / room).rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names]


def is_module(name: str) -> bool:
    """Return whether the project has a module of this name."""
    folder = ROOT.joinpath(*name.split("."))
    return folder.with_suffix(".py").is_file() or (folder / "__init__.py").is_file()


def path_of(name: str) -> Path:
    """Return the file of a module."""
    folder = ROOT.joinpath(*name.split("."))
    file = folder.with_suffix(".py")
    return file if file.is_file() else folder / "__init__.py"


def _running(node: ast.AST) -> list[ast.AST]:
    """Return all nodes below `node` but those that only a type checker sees."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        found.append(child)
        found += _running(child)
    return found

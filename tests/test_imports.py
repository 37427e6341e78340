"""Arrows point one way, folder by folder: an import reaches a room below, never one above."""

from __future__ import annotations

import sys
from itertools import chain
from subprocess import run

import pytest
from project_imports import closure, imports_of, modules

# From the ground up. Rooms on one floor do not know each other, but for the pairs named below.
FLOORS = (
    ("core",),
    ("skill", "params"),
    ("history", "store", "models", "sandbox"),
    ("envs",),
    ("data", "optimizers"),
    ("method", "methods"),
    ("runtime",),
    ("verify",),
    ("report",),
    ("cli", "ui", "api"),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
NEIGHBOURS = {("methods", "method"), ("cli", "ui"), ("ui", "cli")}
ROOMS = tuple(chain(*FLOORS))
# What `core` may use beyond the standard library.
CORE_LIBRARIES = {"numpy"}


def room_of(module: str) -> str:
    """Return the room of a module; "" for the package itself."""
    return (module.split(".") + [""])[1]


def may_import(room: str, other: str) -> bool:
    if other in ("", room) or (room, other) in NEIGHBOURS:
        return True
    return other in FLOOR and FLOOR[other] < FLOOR[room]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module in modules(f"skilltrail/{room}")
        for name in imports_of(module)
        if not may_import(room, room_of(name))
    ]
    assert wrong == []


def test_every_folder_of_the_library_is_a_room() -> None:
    found = {room_of(name) for name in modules("skilltrail")} - {"", "__main__"}
    assert found <= set(ROOMS)


def test_no_module_imports_itself_round_a_corner() -> None:
    """A cycle among modules, imports inside functions included."""
    wrong = sorted(
        name
        for name in modules("skilltrail")
        if any(name in closure(other) for other in imports_of(name) if other != name)
    )
    assert wrong == []


def test_the_library_knows_nothing_of_the_pages_that_dvc_runs() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in modules("skilltrail")
        for name in imports_of(module)
        if name.startswith("stages")
    ]
    assert wrong == []


def test_core_imports_the_standard_library_and_little_else() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        f"for name in {modules('skilltrail/core')!r}: __import__(name)\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"skilltrail"}
    assert {name for name in others if not name.startswith("_")} <= CORE_LIBRARIES

"""Arrows point one way: core <- store, history, models, envs, optimizers <- loop <- command."""

from __future__ import annotations

import sys
from subprocess import run

import pytest
from project_imports import closure, imports_of, modules

# Each room and the rooms it may import from, besides itself.
MAY_IMPORT = {
    "stages.core": set(),
    "schemas": set(),
    "stages.history": {"stages.core", "schemas"},
    "stages.store": {"stages.core", "schemas"},
    "stages.models": {"stages.core", "schemas"},
    "stages.data": {"stages.core", "schemas", "stages.envs"},
    "stages.sandbox": {"stages.core"},
    "stages.envs": {"stages.core", "stages.models", "stages.sandbox", "schemas"},
    "stages.optimizers": {"stages.core", "stages.models", "stages.envs", "schemas"},
}
INNER = sorted(MAY_IMPORT)
# What a person types, and nothing else may rest on.
OUTER = ("stages.commands", "stages.cli", "stages.train", "stages.evaluate", "reports")
# What `core` may use beyond the standard library.
CORE_LIBRARIES = {"ruamel", "numpy", "markdown_it", "mdurl"}


def room_of(module: str) -> str:
    parts = module.split(".")
    pair = ".".join(parts[:2])
    return pair if pair in MAY_IMPORT else parts[0] if parts[0] in MAY_IMPORT else ""


@pytest.mark.parametrize("room", INNER)
def test_an_inner_room_imports_only_rooms_below_it(room: str) -> None:
    allowed = MAY_IMPORT[room] | {room}
    wrong = [
        f"{module} imports {name}"
        for module in modules(room.replace(".", "/"))
        for name in imports_of(module)
        if room_of(name) not in allowed and name != "stages"
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ["stages.history", "stages.store", "stages.models"])
def test_history_store_and_models_do_not_know_each_other(room: str) -> None:
    others = {"stages.history", "stages.store", "stages.models"} - {room}
    wrong = [
        f"{module} imports {name}"
        for module in modules(room.replace(".", "/"))
        for name in imports_of(module)
        if room_of(name) in others
    ]
    assert wrong == []


def test_the_loop_rests_on_no_command() -> None:
    reached = closure("stages.loop")
    assert [name for name in sorted(reached) if name.startswith(OUTER)] == []


def test_reports_read_events_and_never_the_loop() -> None:
    reached = {name for module in modules("reports") for name in closure(module)}
    assert "stages.loop" not in reached


def test_no_command_is_imported_by_what_it_commands() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in modules("stages")
        if not module.startswith(("stages.commands", "stages.cli"))
        for name in imports_of(module)
        if name.startswith(("stages.commands", "stages.cli"))
    ]
    assert wrong == []


def test_core_imports_the_standard_library_and_little_else() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        f"for name in {modules('stages/core')!r}: __import__(name)\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"stages"}
    assert {name for name in others if not name.startswith("_")} <= CORE_LIBRARIES

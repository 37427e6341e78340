"""What attacks have in common: a figure for each, told together at the end.

Marked `attack` are the slow ones, which `make attack` runs; the rest is part of every test run.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Figure = Callable[[str, int, int], None]
_FIGURES: dict[str, tuple[int, int]] = {}


@pytest.fixture
def figure() -> Figure:
    """Return what takes down that `held` of `tried` were held; a name adds up over tests."""

    def tell(name: str, held: int, tried: int) -> None:
        before = _FIGURES.get(name, (0, 0))
        _FIGURES[name] = (before[0] + held, before[1] + tried)

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, (held, tried) in sorted(_FIGURES.items()):
        terminalreporter.write_line(f"{name}: {held} of {tried}")

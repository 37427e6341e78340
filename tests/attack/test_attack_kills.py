"""`dvc exp run` killed at every boundary of interest: the commands that are printed lead back.

A kill ends equal when, after what `skilltrail doctor` prints and `skilltrail back`, HEAD is on
its branch, git's status, DVC's refs, params, dvc.lock, logs, skill, metrics and page are as
they were, an uncommitted edit too, and `dvc status` is clean.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import forked
import pytest
from killing import (
    EXPERIMENT,
    LOG,
    State,
    copy_of,
    experiment,
    real_workspace,
    small_workspace,
    way_back,
)

Figure = Callable[[str, int, int], None]
KILLS = 50
AGAIN = 10  # after each tenth kill the experiment is run again
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)
_VARIES = re.compile(r"[\w-]{22}\.tmp|[0-9a-f]{8,}|\d{3,}")


class Lab:
    """A workspace, what stands in it, and the log of an experiment that nobody killed."""

    def __init__(self, folder: Path, base: Path) -> None:
        self.folder = folder
        self.base = base
        self.before = State.of(base)
        whole = copy_of(base, folder / "whole")
        self.lines = experiment(whole, folder / "whole.txt")
        self.log = (whole / LOG).read_bytes()

    def fault(self, at: int, by: signal.Signals, *, again: bool = False) -> str | None:
        """Kill the experiment at a boundary, go back, and return what is not as it was."""
        here = copy_of(self.base, self.folder / "killed")
        journal = self.folder / "killed.txt"
        lines = experiment(here, journal, at, by)
        commands = way_back(here)
        found = self.before.difference(State.of(here))
        status = forked.dvc(here, "status").out.strip().splitlines()
        if status[-1:] != ["Data and pipelines are up to date."]:
            found += status
        if again:
            experiment(here, journal)
            if (here / LOG).read_bytes() != self.log:
                found.append("the log of the experiment when it is run again")
        where = lines[at - 1] if len(lines) >= at else "its end"
        return f"{by.name} at {where}, after {commands}: {found}" if found else None


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("kills")
    small_workspace(folder / "base")
    forked.learn_imports(copy_of(folder / "base", folder / "first"), *EXPERIMENT)
    return Lab(folder, folder / "base")


@pytest.fixture(scope="module")
def real_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("real")
    with real_workspace(folder / "base"):
        yield Lab(folder, folder / "base")


def of_interest(lines: list[str], folder: Path) -> list[int]:
    """Return the boundaries that differ in kind: each call of git, the first and the last of
    each file, of a file that is written aside only the moment before it takes its place."""
    kinds: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        is_git = line.startswith("git ")
        if line.startswith("git before") and number > 1 and lines[number - 2].startswith("git"):
            continue  # nothing happened since the call before it
        kind = f"{number} {line}" if is_git else _VARIES.sub("#", line.replace(str(folder), ""))
        if ".tmp" not in line or line.startswith("os.rename"):
            kinds.setdefault(kind, []).append(number)
    return sorted({at for found in kinds.values() for at in (found[0], found[-1])})


def first(lab: Lab, pattern: str) -> int:
    """Return the first boundary that a pattern matches."""
    return next(n for n, line in enumerate(lab.lines, 1) if re.match(pattern, line))


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        ("git after stash", signal.SIGKILL),  # uncommitted changes are put aside
        ("git after create_reference_direct", signal.SIGHUP),  # and the experiment among them
        ("open w .*/params.yaml", signal.SIGTERM),
        ("open w .*/dvc.lock", signal.SIGKILL),
        ("open w .*/workspace.run", signal.SIGHUP),
        ("open .*/.git/HEAD.lock", signal.SIGTERM),  # all is staged, and not yet committed
        (r"os.rename .*/reports/out/\.[\w-]{22}\.tmp", signal.SIGKILL),  # from the cache
    ],
)
def test_a_killed_experiment_leaves_a_way_back(
    lab: Lab, pattern: str, by: signal.Signals
) -> None:
    assert lab.fault(first(lab, pattern), by, again="lock" in pattern) is None


@pytest.mark.attack
def test_kills_at_every_boundary_of_interest_end_equal(lab: Lab, figure: Figure) -> None:
    chosen = of_interest(lab.lines, lab.folder / "whole")
    picked = [chosen[n * len(chosen) // KILLS] for n in range(KILLS)]
    faults = [
        lab.fault(at, SIGNALS[n % len(SIGNALS)], again=n % AGAIN == 0)
        for n, at in enumerate(picked)
    ]
    wrong = [fault for fault in faults if fault is not None]
    figure("kills of dvc exp run that end equal", KILLS - len(wrong), KILLS)
    assert wrong == []


@pytest.mark.attack
@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        ("connect", signal.SIGKILL),  # a fact is claimed
        (r"os.rename .*/skills/\.events", signal.SIGTERM),
        ("open .*/evaluations/.*jsonl", signal.SIGHUP),
        ("open w .*/dvc.lock", signal.SIGKILL),
    ],
)
def test_kills_in_stages_that_call_a_model_end_equal(
    real_lab: Lab, pattern: str, by: signal.Signals, figure: Figure
) -> None:
    wrong = real_lab.fault(first(real_lab, pattern), by, again=True)
    figure("kills of dvc exp run that end equal, in real stages", wrong is None, 1)
    assert wrong is None

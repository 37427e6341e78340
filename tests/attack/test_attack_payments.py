"""Runs that share a store while clocks step and claimants are killed: nobody pays for a key
that another one has paid for or is paying for."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from test_store_processes import container, no_containers

Figure = Callable[[str, int, int], None]
PAYER = Path(__file__).with_name("payer.py")
KEYS = 160


class Payers:
    """Processes that need the same facts, some of them in containers."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "paid"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: set[str] = set()

    def start(self, name: str, *, contained: bool) -> None:
        command = [sys.executable, str(PAYER), str(self.root), str(KEYS), str(self.log), name]
        if contained:
            command = container(*command)
        path = f"{PAYER.parents[2]}:{PAYER.parents[1]}"
        env = {**os.environ, "PYTHONPATH": path}
        self.processes[name] = subprocess.Popen(command, env=env)

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.killed.add(name)

    def finish(self) -> None:
        for name, process in self.processes.items():
            code = process.wait(120)
            assert code == 0 or name in self.killed

    def paid_twice(self) -> list[str]:
        """Return the keys that were paid for again though the first payer was not killed."""
        paid: dict[str, list[str]] = defaultdict(list)
        for line in self.log.read_text(encoding="utf-8").splitlines():
            number, name, what = line.split()
            if what == "begins":
                paid[number].append(name)
        assert len(paid) == KEYS
        return [key for key, names in paid.items() if set(names[:-1]) - self.killed]


def step_the_clock(root: Path, by_s: float) -> None:
    """Do to what the store says what a step of the clock does."""
    with closing(sqlite3.connect(root / ".skilltrail/store.db", timeout=30)) as store, store:
        store.execute("UPDATE claims SET started = started + ?", (by_s,))


def attack(root: Path, *, payers: int, kills: int, contained: bool) -> tuple[int, int]:
    """Let payers meet while clocks step and some are killed; return keys held and tried."""
    draw = random.Random(payers * 100 + kills)
    group = Payers(root)
    for number in range(payers):
        group.start(str(number), contained=contained and number % 2 == 0)
    while not group.log.exists():
        time.sleep(0.02)
    for number in range(kills):
        time.sleep(draw.uniform(0.1, 0.3))
        step_the_clock(root, draw.choice((-9, 9, 4000)))
        group.kill(str(number))
        group.start(f"after-{number}", contained=contained)
    group.finish()
    twice = group.paid_twice()
    return KEYS - len(twice), KEYS


def test_killed_claimants_and_clock_steps_make_nobody_pay_twice(tmp_path: Path) -> None:
    held, tried = attack(tmp_path, payers=3, kills=1, contained=False)
    assert held == tried


@pytest.mark.attack
@pytest.mark.parametrize("contained", [False, True])
@pytest.mark.parametrize("kills", [0, 4])
def test_no_double_payment(tmp_path: Path, contained: bool, kills: int, figure: Figure) -> None:
    if contained and no_containers():
        pytest.skip("no namespaces can be made here")
    held, tried = attack(tmp_path, payers=6, kills=kills, contained=contained)
    figure("keys paid for once (clock steps, killed claimants, containers)", held, tried)
    assert held == tried

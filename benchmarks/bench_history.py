"""What the history costs: append and commit, replay, verify, audit, blame, by size of the log.

    python benchmarks/bench_history.py [--events 50000] [--json FILE]

The log is a real run of the loop in a world made of arithmetic (tests/history_world.py), about
nine events a step and 60 selection items, flushed at every step. Smaller sizes are beginnings
of the same log, so that the cost per event can be compared; 10,000 events unless another number
is asked for. Wall time and CPU time of this process are both shown; on a busy machine the
second says more.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from history_world import World  # noqa: E402

from skilltrail.history.ask.audit import audit_version  # noqa: E402
from skilltrail.history.ask.audit_record import LogOnly  # noqa: E402
from skilltrail.history.ask.audit_text import audit_text  # noqa: E402
from skilltrail.history.ask.blame import blame  # noqa: E402
from skilltrail.history.git.branch import SideBranch  # noqa: E402
from skilltrail.history.git.repository import Git  # noqa: E402
from skilltrail.history.log.events import Event  # noqa: E402
from skilltrail.history.log.log import follow, scan_log  # noqa: E402
from skilltrail.history.log.recorder import Recorder  # noqa: E402
from skilltrail.history.log.run_log import RunLog  # noqa: E402
from skilltrail.verify.log import verify_log  # noqa: E402

T = TypeVar("T")
EVENTS_AN_EPOCH = 45  # six steps, at the least
WANTED = {"append and commit": 500.0, "replay": 1.0, "verify": 10.0, "audit": 0.5, "blame": 0.5}


def main() -> None:
    """Run the benchmark and write a table, and JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = measure(Path(name), options.events)
    for row in rows:
        sys.stdout.write(_line(row) + "\n")
    if options.json is not None:
        text = json.dumps(rows, indent=2) + "\n"
        options.json.write_text(text, encoding="utf-8", newline="\n")


def measure(folder: Path, most: int) -> list[dict[str, Any]]:
    """Return one row per size and operation."""
    made = make_run(most)
    gc.freeze()  # what was made would be looked through while others read
    rows: list[dict[str, Any]] = []
    for size in [n for n in (1_000, 10_000, 50_000) if n <= len(made)]:
        events = made[:size]
        path = folder / f"{size}.jsonl"
        path.write_bytes(b"".join(event.line + b"\n" for event in events))
        rows.append(write(folder / f"repo{size}", events))
        rows += read(path, size)
    return rows


class Told:
    """A history that is only told: making the log shall not cost what is measured."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def next_seq(self) -> int:
        return len(self.events) + 1

    def append(self, type: str, data: Mapping[str, Any]) -> Event:
        self.events.append(follow(self.events[-1] if self.events else None, type, data))
        return self.events[-1]

    def flush(self) -> None:
        pass


def make_run(events: int) -> list[Event]:
    """Train in the world of arithmetic and return the first `events` events."""
    params = {"epochs": -(-events // EVENTS_AN_EPOCH), "batch_size": 8, "lr": 2}
    settings = {"lr_schedule": "constant", "gate": {"metric": "soft"}}
    world = World(n_train=48, n_selection=60, params=params | settings)
    told = Told()
    asyncio.run(world.train(told))
    return told.events[:events]


def write(repo: Path, events: Sequence[Event]) -> dict[str, Any]:
    """Append and commit the events of a run as the loop does, flushing at every step."""
    repo.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)
    door = Git.find(repo)
    assert door is not None
    told = [(event.type, event.data) for event in events]

    def tell() -> None:
        recorder = Recorder(repo / "events.jsonl", projection=SideBranch(door, "main"))
        for type, data in told:
            recorder.append(type, data)
            if type == "step.ended":
                recorder.flush()
        recorder.close()

    return timed("append and commit", len(events), tell)[0] | {
        "git_bytes": size_of(repo / ".git")
    }


def read(path: Path, size: int) -> list[dict[str, Any]]:
    """Answer the questions a person asks, each from the file on disk."""
    data = path.read_bytes()
    last = len(RunLog(scan_log(path)).versions) - 1

    def replay() -> str:
        return RunLog(scan_log(path)).versions[-1].text

    def audit() -> str:
        return audit_text(audit_version(RunLog(scan_log(path)), last, LogOnly()))

    rows = []
    for name, action in (
        ("replay", replay),
        ("verify", lambda: verify_log(data, path.name, allow_unfinished=True)),
        ("audit", audit),
        ("blame", lambda: blame(RunLog(scan_log(path)), "last")),
    ):
        row, found = timed(name, size, action)
        assert found
        assert not getattr(found, "faults", [])
        rows.append(row)
    return rows


def timed(name: str, size: int, action: Callable[[], T]) -> tuple[dict[str, Any], T]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = action()
    wall_s, cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    row = {
        "operation": name,
        "events": size,
        "wall_s": round(wall_s, 3),
        "cpu_s": round(cpu_s, 3),
        "events_per_s": round(size / wall_s),
        "wall_us_per_event": round(1e6 * wall_s / size, 1),
    }
    return row, found


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _line(row: dict[str, Any]) -> str:
    wanted = WANTED[row["operation"]]
    rate = row["operation"] == "append and commit"
    goal = f">= {wanted:.0f} events/s" if rate else f"< {wanted:g} s at 10,000"
    return (
        f"{row['operation']:18} {row['events']:>6} events  {row['wall_s']:>8.3f} s"
        f"  (cpu {row['cpu_s']:.3f} s)  {row['events_per_s']:>8} events/s"
        f"  {row['wall_us_per_event']:>8.1f} us/event   wanted {goal}"
    )


if __name__ == "__main__":
    main()

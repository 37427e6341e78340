"""A log is followed while another process writes it, through its death and its new start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest
from report_world import Project, make_project

from skilltrail.history.log.events import Event
from skilltrail.history.log.words import sentences

ROOT = Path(__file__).resolve().parents[1]
SOON_S = 60.0
# Tells a run's events to a recorder, as the loop does: up to the one with number `last`, where
# `other` gives event `last` another reason; then half a line, and waits to be killed.
WRITER = """
import json, sys, time
from pathlib import Path
from skilltrail.history.log.recorder import Recorder
from skilltrail.store.owner import this_process
folder, source = map(Path, sys.argv[1:3])
last, other = int(sys.argv[3]), sys.argv[4]
folder.mkdir(parents=True, exist_ok=True)
(folder / "lock").write_text(json.dumps(this_process().to_json()))
recorder = Recorder(folder / "events.jsonl")
for line in source.read_text().split("\\n")[:last]:
    event = json.loads(line)
    if other and event["seq"] == last:
        event["data"]["reason"] = other
    recorder.append(event["type"], event["data"])
recorder.close()
with recorder.path.open("ab") as file:
    file.write(b'{"data":{"half')
print("written", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("follow"), {"epochs": 1, "batch_size": 4})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    return tmp_path


class Following:
    """`skilltrail log --follow` as a process, its lines read as they come."""

    def __init__(self, place: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "skilltrail", "log", "--follow", *options],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.removesuffix("\n"))

    def next(self, count: int) -> list[str]:
        """Return the next lines; fails when they do not come."""
        return [self.lines.get(timeout=SOON_S) for _ in range(count)]

    def stop(self) -> str:
        """Press Ctrl-C; return what stands on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=SOON_S)
        assert self.process.returncode == 0
        assert self.lines.empty()
        return said


class Writer:
    """A run in a process of its own, up to event `last`."""

    def __init__(
        self, place: Path, project: Project, last: int, run: str = "a" * 16, other: str = ""
    ) -> None:
        folder = place / ".skilltrail/runs" / run
        source = project.folder / "skills/events.jsonl"
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(source), str(last), other],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"written\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def following(place: Path) -> Iterator[Following]:
    started = Following(place)
    yield started
    started.process.kill()


def rows(events: list[Event]) -> list[str]:
    return [f"{event.seq:>5}  {words}" for event, words in sentences(events)]


def test_events_come_as_they_are_written_and_each_once_though_the_run_is_killed(
    place: Path, project: Project, following: Following
) -> None:
    assert following.process.stderr is not None
    assert following.process.stderr.readline() == "no run has begun yet: waiting for one\n"
    expected = rows(project.training)
    first = Writer(place, project, 5)
    assert following.next(5) == expected[:5]
    first.kill()
    second = Writer(place, project, 12)
    assert following.next(7) == expected[5:12]
    second.kill()
    last = Writer(place, project, len(project.training))
    assert following.next(len(expected) - 12) == expected[12:]
    last.kill()
    assert following.stop() == f"following {'a' * 16}\n"


def test_a_run_that_goes_another_way_is_said_and_followed(
    place: Path, project: Project, following: Following
) -> None:
    ended = next(e.seq for e in project.training if e.type == "step.ended")
    Writer(place, project, ended + 3).kill()
    following.next(ended + 3)
    Writer(place, project, ended, other="a scorer was mended").kill()
    assert following.next(1)[0].split()[0] == str(ended)
    assert f"another way after event {ended - 1}" in following.stop()


def test_the_run_that_is_on_goes_before_one_that_ended(
    place: Path, project: Project, following: Following
) -> None:
    Writer(place, project, 3).kill()
    following.next(3)
    on = Writer(place, project, 4, run="b" * 16)
    assert following.next(4) == rows(project.training)[:4]
    on.kill()
    assert f"following {'b' * 16}" in following.stop()


def test_json_is_one_event_a_line_and_the_choice_holds(place: Path, project: Project) -> None:
    Writer(place, project, len(project.training)).kill()
    gates = [event for event in project.training if event.type == "gate.judged"]
    following = Following(place, "--json", "--type", "gate.judged", "--run", "aaaaaa")
    shown = [json.loads(line) for line in following.next(len(gates))]
    following.stop()
    assert [event["id"] for event in shown] == [event.id for event in gates]


def test_a_damaged_log_ends_it_with_one_message(place: Path, project: Project) -> None:
    path = place / "broken.jsonl"
    lines = [event.line + b"\n" for event in project.training]
    path.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    following = Following(place, "--run", "broken.jsonl")
    assert following.process.wait(SOON_S) == 1
    assert following.process.stderr is not None
    assert "broken.jsonl, line 5" in following.process.stderr.read()


def test_a_log_that_becomes_unreadable_ends_it_with_one_message(
    place: Path, project: Project
) -> None:
    path = place / "gone.jsonl"
    path.write_bytes(b"".join(event.line + b"\n" for event in project.training[:4]))
    following = Following(place, "--run", "gone.jsonl")
    assert following.next(4) == rows(project.training)[:4]
    path.unlink()
    path.mkdir()
    assert following.process.wait(SOON_S) == 1
    assert following.process.stderr is not None
    assert "error: Reading gone.jsonl" in following.process.stderr.read()


@pytest.mark.parametrize("options", [("--run", "no-such-run"), ("--summary",)])
def test_what_cannot_be_followed_is_wrong_use(place: Path, options: tuple[str, ...]) -> None:
    following = Following(place, *options)
    assert following.process.wait(SOON_S) == 2

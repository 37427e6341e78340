"""A damaged log is shown as far as it is whole, and which file ends torn is said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from history_world import World
from test_history_commands import PARAMS, committed
from test_history_commits import git
from test_history_verify import data_of

from skilltrail.cli.main import run
from skilltrail.history.log.events import Event
from skilltrail.store.ops import Ops, read_ops

DEEP = b"[" * 2000
READERS = (
    ["log"],
    ["log", "--json"],
    ["log", "--summary"],
    ["replay", "--version", "1"],
    ["replay", "--json"],
    ["audit", "--version", "1"],
    ["audit", "--text", "rule"],
    ["blame"],
    ["blame", "--json"],
)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    world = World(n_train=12, n_selection=6, params=PARAMS)
    return world.run(tmp_path_factory.mktemp("run")).events


@pytest.fixture
def here(tmp_path: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> Path:
    committed(tmp_path, events)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def nested(event: Event, depth: int) -> bytes:
    """The line that says what `event` does with `[[…]]` for its data, and whose id is right."""
    body = {"v": 1, "seq": event.seq, "type": event.type, "prev": event.prev}
    head = json.dumps({"data": 0}, separators=(",", ":"))[:-2] + "[" * depth + "]" * depth
    rest = json.dumps(body, sort_keys=True, separators=(",", ":"))[1:]
    id = hashlib.sha256(f"{head},{rest}".encode()).hexdigest()
    return f'{head},"id":"{id}",{rest}'.encode()


def cut_to(events: list[Event], count: int, tail: bytes) -> bytes:
    return data_of(events[:count]) + tail


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize(
    "tail",
    [
        DEEP,
        b'{"data":' + DEEP,
        b'{"data":{"budget":',
        b"\xff\xfe\x00\x00",
        b" ",
    ],
    ids=["deep", "deep data", "cut", "bytes", "blank"],
)
def test_an_unfinished_last_line_hides_nothing_before_it(
    here: Path,
    events: list[Event],
    command: list[str],
    tail: bytes,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (here / "skills/events.jsonl").write_bytes(data_of(events[:-1]))
    assert run(command) == 0
    whole = capfd.readouterr().out
    (here / "skills/events.jsonl").write_bytes(cut_to(events, -1, tail))
    assert run(command) == 0
    out, err = capfd.readouterr()
    assert out == whole
    assert f"events.jsonl, line {len(events)}" in err
    assert "not finished" in err


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize(
    "line",
    [DEEP, b'{"data":' + DEEP + b"}", b"", b"null", b"{}", b"\xff", b'{"data":{},"id":1}'],
)
def test_a_line_that_is_no_event_ends_what_is_shown_and_is_a_fault(
    here: Path,
    events: list[Event],
    command: list[str],
    line: bytes,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (here / "skills/events.jsonl").write_bytes(data_of(events[:-4]))
    assert run(command) == 0
    whole = capfd.readouterr().out
    damaged = cut_to(events, -4, line + b"\n") + data_of(events[-3:])
    (here / "skills/events.jsonl").write_bytes(damaged)
    assert run(command) == 1
    out, err = capfd.readouterr()
    assert out == whole
    assert f"skills/events.jsonl ends torn at events.jsonl, line {len(events) - 3}" in err
    assert (here / "skills/events.jsonl").read_bytes() == damaged


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize("depth", [60, 500, 990, 2000, 100_000])
def test_a_nested_event_whose_id_is_right_ends_what_is_shown(
    here: Path,
    events: list[Event],
    command: list[str],
    depth: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The last version's event, which every reader asks."""
    at = max(n for n, event in enumerate(events) if event.type == "skill.versioned")
    (here / "skills/events.jsonl").write_bytes(data_of(events[:at]))
    assert run(command) == 0
    whole = capfd.readouterr().out
    damaged = cut_to(events, at, nested(events[at], depth) + b"\n")
    (here / "skills/events.jsonl").write_bytes(damaged)
    code = run(command)
    out, err = capfd.readouterr()
    assert (code, out) == (1, whole)
    assert f"event {at + 1}" in err


def test_a_log_without_one_whole_line_is_one_message(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for data in (DEEP, DEEP + b"\n", b"\n"):
        (here / "skills/events.jsonl").write_bytes(data)
        for command in READERS:
            assert run(command) == 1
            assert "line 1" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "CR LF"),
        (lambda data: b"\xef\xbb\xbf" + data, "byte order mark"),
        (lambda data: data.decode().encode("utf-16"), "UTF-16"),
        (lambda data: b"<<<<<<< HEAD\n" + data, "merge"),
        (lambda data: b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_a_log_that_another_program_wrote_over_is_told_by_what_it_did(
    here: Path,
    events: list[Event],
    change: Callable[[bytes], bytes],
    words: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (here / "skills/events.jsonl").write_bytes(change(data_of(events)))
    assert run(["log"]) == 1
    err = capfd.readouterr().err
    assert "line 1" in err
    assert words in err


def test_runs_lists_every_run_beside_damaged_logs(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "skills/events.jsonl").write_bytes(cut_to(events, 20, DEEP))
    for name, data in (
        ("aaaaaaaaaaaaaaaa", DEEP + b"\n"),
        ("bbbbbbbbbbbbbbbb", data_of(events[:1]) + nested(events[1], 2000) + b"\n"),
        ("cccccccccccccccc", data_of(events[:9]) + DEEP),
    ):
        log = here / f".skilltrail/runs/{name}/events.jsonl"
        log.parent.mkdir(parents=True)
        log.write_bytes(data)
    tree = git(here, "rev-parse", "evolution/main~3^{tree}").strip()
    bad = git(here, "commit-tree", tree, "-p", "evolution/main", "-m", "x").strip()
    git(here, "update-ref", "refs/evolution/bad", bad)
    assert run(["runs", "--json"]) == 0
    out, err = capfd.readouterr()
    assert "main" in [row["name"] for row in json.loads(out)]
    for name in ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "bad"):
        assert name in err
    assert run(["compare", "--group-by", "lr"]) == 0
    capfd.readouterr()
    git(here, "update-ref", "-d", "refs/evolution/main")
    assert run(["runs", "--json"]) == 0
    names = [row["name"] for row in json.loads(capfd.readouterr().out)]
    assert "workspace" in names


@pytest.mark.parametrize("torn", [b'{"time": "20', DEEP, b"\xff", DEEP + b"\n", b"null\n"])
def test_the_journal_goes_on_after_a_torn_line(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "ops.jsonl"
    Ops(path).write("first")
    with path.open("ab") as file:
        file.write(torn)
    Ops(path).write("second")
    lines: list[int] = []
    found = [record["type"] for record in read_ops(path, lines.append)]
    assert (found, lines) == (["first", "second"], [2])

"""The journal of operations, and what a person asks of the store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.core.redact import Redactor
from skilltrail.store.exports import export_shards, import_shards, shard_files
from skilltrail.store.facts import FactStore
from skilltrail.store.maintenance import retry_missing, store_stats
from skilltrail.store.ops import NullOps, Ops, read_ops
from skilltrail.store.protocol import gap_key

ROOT = Path(__file__).resolve().parents[1]
RUN, KEY = "d" * 64, "e" * 64


def test_each_line_says_when_who_and_what(tmp_path: Path) -> None:
    ops = Ops(tmp_path / "deep" / "ops.jsonl")
    ops.write("retry", attempt=2, cause="429 \u2028 \ud800", nested={"s": [1, None]})
    (line,) = read_ops(ops.path)
    assert line["time"].endswith("+00:00")
    assert isinstance(line["pid"], int)
    assert (line["type"], line["attempt"], line["cause"]) == ("retry", 2, "429 \u2028 \ufffd")
    assert line["nested"] == {"s": [1, None]}


def test_every_string_passes_the_redaction(tmp_path: Path) -> None:
    ops = Ops(tmp_path / "ops.jsonl", hide=Redactor(["sk-1"]).value)
    ops.write("retry", cause="bad key sk-1", more={"sk-1": ["sk-1"]}, path=Path("sk-1/x"))
    assert b"sk-1" not in ops.path.read_bytes()


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from skilltrail.store.ops import Ops\n"
        "ops = Ops(Path(sys.argv[1]))\n"
        "for number in range(200): ops.write('tick', n=number, text='x' * 3000)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "ops.jsonl")]
    workers = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    lines = list(read_ops(tmp_path / "ops.jsonl"))
    assert len(lines) == 600
    assert (tmp_path / "ops.jsonl").read_bytes().count(b"\n") == 600


def test_a_torn_line_is_passed_over_by_readers(tmp_path: Path) -> None:
    ops = Ops(tmp_path / "ops.jsonl")
    ops.write("one")
    with ops.path.open("ab") as file:
        file.write(b'{"time": "20\n[]\n')
    ops.write("two")
    assert [line["type"] for line in read_ops(ops.path)] == ["one", "two"]
    assert list(read_ops(tmp_path / "absent")) == []


def test_a_journal_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SkilltrailError, match="Cannot write"):
        Ops(tmp_path / "file" / "ops.jsonl").write("one")
    NullOps().write("one")


def test_stats_of_no_store_are_zero_and_create_nothing(tmp_path: Path) -> None:
    stats = store_stats(tmp_path)
    assert stats.rows == {"rollout": 0, "call": 0, "script": 0, "gap": 0}
    assert (stats.file_bytes, stats.claims, stats.exports) == (0, 0, ())
    assert list(tmp_path.iterdir()) == []


def test_stats_count_rows_bytes_claims_and_shards(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as store:
        asyncio.run(store.put("rollout", KEY, {"text": "x" * 100}))
        asyncio.run(store.put("call", RUN, {}))
        export_shards(store, [KEY], tmp_path / "out")
        stats = store_stats(tmp_path, [tmp_path / "out", tmp_path / "absent"])
    assert stats.rows == {"rollout": 1, "call": 1, "script": 0, "gap": 0}
    assert stats.value_bytes == {"rollout": 111, "call": 2, "script": 0, "gap": 0}
    assert stats.file_bytes > 0
    assert stats.claims == 0
    (export,) = stats.exports
    assert export.shards == 1
    assert export.total_bytes == export.largest_bytes > 111
    assert asdict(stats)["exports"][0]["shards"] == 1


def test_retry_missing_drops_gaps_for_good_until_a_run_misses_again(tmp_path: Path) -> None:
    gap, old, new = gap_key(RUN, KEY), tmp_path / "old", tmp_path / "new"
    with FactStore.open(tmp_path) as store:
        asyncio.run(store.put("gap", gap, {"reason": "timeout"}))
        asyncio.run(store.put("rollout", RUN, {"text": "kept"}))
        for folder in (old, new):
            export_shards(store, [gap, RUN], folder)
        report = retry_missing(store, [new, tmp_path / "absent"])
        assert (report.store, report.exports) == (1, 1)
        assert store.get(gap) is None
        assert store.get(RUN) == {"text": "kept"}
        assert shard_files(new)[0].read_bytes().count(b"\n") == 1
        assert import_shards(store, old) == 0
        assert store.get(gap) is None
        assert retry_missing(store).store == 0
        asyncio.run(store.put("gap", gap, {"reason": "timeout again"}))
        assert store.get(gap) == {"reason": "timeout again"}
    journal = read_ops(tmp_path / ".skilltrail" / "ops.jsonl")
    assert [line["type"] for line in journal] == ["gaps.dropped"]


def test_retry_missing_on_a_damaged_export_changes_nothing(tmp_path: Path) -> None:
    gap = gap_key(RUN, KEY)
    with FactStore.open(tmp_path) as store:
        asyncio.run(store.put("gap", gap, {"reason": "timeout"}))
        export_shards(store, [gap], tmp_path / "out")
        (shard,) = shard_files(tmp_path / "out")
        shard.write_bytes(shard.read_bytes()[:-5])
        with pytest.raises(FaultError, match="line 1"):
            retry_missing(store, [tmp_path / "out"])
        assert store.get(gap) == {"reason": "timeout"}

"""Commands that only read a store: on a live one, on an auditor's copy, on a damaged one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.errors import FaultError, SkilltrailError, UsageError
from skilltrail.store.exports import import_shards
from skilltrail.store.facts import FactStore
from skilltrail.store.maintenance import examine, store_stats
from skilltrail.store.ops import read_ops
from skilltrail.store.reader import open_reading

ROOT = Path(__file__).resolve().parents[1]
KEY, OTHER = "a" * 64, "b" * 64
DEEP = "[" * 2000 + "]" * 2000


@pytest.fixture
def root() -> Iterator[Path]:
    """A project that another user can reach; pytest's own folders are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for path in (Path(name), *Path(name).rglob("*")):
            path.chmod(0o755)


def filled(root: Path, key: str = KEY) -> Path:
    """Put a fact; return the store's file."""
    with FactStore.open(root) as store:
        asyncio.run(store.put("rollout", key, {"text": "yes"}))
    return root / ".skilltrail/store.db"


def with_log(root: Path) -> Path:
    """Leave a store as a killed writer does: its last fact is in the log alone."""
    script = (
        "import asyncio, os, sys; from pathlib import Path\n"
        "from skilltrail.store.facts import FactStore\n"
        "store = FactStore.open(Path(sys.argv[1]))\n"
        "asyncio.run(store.put('rollout', sys.argv[2], {'text': 'yes'}))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, root, OTHER], cwd=ROOT, check=True)
    path = root / ".skilltrail/store.db"
    assert path.with_name("store.db-wal").stat().st_size > 0
    return path


def bytes_of(root: Path) -> dict[str, str]:
    """Return the digest of every file below `root`."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def nobody(*argv: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python as a user who may write none of our files."""
    command = [sys.executable, *argv]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root writes whatever it likes, and setpriv is not installed")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )


READ = (
    "import sys; from pathlib import Path\n"
    "from skilltrail.store.reader import open_reading\n"
    "with open_reading(Path(sys.argv[1])) as store:\n"
    "    print([store.get(key) for key in sys.argv[2:]])\n"
)


def make_read_only(root: Path) -> None:
    for path in (*root.rglob("*"), root):
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_store_on_a_read_only_copy_is_read_and_left_as_it_was(root: Path) -> None:
    filled(root)
    make_read_only(root)
    before = bytes_of(root)
    assert nobody("-c", READ, str(root), KEY).stdout == "[{'text': 'yes'}]\n"
    with open_reading(root) as store:  # as ourselves, who could write it
        assert store is not None
        assert store.get(KEY) == {"text": "yes"}
    assert store_stats(root).rows["rollout"] == 1
    assert bytes_of(root) == before


@pytest.mark.parametrize("shared_memory", [True, False])
def test_facts_in_the_log_of_a_read_only_copy_count_too(
    root: Path, shared_memory: bool
) -> None:
    filled(root)
    path = with_log(root)
    if not shared_memory:  # many ways of copying leave it out
        path.with_name("store.db-shm").unlink()
    make_read_only(root)
    before = bytes_of(root)
    done = nobody("-c", READ, str(root), KEY, OTHER)
    assert done.stdout == "[{'text': 'yes'}, {'text': 'yes'}]\n", done.stderr
    assert bytes_of(root) == before


def test_a_live_store_is_read_while_it_is_written(root: Path) -> None:
    with FactStore.open(root) as store, open_reading(root) as reader:
        assert reader is not None
        assert reader.get(KEY) is None
        asyncio.run(store.put("rollout", KEY, {"text": "yes"}))
        assert reader.get(KEY) == {"text": "yes"}
    assert sorted(file.name for file in (root / ".skilltrail").iterdir())[-2:] == [
        "store.db",
        "store.lock",
    ]


def test_a_reader_keeps_nothing_and_says_so(root: Path) -> None:
    filled(root)

    async def make() -> dict[str, Any]:
        return {}

    with open_reading(root) as store:
        assert store is not None
        assert asyncio.run(store.get_or_make("rollout", KEY, make)).reused
        for refused in (
            store.put("rollout", OTHER, {}),
            store.get_or_make("call", OTHER, make),
        ):
            with pytest.raises(SkilltrailError, match="open for reading only"):
                asyncio.run(refused)


def test_where_there_is_no_store_a_reader_is_none_and_nothing_is_made(root: Path) -> None:
    with open_reading(root) as store:
        assert store is None
    assert list(root.iterdir()) == []
    (root / ".skilltrail").mkdir()
    (root / ".skilltrail/store.db").touch()  # a first opening that was killed
    with open_reading(root) as store:
        assert store is None


def test_a_store_of_a_newer_version_is_not_read(root: Path) -> None:
    connection = sqlite3.connect(filled(root))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UsageError, match="has format 99.*Update"), open_reading(root):
        pass


def test_a_read_only_store_is_refused_by_name_and_gets_no_read_only_log(root: Path) -> None:
    """Once SQLite has made a log with the store's mode, a chmod of the store is not enough."""
    path = filled(root)
    for file in (path, path.with_name("store.lock")):
        file.chmod(0o444)
    path.parent.chmod(0o777)
    script = (
        "import sys; from pathlib import Path; from skilltrail.store.facts import FactStore\n"
        "from skilltrail.core.errors import SkilltrailError\n"
        "try: FactStore.open(Path(sys.argv[1]))\n"
        "except SkilltrailError as error: print(error)\n"
    )
    said = nobody("-c", script, str(root)).stdout
    assert "read-only: store.db, store.lock" in said
    assert f"chmod u+w {path}" in said
    path.with_name("store.db-wal").touch()
    path.with_name("store.db-wal").chmod(0o444)
    path.chmod(0o666)
    assert "read-only: store.db-wal, store.lock" in nobody("-c", script, str(root)).stdout


EXAMINE = (
    "import sys; from pathlib import Path; from skilltrail.core.errors import SkilltrailError\n"
    "from skilltrail.store.maintenance import examine\n"
    "try: examine(Path(sys.argv[1]))\n"
    "except SkilltrailError as error: print(error)\n"
)


def test_a_store_that_is_whole_or_absent_is_examined_without_a_word(root: Path) -> None:
    examine(root)
    assert list(root.iterdir()) == []
    filled(root)
    examine(root)


@pytest.mark.parametrize("at", [0, 100, 5000])
def test_a_store_with_damaged_pages_is_found(root: Path, at: int) -> None:
    path = filled(root)
    data = bytearray(path.read_bytes())
    data[at : at + 4096] = b"\xff" * len(data[at : at + 4096])
    path.write_bytes(data)
    with pytest.raises(FaultError, match=r"store.db is damaged.*Move the file"):
        examine(root)


def test_a_store_or_log_that_is_read_only_is_found(root: Path) -> None:
    filled(root)
    path = with_log(root)
    path.parent.chmod(0o777)
    for file in path.parent.iterdir():
        file.chmod(0o444 if file.suffix == ".db-wal" else 0o666)
    assert "read-only: store.db-wal. " in nobody("-c", EXAMINE, str(root)).stdout


@pytest.mark.parametrize("text", [DEEP, "[1]", '"x"', "null", "{", "", '{"a": NaN'])
def test_a_damaged_row_is_named(root: Path, text: str) -> None:
    path = filled(root)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE facts SET value = ?", (zlib.compress(text.encode()),))
    connection.commit()
    connection.close()
    with open_reading(root) as store:
        assert store is not None
        with pytest.raises(FaultError) as error:
            store.get(KEY)
    assert KEY in str(error.value)
    assert path.as_posix() in str(error.value)


@pytest.mark.parametrize("line", [DEEP, f'{{"value": {DEEP}}}', "{", "[]", "\x00", "é\ud800"])
def test_a_damaged_export_line_is_named_and_nothing_is_taken(root: Path, line: str) -> None:
    (root / "out").mkdir()
    shard = root / "out/shard.jsonl"
    shard.write_bytes(line.encode("utf-8", "surrogatepass") + b"\n")
    with FactStore.open(root) as store:
        with pytest.raises(FaultError, match=r"shard\.jsonl, line 1 is damaged"):
            import_shards(store, root / "out")
        assert store_stats(root).rows["rollout"] == 0


def test_a_value_nested_too_deeply_is_refused_before_it_is_kept(root: Path) -> None:
    value: dict[str, Any] = {}
    for _ in range(2000):
        value = {"a": value}
    with FactStore.open(root) as store, pytest.raises(ValueError, match="too deeply"):
        asyncio.run(store.put("rollout", KEY, value))


def test_a_deep_or_torn_line_of_the_journal_is_passed_over(root: Path) -> None:
    path = root / "ops.jsonl"
    path.write_text(f'{DEEP}\n{{"type": "one"}}\n{{"type": "tw', encoding="utf-8")
    assert [line["type"] for line in read_ops(path)] == ["one"]

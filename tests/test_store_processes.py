"""Several processes on one store: paid once, killed at any moment, claims of the dead."""

from __future__ import annotations

import asyncio
import os
import platform
import random
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_worker import key_of, value_of

from skilltrail.core.errors import SkilltrailError
from skilltrail.store.facts import FactStore
from skilltrail.store.lock import run_lock
from skilltrail.store.maintenance import release_claims, store_stats
from skilltrail.store.ops import Ops, read_ops
from skilltrail.store.owner import Owner, boot

WORKER = Path(__file__).with_name("store_worker.py")
KEY = "c" * 64
NAMESPACES = ("--pid", "--fork", "--kill-child", "--mount-proc", "--uts")


def start(*args: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def ended(worker: subprocess.Popen[str]) -> list[str]:
    """Return the complete lines a worker printed before it ended."""
    assert worker.stdout is not None
    text = worker.stdout.read()
    worker.stdout.close()
    worker.wait()
    return text[: text.rfind("\n") + 1].splitlines()


def first_line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def kill(worker: subprocess.Popen[str], reap: bool = True) -> None:
    worker.send_signal(signal.SIGKILL)
    if reap:
        ended(worker)


async def yes() -> dict[str, Any]:
    return {"text": "yes"}


def ops_types(root: Path) -> list[str]:
    return [line["type"] for line in read_ops(root / ".skilltrail" / "ops.jsonl")]


def plant_claim(root: Path, host: str, pid: int, token: str = "another boot:1") -> None:
    """Leave the claim of a store that was killed: its row, and no lock."""
    FactStore.open(root).close()
    change(root, "INSERT INTO claims VALUES (?, ?, ?, ?, ?)", KEY, token, host, pid, 1.0)


def change(root: Path, sql: str, *values: object) -> None:
    """Change the store behind everybody's back."""
    with closing(sqlite3.connect(root / ".skilltrail" / "store.db")) as connection, connection:
        connection.execute(sql, values)


def signed(root: Path) -> None:
    """Wait until a claim is written down, some milliseconds after it is held."""
    while store_stats(root).claims == 0:
        time.sleep(0.01)


def container(*argv: object, host: str = "same") -> list[str]:
    """Return the command that runs `argv` in a pid namespace of its own, as containers do."""
    inner = f"hostname {host}; exec {shlex.join(map(str, argv))}"
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return [
        "unshare",
        *user,
        *["--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh", "-c"],
        inner,
    ]


def in_container(*args: object, host: str = "same") -> subprocess.Popen[str]:
    command = container(sys.executable, WORKER, *args, host=host)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def no_containers() -> bool:
    try:
        return (
            subprocess.run(container("true"), capture_output=True, check=False).returncode != 0
        )
    except OSError:
        return True


needs_containers = pytest.mark.skipif(no_containers(), reason="no namespaces can be made here")


def test_every_put_that_returned_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    draw = random.Random(7)
    for attempt in range(5):
        worker = start("put", tmp_path, attempt, 100_000)
        first = first_line(worker)
        time.sleep(draw.uniform(0.0, 0.15))
        worker.send_signal(signal.SIGKILL)
        numbers = [int(line) for line in [first, *ended(worker)]]
        with FactStore.open(tmp_path) as store:
            kept = store.get_many(key_of(attempt, number) for number in numbers)
            assert len(kept) == len(numbers) > 0
            for number in numbers:
                assert kept[key_of(attempt, number)] == value_of(str(attempt), number)


def test_processes_that_need_the_same_keys_pay_once_each(tmp_path: Path) -> None:
    """Case resume-03 across processes."""
    log = tmp_path / "paid"
    workers = [start("share", tmp_path, 60, log) for _ in range(3)]
    for worker in workers:
        ended(worker)
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    paid = sorted(map(int, log.read_text(encoding="utf-8").splitlines()))
    assert paid == list(range(60))


def test_many_writers_at_once_leave_every_value_readable(tmp_path: Path) -> None:
    """Case cache-06, made smaller; `benchmarks/bench_store.py` runs 64 x 1,000."""
    FactStore.open(tmp_path).close()
    workers = [start("put", tmp_path, f"w{number}", 200) for number in range(5)]
    printed = [ended(worker) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 5
    assert all(len(lines) == 200 for lines in printed)
    with FactStore.open(tmp_path) as store:
        for number in range(5):
            keys = [key_of(f"w{number}", each) for each in range(200)]
            assert len(store.get_many(keys)) == 200


@pytest.mark.parametrize("reap", [True, False])
def test_the_claim_of_a_killed_process_is_taken_over_and_noted(
    tmp_path: Path, reap: bool
) -> None:
    """Not reaped: a killed child whose parent has not asked for it still has its pid."""
    worker = start("claim", tmp_path, KEY)
    assert first_line(worker) == "claimed"
    signed(tmp_path)
    kill(worker, reap)
    with FactStore.open(tmp_path) as store:
        made = asyncio.run(asyncio.wait_for(store.get_or_make("call", KEY, yes), 20))
    ended(worker) if not reap else None
    assert made.value == {"text": "yes"}
    (line,) = read_ops(tmp_path / ".skilltrail" / "ops.jsonl")
    assert line["type"] == "claim.stolen"
    assert line["key"] == KEY
    assert line["holder"]["pid"] == worker.pid


def test_a_claim_whose_pid_now_belongs_to_another_process_is_taken_over(
    tmp_path: Path,
) -> None:
    """Case concurrency-02: a living process of that id holds nothing of the claimant's."""
    plant_claim(tmp_path, platform.node(), os.getpid(), f"{boot()}:1")
    with FactStore.open(tmp_path) as store:
        assert not asyncio.run(store.get_or_make("call", KEY, yes)).reused
    assert ops_types(tmp_path) == ["claim.stolen"]


@pytest.mark.parametrize("step_s", [-86_400, -2.5, 2.5, 3600])
def test_a_step_of_the_clock_steals_no_claim(tmp_path: Path, step_s: float) -> None:
    worker = start("claim", tmp_path, KEY)
    assert first_line(worker) == "claimed"
    change(tmp_path, "UPDATE claims SET started = started + ?", step_s)
    with FactStore.open(tmp_path) as store, pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(store.get_or_make("call", KEY, yes), 0.5))
    kill(worker)


@needs_containers
def test_containers_that_share_a_store_and_a_host_name_pay_once_each(tmp_path: Path) -> None:
    log = tmp_path / "paid"
    workers = [in_container("share", tmp_path, 60, log) for _ in range(3)]
    for worker in workers:
        ended(worker)
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    paid = sorted(map(int, log.read_text(encoding="utf-8").splitlines()))
    assert paid == list(range(60))


@needs_containers
@pytest.mark.parametrize("host", [platform.node(), "elsewhere"])
def test_the_claim_of_a_killed_container_is_taken_over_at_once(
    tmp_path: Path, host: str
) -> None:
    worker = in_container("claim", tmp_path, KEY, host=host)
    assert first_line(worker) == "claimed"
    signed(tmp_path)
    with FactStore.open(tmp_path) as store:
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(asyncio.wait_for(store.get_or_make("call", KEY, yes), 0.5))
        kill(worker)
        made = asyncio.run(asyncio.wait_for(store.get_or_make("call", KEY, yes), 20))
    assert not made.reused
    assert ops_types(tmp_path) == ["claim.stolen"]


def test_the_claims_of_this_host_before_it_was_started_again_are_taken_over(
    tmp_path: Path,
) -> None:
    plant_claim(tmp_path, platform.node(), 1)
    with FactStore.open(tmp_path) as store:
        assert not asyncio.run(store.get_or_make("call", KEY, yes)).reused


def test_a_live_claim_is_waited_for_and_never_taken(tmp_path: Path) -> None:
    worker = start("claim", tmp_path, KEY)
    assert first_line(worker) == "claimed"
    with FactStore.open(tmp_path) as store, pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(store.get_or_make("call", KEY, yes), 0.5))
    assert ops_types(tmp_path) == []
    kill(worker)


def test_the_claim_of_another_host_ends_in_an_error_with_a_way_out(tmp_path: Path) -> None:
    plant_claim(tmp_path, "elsewhere", 99999)
    with FactStore.open(tmp_path, foreign_wait_s=0.1) as store:
        with pytest.raises(SkilltrailError, match="process 99999 on elsewhere.*release elsew"):
            asyncio.run(store.get_or_make("call", KEY, yes))
        assert ops_types(tmp_path) == []
        assert release_claims(store, "elsewhere") == 1
        assert not asyncio.run(store.get_or_make("call", KEY, yes)).reused


def test_two_stores_in_one_process_pay_once_too(tmp_path: Path) -> None:
    calls = 0

    async def slow() -> dict[str, Any]:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.05)
        return {}

    async def ask(stores: tuple[FactStore, FactStore]) -> list[bool]:
        asked = (store.get_or_make("call", KEY, slow) for store in stores)
        return sorted(made.reused for made in await asyncio.gather(*asked))

    with FactStore.open(tmp_path) as one, FactStore.open(tmp_path) as two:
        assert asyncio.run(ask((one, two))) == [False, True]
    assert calls == 1


def test_when_the_disk_takes_no_more_the_error_is_clear_and_all_before_is_kept(
    tmp_path: Path,
) -> None:
    *numbers, last = ended(start("fill", tmp_path, 400_000))
    assert last.startswith("error The store")
    assert "Every call recorded before this is kept" in last
    assert len(numbers) > 10
    with FactStore.open(tmp_path) as store:
        assert len(store.get_many(key_of("fill", number) for number in numbers)) == len(numbers)
        assert not asyncio.run(store.get_or_make("call", KEY, yes)).reused


def hold(path: Path, *args: Any, **options: Any) -> None:
    """Take the lock and give it back."""

    async def held() -> None:
        async with run_lock(path, *args, **options):
            pass

    asyncio.run(held())


def test_a_run_lock_is_free_again_once_its_holder_is_killed(tmp_path: Path) -> None:
    """Case concurrency-02."""
    path, ops = tmp_path / "run.lock", Ops(tmp_path / "ops.jsonl")
    worker = start("lock", path)
    assert first_line(worker) == "locked"
    told: list[Owner | None] = []
    with pytest.raises(SkilltrailError, match=f"process {worker.pid} on"):
        hold(path, ops, told.append, timeout_s=0.2)
    assert told[0] is not None
    assert (told[0].pid, told[0].host) == (worker.pid, platform.node())
    kill(worker)
    hold(path, ops, timeout_s=0.2)
    hold(path, ops, timeout_s=0.2)
    assert [line["type"] for line in read_ops(ops.path)] == ["lock.reclaimed"]


@needs_containers
def test_a_run_lock_left_by_a_killed_container_is_free(tmp_path: Path) -> None:
    worker = in_container("lock", tmp_path / "run.lock", host="elsewhere")
    assert first_line(worker) == "locked"
    with pytest.raises(SkilltrailError, match="on elsewhere"):
        hold(tmp_path / "run.lock", timeout_s=0.3)
    kill(worker)
    hold(tmp_path / "run.lock", timeout_s=2)


def test_a_run_lock_signed_by_another_host_is_not_overruled(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    path.write_text(
        '{"host": "elsewhere", "pid": 1, "started": 1.0}', encoding="utf-8", newline="\n"
    )
    with pytest.raises(SkilltrailError, match="elsewhere.*delete the file"):
        hold(path, foreign_wait_s=0.1)
    path.unlink()
    hold(path)

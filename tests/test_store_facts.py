"""The fact store in one process: what is kept, what is not, what is said when it breaks."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from null_store import NullStore

from skilltrail.core.canon import canonical, cleaned, digest
from skilltrail.core.errors import FaultError, SkilltrailError, UsageError
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import read_ops

KEY = "a" * 64
OTHER = "b" * 64


class Counted:
    """A model that counts its calls; answers after `delay_s`, or fails with `error`."""

    def __init__(self, value: Any = None, error: Exception | None = None, delay_s: float = 0):
        self.value = {"text": "yes"} if value is None else value
        self.error = error
        self.delay_s = delay_s
        self.calls = 0

    async def __call__(self) -> dict[str, Any]:
        self.calls += 1
        await asyncio.sleep(self.delay_s)
        if self.error is not None:
            raise self.error
        return self.value


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with FactStore.open(tmp_path, busy_s=0.3) as opened:
        yield opened


def ops_of(root: Path) -> list[dict[str, Any]]:
    return list(read_ops(root / ".skilltrail" / "ops.jsonl"))


def test_a_fact_that_was_put_is_there_after_reopening(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as first:
        asyncio.run(first.put("rollout", KEY, {"answer": "ä\u2028", "score": 0.0}))
    with FactStore.open(tmp_path) as second:
        assert second.get(KEY) == {"answer": "ä\u2028", "score": 0.0}
        assert second.get(OTHER) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)  # fmt: skip


@pytest.fixture(scope="module")
def lasting_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FactStore]:
    with FactStore.open(tmp_path_factory.mktemp("lasting")) as opened:
        yield opened


@settings(max_examples=25, deadline=None)
@given(value=st.dictionaries(st.text(), json_values))
def test_any_json_object_comes_back_in_its_canonical_form(
    lasting_store: FactStore, value: dict[str, Any]
) -> None:
    key = digest("test/1", value)
    stands = asyncio.run(lasting_store.put("call", key, value))
    kept = lasting_store.get(key)
    assert kept == stands
    assert canonical(kept) == canonical(cleaned(value))


def test_many_keys_are_read_at_once_and_absent_ones_are_left_out(store: FactStore) -> None:
    keys = [f"{number:064x}" for number in range(1200)]

    async def put_half() -> None:
        await asyncio.gather(*(store.put("call", key, {"k": key}) for key in keys[::2]))

    asyncio.run(put_half())
    assert store.get_many(keys) == {key: {"k": key} for key in keys[::2]}
    assert store.has_many(keys) == set(keys[::2])
    assert [fact.key for fact in store.facts(reversed(keys))] == keys[::2][::-1]


def test_what_is_made_first_and_what_is_reused_later_are_equal(store: FactStore) -> None:
    make = Counted({"pair": (1, 2), "bad": "\ud800", "x": 0.1})
    first = asyncio.run(store.get_or_make("call", KEY, make))
    second = asyncio.run(store.get_or_make("call", KEY, make))
    assert (first.reused, second.reused, make.calls) == (False, True, 1)
    assert first.value == second.value == {"pair": [1, 2], "bad": "\ufffd", "x": 0.1}


def test_fifty_tasks_that_need_one_key_pay_once(store: FactStore) -> None:
    make = Counted(delay_s=0.02)

    async def ask() -> list[bool]:
        made = await asyncio.gather(*(store.get_or_make("call", KEY, make) for _ in range(50)))
        return [one.reused for one in made]

    reused = asyncio.run(ask())
    assert make.calls == 1
    assert reused.count(False) == 1


def test_values_given_to_two_tasks_are_not_the_same_object(store: FactStore) -> None:
    make = Counted({"items": []}, delay_s=0.01)

    async def ask() -> list[dict[str, Any]]:
        made = await asyncio.gather(*(store.get_or_make("call", KEY, make) for _ in range(3)))
        return [one.value for one in made]

    first, *others = asyncio.run(ask())
    first["items"].append("mine")
    assert all(other == {"items": []} for other in others)


def test_a_failure_is_never_stored_and_the_next_run_calls_again(tmp_path: Path) -> None:
    """Case cache-05, resume-05."""
    timeout = Counted(error=TimeoutError("no reply"))
    with FactStore.open(tmp_path) as store:
        with pytest.raises(TimeoutError):
            asyncio.run(store.get_or_make("rollout", KEY, timeout))
        assert store.get(KEY) is None
    answers = Counted()
    with FactStore.open(tmp_path) as store:
        assert not asyncio.run(store.get_or_make("rollout", KEY, answers)).reused
    assert (timeout.calls, answers.calls) == (1, 1)


def test_a_failure_reaches_every_task_that_waits_and_frees_the_key(store: FactStore) -> None:
    fails = Counted(error=TimeoutError("no reply"), delay_s=0.01)

    async def ask() -> list[Any]:
        asked = (store.get_or_make("call", KEY, fails) for _ in range(5))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert all(isinstance(result, TimeoutError) for result in asyncio.run(ask()))
    assert fails.calls == 1
    assert not asyncio.run(store.get_or_make("call", KEY, Counted())).reused


def test_when_the_paying_task_is_cancelled_a_waiting_one_takes_over(store: FactStore) -> None:
    calls = 0
    paying = asyncio.Event()

    async def make() -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == 1:
            paying.set()
            await asyncio.Event().wait()
        return {"text": "yes"}

    async def ask() -> bool:
        payer = asyncio.create_task(store.get_or_make("call", KEY, make))
        await paying.wait()
        waiter = asyncio.create_task(store.get_or_make("call", KEY, make))
        await asyncio.sleep(0)  # it has found that the key is being paid for, and waits
        payer.cancel()
        return (await waiter).reused

    assert asyncio.run(ask()) is False
    assert calls == 2


def test_a_put_whose_task_is_cancelled_is_kept(store: FactStore) -> None:
    async def ask() -> None:
        task = asyncio.create_task(store.put("call", KEY, {"paid": True}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert store.get(KEY) == {"paid": True}


def test_closing_amid_tasks_keeps_finished_facts_and_frees_the_others(tmp_path: Path) -> None:
    store = FactStore.open(tmp_path)

    async def ask() -> None:
        await store.get_or_make("call", OTHER, Counted())
        hanging = asyncio.create_task(store.get_or_make("call", KEY, Counted(delay_s=60)))
        await asyncio.sleep(0.05)
        store.close()
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging

    asyncio.run(ask())
    store.close()
    with pytest.raises(SkilltrailError, match="closed"):
        store.get(KEY)
    with FactStore.open(tmp_path) as again:
        assert again.get(OTHER) == {"text": "yes"}
        assert not asyncio.run(again.get_or_make("call", KEY, Counted())).reused
    assert "claim.stolen" not in [line["type"] for line in ops_of(tmp_path)]


def test_the_first_of_two_values_wins_and_the_journal_says_so(
    store: FactStore, tmp_path: Path
) -> None:
    asyncio.run(store.put("call", KEY, {"n": 1}))
    assert asyncio.run(store.put("call", KEY, {"n": 1})) == {"n": 1}
    assert ops_of(tmp_path) == []
    assert asyncio.run(store.put("call", KEY, {"n": 2})) == {"n": 1}
    assert store.get(KEY) == {"n": 1}
    assert [(line["type"], line["key"]) for line in ops_of(tmp_path)] == [
        ("fact.conflict", KEY)
    ]


@pytest.mark.parametrize(
    ("kind", "key", "value", "error"),
    [
        ("rolout", KEY, {}, ValueError),
        ("call", "", {}, ValueError),
        ("call", "../x", {}, ValueError),
        ("call", KEY, {"x": float("nan")}, ValueError),
        ("call", KEY, [1], TypeError),
    ],
)
def test_what_is_no_fact_is_refused(
    store: FactStore, kind: str, key: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        asyncio.run(store.put(kind, key, value))


def test_a_value_that_cannot_be_stored_frees_its_key(store: FactStore) -> None:
    with pytest.raises(ValueError, match="JSON"):
        asyncio.run(store.get_or_make("call", KEY, Counted({"x": float("inf")})))
    assert not asyncio.run(store.get_or_make("call", KEY, Counted())).reused


def test_one_store_serves_several_loops(store: FactStore) -> None:
    for number in range(3):
        asyncio.run(store.put("call", f"{number:064x}", {"n": number}))
    assert len(store.get_many(f"{number:064x}" for number in range(3))) == 3


def test_without_a_cache_every_call_is_made_and_no_file_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case cache-03."""
    monkeypatch.chdir(tmp_path)
    store, make = NullStore(), Counted()
    made = [asyncio.run(store.get_or_make("call", KEY, make)) for _ in range(2)]
    assert make.calls == 2
    assert [one.reused for one in made] == [False, False]
    assert store.get(KEY) is None
    assert store.get_many([KEY]) == {}
    assert [fact.text for fact in store.facts([KEY, OTHER])] == ['{"text":"yes"}']
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_folder_s_place_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".skilltrail").write_text("", encoding="utf-8", newline="\n")
    with pytest.raises(SkilltrailError, match=r"Cannot write .*\.skilltrail.*run again"):
        FactStore.open(tmp_path)


def test_a_file_that_is_no_database_is_a_fault_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / ".skilltrail" / "store.db"
    path.parent.mkdir()
    path.write_bytes(b"not a database " * 100)
    with pytest.raises(FaultError, match="damaged.*aside"):
        FactStore.open(tmp_path)


def test_damage_inside_the_database_is_a_fault_and_never_an_absent_fact(tmp_path: Path) -> None:
    keys = [f"{number:064x}" for number in range(300)]

    async def put_all(store: FactStore) -> None:
        await asyncio.gather(*(store.put("call", key, {"k": key * 5}) for key in keys))

    with FactStore.open(tmp_path) as store:
        asyncio.run(put_all(store))
    path = tmp_path / ".skilltrail" / "store.db"
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xa5" * (len(data) - 8192)
    path.write_bytes(data)
    with FactStore.open(tmp_path) as store, pytest.raises(FaultError, match="damaged"):
        store.get(keys[150])


def test_a_flipped_bit_in_a_value_is_a_fault_that_names_the_key(store: FactStore) -> None:
    asyncio.run(store.put("call", KEY, {"text": "some text " * 20}))

    def flip(connection: sqlite3.Connection) -> None:
        (value,) = connection.execute("SELECT value FROM facts").fetchone()
        connection.execute("UPDATE facts SET value = ?", (value[:-1] + b"\x00",))

    store.do(flip)
    with pytest.raises(FaultError, match=KEY):
        store.get(KEY)


def test_a_database_locked_by_another_program_is_one_clear_error(
    store: FactStore, tmp_path: Path
) -> None:
    asyncio.run(store.put("call", OTHER, {"kept": True}))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(SkilltrailError, match="locked.*End the program"):
        asyncio.run(store.put("call", KEY, {}))
    assert store.get(OTHER) == {"kept": True}
    other.close()
    asyncio.run(store.put("call", KEY, {}))
    assert store.get(KEY) == {}


def test_a_full_database_is_one_clear_error_and_loses_nothing(store: FactStore) -> None:
    asyncio.run(store.put("call", OTHER, {"kept": True}))

    def limit(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 12")

    store.do(limit)
    with pytest.raises(SkilltrailError, match="full.*Free some disk space"):
        asyncio.run(store.put("call", KEY, {"text": [f"{n * 7919:x}" for n in range(40000)]}))
    assert store.get(OTHER) == {"kept": True}
    assert store.get(KEY) is None


def test_a_store_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as store:
        path = store.path
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UsageError, match="format 99"):
        FactStore.open(tmp_path)


def test_the_loop_keeps_turning_while_facts_are_written(store: FactStore) -> None:
    async def measure() -> float:
        loop = asyncio.get_running_loop()
        worst_s, done = 0.0, False

        async def tick() -> None:
            nonlocal worst_s
            while not done:
                before = loop.time()
                await asyncio.sleep(0.001)
                worst_s = max(worst_s, loop.time() - before)

        ticking = asyncio.create_task(tick())
        for start in range(0, 300, 50):
            await asyncio.gather(
                *(store.put("call", f"{n:064x}", {"n": n}) for n in range(start, start + 50))
            )
        done = True
        await ticking
        return worst_s

    assert asyncio.run(measure()) < 1.0


def test_values_are_stored_as_their_canonical_text(store: FactStore) -> None:
    asyncio.run(store.put("call", KEY, {"b": 1, "a": "é"}))
    (fact,) = store.facts([KEY])
    assert fact.text == '{"a":"é","b":1}'
    assert store.sizes([KEY]) == {KEY: len(fact.text.encode("utf-8"))}
    assert json.loads(fact.text) == store.get(KEY)


def test_a_claim_is_written_down_of_a_call_that_takes_its_time(store: FactStore) -> None:
    named = "SELECT COUNT(*) FROM claims"

    async def slow() -> dict[str, Any]:
        while store.query(named) == [(0,)]:
            await asyncio.sleep(0.01)
        return {"text": "at last"}

    asyncio.run(store.get_or_make("call", KEY, slow))
    assert store.query(named) == [(0,)]


def test_a_quick_call_and_one_that_fails_leave_no_claim_behind(store: FactStore) -> None:
    async def both() -> None:
        await store.get_or_make("call", KEY, Counted())
        with pytest.raises(OSError, match="away"):
            await store.get_or_make("call", OTHER, Counted(error=OSError("away")))

    asyncio.run(both())
    store.do(lambda connection: None)  # what was queued is done
    assert store.query("SELECT COUNT(*) FROM claims") == [(0,)]

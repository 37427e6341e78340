"""Exports: the same facts give the same bytes, and a damaged line is never read in."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from null_store import NullStore

from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.store.exports import (
    export_shards,
    fact_of,
    import_shards,
    line_of,
    prefix_length,
    shard_files,
)
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import read_ops
from skilltrail.store.protocol import Fact


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def fill(store: FactStore | NullStore, numbers: Iterable[int]) -> list[str]:
    async def put_all() -> None:
        await asyncio.gather(
            *(store.put("rollout", key_of(n), {"n": n, "text": "ä\u2028\r"}) for n in numbers)
        )

    numbers = list(numbers)
    asyncio.run(put_all())
    return [key_of(number) for number in numbers]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with FactStore.open(tmp_path / "one") as opened:
        yield opened


@pytest.fixture
def second(tmp_path: Path) -> Iterator[FactStore]:
    with FactStore.open(tmp_path / "two") as opened:
        yield opened


def test_a_line_is_canonical_and_describes_itself() -> None:
    fact = Fact.of("call", "ab12", {"z": 1, "a": "é"})
    rest = '"key":"ab12","kind":"call","value":{"a":"é","z":1}}'
    digest = hashlib.sha256(("{" + rest).encode()).hexdigest()
    assert line_of(fact) == f'{{"digest":"{digest}",{rest}\n'.encode()


@given(value=st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False) | st.none()))
def test_every_line_reads_back(value: dict[str, Any]) -> None:
    value = {k: v for k, v in value.items() if v not in (float("inf"), float("-inf"))}
    fact = Fact.of("rollout", "k1", value)
    assert fact_of(line_of(fact)) == fact
    assert line_of(fact).count(b"\n") == 1


@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(position: int, flip: int) -> None:
    line = bytearray(line_of(Fact.of("rollout", "k1", {"text": "some words", "n": [1, 2.5]})))
    line[position % len(line)] ^= flip
    with pytest.raises((ValueError, TypeError)):
        fact_of(bytes(line))


def test_an_export_holds_exactly_the_given_facts_sorted(
    store: FactStore, tmp_path: Path
) -> None:
    keys = fill(store, range(30))
    assert export_shards(store, [*keys[:20], keys[0]], tmp_path / "out") == 20
    (shard,) = shard_files(tmp_path / "out")
    facts = [fact_of(line) for line in shard.read_bytes().splitlines(keepends=True)]
    assert [fact.key for fact in facts] == sorted(keys[:20])


def test_the_order_of_puts_and_earlier_exports_do_not_show(
    store: FactStore, second: FactStore, tmp_path: Path
) -> None:
    keys = fill(store, range(30))
    fill(second, reversed(range(40)))
    export_shards(store, keys[:7], tmp_path / "a")
    export_shards(store, keys, tmp_path / "a")
    export_shards(second, reversed(keys), tmp_path / "b")
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


def test_a_large_export_is_cut_into_balanced_shards(store: FactStore, tmp_path: Path) -> None:
    keys = fill(store, range(400))
    export_shards(store, keys, tmp_path / "out", shard_bytes=10_000)
    sizes = [path.stat().st_size for path in shard_files(tmp_path / "out")]
    assert len(sizes) == 16
    assert max(sizes) <= 10_000
    export_shards(store, keys[:3], tmp_path / "out")
    assert list(bytes_of(tmp_path / "out")) == ["shard.jsonl"]


def test_one_more_fact_changes_one_shard(store: FactStore, tmp_path: Path) -> None:
    keys = fill(store, range(300))
    export_shards(store, keys[:-1], tmp_path / "out", shard_bytes=10_000)
    before = bytes_of(tmp_path / "out")
    export_shards(store, keys, tmp_path / "out", shard_bytes=10_000)
    after = bytes_of(tmp_path / "out")
    assert [name for name in after if after[name] != before[name]] == [
        f"shard-{keys[-1][0]}.jsonl"
    ]


def test_shards_stay_small_whatever_the_values_weigh() -> None:
    sizes = {key_of(number): 40_000 for number in range(3_000)}
    assert prefix_length(sizes) == 2
    assert prefix_length({}) == 0
    assert prefix_length({key_of(1): 90_000_000}) == 8


def test_an_export_without_facts_is_one_empty_shard(store: FactStore, tmp_path: Path) -> None:
    assert export_shards(store, [], tmp_path / "out") == 0
    assert bytes_of(tmp_path / "out") == {"shard.jsonl": b""}
    assert import_shards(store, tmp_path / "out") == 0


def test_a_second_clone_has_every_fact_after_import(
    store: FactStore, second: FactStore, tmp_path: Path
) -> None:
    keys = fill(store, range(50))
    export_shards(store, keys, tmp_path / "out")
    assert import_shards(second, tmp_path / "out") == 50
    assert second.get_many(keys) == store.get_many(keys)
    assert import_shards(second, tmp_path / "out") == 0
    assert import_shards(second, tmp_path / "absent") == 0


def test_a_fact_the_store_already_has_otherwise_is_kept_and_noted(
    store: FactStore, second: FactStore, tmp_path: Path
) -> None:
    (key,) = fill(store, [1])
    export_shards(store, [key], tmp_path / "out")
    asyncio.run(second.put("rollout", key, {"mine": True}))
    assert import_shards(second, tmp_path / "out") == 0
    assert second.get(key) == {"mine": True}
    journal = read_ops(tmp_path / "two" / ".skilltrail" / "ops.jsonl")
    assert [line["type"] for line in journal] == ["fact.conflict"]


def damage_word(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"n":', b'"m":')
    return b"".join(lines)


def cut_tail(data: bytes) -> bytes:
    return data[:-9]


def cut_newline(data: bytes) -> bytes:
    return data[:-1]


def carriage_returns(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def conflict_marker(data: bytes) -> bytes:
    return b"<<<<<<< HEAD\n" + data


def not_utf8(data: bytes) -> bytes:
    return b"\xff" + data


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (damage_word, 3),
        (cut_tail, 5),
        (cut_newline, 5),
        (carriage_returns, 1),
        (conflict_marker, 1),
        (not_utf8, 1),
    ],
)
def test_a_damaged_line_is_refused_by_file_and_line(
    store: FactStore, second: FactStore, tmp_path: Path, harm: Any, line: int
) -> None:
    keys = fill(store, range(5))
    export_shards(store, keys, tmp_path / "out")
    (shard,) = shard_files(tmp_path / "out")
    shard.write_bytes(harm(shard.read_bytes()))
    with pytest.raises(FaultError, match=f"shard.jsonl, line {line} is damaged.*checkout"):
        import_shards(second, tmp_path / "out")
    assert second.get_many(keys) == {}
    shard.write_bytes(b"")
    export_shards(store, keys, tmp_path / "out")
    assert import_shards(second, tmp_path / "out") == 5


def test_an_export_of_a_fact_that_is_not_there_leaves_the_old_one(
    store: FactStore, tmp_path: Path
) -> None:
    keys = fill(store, range(3))
    export_shards(store, keys, tmp_path / "out")
    before = bytes_of(tmp_path / "out")
    with pytest.raises(
        FaultError, match=f"1 recorded calls are not in the store, first {key_of(99)}"
    ):
        export_shards(store, [*keys, key_of(99)], tmp_path / "out")
    assert bytes_of(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["one", "out"]


def test_a_linked_shard_is_replaced_and_the_cached_original_stays(
    store: FactStore, tmp_path: Path
) -> None:
    keys = fill(store, range(3))
    export_shards(store, keys[:1], tmp_path / "out")
    (shard,) = shard_files(tmp_path / "out")
    cached = tmp_path / "cached"
    shard.rename(cached)
    shard.symlink_to(cached)
    before = cached.read_bytes()
    export_shards(store, keys, tmp_path / "out")
    assert cached.read_bytes() == before
    assert not shard.is_symlink()


def test_an_unwritable_place_is_one_clear_error(store: FactStore, tmp_path: Path) -> None:
    keys = fill(store, range(3))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SkilltrailError, match="Cannot write .*run again"):
        export_shards(store, keys, tmp_path / "file" / "out")


def test_without_a_cache_this_run_s_facts_are_exported_and_nothing_is_read_in(
    store: FactStore, tmp_path: Path
) -> None:
    kept = NullStore()
    keys = fill(kept, range(5))
    fill(store, range(5))
    export_shards(kept, keys, tmp_path / "a")
    export_shards(store, keys, tmp_path / "b")
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    assert import_shards(kept, tmp_path / "a") == 0

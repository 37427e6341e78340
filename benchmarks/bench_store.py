"""What the fact store costs, and that the cost per fact stays flat as it grows.

    python benchmarks/bench_store.py [--rows 1000 10000 100000] [--workers 64] [--writes 1000]

Writes one table to stdout: for each size, the time to open and close a store, to put a fact
(64 in flight, each synced), to read one by `get` or by `get_many` (1,000 random keys), to
export and import one, and to import the same export again. The last column is the cost at the
largest size over that at the smallest. Then many processes put at once, and everything they
were told was stored is read back.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from skilltrail.store.exports import export_shards, import_shards, shard_files
from skilltrail.store.facts import FactStore

IN_FLIGHT = 64
REPEATS = 5  # of what changes nothing; other programs disturb single measurements
_WORDS = [hashlib.sha256(bytes([n])).hexdigest()[:7] for n in range(200)]


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def rollout(number: int) -> dict[str, Any]:
    """Return a value of about 1.5 kB that compresses like text."""
    draw = random.Random(number)
    return {"n": number, "answer": " ".join(draw.choices(_WORDS, k=180)), "ending": "answered"}


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the shortest of `repeats` measurements."""
    times_s = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - begun)
    return min(times_s)


async def put_all(store: FactStore, first: int, count: int) -> None:
    numbers = iter(range(first, first + count))

    async def worker() -> None:
        for number in numbers:
            await store.put("rollout", key_of(number), rollout(number))

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


def measure(rows: int, folder: Path) -> dict[str, float]:
    """Return seconds per fact (per opening for `open`) of each operation at `rows` facts."""
    draw = random.Random(rows)
    picked = [key_of(draw.randrange(rows)) for _ in range(1000)]
    keys = [key_of(number) for number in range(rows)]
    FactStore.open(folder).close()
    with FactStore.open(folder) as store:
        costs = {"put": seconds(lambda: asyncio.run(put_all(store, 0, rows))) / rows}
    costs["open"] = seconds(lambda: FactStore.open(folder).close(), REPEATS)
    with FactStore.open(folder) as store:
        costs["get"] = seconds(lambda: [store.get(key) for key in picked], REPEATS) / 1000
        costs["get_many"] = seconds(lambda: store.get_many(picked), REPEATS) / 1000
        out = folder / "out"
        costs["export"] = seconds(lambda: export_shards(store, keys, out)) / rows
        costs["import again"] = seconds(lambda: import_shards(store, out), REPEATS) / rows
        shards = [path.stat().st_size for path in shard_files(out)]
        costs["largest shard MB"] = max(shards) / 1e6
        costs["shards"] = len(shards)
    with FactStore.open(folder / "second") as second:
        costs["import"] = seconds(lambda: import_shards(second, out)) / rows
    return costs


def put_in_process(folder: str, first: int, count: int) -> None:
    with FactStore.open(Path(folder)) as store:
        asyncio.run(put_all(store, first, count))


def many_processes(workers: int, writes: int, folder: Path) -> tuple[float, int]:
    """Return seconds and facts readable afterwards when `workers` put `writes` facts each."""
    spawn = multiprocessing.get_context("spawn")
    tasks = [
        spawn.Process(target=put_in_process, args=(str(folder), each * writes, writes))
        for each in range(workers)
    ]
    begun = time.perf_counter()
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    took_s = time.perf_counter() - begun
    failed = [task.exitcode for task in tasks if task.exitcode != 0]
    if failed:
        sys.exit(f"{len(failed)} workers failed")
    with FactStore.open(folder) as store:
        return took_s, len(store.get_many(key_of(n) for n in range(workers * writes)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--writes", type=int, default=1_000)
    args = parser.parse_args()
    say = sys.stdout.write
    with tempfile.TemporaryDirectory() as temporary:
        columns = {rows: measure(rows, Path(temporary) / str(rows)) for rows in args.rows}
        first, last = columns[args.rows[0]], columns[args.rows[-1]]
        say("| | " + " | ".join(f"{rows:,} facts" for rows in args.rows) + " | last/first |\n")
        say("|---" * (len(args.rows) + 2) + "|\n")
        for name, unit, scale in (
            ("open", "ms", 1e3),
            *((name, "µs a fact", 1e6) for name in ("put", "get", "get_many")),
            *((name, "µs a fact", 1e6) for name in ("export", "import", "import again")),
        ):
            cells = " | ".join(f"{columns[rows][name] * scale:.1f}" for rows in args.rows)
            say(f"| {name}, {unit} | {cells} | {last[name] / first[name]:.2f} |\n")
        for name in ("shards", "largest shard MB"):
            cells = " | ".join(f"{columns[rows][name]:.3g}" for rows in args.rows)
            say(f"| {name} | {cells} | |\n")
        if args.workers:
            total = args.workers * args.writes
            took_s, readable = many_processes(
                args.workers, args.writes, Path(temporary) / "many"
            )
            say(f"\n{args.workers} processes x {args.writes:,} puts: {took_s:.1f} s, ")
            say(f"{total / took_s:,.0f} puts/s, {readable:,} of {total:,} readable\n")


if __name__ == "__main__":
    main()

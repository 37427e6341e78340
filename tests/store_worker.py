"""A process that works on a store, for tests that kill it or run several at once.

python store_worker.py put ROOT SEED COUNT    put numbered facts, print each stored number
python store_worker.py share ROOT COUNT LOG   make shared facts, log one line per payment
python store_worker.py claim ROOT KEY         claim a key, say so, and never finish
python store_worker.py lock PATH              hold a run lock, say so, and never finish
python store_worker.py fill ROOT BYTES        put facts until no file may grow beyond BYTES
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from skilltrail.core.errors import SkilltrailError
from skilltrail.store.facts import FactStore
from skilltrail.store.lock import run_lock


def key_of(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


def value_of(seed: str, number: int) -> dict[str, Any]:
    return {"seed": seed, "number": number, "text": f"{number} " * (number % 400)}


def say(text: object) -> None:
    os.write(1, f"{text}\n".encode())


async def put(store: FactStore, seed: str, count: int) -> None:
    async def one(number: int) -> None:
        await store.put("rollout", key_of(seed, number), value_of(seed, number))
        say(number)

    for start in range(0, count, 20):
        await asyncio.gather(*map(one, range(start, min(start + 20, count))))


async def share(store: FactStore, count: int, log: Path) -> None:
    async def one(number: int) -> None:
        async def make() -> dict[str, Any]:
            file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, f"{number}\n".encode())
            os.close(file)
            await asyncio.sleep(0.005)
            return value_of("shared", number)

        made = await store.get_or_make("call", key_of("shared", number), make)
        assert made.value == value_of("shared", number)

    # All processes make the keys in the same order, so that they meet at each one.
    for start in range(0, count, 10):
        await asyncio.gather(*map(one, range(start, min(start + 10, count))))


async def claim(store: FactStore, key: str) -> None:
    async def make() -> dict[str, Any]:
        say("claimed")
        await asyncio.sleep(60)
        return {}

    await store.get_or_make("call", key, make)


async def fill(store: FactStore, limit_bytes: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    number = 0
    while True:
        try:
            noise = key_of("noise", number) * 40
            await store.put("rollout", key_of("fill", number), {"number": number, "t": noise})
        except SkilltrailError as error:
            say(f"error {error}")
            return
        say(number)
        number += 1


async def lock(path: Path) -> None:
    async with run_lock(path):
        say("locked")
        await asyncio.sleep(60)


def main(job: str, *args: str) -> None:
    if job == "lock":
        asyncio.run(lock(Path(args[0])))
        return
    with FactStore.open(Path(args[0])) as store:
        if job == "put":
            asyncio.run(put(store, args[1], int(args[2])))
        elif job == "share":
            asyncio.run(share(store, int(args[1]), Path(args[2])))
        elif job == "claim":
            asyncio.run(claim(store, args[1]))
        elif job == "fill":
            asyncio.run(fill(store, int(args[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A process that needs shared facts and logs each payment it begins and ends.

python payer.py ROOT COUNT LOG NAME, with the project and its tests on PYTHONPATH
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from store_worker import key_of, value_of

from skilltrail.store.facts import FactStore


async def pay(store: FactStore, count: int, log: Path, name: str) -> None:
    def note(number: int, what: str) -> None:
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{number} {name} {what}\n".encode())
        os.close(file)

    async def one(number: int) -> None:
        async def make() -> dict[str, Any]:
            note(number, "begins")
            await asyncio.sleep(0.02)
            return value_of("shared", number)

        await store.get_or_make("call", key_of("shared", number), make)
        note(number, "has")

    # All in the same order, so that they meet at each key.
    for start in range(0, count, 8):
        await asyncio.gather(*map(one, range(start, min(start + 8, count))))


if __name__ == "__main__":
    root, count, log, name = sys.argv[1:]
    with FactStore.open(Path(root)) as store:
        asyncio.run(pay(store, int(count), Path(log), name))

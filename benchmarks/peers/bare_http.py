"""An HTTP client in a loop: nothing is kept, a failed call is made again at once."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers import TIMEOUT_S, documents, questions

HTTP = import_module("httpx2" if find_spec("httpx2") is not None else "httpx")


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    asyncio.run(_run(url, items, workers, third))


async def _run(url: str, items: int, workers: int, third: str) -> None:
    limits = HTTP.Limits(max_connections=None, max_keepalive_connections=workers)
    async with HTTP.AsyncClient(timeout=TIMEOUT_S, limits=limits) as client:
        for document in documents(third):
            left = iter(questions(items))

            async def worker(skill: str = document, left: Any = left) -> None:
                for question in left:
                    await _call(client, url, skill, question)

            await asyncio.gather(*(worker() for _ in range(workers)))


async def _call(client: Any, url: str, skill: str, question: str) -> None:
    messages = [{"role": "system", "content": skill}, {"role": "user", "content": question}]
    body = {"model": "m", "messages": messages, "max_tokens": 16, "temperature": 0.0}
    while True:
        try:
            response = await client.post(f"{url}/chat/completions", json=body)
        except HTTP.TimeoutException:
            continue
        if response.status_code == 200:
            response.json()
            return

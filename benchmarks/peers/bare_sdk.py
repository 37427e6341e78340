"""The OpenAI SDK in a loop: nothing is kept; its own retries are on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from benchmarks.peers import TIMEOUT_S, documents, questions


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    asyncio.run(_run(url, items, workers, third))


async def _run(url: str, items: int, workers: int, third: str) -> None:
    http = DefaultAsyncHttpxClient(timeout=TIMEOUT_S)
    client = AsyncOpenAI(
        base_url=url, api_key="none", timeout=TIMEOUT_S, max_retries=6, http_client=http
    )
    create: Any = client.chat.completions.create
    for document in documents(third):
        left = iter(questions(items))

        async def worker(skill: str = document, left: Any = left) -> None:
            for question in left:
                messages = [
                    {"role": "system", "content": skill},
                    {"role": "user", "content": question},
                ]
                await create(model="m", messages=messages, max_tokens=16, temperature=0.0)

        await asyncio.gather(*(worker() for _ in range(workers)))
    await client.close()

"""What the door costs over the bare SDK and over bare HTTP, against an instant stub.

    python benchmarks/bench_models.py [--calls 1000] [--json FILE]

Wall time per call and CPU of the client per 1,000 calls, at each concurrency, in one run; the
ways take turns, and the best of the rounds counts, so that a busy machine hurts all alike.
Each way keeps as many connections open as calls are in flight. Wanted: the door at most 1.15
times the bare SDK, and memory flat. `rollout` is the door, the environment, its scorer and a
store on the disk, each fact synced: the whole of a rollout of one call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from skilltrail.core.item import Item  # noqa: E402
from skilltrail.core.trajectory import Trajectory  # noqa: E402
from skilltrail.envs.textqa.env import ENVIRONMENT  # noqa: E402
from skilltrail.method.rollout import Rollouts  # noqa: E402
from skilltrail.models.backends.sdk import http_client  # noqa: E402
from skilltrail.models.protocol import Decoding, Model, Request  # noqa: E402
from skilltrail.models.registry import open_model  # noqa: E402
from skilltrail.params.model_options import RoleOptions  # noqa: E402
from skilltrail.store.facts import FactStore  # noqa: E402

CONCURRENCIES = (1, 8, 32, 128)
PROMPT = "Context: " + "some words of context " * 60 + "\nQuestion: which?\nAnswer:"
SKILL = "- A rule of the skill.\n" * 20
Call = Callable[[], Awaitable[Any]]
HTTP = import_module("httpx2" if find_spec("httpx2") is not None else "httpx")

STUB = Path(__file__).with_name("stub.py")


def model_at(url: str, workers: int) -> Model:
    options = RoleOptions(
        backend="openai",
        api="chat",
        model="m",
        base_url=url,
        provider="stub",
        workers=workers,
        timeout_s=60,
        connect_timeout_s=60,
    )
    return open_model("target", options, environ={})


async def through_door(url: str, workers: int) -> tuple[Call, Call]:
    model = model_at(url, workers)
    request = Request(system=SKILL, prompt=PROMPT, decoding=Decoding(16, 0.0))
    return (lambda: model.complete(request)), model.close


async def bare_sdk(url: str, workers: int) -> tuple[Call, Call]:
    import openai
    from openai import AsyncOpenAI

    client = AsyncOpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        timeout=60,
        http_client=http_client(openai, workers),
    )
    create: Any = client.chat.completions.create
    return (lambda: create(**_body())), client.close


async def bare_http(url: str, workers: int) -> tuple[Call, Call]:
    limits = HTTP.Limits(max_connections=None, max_keepalive_connections=workers)
    client = HTTP.AsyncClient(timeout=60, limits=limits)
    target = f"{url}/chat/completions"

    async def call() -> Any:
        response = await client.post(target, json=_body())
        return response.json()

    return call, client.aclose


WAYS = {"door": through_door, "sdk": bare_sdk, "http": bare_http}


def _body() -> dict[str, Any]:
    messages = [{"role": "system", "content": SKILL}, {"role": "user", "content": PROMPT}]
    return {"model": "m", "messages": messages, "max_tokens": 16, "temperature": 0.0}


async def measure(way: str, url: str, workers: int, calls: int) -> tuple[float, float]:
    """Return wall milliseconds per call and CPU seconds per 1,000 calls."""
    call, close = await WAYS[way](url, workers)
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    await asyncio.gather(*(call() for _ in range(workers)))  # connections are open
    cpu, began = _cpu_s(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(workers)))
    wall, cpu = time.perf_counter() - began, _cpu_s() - cpu
    await close()
    return wall / calls * 1000, cpu / calls * 1000


class Uncounted:
    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        """Count nothing."""


async def measure_rollouts(url: str, workers: int, calls: int) -> tuple[float, float]:
    """Return the same of whole rollouts, each of one call."""
    items = [
        Item(f"item-{n}", {"question": f"which {n}?", "context": PROMPT}, ["an answer"])
        for n in range(workers + calls)
    ]
    model = model_at(url, workers)
    with TemporaryDirectory() as folder, FactStore.open(Path(folder)) as store:
        rollouts = Rollouts(ENVIRONMENT(), model, store, Uncounted())
        await rollouts.all(items[:workers], SKILL)
        cpu, began = _cpu_s(), time.perf_counter()
        await rollouts.all(items[workers:], SKILL)
        wall, cpu = time.perf_counter() - began, _cpu_s() - cpu
    await model.close()
    return wall / calls * 1000, cpu / calls * 1000


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def bench(url: str, calls: int, rounds: int) -> list[dict[str, Any]]:
    rows = []
    for workers in CONCURRENCIES:
        best: dict[str, tuple[float, float]] = {}
        for _ in range(rounds):
            for way in (*WAYS, "rollout"):
                if way == "rollout":
                    found = await measure_rollouts(url, workers, calls)
                else:
                    found = await measure(way, url, workers, calls)
                old = best.get(way, found)
                best[way] = (min(old[0], found[0]), min(old[1], found[1]))
        row: dict[str, Any] = {"concurrency": workers}
        for way, (wall_ms, cpu_s) in best.items():
            row |= {f"{way}_wall_ms": round(wall_ms, 3), f"{way}_cpu_s": round(cpu_s, 3)}
        for way in ("door", "rollout"):
            for at, name in enumerate(("wall", "cpu")):
                row[f"{way}_over_sdk_{name}"] = round(best[way][at] / best["sdk"][at], 3)
        rows.append(row)
    return rows


async def memory_growth_mb(url: str, calls: int) -> float:
    """Return by how much the peak memory grew over `calls` calls, after as many tenths."""
    call, close = await through_door(url, 32)
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    await asyncio.gather(*(call() for _ in range(calls // 10)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await asyncio.gather(*(worker() for _ in range(32)))
    await close()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-calls", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    stub = subprocess.Popen(
        [sys.executable, str(STUB)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert stub.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"
        found: dict[str, Any] = {"rows": asyncio.run(bench(url, args.calls, args.rounds))}
        if args.memory_calls:
            grown = asyncio.run(memory_growth_mb(url, args.memory_calls))
            found["memory_growth_mb"] = round(grown, 1)
    finally:
        stub.kill()
    text = json.dumps(found, indent=2) + "\n"
    if args.json is not None:
        args.json.write_text(text, encoding="utf-8", newline="\n")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()

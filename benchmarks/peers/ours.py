"""Skilltrail: environment, scorer and store, each fact synced before anybody uses it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.peers import PROMPT, TIMEOUT_S, documents
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.textqa.env import ENVIRONMENT
from skilltrail.method.rollout import Rollouts
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import RetryOptions, RoleOptions
from skilltrail.store.facts import FactStore


class Uncounted:
    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        """Count nothing."""


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    asyncio.run(_run(url, items, workers, folder, third))


async def _run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    options = RoleOptions(
        backend="openai", api="chat", model="m", base_url=url, provider="stub", workers=workers,
        timeout_s=TIMEOUT_S, retry=RetryOptions(after_timeout=5),
    )  # fmt: skip
    asked = [
        Item(f"{n}", {"question": f"which {n}?", "context": PROMPT}, ["an answer"])
        for n in range(items)
    ]
    model = open_model("target", options, environ={})
    with FactStore.open(folder) as store:
        rollouts = Rollouts(ENVIRONMENT(), model, store, Uncounted())
        for document in documents(third):
            await rollouts.all(asked, document)
    await model.close()

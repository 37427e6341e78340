"""GEPA: a search whose reflection proposes the documents; `run_dir` keeps its state.

Its adapter asks by the OpenAI SDK in threads, as its own default adapter does by LiteLLM. The
search scores a document on a minibatch before the whole set, so that it makes a few calls more
than the job has; the budget is the job's.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gepa
from gepa import EvaluationBatch, GEPAAdapter
from openai import OpenAI

from benchmarks.peers import TIMEOUT_S, documents, questions


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    client = OpenAI(base_url=url, api_key="none", timeout=TIMEOUT_S, max_retries=6)

    class Asking(GEPAAdapter):  # type: ignore[misc,type-arg]
        def evaluate(
            self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False
        ) -> Any:
            with ThreadPoolExecutor(workers) as pool:
                said = list(
                    pool.map(lambda text: _ask(client, candidate["skill"], text), batch)
                )
            # A later document is always a little better, so that the search takes it.
            score = len(candidate["skill"]) / 1e4
            traces = said if capture_traces else None
            return EvaluationBatch(
                outputs=said, scores=[score] * len(said), trajectories=traces
            )

        def make_reflective_dataset(
            self, candidate: dict[str, str], batch: Any, names: list[str]
        ) -> Any:
            return {name: [{"said": text} for text in batch.outputs[:3]] for name in names}

    first, *later = documents(third)
    proposed = _then(later)
    asked = questions(items)
    gepa.optimize(
        seed_candidate={"skill": first}, trainset=asked, valset=asked, adapter=Asking(),
        reflection_lm=lambda prompt: f"```\n{next(proposed)}\n```", max_metric_calls=3 * items,
        run_dir=str(folder / "gepa"), seed=0, display_progress_bar=False,
    )  # fmt: skip


def _ask(client: OpenAI, skill: str, question: str) -> str:
    reply = client.chat.completions.create(
        model="m", max_tokens=16, temperature=0.0,
        messages=[{"role": "system", "content": skill}, {"role": "user", "content": question}],
    )  # fmt: skip
    return str(reply.choices[0].message.content)


def _then(texts: list[str]) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield texts[(number - 1) % len(texts)] + "- And more.\n" * 200 * number

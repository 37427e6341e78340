"""DSPy: `Evaluate` over `Predict`; its cache on disk is on, as it is by default."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import TIMEOUT_S, documents, questions


def prepare(folder: Path) -> None:
    """Say where its cache lies, which it reads when it is imported."""
    os.environ["DSPY_CACHEDIR"] = str(folder / "dspy")
    import_module("dspy")


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    import dspy

    about: dict[str, Any] = {"timeout": TIMEOUT_S, "num_retries": 6, "max_tokens": 16}
    lm = dspy.LM("openai/m", api_base=url, api_key="none", temperature=0.0, **about)
    dspy.configure(lm=lm)
    asked = [
        dspy.Example(question=text, answer="an answer").with_inputs("question")
        for text in questions(items)
    ]
    measure = dspy.Evaluate(
        devset=asked, metric=_same, num_threads=workers, display_progress=False,
        max_errors=10 * items,
    )  # fmt: skip
    for document in documents(third):
        measure(dspy.Predict(dspy.Signature("question -> answer", document)))


def _same(example: Any, prediction: Any, trace: Any = None) -> bool:
    return bool(example.answer == prediction.answer)

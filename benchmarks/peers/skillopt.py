"""SkillOpt: `run_batch` of its SearchQA environment, as its trainer calls it.

A run has a folder with one of each document; what stands in a folder's results is not asked
again there. Another run has another folder, so two documents in common save nothing.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from skillopt.envs.searchqa.rollout import run_batch
from skillopt.model import configure_openai_compatible, set_target_backend

from benchmarks.peers import TIMEOUT_S, documents, questions


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    set_target_backend("openai_compatible")
    configure_openai_compatible(
        base_url=url, api_key="none", model="m", temperature=0.0, timeout_seconds=TIMEOUT_S
    )
    asked = [
        {"id": str(number), "question": text, "answers": ["an answer"]}
        for number, text in enumerate(questions(items))
    ]
    for number, document in enumerate(documents(third)):
        with redirect_stdout(StringIO()):  # it prints a line for each item
            run_batch(
                asked, str(folder / third / str(number)), document, workers=workers,
                exec_timeout=int(TIMEOUT_S), max_completion_tokens=16,
            )  # fmt: skip

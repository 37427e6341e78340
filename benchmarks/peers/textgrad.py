"""TextGrad: `BlackboxLLM` called per item in threads, each document its system prompt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import textgrad
from openai import OpenAI
from textgrad.engine.local_model_openai_api import ChatExternalClient

from benchmarks.peers import TIMEOUT_S, documents, questions


def run(url: str, items: int, workers: int, folder: Path, third: str) -> None:
    client = OpenAI(base_url=url, api_key="none", timeout=TIMEOUT_S, max_retries=6)
    engine = ChatExternalClient(client=client, model_string="m")
    for document in documents(third):
        said = textgrad.Variable(document, requires_grad=True, role_description="the skill")
        model = textgrad.BlackboxLLM(engine, said)

        def forward(text: str, model: Any = model) -> Any:
            asked = textgrad.Variable(text, requires_grad=False, role_description="a question")
            return model(asked)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(forward, questions(items)))

"""A small project on disk whose target is reached over the wire: whole runs for tests.

The stages run as `dvc repro` runs them, one after the other, in this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from skilltrail.core.canon import canonical
from stages.evaluate import main as evaluate
from stages.report import main as report
from stages.split import main as split
from stages.train import main as train
from tests.fault_server import Answer, Call, Fault

ROOT = Path(__file__).resolve().parents[1]
SEED_SKILL = "# Answering\n\nRead the text and answer.\n"
SPLITS = ("train", "selection", "test")
FAULTS = {
    "429": Fault(status=429, headers={"retry-after": "0"}),
    "hang": Fault(hang=True),
    "cut": Fault(cut=True),
}


def project(
    folder: Path, target: Mapping[str, Any], *, items: int = 8, **params: Any
) -> list[dict[str, Any]]:
    """Write a project over the first `items` items of each split of the shipped data; return
    the items."""
    (folder / "skills/seeds").mkdir(parents=True)
    (folder / "skills/seeds/textqa.md").write_text(SEED_SKILL, encoding="utf-8", newline="\n")
    (folder / "skills/seeds/default").write_text("", encoding="utf-8", newline="\n")
    (folder / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8", newline="\n")
    rows = []
    for name in SPLITS:
        lines = (ROOT / f"data/textqa/{name}.jsonl").read_text("utf-8").splitlines()[:items]
        path = folder / f"data/small/{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        rows += [json.loads(line) for line in lines]
    set_params(folder, target=target, **params)
    return rows


def set_params(folder: Path, target: Mapping[str, Any], **params: Any) -> None:
    """Write params.yaml: one epoch of small steps over the small split, and `params`."""
    values: dict[str, Any] = {
        "env": "textqa",
        "epochs": 1,
        "batch_size": 4,
        "lr": 2,
        "lr_schedule": "constant",
        "data": {"split_dir": "data/small"},
        "target": dict(target),
    }
    with (folder / "params.yaml").open("w", encoding="utf-8", newline="\n") as file:
        YAML().dump(values | params, file)


def run_stages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run split, train, evaluate and report in `folder`."""
    monkeypatch.chdir(folder)
    for stage in (split, train, evaluate, report):
        asyncio.run(stage())


def results(folder: Path) -> dict[str, bytes]:
    """Return the bytes of everything a run decides."""
    names = ("skills/events.jsonl", "skills/best_skill.md", "reports/out/evaluation.jsonl",
             "reports/out/metrics.json")  # fmt: skip
    return {name: (folder / name).read_bytes() for name in names}


@dataclass
class Learner:
    """A model that answers more questions, the more the skill says: a function of the request.

    `answers` are right answers by question and context.
    """

    answers: dict[str, str] = field(default_factory=dict)

    def learn(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.answers.update((r["question"] + r["context"], r["answers"][0]) for r in rows)

    def __call__(self, call: Call) -> Answer:
        system, asked = _texts(call.body)
        question, context = _asked(asked)
        right = self.answers[question + context]
        known = min(90, 20 + 6 * system.count("\n"))
        answer = right if _share(canonical({"q": question, "c": context})) < known else "no"
        return Answer(f"<answer>{answer}</answer>", input=len(asked) // 4, output=4)


@dataclass
class Weather:
    """Faults by request: 5 % are refused with 429, 2 % are never answered, 1 % are cut, each
    at the first time only."""

    seed: int
    seen: set[str] = field(default_factory=set)
    met: set[str] = field(default_factory=set)

    @staticmethod
    def over(calls: Sequence[Call]) -> Weather:
        """Return the weather of the first seed that lets each kind of fault happen."""
        texts = {canonical(call.body) for call in calls}
        for seed in range(10_000):
            weather = Weather(seed)
            if {weather.kind(text) for text in texts} >= set(FAULTS):
                return weather
        raise ValueError(f"no seed spoils {len(texts)} requests in every way")

    def kind(self, text: str) -> str | None:
        """Return what befalls a request: a name of `FAULTS`, or None."""
        share = _share(f"{self.seed} {text}")
        if share < 5:
            return "429"
        if share < 7:
            return "hang"
        return "cut" if share < 8 else None

    def __call__(self, call: Call) -> Fault | None:
        text = canonical(call.body)
        kind = self.kind(text)
        if text in self.seen or kind is None:
            return None
        self.seen.add(text)
        self.met.add(kind)
        return FAULTS[kind]


def _share(text: str) -> float:
    """Return a number in [0, 100) that the text decides."""
    return int(hashlib.sha256(text.encode("utf-8")).hexdigest()[:8], 16) / 2**32 * 100


def _texts(body: Any) -> tuple[str, str]:
    """Return system and user text of a chat completion or a message."""
    messages = body["messages"]
    system = body.get("system", [{"text": ""}])[0]["text"]
    if messages[0]["role"] == "system":
        system, messages = messages[0]["content"], messages[1:]
    asked = messages[0]["content"]
    return system, asked if isinstance(asked, str) else asked[0]["text"]


def _asked(text: str) -> tuple[str, str]:
    context, _, rest = text.partition("\n\nQuestion: ")
    return rest.partition("\n\n")[0], context.removeprefix("Context: ")

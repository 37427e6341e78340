"""A small project in git whose target, optimizer and judge are scripted: whole runs, verified.

The target knows more answers, the more the skill says; the optimizer follows its prompts in
every part of the method; the judge looks for the right word.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import golden_runs
import methods_world
import test_llm_modes

from skilltrail.models.protocol import Message, Request
from tests.fault_server import Answer, Call
from tests.model_world import _share, set_params

SPLITS = ("train", "selection", "test")
ITEMS = 6
SEED_SKILL = "# Trees\n\nAnswer with the tree.\n"
RUBRIC = "Score 1 for a reply that names the oak, 0.25 for any other.\n"
RIVALS = ("You look", "You are", "You breed", "You describe", "You propose")
_ASKED = re.compile(r"number (\d+) of (train|selection|test)")


def says(call: Call) -> Answer:
    """Answer as the role whose model was asked."""
    *_, last = call.body["messages"]
    system = "\n".join(m["content"] for m in call.body["messages"] if m["role"] == "system")
    role = call.body["model"]
    if role == "target":
        return Answer(_target(system, last["content"]), input=40, output=3)
    if role == "judge":
        named = last["content"].count("an oak") > 1  # in the answer, not the reference alone
        score = 1.0 if named else 0.25
        return Answer(json.dumps({"reasoning": "as asked", "score": score}), input=90, output=9)
    schema = call.body.get("response_format", {}).get("json_schema", {}).get("schema")
    request = Request(
        system=system, messages=(Message.text("user", last["content"]),), schema=schema
    )
    said = json.dumps(_optimizer(request))
    if role == "stubborn" and system.startswith("You improve"):
        said = said.replace("- know ", "see the ")
    return Answer(said, input=100, output=20)


def _optimizer(request: Request) -> Any:
    """Follow the prompt; beside what is proposed in any mode, note what was not minded."""
    if request.system.startswith(RIVALS):
        return methods_world.write(request)
    noted = "notes" in ({} if request.schema is None else request.schema["properties"])
    if not (noted and request.system.startswith("You improve")):
        return golden_runs.say(request)
    told = "".join(part.text for part in request.messages[0].parts)
    words = [word for _, word in test_llm_modes._ITEM.findall(told)]
    notes = [
        {"note": f"mind the {word}", "rule": "Answer with the tree."} for word in words[:2]
    ]
    return test_llm_modes.analyst(request, told) | {"notes": notes}


def _target(system: str, asked: str) -> str:
    number, split = _ASKED.findall(asked)[-1]
    known = min(95, 25 + 7 * system.count("- "))
    return f"an oak {number}" if _share(f"{split} {number}") < known else "no"


def role(url: str, name: str, **changes: Any) -> dict[str, Any]:
    return {
        "backend": "openai", "api": "chat", "model": name, "provider": "lab",
        "base_url": f"{url}/v1", "max_tokens": 400, "timeout_s": 60, **changes,
    }  # fmt: skip


def write_project(
    folder: Path,
    url: str,
    params: Mapping[str, Any] | None = None,
    *,
    judged: bool = False,
    typed: bool = False,
    optimizer: str = "optimizer",
) -> None:
    """Write a project over six items a split, under git, whose roles are at `url`.

    `typed` items have a task type, every other one the same.

    The optimizer `stubborn` proposes nothing that helps: its epochs stall.
    """
    for name in ("skills/seeds", "data/small"):
        (folder / name).mkdir(parents=True)
    texts = {
        "skills/seeds/qa.md": SEED_SKILL,
        "skills/seeds/default": "",
        "dvc.yaml": "stages: {}\n",
        "rubric.md": RUBRIC,
        ".gitignore": "/.skilltrail/\n",
    }
    for name in SPLITS:
        records = [
            {"id": f"{name}-w{n}", "question": f"Which tree is number {n} of {name}?",
             "answer": f"an oak {n}", **({"scorer": "judge"} if judged else {}),
             **({"task_type": ("even", "odd")[n % 2]} if typed else {})}
            for n in range(ITEMS)
        ]  # fmt: skip
        texts[f"data/small/{name}.jsonl"] = "".join(f"{json.dumps(r)}\n" for r in records)
    for path, text in texts.items():
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    judge = {"judge": role(url, "judge", rubric="rubric.md", threshold=0.8)} if judged else {}
    base = {
        "env": "qa",
        "epochs": 2,
        "batch_size": 3,
        "reflect": {"minibatch_size": 2},
        "optimizer": role(url, optimizer),
    }
    set_params(
        folder, role(url, "target"), **base | judge | dict({} if params is None else params)
    )
    for args in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-qm", "begin"),
    ):
        subprocess.run(["git", *args], cwd=folder, check=True)

"""A project that trains a skill folder, its roles scripted on loopback.

The target tells a price with its currency once a reference says so. The optimizer proposes that
line for `references/money.md`, and for a script one change that its test lets through or not.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skilltrail.skill.folder import folder_text, write_folder
from tests.fault_server import Answer, Call
from tests.model_world import SPLITS, set_params
from tests.verify_project import role

RULE = "- Give the price with its currency, as in 12.50 EUR."
FILES = {
    "SKILL.md": (
        "---\nname: prices\ndescription: 'Tells prices'  # by hand\n---\n\n# Prices\n\n"
        "Read references/money.md for amounts. Run scripts/pence.py for pence.\n"
    ),
    "references/money.md": "# Money\n\n- Prices have two decimals.\n",
    "references/words.md": "# Words\n\n- A quid is a pound.\n",
    "scripts/pence.py": "def pence(pounds):\n    return pounds * 100\n",
    "scripts/test_pence.py": (
        "from pence import pence\n\n\ndef test_pence():\n    assert pence(2) == 200\n"
    ),
}
SEED = folder_text(FILES)
LINE = "    return pounds * 100"
RIGHT, WRONG = "    return 100 * pounds", "    return pounds * 1000"


# A reference is made and named, and one that nothing names is emptied.
WORDS = "# Words\n\n- A quid is a pound."
NAMED = "- Read references/currency.md before a price."
MAKING: tuple[dict[str, Any], ...] = (
    {"op": "append", "file": "references/currency.md", "target": None, "content": RULE},
    {"op": "append", "file": "SKILL.md", "target": None, "content": NAMED},
    {"op": "delete", "file": "references/words.md", "target": WORDS, "content": None},
)


class Says:
    """Answers as the role whose model was asked; `script` is what the analyst writes there.

    `edits` are proposed in place of that and the rule, where the rule is not there yet;
    `document` is written where a whole one is asked for.
    """

    def __init__(
        self, script: str = WRONG, edits: Sequence[dict[str, Any]] = (), document: str = ""
    ) -> None:
        self.script, self.edits, self.document = script, [*edits], document
        self.prompts: list[str] = []

    def __call__(self, call: Call) -> Answer:
        text = "\n".join(str(message["content"]) for message in call.body["messages"])
        if call.body["model"] == "target":
            article = re.findall(r"article (\d+)", text)[-1]
            return Answer(f"{article}.50{' EUR' if RULE in text else ''}", input=40, output=4)
        self.prompts.append(text)
        schema = call.body["response_format"]["json_schema"]["schema"]
        whole = self._whole(schema["properties"])
        if whole is not None:
            return Answer(json.dumps({"reasoning": "", **whole}), input=90, output=9)
        if "edits" not in schema["properties"]:
            order = list(range(max(2, len(self.edits))))
            return Answer(json.dumps({"reasoning": "", "order": order}), input=90, output=9)
        told = json.dumps({"reasoning": "as shown", "edits": self._edits(schema, text)})
        return Answer(told, input=400, output=60)

    def _whole(self, known: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the files as `document` has them, or a suggestion; None = neither is asked."""
        if "suggestions" in known:
            one = {"content": RULE, "kind": "rule", "reason": "as told", "items": []}
            return {"suggestions": [one]}
        if "document" not in known:
            return None
        more: dict[str, Any] = {"items": []} if "items" in known else {}
        return {"document": self.document} | more

    def _edits(self, schema: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
        known = schema["properties"]["edits"]["items"]["properties"]
        edits = self.edits or [
            {"op": "append", "file": "references/money.md", "target": None, "content": RULE},
            {
                "op": "replace",
                "file": "scripts/pence.py",
                "target": LINE,
                "content": self.script,
            },
        ]
        if RULE in text.split("The document as it stands:")[1].split("What earlier steps")[0]:
            edits = []
        more: dict[str, Any] = {
            "section": None,
            "kind": "rule",
            "reason": "as told",
            "items": [],
        }
        if "parents" in known:
            ids = known["parents"]["items"]["enum"]
            return [edit | more | {"parents": ids[n : n + 1]} for n, edit in enumerate(edits)]
        return [edit | more for edit in edits]


def write_project(folder: Path, url: str, **params: Any) -> None:
    """Write a project over a folder of prices, under git."""
    write_folder(folder / "skills/seeds/prices", SEED)
    texts = {
        "skills/seeds/qa.md": "",
        "skills/seeds/default": "",
        "dvc.yaml": "stages: {}\n",
        ".gitignore": "/.skilltrail/\n/reports/out/proposal/\n",
    }
    for at, name in enumerate(SPLITS):
        rows = [
            {"id": f"{name}-{n}", "question": f"What does article {n} cost?",
             "answer": f"{n}.50 EUR"}
            for n in range(10 * at, 10 * at + 6)
        ]  # fmt: skip
        texts[f"data/small/{name}.jsonl"] = "".join(f"{json.dumps(row)}\n" for row in rows)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    base: dict[str, Any] = {
        "env": "qa",
        "epochs": 1,
        "batch_size": 3,
        "reflect": {"minibatch_size": 6},
        "slow_update": {"enabled": False},
        "meta_skill": {"enabled": False},
        "skill": {"seed": "skills/seeds/prices", "scripts": True},
        "optimizer": role(url, "optimizer"),
    }
    set_params(folder, role(url, "target"), **base | params)
    for args in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-qm", "begin"),
    ):
        subprocess.run(["git", *args], cwd=folder, check=True)

"""A model on loopback that answers as well as its skill lets it, and a model that improves it.

The target knows each price, and tells it with its currency only when the skill says so. The
optimizer reads what analysts are shown and proposes that rule where it was told of the fault.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.fault_server import Answer, Call

RULE = "- Give the price with its currency, as in 12.50 EUR."
ITEMS = [
    {"question": f"What does article {i} cost?", "answer": f"{i}.50 EUR"} for i in range(1, 19)
]


def says(call: Call) -> Answer:
    """Answer as the target, or as the optimizer where edits are asked for."""
    text, model = _text(call.body), call.body["model"]
    if model == "judge":  # the reference has the currency; the answer has it, too, or not
        score = 1.0 if text.count(" EUR") > 1 else 0.0
        return Answer(json.dumps({"reasoning": "the currency", "score": score}))
    if '"edits"' not in text:
        articles = re.findall(r"article (\d+) cost", text)
        if not articles:  # another question of the optimizer: nothing to say to it
            return Answer("nothing")
        article = articles[-1]
        # The model `plain` is put off by the rule that helps others.
        unit = " EUR" if (RULE in text) != (model == "plain") else ""
        return Answer(f"{article}.50{unit}", input=len(text) // 4, output=4)
    if "parents" in text:
        ids = sorted(set(re.findall(r"\b\d+\.\d+\b(?= )|\"edit\": ?\"([\d.]+)\"", text)))
        return Answer(json.dumps({"reasoning": "one rule", "edits": [_edit(parents=ids[:1])]}))
    rule = [_edit(items=[])] if "currency" in text or " EUR" in text else []
    reply = {
        "reasoning": "The currency is missing.",
        "failures": [],
        "edits": rule,
        "notes": [],
    }
    return Answer(json.dumps(reply), input=len(text) // 4, output=60)


def _edit(**more: Any) -> dict[str, Any]:
    return {
        "op": "append", "target": None, "content": RULE, "section": None, "kind": "rule",
        "reason": "Replies lack the currency.", **more,
    }  # fmt: skip


def _text(body: Any) -> str:
    parts = [str(message.get("content")) for message in body["messages"]]
    return "\n".join(parts)


def metric(item: dict[str, Any], reply: str) -> tuple[float, str]:
    """Score a reply: half for the number, all with its currency; say what is missing."""
    if reply == item["answer"]:
        return 1.0, "right"
    number = reply == item["answer"].removesuffix(" EUR")
    return (0.5, "the currency is missing") if number else (0.0, "another number")

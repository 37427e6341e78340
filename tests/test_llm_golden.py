"""Recorded replies: the requests of a small run are the recorded ones, to the byte.

`PYTHONPATH=. python tests/test_llm_golden.py` records anew after a prompt was changed.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from llm_script import MemoryFacts, ScriptedModel
from test_llm_loop import say, train

from stages.models.errors import UnseenRequest
from stages.models.protocol import Reply, Request

RECORDED = Path(__file__).parent / "golden" / "llm_toy.json"


def replayed(model: ScriptedModel) -> ScriptedModel:
    """Return a model that knows the recorded replies only, by the key of their request."""
    known = json.loads(RECORDED.read_text(encoding="utf-8"))

    def recall(request: Request) -> Reply:
        key = request.key(model.identity)
        if key not in known:
            remedy = "Undo the change, or record anew as this test's module says"
            raise UnseenRequest("replay of recorded replies", f"no reply under {key}", remedy)
        return Reply.from_json(known[key])

    return ScriptedModel(recall)


def test_the_recorded_replies_answer_every_request_of_the_run(tmp_path: Path) -> None:
    scripted = ScriptedModel(say)
    expected = train(tmp_path / "scripted", MemoryFacts(), scripted)
    again = train(tmp_path / "replayed", MemoryFacts(), replayed(scripted))
    assert again.log == expected.log


def test_a_request_that_differs_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(UnseenRequest, match="record anew"):
        train(tmp_path, MemoryFacts(), replayed(ScriptedModel(say)), show=())


def record() -> None:
    facts = MemoryFacts()
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder), facts, ScriptedModel(say))
    replies = {key: fact["reply"] for key, fact in sorted(facts.values.items())}
    text = json.dumps(replies, indent=1, sort_keys=True, ensure_ascii=False)
    RECORDED.write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    record()

"""Recorded replies: the requests of each small run are the recorded ones, to the byte.

`golden/llm_toy.json` holds the replies by the key of their request, and of each run the id of
its last event, which covers its whole log. After a prompt was changed, record anew:
`PYTHONPATH=.:tests python tests/test_llm_golden.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from golden_runs import RUNS, script, train
from llm_script import MemoryFacts, ScriptedModel, as_reply
from toy_world import ToyRun

from skilltrail.models.errors import UnseenRequest
from skilltrail.models.protocol import Reply, Request

RECORDED = Path(__file__).parent / "golden" / "llm_toy.json"


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def replayed() -> ScriptedModel:
    """Return a model that knows the recorded replies only, by the key of their request."""
    known, identity = recorded()["replies"], ScriptedModel([]).identity

    def recall(request: Request) -> Reply:
        key = request.key(identity)
        if key not in known:
            remedy = "Undo the change, or record anew as this test's module says"
            raise UnseenRequest("replay of recorded replies", f"no reply under {key}", remedy)
        return as_reply(known[key])

    return ScriptedModel(recall)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ToyRun]:
    folder = tmp_path_factory.mktemp("golden")
    return {name: train(name, folder / name, MemoryFacts(), replayed()) for name in RUNS}


@pytest.mark.parametrize("name", RUNS)
def test_recorded_replies_give_the_recorded_log(name: str, runs: dict[str, ToyRun]) -> None:
    assert runs[name].recorder.events[-1].id == recorded()["runs"][name]


def test_the_script_says_what_was_recorded(tmp_path: Path) -> None:
    done = train("notes", tmp_path, MemoryFacts(), script("notes"))
    assert done.recorder.events[-1].id == recorded()["runs"]["notes"]


def test_each_run_shows_its_ability(runs: dict[str, ToyRun]) -> None:
    shown = {
        "faulty": runs["faulty"].events("reply.rejected"),
        "slow": runs["slow"].events("slow_update.proposed"),
        "forced": [e for e in runs["forced"].events("gate.judged") if e["forced"]],
        "meta": runs["meta"].events("meta_skill.written"),
        "notes": runs["notes"].events("appendix.proposed"),
        "autonomous": [e for e in runs["autonomous"].events("budget.decided") if e["reply"]],
        "compact": runs["compact"].events("compaction.proposed"),
    }
    assert [name for name, events in shown.items() if not events] == []
    for name, mode in (
        ("patch", "patch"),
        ("suggestions", "rewrite_from_suggestions"),
        ("documents", "full_rewrite_minibatch"),
    ):
        built = runs[name].events("candidate.built")
        assert {event["mode"] for event in built} == {mode}
        assert runs[name].state.version > 0


def test_a_request_that_differs_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(UnseenRequest, match="record anew"):
        train("faulty", tmp_path, MemoryFacts(), replayed(), show=())


def record() -> None:
    """Make all runs from the script and write what the model said."""
    facts, ends = MemoryFacts(), {}
    with tempfile.TemporaryDirectory() as folder:
        for name in RUNS:
            done = train(name, Path(folder, name), facts, script(name))
            ends[name] = done.recorder.events[-1].id
    said = {key: json.loads(fact["reply"]["text"]) for key, fact in facts.values.items()}
    lines = [
        f'"{key}":{json.dumps(said[key], ensure_ascii=False, separators=(",", ":"))}'
        for key in sorted(said)
    ]
    text = '{"runs":' + json.dumps(ends, indent=1) + ',\n"replies":{\n'
    text += ",\n".join(lines) + "\n}}\n"
    RECORDED.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    record()

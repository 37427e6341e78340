"""What reaches the analyst of a run: planted faults, long runs, small contexts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import planted
import pytest
from env_world import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_script import optimizer_of, run, step_view
from planted import FAULTS, Fault

from skilltrail.core.tokens import count_tokens
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.optimizers.llm.shown.layout import call_text, reply_text, sent_text
from skilltrail.optimizers.llm.shown.room import LEAST_CHARS, level
from skilltrail.optimizers.llm.shown.runs import show_observation, show_pair
from skilltrail.optimizers.llm.shown.turns import LinesTold, first_wrong, turns_of, turns_text
from skilltrail.optimizers.protocol import Observation, Pair

SHOW = ("prompt", "trace", "reference")
NAMED = {f"{fault.env} {fault.type}": fault for fault in FAULTS}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def request_for(seen: Observation, env: str, **options: Any) -> tuple[str, Any]:
    """Return the analyst's request as text, and the patch of an empty reply."""
    said: dict[str, Any] = {"edits": [], "failures": []}
    optimizer, model = optimizer_of([said] * 4, env=env, **options)
    answer = run(optimizer.reflect(step_view([seen], skill=planted.SKILL)))
    (request,) = model.requests[:1]
    return f"{request.system}\n{request.messages[0].parts[0].text}", answer.value[0]


@pytest.mark.parametrize("name", NAMED)
def test_a_planted_fault_fails_and_its_evidence_is_in_the_request(
    name: str, tmp_path: Path
) -> None:
    fault: Fault = NAMED[name]
    seen = planted.observed(fault, tmp_path)
    assert seen.score.hard == 0
    told, patch = request_for(seen, fault.env)
    assert [text for text in fault.evidence if text not in told] == []
    assert patch.shown["cut_chars"] == {}


def actions_shown(seen: Observation, text: str) -> float:
    """Return the share of replies whose last line stands in `text` at its turn."""
    places = [
        text.find(f"[turn {n}] replied") for n in range(1, len(seen.trajectory.turns) + 1)
    ]
    places.append(len(text))
    shown = sum(
        at >= 0 and turn.reply.split("\n")[-1] in text[at : max(at, places[n + 1])]
        for n, (turn, at) in enumerate(zip(seen.trajectory.turns, places, strict=False))
    )
    return shown / len(seen.trajectory.turns)


@pytest.mark.parametrize("fault", planted.ALFWORLD, ids=lambda fault: str(fault.type))
def test_a_loss_of_fifty_turns_shows_every_action_in_a_large_context(
    fault: Fault, tmp_path: Path
) -> None:
    seen = planted.observed(fault, tmp_path)
    assert len(seen.trajectory.turns) == 50
    told, _ = request_for(seen, "alfworld")
    assert actions_shown(seen, told) == 1.0
    # Told once: what the fifty prompts repeat is left out.
    assert len(show_observation(seen, SHOW, None).text) < 12_900


@pytest.mark.parametrize("tokens", [4096, 8192, 32_000])
def test_a_request_fits_the_stated_context_and_says_what_was_cut(
    tokens: int, tmp_path: Path
) -> None:
    runs = [planted.observed(fault, tmp_path) for fault in planted.ALFWORLD]
    optimizer, model = optimizer_of([{"edits": []}] * 8, env="alfworld", context_tokens=tokens)
    answer = run(optimizer.reflect(step_view(runs, skill=planted.SKILL)))
    (request,) = model.requests
    told = f"{request.system}\n{request.messages[0].parts[0].text}"
    assert count_tokens(told) <= tokens * 0.85
    shown = answer.value[0].shown
    assert ("trajectory_chars" in shown) == bool(shown["cut_chars"]) == (tokens < 32_000)
    marks = ("characters cut here", "turns is left out]", "are left out]")
    assert any(mark in told.split("The runs (")[1] for mark in marks) == (tokens < 32_000)


def test_the_table_in_the_docs_is_what_the_command_prints_and_shows_the_actions() -> None:
    from benchmarks.evidence import HEAD, rows

    found = list(rows())
    doc = (ROOT / "docs" / "optimizers.md").read_text("utf-8")
    assert "\n".join([HEAD, *(row for _, _, row in found)]) in doc
    for env, (_, large, middle, _), _ in found:
        assert min(large, middle) >= 0.95, env


def test_what_no_context_holds_is_not_asked_and_named() -> None:
    seen = planted.observed(FAULTS[0], Path())
    optimizer, model = optimizer_of([], env="alfworld", context_tokens=1200)
    answer = run(optimizer.reflect(step_view([seen])))
    assert (answer.value, model.requests) == ([], [])
    assert {reply.message.partition(":")[0] for reply in answer.rejected} == {"too_long"}
    assert "a context of 1200 leaves room for" in answer.rejected[-1].message


def test_both_trajectories_of_a_pair_are_shown_unless_it_is_stable(tmp_path: Path) -> None:
    before = planted.observed(planted.ALFWORLD[1], tmp_path)
    after = planted.observed(planted.ALFWORLD[0], tmp_path)
    text = show_pair(Pair(after.item, before, after, "regressed"), SHOW, None).text
    assert "<action>take potato 1 from sinkbasin 1</action>" in text
    assert "The cabinet 2 is closed." in text
    assert "as in earlier document, turn 1)" in text
    stable = show_pair(Pair(after.item, before, after, "stable_success"), SHOW, None).text
    assert stable.count("\n") == 0


def test_tool_calls_messages_and_json_replies_are_laid_out_as_lines() -> None:
    code = "import x\nprint(1)"
    assert call_text({"name": "run", "arguments": {"code": code}}) == (
        "run\n  code:\n    import x\n    print(1)"
    )
    assert call_text({"name": "glob", "arguments": {"pattern": "*"}}) == "glob pattern: *"
    assert reply_text('{"a": "b", "c": [1, 2]}') == "a: b\nc:\n  - 1\n  - 2"
    assert reply_text("{broken") == "{broken"
    assert sent_text({"role": "user", "parts": ["one\ntwo"]}) == "user: one\ntwo"
    assert "\\n" not in sent_text([{"role": "tool", "parts": ["a\nb"]}])


def test_secrets_go_and_hidden_characters_are_spelled_out() -> None:
    turn = Turn("api_key=sk-abcdefghij0123456789", "see\u200b this\U000e0041")
    seen = planted.observation_of(
        planted.env_of("qa"),
        planted.env_of("qa").parse(planted_record(), planted.WHERE),
        Trajectory((turn,), "x"),
    )
    text = show_observation(seen, SHOW, None).text
    assert "sk-abcdefghij" not in text
    assert "see\\u{200b} this\\u{e0041}" in text


def planted_record() -> dict[str, Any]:
    return {"id": "1", "question": "q", "answers": ["x"]}


def test_the_first_wrong_move_is_a_failure_or_a_repetition() -> None:
    def first(*said: tuple[str, str]) -> int | None:
        turns = tuple(Turn("p", reply, observation=answer) for reply, answer in said)
        return first_wrong(turns_of(Trajectory(turns, ""), SHOW, str, LinesTold()))

    assert first(("go a", "You are at a."), ("open b", "Nothing happens.")) == 1
    assert first(("look", "A room."), ("go a", "At a."), ("look", "A room.")) == 2
    assert first(("go a", "At a."), ("go b", "At b.")) is None


TURNS = st.lists(
    st.tuples(st.text("ab \n", max_size=40), st.text("cd", min_size=1, max_size=60)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(TURNS, st.integers(400, 4000))
def test_no_action_is_lost_and_no_limit_is_exceeded(
    said: list[tuple[str, str]], limit: int
) -> None:
    turns = tuple(Turn(sent, reply, observation=sent) for sent, reply in said)
    shown = turns_of(Trajectory(turns, ""), SHOW, str, LinesTold())
    whole, cut = turns_text(shown, None)
    assert cut == 0
    assert all(f"replied: {reply}" in whole for _, reply in said)
    text, cut = turns_text(shown, limit)
    assert len(text) <= limit + 60
    assert (cut > 0) == (text != whole)


@given(st.lists(st.integers(0, 5000), min_size=1), st.integers(0, 20_000))
def test_the_level_leaves_short_texts_whole_and_fills_the_room(
    lengths: list[int], total: int
) -> None:
    found = level(lengths, total)
    if found is None:
        assert sum(lengths) <= total
    elif found > LEAST_CHARS:
        assert sum(min(length, found) for length in lengths) <= total
        assert sum(min(length, found + 2) for length in lengths) > total - len(lengths)

"""Every question of a step fits the stated context at its worst, or is not asked and named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from llm_script import MemoryFacts, ScriptedModel, epoch_view, observation, run, step_view

from skilltrail.core.tokens import count_tokens
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.registry import environment_names
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.failure_types import domain_of
from skilltrail.optimizers.llm.ask import text_of
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.setting import Setting
from skilltrail.optimizers.llm.shown.room import reply_tokens
from skilltrail.optimizers.protocol import Answer, Observation, Pair, StepRecord
from skilltrail.params.model_options import RoleOptions
from skilltrail.skill.edit import Edit, Patch

ENVS = sorted({*environment_names(), "_template"})
SMALL = 10_000  # tokens of a context that holds no such run whole
MODES = ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch")
LONG = "a word of no meaning " * 20
DOCUMENT = "# Skill\n\n" + "".join(f"- Rule {n}: {LONG[:80]}\n" for n in range(30))
NONSENSE = "I would rather tell a story. " * 300
CUT = ("characters cut here", "is left out]", "are left out]", "are not shown)")


def worst(id: str, hard: float) -> Observation:
    """A run of fifteen turns, each with a prompt, a reply and an answer of some length."""
    turns = tuple(
        Turn(f"prompt {n} {LONG}", f"reply {n} {LONG[:200]}", observation=f"answer {n} {LONG}")
        for n in range(15)
    )
    return replace(observation(id, hard), trajectory=Trajectory(turns, LONG))


def edit_of(mode: str, number: int) -> Edit:
    op = {"patch": "append", "full_rewrite_minibatch": "rewrite"}.get(mode, "suggest")
    text = f"- Idea {number} {LONG}" if op != "rewrite" else f"{DOCUMENT}- Idea {number}.\n"
    return Edit(op, content=text, reason=LONG, items=("a0",), id=f"5.{number}")


def all_asked(
    env: str, mode: str, tokens: int, says: str | Reply = NONSENSE
) -> tuple[list[Request], list[Answer]]:
    """Put every question of a step and of an epoch's end to a model that is of no use."""
    reply = Reply(says) if isinstance(says, str) else says
    model = ScriptedModel(lambda request: reply)
    setting = Setting(RoleOptions(), domain_of(env))
    options = LlmOptions(context_tokens=tokens, setting=setting, skill_aware=True)
    made = LlmOptimizer(lambda stage: model, MemoryFacts(), options, env)
    seen = [worst(f"{'a' if lost else 'b'}{n}", 1 - lost) for lost in (1, 0) for n in range(3)]
    edits = tuple(edit_of(mode, n) for n in range(12))
    past = tuple(
        StepRecord(1 + n // 8, n + 1, "rejected", edits=edits[:6], before=0.5, after=0.25)
        for n in range(12)
    )
    told: dict[str, Any] = {"skill": DOCUMENT, "history": past, "meta_skill": LONG * 7}
    step = step_view(seen, update_mode=mode, budget=2, epoch=4, step=25, **told)
    end = epoch_view([Pair(o.item, o, o, "persistent_failure") for o in seen], epoch=4, **told)
    lost = [Patch("failure", ("a0",), edits[:6], id="p1")]
    won = [Patch("success", ("b0",), edits[6:], id="p2")]
    verbs: list[Callable[[], Awaitable[Answer]]] = [
        lambda: made.reflect(step),
        lambda: made.merge(step, [*lost, *won]),
        lambda: made.rank(step, edits),
        lambda: made.choose_budget(step, edits),
        lambda: made.rewrite(step, edits),
        lambda: made.consolidate(step, [f"mind {n}: {LONG[:150]}" for n in range(30)]),
        lambda: made.slow_update(end),
        lambda: made.meta_skill(end),
        lambda: made.compact(end),
    ]
    return model.requests, [run(verb()) for verb in verbs]


def room(tokens: int) -> int:
    return tokens - reply_tokens(tokens, None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env", ENVS)
def test_every_prompt_of_a_step_fits_the_stated_context_at_its_worst(
    env: str, mode: str
) -> None:
    requests, answers = all_asked(env, mode, SMALL)
    sizes = [count_tokens(text_of(request)) for request in requests]
    assert max(sizes) <= room(SMALL)
    # Each question was asked, cut where it had to be, or is named as too long.
    assert all(answer.rejected or answer.rule == "support/1" for answer in answers)
    texts = [text_of(request) for request in requests]
    analysts = [text for text in texts if "[turn 1] " in text]
    assert analysts
    assert all(any(mark in text for mark in CUT) for text in analysts)


@pytest.mark.parametrize("tokens", [1024, 6000, 128_000])
def test_what_no_context_of_its_size_holds_is_named_and_a_rule_answers(tokens: int) -> None:
    requests, answers = all_asked("alfworld", "patch", tokens)
    assert all(count_tokens(text_of(request)) <= room(tokens) for request in requests)
    unasked = {
        rejected.stage
        for answer in answers
        for rejected in answer.rejected
        if rejected.message.startswith("too_long")
    }
    stages = {rejected.stage for answer in answers for rejected in answer.rejected}
    assert len(stages) == 9
    assert unasked == {1024: stages, 6000: stages - {"compact"}, 128_000: set()}[tokens]


def test_a_correction_shows_as_much_of_faults_and_reply_as_the_context_has_left() -> None:
    for tokens in (SMALL, 128_000):
        requests, _ = all_asked("alfworld", "patch", tokens)
        again = [request for request in requests if len(request.messages) > 1]
        assert again
        said = [len(request.messages[1].parts[0].text) for request in again]
        assert all(chars > 7900 for chars in said) == (tokens == 128_000)


def test_a_reply_that_was_cut_is_asked_for_with_no_more_than_the_context_has_left() -> None:
    tokens = SMALL
    cut = Reply('{"reasoning": "', finish="length", usage={"output": 1500})
    requests, _ = all_asked("alfworld", "patch", tokens, cut)
    longer = [r for r in requests if r.decoding.max_tokens is not None]
    assert longer
    for request in longer:
        most = tokens - count_tokens(text_of(request))
        assert request.decoding.max_tokens is not None
        assert request.decoding.max_tokens <= max(most, 4096)

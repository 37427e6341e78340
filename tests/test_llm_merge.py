"""Merge, rank, choose the budget: the model decides within what is offered, or a rule does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from llm_script import SKILL, ScriptedModel, observation, optimizer_of, run, step_view

from skilltrail.models.protocol import Reply
from skilltrail.optimizers.protocol import Answer
from skilltrail.skill.edit import Edit, Patch

A = Edit("append", content="- Give dates alone.", items=("a",), id="5.0")
B = Edit("append", content="- Give dates alone, in full.", items=("b",), id="6.0")
C = Edit("delete", target="- Explain your answer.", items=("a", "c"), id="6.1")
PATCHES = (
    Patch("failure", ("a",), (A,), id="p5"),
    Patch("failure", ("b", "c"), (B, C), id="p6"),
)


def merge(say: Any, patches: Any = PATCHES, **view: Any) -> tuple[Answer, ScriptedModel]:
    optimizer, model = optimizer_of(say)
    seen = [observation(id) for id in "abc"]
    return run(optimizer.merge(step_view(seen, **view), list(patches))), model


def merged(content: str, *parents: str, **more: Any) -> dict[str, Any]:
    return {"op": "append", "content": content, "parents": list(parents), **more}


def test_support_is_the_union_of_the_parents_items() -> None:
    answer, model = merge([{"edits": [merged("- Dates stand alone.", "5.0", "6.0")]}])
    edit = answer.value[0]
    assert (edit.items, edit.parents, edit.support) == (("a", "b"), ("5.0", "6.0"), 2)
    assert answer.rule is None
    assert answer.reply == model.requests[0].key(model.identity)


def test_a_merge_that_drops_all_is_named_asked_again_and_joined_by_rule() -> None:
    answer, model = merge([{"reasoning": "ok", "edits": []}] * 2)
    assert len(model.requests) == 2
    assert [r.message.partition(":")[0] for r in answer.rejected] == ["merge_dropped_all"] * 2
    assert answer.rule == "concat/1"
    assert [edit.parents for edit in answer.value] == [("5.0",), ("6.0",), ("6.1",)]


def test_the_same_said_twice_is_one_edit_without_a_call() -> None:
    again = Edit("append", content="* Give the dates alone", items=("b",), id="6.0")
    answer, model = merge([], [PATCHES[0], Patch("failure", ("b",), (again, C), id="p6")])
    assert (answer.rule, model.requests) == ("disjoint/1", [])
    assert [edit.parents for edit in answer.value] == [("5.0", "6.0"), ("6.1",)]
    assert answer.value[0].items == ("a", "b")


def test_an_edit_without_parents_among_the_offered_is_refused() -> None:
    invented = merged("- Be kind.", "9.9")
    answer, _ = merge([{"edits": [merged("- Dates stand alone.", "5.0"), invented]}] * 2)
    assert [edit.content for edit in answer.value] == ["- Dates stand alone."]
    assert any("unknown_parents" in r.message for r in answer.rejected)


def test_a_rule_does_not_become_an_example_to_pass_the_screen() -> None:
    copied = "Invoice of Fabrikam Toys Ltd from 3 May"
    seen = [observation("a", task=copied)]
    optimizer, _ = optimizer_of([{"edits": [merged(copied, "5.0", kind="example")]}] * 2)
    answer = run(optimizer.merge(step_view(seen), list(PATCHES)))
    assert answer.rule == "concat/1"
    assert "copies_item" in answer.rejected[0].message


@pytest.mark.parametrize("patches", [PATCHES[:1], (Patch("failure", ("a",), (), id="p1"),)])
def test_nothing_to_merge_asks_nobody(patches: Any) -> None:
    answer, model = merge([], patches)
    assert answer.rule == "single/1"
    assert model.requests == []
    assert [edit.parents for edit in answer.value] == [(e.id,) for e in patches[0].edits]


def test_what_was_merged_before_is_not_merged_again() -> None:
    done = (Edit("append", content="- x y", id="8.0", parents=("5.0",)), C)
    once = Patch("failure", ("a",), (done[0], Edit(**{**C.__dict__, "parents": ("6.1",)})))
    assert merge([], [once])[0].rule == "single/1"


def test_patches_that_do_not_touch_each_other_are_joined_without_a_call() -> None:
    other = Edit("replace", target="- Answer briefly.", content="- Name the unit.", id="7.0")
    shown = [
        Edit("append", content="Q: when\nA: 3 May", id=f"8.{n}", kind="example", items=(item,))
        for n, item in enumerate("bc")
    ]
    apart = [
        PATCHES[0],
        Patch("failure", ("b",), (C, other)),
        Patch("failure", ("b",), (shown[0],)),
    ]
    answer, model = merge([], apart)
    assert (answer.rule, model.requests) == ("disjoint/1", [])
    assert [edit.parents for edit in answer.value] == [("5.0",), ("6.1",), ("7.0",), ("8.0",)]
    same_lines = Patch(
        "failure", ("c",), (Edit("replace", target=C.target, content="x", id="9.0"),)
    )
    other_words = Edit("append", content="- Give the dates alone, never a sentence.", id="6.5")
    for touching in (
        [PATCHES[0], Patch("failure", ("b",), (other_words,))],
        [apart[1], same_lines],
        [apart[2], Patch("failure", ("b",), (replace(shown[0], content="Q: day\nA: 3 May"),))],
    ):
        _, model = merge([{"edits": [merged("- Dates stand.", "5.0")]}] * 2, touching)
        assert model.requests


def test_failures_successes_and_both_have_their_own_prompts() -> None:
    success = Patch("success", ("b",), (B, C), id="p6")
    told = []
    lost = Patch("success", ("a",), (A,), id="p5")
    for patches in (PATCHES, [lost, success], [PATCHES[0], success]):
        _, model = merge([{"edits": [merged("- Dates stand alone.", "6.0")]}], patches)
        told.append(model.requests[0].system.split("\n")[0])
    assert len(set(told)) == 3


def test_suggestions_are_merged_in_words() -> None:
    suggestions = [
        Edit("suggest", content=f"Say {word} first.", id=f"5.{n}", items=("a",))
        for n, word in enumerate(("less", "more"))
    ]
    said = {"suggestions": [{"content": "Say less, then more.", "parents": ["5.0", "5.1"]}]}
    answer, _ = merge(
        [said],
        [Patch("failure", ("a",), (one,)) for one in suggestions],
        update_mode="rewrite_from_suggestions",
    )
    assert [(e.op, e.parents) for e in answer.value] == [("suggest", ("5.0", "5.1"))]


def test_documents_are_merged_whole_or_the_best_supported_one_stands() -> None:
    one = Edit("rewrite", content=SKILL + "- Give dates alone.\n", id="5.0", items=("a",))
    two = Edit("rewrite", content=SKILL + "- Name the unit.\n", id="6.0", items=("b", "c"))
    patches = [Patch("failure", ("a",), (one,)), Patch("failure", ("b", "c"), (two,))]
    mode = {"update_mode": "full_rewrite_minibatch"}
    text = SKILL + "- Give dates alone.\n- Name the unit.\n"
    answer, _ = merge([{"document": text, "parents": ["5.0", "6.0"]}], patches, **mode)
    assert [(e.op, e.content, e.support) for e in answer.value] == [("rewrite", text, 3)]
    answer, _ = merge(["no", "no"], patches, **mode)
    assert answer.rule == "most_supported/1"
    assert [e.content for e in answer.value] == [two.content]


EDITS = (A, B, C)


def rank(say: Any, budget: int | None = 2, edits: Any = EDITS) -> tuple[Answer, ScriptedModel]:
    optimizer, model = optimizer_of(say)
    return run(optimizer.rank(step_view(budget=budget), list(edits))), model


def test_the_models_order_comes_first_and_the_rest_by_support() -> None:
    answer, _ = rank([{"order": [1, 0]}])
    assert answer.value == [1, 0, 2]
    assert answer.rule is None


@pytest.mark.parametrize(
    "order", [["1", "one"], [True, 0], [0, 3], [0, -1], [0, 0], [1], "1-2", [1.0, 0.0], []]
)
def test_a_ranking_that_is_not_exact_gives_way_to_support(order: Any) -> None:
    answer, model = rank([{"order": order}] * 2)
    assert answer.value == [2, 0, 1]
    assert answer.rule == "support/1"
    assert len(model.requests) == len(answer.rejected) == 2


def test_a_budget_of_zero_asks_nobody() -> None:
    answer, model = rank([], budget=0)
    assert model.requests == []
    assert answer.value == [2, 0, 1]


def choose(say: Any, budget: int | None = 2) -> tuple[Answer, ScriptedModel]:
    optimizer, model = optimizer_of(say)
    return run(optimizer.choose_budget(step_view(budget=budget), list(EDITS))), model


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_whole_number_within_the_budget_is_taken(number: int) -> None:
    answer, _ = choose([{"budget": number, "reasoning": "why"}])
    assert (answer.value, answer.reason, answer.rule) == (number, "why", None)


@pytest.mark.parametrize("number", ["3-5", "about 2 of 7", "none", -2, True, 3, 2.0, None])
def test_any_other_answer_leaves_the_scheduled_budget(number: Any) -> None:
    answer, _ = choose([{"budget": number}] * 2)
    assert (answer.value, answer.rule) == (2, "scheduled/1")
    assert len(answer.rejected) == 2


def test_without_a_bound_an_answer_of_no_use_applies_nothing() -> None:
    answer, _ = choose([Reply("", finish="refusal")], budget=None)
    assert answer.value == 0
    assert "no edit is applied" in answer.reason


def test_a_ranking_of_digits_as_texts_counts_and_is_said_to_be_repaired() -> None:
    answer, model = rank([{"order": ["1", " 0 "]}])
    assert answer.value == [1, 0, 2]
    assert "repaired: digits" in answer.reason
    assert answer.rejected == ()

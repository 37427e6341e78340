"""The embedded optimizer: what it proposes, learns from verdicts and never does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.core.errors import UsageError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.tokens import count_tokens
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.catalogue import UNKNOWN, Catalogue, FailureType
from skilltrail.optimizers.protocol import Observation, StepRecord, StepView
from skilltrail.optimizers.rules import RulesOptimizer
from skilltrail.optimizers.rules.lessons import MOST_ITEMS, KnownItems, Lessons, considered
from skilltrail.optimizers.rules.memory import Recall, faces
from skilltrail.optimizers.rules.moves import MAX_EXAMPLES
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit, EditResult, EditStatus, Patch
from tests.toy_items import Toy

SEED_SKILL = "# Colours\n\nSay the colour.\n"
LINE = "- Say one word."


class Colours(Toy):
    """A toy environment: things have colours; the first letter is its trait."""

    name = "colours"

    @cached_property
    def catalogue(self) -> Catalogue:
        return Catalogue(
            (
                FailureType("wordy", "too many words", ("long",), ("Say one word.",)),
                FailureType("blind", "another colour", ("other",), ("Look twice.",)),
                FailureType("leaked", "an example's colour", (), ("Copy no example.",)),
            )
        )

    def example(self, item: Item) -> str | None:
        if item.gold is None:
            return None
        return f"Thing: {item.input['thing']}\nColour: {item.gold}"

    def traits(self, item: Item) -> frozenset[str]:
        return frozenset(str(item.input["thing"])[0])


ENV = Colours()


def seen(thing: str, hard: float = 0.0, reason: str = "long", gold: Any = "red") -> Observation:
    item = Item(f"id-{thing}", {"thing": thing}, gold)
    score = Score.scored(hard, reason="correct" if hard else reason)
    return Observation(item, Trajectory((), ""), score, f"key-{thing}", "red")


def view_of(*observations: Observation, **changes: Any) -> StepView:
    base = StepView(
        epoch=1,
        step=1,
        seed=1,
        skill=SEED_SKILL,
        budget=4,
        observations=observations,
        pool={o.item.id: o for o in observations},
        history=(),
    )
    return replace(base, **changes)


def patches_of(view: StepView) -> list[Patch]:
    patches: list[Patch] = asyncio.run(RulesOptimizer(ENV).reflect(view)).value
    return patches


def selected(view: StepView) -> list[Edit]:
    """Return what the loop would apply: reflect, merge, rank, cut to the budget."""
    optimizer = RulesOptimizer(ENV)
    patches = [
        replace(p, edits=tuple(replace(e, id=f"{n}.{m}") for m, e in enumerate(p.edits)))
        for n, p in enumerate(patches_of(view))
    ]
    merged = asyncio.run(optimizer.merge(view, patches)).value
    merged = [replace(edit, id=f"m.{n}") for n, edit in enumerate(merged)]
    order = asyncio.run(optimizer.rank(view, merged)).value
    assert sorted(order) == list(range(len(merged)))
    return [merged[at] for at in order[: view.budget]]


def record(view: StepView, edits: Sequence[Edit], verdict: str) -> StepRecord:
    results = apply_edits(view.skill, edits).results
    return StepRecord(view.epoch, view.step, verdict, tuple(edits), results)


MANY = [seen(f"{kind}{n}") for kind in "abcdef" for n in range(3)]


def test_the_first_step_teaches_a_line_and_examples_of_different_kinds() -> None:
    edits = selected(view_of(*MANY))
    assert edits[0].content.strip() == LINE
    assert [edit.kind for edit in edits] == ["rule", "example", "example", "example"]
    kinds = {edit.content.split(": ")[1][0] for edit in edits[1:]}
    assert len(kinds) == 3


def test_the_line_stands_before_the_examples_and_those_in_the_order_of_need() -> None:
    view = view_of(*MANY)
    edits = selected(view)
    text = apply_edits(view.skill, edits).text
    assert text.startswith(f"{SEED_SKILL}\n{LINE}\n\nThing: ")
    places = [text.index(edit.content) for edit in edits]
    assert places == sorted(places)


def test_examples_come_from_failed_items_in_the_environments_own_form() -> None:
    view = view_of(seen("apple"), seen("brick", hard=1.0), budget=1)
    (edit,) = selected(view)
    assert edit.content == "Thing: apple\nColour: red"
    assert edit.items == ("id-apple",)


def test_support_counts_the_failures_an_edit_stands_for() -> None:
    view = view_of(seen("a1"), seen("a2"), seen("b1"), budget=1)
    (edit,) = selected(view)
    assert set(edit.items) == {"id-a1", "id-a2"}
    assert edit.support == 2
    assert "1 more failures are like it" in edit.reason


def test_an_edit_names_fifty_items_at_most_and_says_how_many_there_are() -> None:
    view = view_of(*(seen(f"a{n}") for n in range(80)), budget=1)
    (edit,) = selected(view)
    assert len(edit.items) == edit.support == 50
    assert "79 more failures are like it" in edit.reason


def answering(one: Observation, answer: str) -> Observation:
    return replace(one, trajectory=Trajectory((), answer))


def types_of(view: StepView) -> dict[str, str]:
    return {id: kind for patch in patches_of(view) for id, kind in patch.failure_types.items()}


def test_the_answer_of_an_example_given_to_another_item_is_a_leak() -> None:
    taught = seen("apple", hard=1.0, gold="red")
    view = view_of(
        taught,
        answering(seen("brick"), "Red"),
        answering(seen("cloud"), "blue"),
        answering(seen("a red door"), "red"),
        skill=f"{SEED_SKILL}\nThing: apple\nColour: red\n",
        budget=9,
    )
    assert types_of(view) == {
        "id-brick": "leaked",
        "id-cloud": "wordy",
        "id-a red door": "wordy",
    }


def test_no_leak_is_told_of_a_rollout_that_another_document_made() -> None:
    taught, stale = seen("apple", hard=1.0), answering(seen("brick"), "red")
    view = view_of(taught, skill=f"{SEED_SKILL}\nThing: apple\nColour: red\n")
    view = replace(view, pool={**view.pool, "id-brick": stale})
    assert types_of(view) == {"id-brick": "wordy"}


def test_without_the_failure_type_a_leak_is_what_its_reason_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = Catalogue(ENV.catalogue.types[:2])
    monkeypatch.setattr(ENV, "catalogue", few)
    taught, wrong = seen("apple", hard=1.0), answering(seen("brick"), "red")
    view = view_of(taught, wrong, skill=f"{SEED_SKILL}\nThing: apple\nColour: red\n")
    assert types_of(view) == {"id-brick": "wordy"}


def test_a_failure_of_this_step_is_answered_before_one_of_an_earlier_batch() -> None:
    today, earlier = seen("a1"), seen("b1")
    view = view_of(today, budget=1)
    view = replace(view, pool={"id-b1": earlier, "id-a1": today})
    (edit,) = selected(view)
    assert edit.items[0] == "id-a1"


def test_a_failure_that_an_example_is_like_gets_another_example() -> None:
    taught, like, other = seen("a1", hard=1.0), seen("a2"), seen("b1")
    skill = f"{SEED_SKILL}\n{LINE}\n\nThing: a1\nColour: red\n"
    view = view_of(taught, like, seen("a3"), other, skill=skill, budget=1)
    (edit,) = selected(view)
    assert edit.items[0] in ("id-a2", "id-a3")
    stale = view_of(taught, other, skill=skill, budget=1)
    stale = replace(stale, pool={**stale.pool, "id-a2": like, "id-a3": seen("a3")})
    (edit,) = selected(stale)
    assert edit.items == ("id-b1",)


def test_an_item_without_an_example_is_never_taught() -> None:
    edits = selected(view_of(seen("a1", gold=None), skill=f"# S\n\n{LINE}\n"))
    assert all(edit.kind == "rule" for edit in edits)


def test_patches_name_failure_types_of_the_closed_list() -> None:
    patches = patches_of(
        view_of(seen("a1"), seen("b1", reason="other"), seen("c1", reason="?"))
    )
    types = {id: name for patch in patches for id, name in patch.failure_types.items()}
    assert types == {"id-a1": "wordy", "id-b1": "blind", "id-c1": UNKNOWN}
    assert all(patch.source == "failure" for patch in patches)


def test_the_success_threshold_decides_what_a_failure_is() -> None:
    observations = (seen("a1", hard=0.05), seen("b1", hard=0.95))
    patches = patches_of(view_of(*observations, success_threshold=0.5))
    assert {id for patch in patches for id in patch.failure_types} == {"id-a1"}


def test_a_budget_of_0_proposes_nothing() -> None:
    assert patches_of(view_of(*MANY, budget=0)) == []


def test_without_failures_the_document_can_still_grow_from_successes() -> None:
    patches = patches_of(view_of(seen("a1", hard=1.0), budget=1))
    assert [patch.source for patch in patches] == ["success"]


def test_a_budget_without_cap_is_no_error() -> None:
    assert selected(view_of(*MANY, budget=None))


def test_after_a_loss_half_as_many_edits_are_tried_and_then_single_ones() -> None:
    view, sizes = view_of(*MANY), []
    for _ in range(4):
        edits = selected(view)
        sizes.append(len(edits))
        history = (*view.history, record(view, edits, "rejected"))
        view = replace(view, history=history)
    assert sizes == [4, 2, 1, 1]


def test_after_an_acceptance_twice_as_many_edits_are_tried() -> None:
    view = view_of(*MANY)
    for kept, tried in ((1, 2), (2, 4), (4, 4)):
        won = record(view, selected(view)[:kept], "accepted")
        assert len(selected(replace(view, history=(won,)))) == tried


def test_single_edits_add_an_example_every_other_time_and_else_take_turns() -> None:
    skill = f"{SEED_SKILL}\n{LINE}\n\nThing: z1\nColour: red\n"
    view, moves = view_of(seen("z1", hard=1.0), *MANY, skill=skill, budget=1), []
    for _ in range(6):
        (edit,) = selected(view)
        moves.append((edit.op, edit.kind))
        view = replace(view, history=(*view.history, record(view, [edit], "rejected")))
    assert moves[::2] == [("append", "example")] * 3
    assert moves[1::4] == [("replace", "example"), ("delete", "rule")]


def test_an_item_that_lost_among_others_is_tried_before_one_that_lost_alone() -> None:
    view = view_of(*MANY)
    edits = [edit for edit in selected(view) if edit.kind == "example"]
    alone, among = record(view, edits[:1], "rejected"), record(view, edits[1:], "rejected")
    (next_one,) = selected(replace(view, history=(among, alone)))
    memory = Recall().of((among, alone))
    assert memory.tried(edits[0]) == 1.0
    assert {memory.tried(edit) for edit in edits[1:]} == {1 / len(edits[1:])}
    assert memory.tried(next_one) < 1.0


def test_an_acceptance_forgives_what_lost_before() -> None:
    view = view_of(*MANY)
    lost = selected(view)
    history = (record(view, lost, "rejected"), record(view, lost[:2], "accepted"))
    assert faces(selected(replace(view, history=history))) == faces(lost)


def test_a_document_with_the_full_score_is_left_alone_and_the_run_may_end() -> None:
    view, rules = view_of(*MANY), RulesOptimizer(ENV)
    edits = selected(view)
    won = replace(record(view, edits, "accepted"), before=0.5, after=1.0)
    assert patches_of(replace(view, history=(won,))) == []
    assert rules.is_done((won,))
    less = (replace(won, after=0.9),)
    assert patches_of(replace(view, history=less))
    assert not rules.is_done(less)
    assert not rules.is_done(())


def test_a_full_document_swaps_instead_of_growing() -> None:
    taught = [seen(f"a{n:02}") for n in range(MAX_EXAMPLES)]
    blocks = [ENV.example(o.item) or "" for o in taught]
    skill = "\n\n".join([SEED_SKILL.rstrip(), LINE, *blocks]) + "\n"
    view = view_of(*taught, seen("b1"), seen("c1"), skill=skill)
    assert {edit.op for edit in selected(view)} == {"replace"}


def test_parts_that_no_longer_help_are_proposed_for_deletion() -> None:
    skill = f"{SEED_SKILL}\n{LINE}\n"
    view = view_of(seen("a1", hard=1.0, gold=None), skill=skill, budget=1)
    (edit,) = selected(view)
    assert (edit.op, edit.target) == ("delete", LINE)


def test_the_document_never_outgrows_its_limit() -> None:
    size = count_tokens(SEED_SKILL)
    one_more = count_tokens(ENV.example(MANY[0].item) or "")
    assert patches_of(view_of(*MANY, max_skill_tokens=size)) == []
    edits = selected(view_of(*MANY, max_skill_tokens=size + one_more + 3))
    assert edits
    text = apply_edits(SEED_SKILL, edits).text
    assert count_tokens(text) <= size + one_more + 3


def test_a_line_can_give_way_to_one_against_what_fails_now() -> None:
    skill = f"{SEED_SKILL}\n{LINE}\n"
    view = view_of(seen("a1", reason="other", gold=None), skill=skill)
    tried: tuple[StepRecord, ...] = ()
    found = []
    for _ in range(3):
        now = replace(view, history=tried)
        (edit,) = selected(now)
        found.append((edit.op, edit.target))
        tried = (*tried, record(now, [edit], "rejected"))
    assert ("replace", LINE) in found
    assert ("delete", LINE) in found


def test_equal_edits_merge_into_one_with_all_parents_and_items() -> None:
    one = Edit("append", content="- x", items=("1", "2"), id="4.0")
    two = Edit("append", content="- x", items=("2", "3"), id="5.0")
    patches = [Patch("failure", ("1",), (one,)), Patch("failure", ("3",), (two,))]
    (merged,) = asyncio.run(RulesOptimizer(ENV).merge(view_of(), patches)).value
    assert merged.parents == ("4.0", "5.0")
    assert merged.items == ("1", "2", "3")


def test_the_same_view_gives_the_same_answer_whatever_the_order_of_the_pool() -> None:
    view = view_of(*MANY)
    turned = replace(view, pool=dict(reversed(view.pool.items())))
    assert patches_of(view) == patches_of(turned)


def test_an_environment_without_a_catalogue_is_refused_with_a_way_out() -> None:
    class Bare(Toy):
        name = "bare"

    with pytest.raises(UsageError, match=r"env 'bare'.*rule catalogue.*prompted optimizer"):
        RulesOptimizer(Bare())


@settings(max_examples=30, deadline=None)
@given(
    verdicts=st.lists(st.sampled_from(["accepted", "rejected"]), max_size=14),
    budget=st.integers(1, 5),
    hards=st.lists(st.sampled_from([0.0, 0.0, 1.0]), min_size=18, max_size=18),
)
def test_every_edit_applies_within_budget_and_none_that_lost_comes_back(
    verdicts: list[str], budget: int, hards: list[float]
) -> None:
    observations = [
        replace(o, score=Score.scored(h, reason="long"))
        for o, h in zip(MANY, hards, strict=True)
    ]
    view = view_of(*observations, budget=budget)
    lost: list[Any] = []
    for verdict in verdicts:
        edits = selected(view)
        if not edits:
            break
        candidate = apply_edits(view.skill, edits)
        assert len(edits) <= budget
        assert {result.status for result in candidate.results} == {EditStatus.APPLIED}
        assert candidate.faults == ()
        assert faces(edits) not in lost
        won = verdict == "accepted"
        lost = [] if won else [*lost, faces(edits)]
        view = replace(
            view,
            skill=candidate.text if won else view.skill,
            history=(*view.history, record(view, edits, verdict)),
        )


def test_of_a_large_pool_this_step_and_the_examples_are_always_considered() -> None:
    pool = {one.item.id: one for one in (seen(f"{n}") for n in range(2 * MOST_ITEMS))}
    view = view_of(pool["id-7"], pool=pool)
    lessons = Lessons({"id-9": "an example"}, (), None)
    known = KnownItems(ENV)
    kept = considered(view, known, lessons).pool
    assert {"id-7", "id-9"} <= kept.keys()
    assert len(kept) == MOST_ITEMS
    assert list(kept) == [id for id in pool if id in kept]
    assert kept == considered(view, known, lessons).pool


TEXTS = st.lists(st.sampled_from(["a", "b", "a\nb", "b\n", "", "c\na\nb"]), max_size=6)


@given(TEXTS, TEXTS)
def test_an_example_is_found_wherever_it_is_whole_lines_of_the_document(
    examples: list[str], parts: list[str]
) -> None:
    class Said(Colours):
        def example(self, item: Item) -> str | None:
            return examples[int(item.id.removeprefix("id-"))]

    pool = {one.item.id: one for one in (seen(f"{n}") for n in range(len(examples)))}
    skill = "\n".join(parts)
    places = {f"id-{n}": f"\n{skill}\n".find(f"\n{text}\n") for n, text in enumerate(examples)}
    found = {id: at for at, id, _ in KnownItems(Said()).standing_in(skill, pool)}
    assert found == {id: at for id, at in places.items() if at >= 0}


@given(st.lists(st.sampled_from(["accepted", "rejected", "no_patch"]), max_size=12))
def test_a_history_read_on_says_what_it_says_when_read_anew(verdicts: list[str]) -> None:
    edit = Edit("append", content="- a", id="1.0")
    applied = EditResult("1.0", EditStatus.APPLIED)
    history = tuple(
        StepRecord(1, n, verdict, (edit,), (applied,), after=float(n % 2))
        for n, verdict in enumerate(verdicts)
    )
    recall = Recall()
    for n in (*range(len(history) + 1), 0):
        assert recall.of(history[:n]) == Recall().of(history[:n])

"""GEPA: its front against the public package's, its merge, its draws."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from methods_world import run_method
from null_store import NullStore
from toy_world import ToyOptimizer

from skilltrail.history.ask.blame import blame
from skilltrail.history.log.run_log import RunLog
from skilltrail.methods.draws import Draws
from skilltrail.methods.gepa import changes
from skilltrail.methods.pareto import lots
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit, Patch
from skilltrail.verify.log import verify_log

SCORES = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([0, 1, 2]), min_size=n, max_size=n), min_size=1, max_size=6
    )
)


def members(table: list[list[int]]) -> list[dict[str, Fraction]]:
    return [{f"i{n}": Fraction(score, 2) for n, score in enumerate(row)} for row in table]


def test_a_member_has_as_many_lots_as_items_on_whose_front_it_is() -> None:
    assert lots(members([[2, 0, 0], [0, 2, 2], [0, 0, 0]])) == {0: 1, 1: 2}


def test_a_member_that_others_cover_everywhere_has_no_lots() -> None:
    """The second is best on both of its items, each time beside another."""
    assert lots(members([[2, 2, 0], [2, 0, 2], [0, 2, 2]])) == {1: 2, 2: 2}


@given(SCORES)
@settings(max_examples=300, deadline=None)
def test_the_front_is_the_one_of_the_public_package(table: list[list[int]]) -> None:
    utils = pytest.importorskip("gepa.gepa_utils", reason="pip install gepa")
    columns = list(zip(*table, strict=True))
    fronts = {
        item: {place for place, score in enumerate(column) if score == max(column)}
        for item, column in enumerate(columns)
    }
    means = [sum(row) / len(row) for row in table]
    left = utils.remove_dominated_programs(fronts, scores=means)
    theirs: dict[int, int] = {}
    for front in left.values():
        for place in front:
            theirs[place] = theirs.get(place, 0) + 1
    assert list(lots(members(table)).items()) == list(theirs.items())


class Narrow(ToyOptimizer):
    """Teaches the first word that failed, and forgets what the seed skill knew."""

    async def reflect(self, view: StepView) -> Answer:
        failed = [o for o in view.observations if o.score.hard == 0][:1]
        edits = [
            Edit("append", content=f"- know {o.item.input['word']}", items=(o.item.id,))
            for o in failed
        ]
        if "- know ash" in view.skill:
            edits.append(Edit("delete", target="- know ash"))
        return Answer([Patch("failure", tuple(o.item.id for o in failed), tuple(edits))])


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> RunLog:
    changes = {"epochs": 2, "methods": {"gepa": {"minibatch": 2, "merges": 5}}, "seed": 7}
    done = run_method(
        tmp_path_factory.mktemp("gepa"), NullStore(), "gepa", optimizer=Narrow(), **changes
    )
    report = verify_log(done.log, "log")
    assert ([str(fault) for fault in report.faults], dict(report.tags.unknown)) == ([], {})
    return RunLog(done.recorder.events)


def test_two_members_of_the_front_are_merged_and_the_gate_judges_the_result(
    merged: RunLog,
) -> None:
    chosen = [e for e in merged.of_type("parents.chosen") if e.data["rule"] == "merge/1"]
    assert chosen
    assert all(len(event.data["parents"]) == 2 for event in chosen)
    won = [
        step
        for event in chosen
        for step in merged.of_type("skill.versioned")
        if step.data.get("step") == event.data["step"]
    ]
    assert won


def test_a_merged_line_is_blamed_on_the_merge_and_its_reason_names_both(merged: RunLog) -> None:
    last = merged.versions[-1]
    assert [row.text for row in blame(merged, last.number)] == last.text.rstrip("\n").split(
        "\n"
    )
    reasons = {
        edit["reason"]
        for event in merged.of_type("patch.proposed")
        for edit in event.data["edits"]
    }
    assert any(reason.startswith("what v") for reason in reasons)


LINES = st.lists(st.sampled_from(["- a", "- b", "- c", "- d", "## e"]), unique=True, max_size=5)


@given(LINES, LINES)
@settings(max_examples=200, deadline=None)
def test_changes_applied_to_their_own_ancestor_give_the_descendant(
    old: list[str], new: list[str]
) -> None:
    before = "".join(f"{line}\n" for line in ["# top", *old])
    after = "".join(f"{line}\n" for line in ["# top", *new])
    edits = [
        Edit(e.op, e.target, e.content, id=f"1.{n}")
        for n, e in enumerate(changes(before, after, before, "why"))
    ]
    made = apply_edits(before, edits).text
    assert [line for line in made.split("\n") if line] == [
        line for line in after.split("\n") if line
    ]


def test_draws_are_fair_and_depend_on_their_name_alone() -> None:
    counts = [0, 0, 0]
    for step in range(3000):
        counts[Draws(1).weighted([1, 0, 2], step, "parent")] += 1
    assert counts[1] == 0
    assert 900 < counts[0] < 1100
    assert Draws(1).below(7, 3, "x") == Draws(1).below(7, 3, "x")
    assert sorted(Draws(2).order(["a", "b", "c"], 1, "s")) == ["a", "b", "c"]

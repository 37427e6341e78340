"""The reference's own behaviour, knob by knob, and all at once: `presets/skillopt.yaml`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_script import append, epoch_view, observation, optimizer_of, run, step_view
from model_world import run_stages
from null_store import NullStore
from test_history_verify import data_of
from test_method import Whole, run_whole
from test_params import ROOT
from verify_project import says, write_project
from verify_world import verified

from skilltrail.cli.commands.start.params import preset_values
from skilltrail.core.errors import ParamError, UsageError
from skilltrail.envs.registry import ParamClasses
from skilltrail.history.log.events import parse_event
from skilltrail.method.schedule import edit_budget
from skilltrail.optimizers.llm.batching import minibatches
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.shown.past import NOT_TOLD
from skilltrail.optimizers.protocol import Pair, StepRecord
from skilltrail.optimizers.registry import llm_options
from skilltrail.params.fields import Params
from skilltrail.params.knob import knobs_of
from skilltrail.params.other_names import INSTEAD, OTHER_NAMES, hint_of
from skilltrail.params.read import params_of
from skilltrail.runtime.workspace import params_with
from skilltrail.skill.edit import Edit, Patch
from skilltrail.verify.log import verify_log

KEYS = [knob.key for knob in knobs_of(Params)]

# --- the schedule -------------------------------------------------------------------------


def of_the_reference(schedule: str, step: int, high: int, low: int, total: int) -> float:
    """The value that the reference rounds: its scheduler.py, lines 74 and 90."""
    done = min(step, total) / total
    if schedule == "linear":
        return high + (low - high) * done
    return low + 0.5 * (high - low) * (1 + math.cos(math.pi * done))


@settings(max_examples=300)
@given(
    st.sampled_from(["linear", "cosine"]),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 120),
    st.data(),
)
def test_the_references_phase_and_rounding_give_its_budgets(
    schedule: str, a: int, b: int, total: int, data: st.DataObject
) -> None:
    high, low = max(a, b), min(a, b)
    step = data.draw(st.integers(1, total))
    got = edit_budget(
        step, schedule=schedule, lr=high, lr_min=low, total_steps=total,
        phase="interval", rounding="even",
    )  # fmt: skip
    value = high if total == 1 else of_the_reference(schedule, step, high, low, total)
    # Where the exact value is a half, its floats may fall on either side of it.
    is_half = abs(value % 1 - 0.5) < 1e-9
    assert got in ({math.floor(value), math.ceil(value)} if is_half else {round(value)})


def test_phase_and_rounding_by_hand() -> None:
    def budgets(**more: Any) -> list[int | None]:
        return [
            edit_budget(s, schedule="linear", lr=4, lr_min=1, total_steps=4, **more)
            for s in range(1, 5)
        ]

    assert budgets() == [4, 3, 2, 1]
    assert budgets(phase="interval") == [3, 3, 2, 1]  # 3.25, 2.5, 1.75, 1
    assert budgets(phase="interval", rounding="even") == [3, 2, 2, 1]
    assert budgets(phase="interval", warmup=2) == [2, 4, 3, 1]  # then 2.5 and 1


def test_autonomous_without_a_bound_takes_what_is_offered_and_nothing_for_no_number(
    tmp_path: Path,
) -> None:
    free: dict[str, Any] = {"lr_schedule": "autonomous", "lr_bound": "none", "epochs": 1}
    bold = run_whole(tmp_path / "a", NullStore(), Whole(budget=99), lr=1, lr_warmup=2, **free)
    first, second = bold.events("budget.decided")[:2]
    assert (first["budget"], "lr" in first, "warmup" in first) == (None, False, False)
    assert second["budget"] == second["offered"] > 1
    mute = run_whole(tmp_path / "b", NullStore(), Whole(budget=None), **free)
    assert mute.events("budget.decided")[1]["budget"] == 0
    for done in (bold, mute):
        report = verify_log(data_of(done.recorder.events), "log")
        assert [str(fault) for fault in report.faults] == []


def test_a_forged_phase_is_named_by_verify(tmp_path: Path) -> None:
    how = {"lr_schedule": "linear", "lr": 4, "lr_phase": "interval", "lr_rounding": "even"}
    events = run_whole(tmp_path, NullStore(), Whole(), **how).recorder.events
    told = next(event for event in events if event.type == "budget.decided")
    assert (told.data["phase"], told.data["rounding"]) == ("interval", "even")
    report = verify_log(data_of(events), "log")
    assert [str(fault) for fault in report.faults] == []


# --- reflection ---------------------------------------------------------------------------


def test_batches_of_an_accumulated_step_are_reflected_on_apart_where_params_say_so() -> None:
    seen = [observation(id, id in "bf") for id in "abcdef"]
    view = step_view(seen, batches=(("a", "b", "c"), ("d", "e", "f")))

    def ids(**options: Any) -> list[tuple[str, tuple[str, ...]]]:
        return [(b.source, b.ids) for b in minibatches(view, LlmOptions(**options))]

    assert ids() == [("failure", ("a", "c", "d", "e")), ("success", ("b", "f"))]
    assert ids(per_batch=True) == [
        ("failure", ("a", "c")),
        ("failure", ("d", "e")),
        ("success", ("b",)),
        ("success", ("f",)),
    ]


def test_shuffled_minibatches_are_filled_in_a_seeded_order() -> None:
    seen = [observation(f"i{n}") for n in range(9)]
    options = LlmOptions(minibatch_size=4, grouping="shuffled")
    view = step_view(seen)
    found = minibatches(view, options)
    assert [len(batch.ids) for batch in found] == [4, 4, 1]
    assert sorted(id for batch in found for id in batch.ids) == [o.item.id for o in seen]
    assert found == minibatches(view, options) != minibatches(replace(view, seed=7), options)


def test_the_cap_of_an_analyst_is_told_and_enforced_and_recorded() -> None:
    said = {"edits": [append(f"- Rule {name}.", "a") for name in ("one", "two", "three")]}
    optimizer, model = optimizer_of([said] * 2, most_edits=2)
    (patch,) = run(optimizer.reflect(step_view([observation("a")]))).value
    assert [edit.content for edit in patch.edits] == ["- Rule one.", "- Rule two."]
    assert (patch.shown["most_edits"], patch.shown["edits_cut"]) == (2, 1)
    assert "at most 2: what comes after is cut off" in str(model.requests[0].system)
    free, model = optimizer_of([said])
    (patch,) = run(free.reflect(step_view([observation("a")]))).value
    assert len(patch.edits) == 3
    assert "most_edits" not in patch.shown
    assert "cut off" not in str(model.requests[0].system)


# --- who is told what ---------------------------------------------------------------------

HISTORY = (
    StepRecord(1, 1, "rejected", edits=(Edit("append", content="- Old idea."),)),
    StepRecord(2, 2, "rejected", edits=(Edit("append", content="- Fresh idea."),)),
)


def asked(verb: str, **options: Any) -> str:
    """Return the system text of a verb's request."""
    replies: dict[str, Any] = {
        "reflect": {"edits": []}, "rank": {"order": [0, 1]}, "choose_budget": {"budget": 1},
        "merge": {"edits": [append("- Both.", parents=["1.0", "2.0"])]},
        "slow_update": {"guidance": None}, "meta_skill": {"memory": "- Learnt."},
    }  # fmt: skip
    optimizer, model = optimizer_of([replies[verb]] * 2, **options)
    known = {"epoch": 2, "history": HISTORY, "meta_skill": "- Keep it short."}
    step = step_view([observation("a")], **known)
    one, two = (Edit("append", content=f"- Do {n}.", items=("a",), id=f"{n}.0") for n in "12")
    both = [Patch("failure", ("a",), (edit,), id=f"p{edit.id[0]}") for edit in (one, two)]
    seen = observation("a")
    epoch = epoch_view([Pair(seen.item, seen, seen, "persistent_failure")], **known)
    doing = {
        "reflect": lambda: optimizer.reflect(step),
        "rank": lambda: optimizer.rank(replace(step, budget=1), [one, two]),
        "choose_budget": lambda: optimizer.choose_budget(step, [one, two]),
        "merge": lambda: optimizer.merge(step, both),
        "slow_update": lambda: optimizer.slow_update(epoch),
        "meta_skill": lambda: optimizer.meta_skill(epoch),
    }
    run(doing[verb]())
    return str(model.requests[0].system)


VERBS = {"reflect": "analyst", "merge": "merge", "rank": "rank", "choose_budget": "lr",
         "slow_update": "slow", "meta_skill": "meta"}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_the_past_and_the_memory_go_to_the_stages_that_params_name(verb: str) -> None:
    stage = VERBS[verb]
    whole = asked(verb)
    assert all(said in whole for said in ("Old idea", "Fresh idea", "Keep it short"))
    recent = asked(verb, past="epoch")
    assert "Fresh idea" in recent
    assert "Old idea" not in recent
    others = tuple(one for one in VERBS.values() if one != stage)
    deaf = asked(verb, past_to=others, memory_to=others)
    assert not any(said in deaf for said in ("Old idea", "Fresh idea", "Keep it short"))
    assert deaf.count(NOT_TOLD) == 2


def test_patches_that_do_not_touch_are_merged_by_the_model_where_params_say_so() -> None:
    patches = [
        Patch("failure", ("a",), (Edit("append", content=text, items=("a",), id=f"{n}.0"),))
        for n, text in enumerate(("- Give dates alone.", "- Copy names whole."), start=1)
    ]
    optimizer, model = optimizer_of([])
    assert run(optimizer.merge(step_view(), patches)).rule == "disjoint/1"
    said = {"edits": [append("- Give dates alone.", parents=["1.0", "2.0"])]}
    optimizer, model = optimizer_of([said], merge_ask="always")
    answer = run(optimizer.merge(step_view([observation("a")]), patches))
    assert (answer.rule, len(answer.value), len(model.requests)) == (None, 1, 1)


def test_guidance_is_asked_for_without_need_where_params_say_so() -> None:
    seen = observation("a", 1.0)
    view = epoch_view([Pair(seen.item, seen, seen, "stable_success")])
    optimizer, model = optimizer_of([])
    assert run(optimizer.slow_update(view)).reason == "nothing regressed or persists"
    optimizer, model = optimizer_of([{"guidance": "- Go on like this."}], guide_ask="always")
    assert run(optimizer.slow_update(view)).value == "- Go on like this."


def test_the_memory_begins_at_the_epoch_that_params_name(tmp_path: Path) -> None:
    def written(folder: str, first: int) -> list[int]:
        meta = {"enabled": True, "from_epoch": first}
        done = run_whole(tmp_path / folder, NullStore(), Whole(), epochs=3, meta_skill=meta)
        return [event["epoch"] for event in done.events("meta_skill.written")]

    assert written("a", 1) == [1, 2, 3]
    assert written("b", 2) == [2, 3]


# --- the preset ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=says) as found:
        yield found


def nested(values: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        place = tree
        *sections, name = key.split(".")
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return tree


def test_the_preset_is_one_of_known_knobs_that_go_together() -> None:
    values = preset_values("skillopt")
    params = params_with(ROOT, values)
    assert (params.epochs, params.batch_size, params.lr, params.lr_min) == (4, 40, 4, 2)
    assert params.slow_update.mode == "force"
    assert params.reflect.success_threshold == 1e-9
    with pytest.raises(UsageError, match="There are: skillopt"):
        preset_values("skilopt")


def test_the_preset_says_all_that_our_defaults_do_otherwise() -> None:
    ours, theirs = LlmOptions(), llm_options(params_with(ROOT, preset_values("skillopt")), "qa")
    told = ("grouping", "per_batch", "most_edits", "merge_ask", "guide_ask", "past", "past_to",
            "memory_to")  # fmt: skip
    assert [name for name in told if getattr(ours, name) == getattr(theirs, name)] == []


@pytest.mark.parametrize("mode", ["patch", "rewrite_from_suggestions"])
def test_a_run_with_the_preset_is_checked_whole_at_every_level(
    mode: str, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"epochs": 3, "batch_size": 2, "accumulation": 2, "update_mode": mode}
    preset = nested(preset_values("skillopt") | small)
    del preset["optimizer"]  # its sections are the role's; they are set below
    write_project(tmp_path, server.url, preset, optimizer="stubborn")
    path = tmp_path / "params.yaml"
    tree = json.loads(json.dumps(read_yaml(path)))
    tree["optimizer"] |= {"past": "epoch", "past_to": ["analyst", "rewrite", "lr"]}
    path.write_text(json.dumps(tree), "utf-8")
    run_stages(tmp_path, monkeypatch)
    lines = (tmp_path / "skills" / "events.jsonl").read_bytes().split(b"\n")[:-1]
    events = [parse_event(line, "log") for line in lines]
    budgets = [e.data for e in events if e.type == "budget.decided"]
    assert {b["phase"] for b in budgets} == {"interval"}
    shown = [e.data["shown"] for e in events if e.type == "patch.proposed"]
    assert {one["most_edits"] for one in shown} == {4}
    found = verified(tmp_path)
    assert [str(fault) for fault in found.faults] == []
    assert [(r.rule, r.check.note) for r in found.rows if not r.check.whole] == []


def read_yaml(path: Path) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe").load(path.read_text("utf-8"))


# --- names of the reference ---------------------------------------------------------------

SAME = {"batch_size", "accumulation", "seed", "merge_batch_size", "use_gate", "env"}
# Every key of its configs and every flag of its commands (bdfdc30).
THEIRS = (Path(__file__).parent / "vectors" / "reference_names.txt").read_text("utf-8").split()


@pytest.mark.parametrize("name", [name for name in THEIRS if name not in SAME])
def test_every_name_of_the_reference_gets_a_hint_that_leads_somewhere(name: str) -> None:
    hint = hint_of(name, KEYS)
    assert hint is not None
    with pytest.raises(ParamError, match=re.escape(hint[:40])):
        params_of({"env": "qa", name: 1}, ParamClasses())
    if name not in INSTEAD:
        assert hint.removeprefix("here it is called ") in KEYS


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("skill_update_mode", "update_mode"),
        ("use_slow_update", "slow_update.enabled"),
        ("slow_update_gate_with_selection", "slow_update.mode"),
        ("longitudinal_pair_policy", "slow_update.pairs"),
        ("analyst_workers", "optimizer.workers"),
        ("lr_control_mode", "lr_schedule"),
        ("failure_only", "reflect.success"),
        ("optimizer_azure_openai_auth_mode", "optimizer.azure.auth"),
        ("qwen_chat_thinking_mode", "target.thinking"),
    ],
)
def test_a_name_of_the_reference_gets_the_right_hint(theirs: str, ours: str) -> None:
    for key in (theirs, f"optimizer.{theirs}", f"gradient.{theirs}"):
        assert hint_of(key, KEYS) == f"here it is called {ours}"


def test_every_other_name_leads_to_a_knob_that_exists() -> None:
    assert set(OTHER_NAMES.values()) <= set(KEYS)


def test_words_that_name_an_environments_knob_name_one_that_it_has() -> None:
    classes = ParamClasses()
    named = {
        key
        for text in INSTEAD.values()
        for key in text.replace(",", "").split()
        if key.startswith("envs.")
    }
    for key in named:
        _, env, knob = key.split(".", 2)
        assert knob in [one.key for one in knobs_of(classes[env])]


FIDELITY = (ROOT / "docs" / "fidelity.md").read_text("utf-8")


@pytest.mark.parametrize(
    "place", sorted(set(re.findall(r"`(skilltrail/[\w/.]+::\w+)`", FIDELITY)))
)
def test_a_place_of_ours_that_the_table_names_exists(place: str) -> None:
    file, name = place.split("::")
    text = (ROOT / file).read_text("utf-8")
    assert re.search(rf"^(async def|def|class) {name}\b", text, re.MULTILINE)


def test_each_row_of_the_table_names_both_sides() -> None:
    rows = [line for line in FIDELITY.split("\n") if line[:2] == "| " and line[:6] != "| what"]
    assert len(rows) > 25
    for row in rows:
        what, theirs, ours, *_ = row.removeprefix("| ").split(" | ")
        assert "`" in theirs, what
        assert "::" in ours, what


def test_every_knob_that_the_preset_changes_stands_in_the_table() -> None:
    defaults = {knob.key: knob.default for knob in knobs_of(Params)}
    for key, value in preset_values("skillopt").items():
        told = tuple(value) if isinstance(value, list) else value
        assert told == defaults[key] or f"`{key}`" in FIDELITY, key

"""The rest of the method on the toy world: modes, schedules, slow update, meta skill, notes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from null_store import NullStore
from toy_world import (
    SEED_SKILL,
    WORDS,
    ToyEnvironment,
    ToyModel,
    ToyOptimizer,
    ToyRun,
    run_toy,
    toy_params,
)

from skilltrail.cli.commands.ask.summary import unusable_lines, unusable_steps
from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.history.log.log import follow
from skilltrail.history.log.run_log import RunLog
from skilltrail.method.evaluate_candidate import by_task_type
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import Run
from skilltrail.method.select_edits import SCHEDULED
from skilltrail.method.update import rejected_before
from skilltrail.optimizers.protocol import Answer, EpochView, RejectedReply, StepView
from skilltrail.params.fields import Params
from skilltrail.runtime.progress import Progress
from skilltrail.runtime.training import read_seed_skill
from skilltrail.skill.document import frontmatter_text, region_text, split_lines
from skilltrail.skill.edit import Edit, Patch
from skilltrail.store.facts import FactStore
from skilltrail.verify.log import verify_log


class Whole(ToyOptimizer):
    """Also writes guidance, a memory, whole documents and notes, and records what it saw."""

    def __init__(self, guidance: str = "Take care of pines.", budget: int | None = 1) -> None:
        self.guidance, self.budget = guidance, budget
        self.views: list[EpochView] = []
        self.memories: list[str] = []

    async def reflect(self, view: StepView) -> Answer:
        self.memories.append(view.meta_skill)
        answer = await super().reflect(view)
        failed = answer.value[0]
        if view.update_mode == "rewrite_from_suggestions":
            edits = [Edit("suggest", content=e.content, items=e.items) for e in failed.edits]
            return Answer([replace(failed, edits=tuple(edits))], rule=self.tag)
        if view.update_mode == "full_rewrite_minibatch":
            text = view.skill + "\n".join(e.content for e in failed.edits) + "\n"
            edit = Edit("rewrite", content=text, items=failed.items)
            return Answer([replace(failed, edits=(edit,))], rule=self.tag)
        word = view.observations[0].item.input["word"]
        return Answer([replace(failed, notes=(f"mind {word}",))], rule=self.tag)

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        if self.budget is None:
            rejected = RejectedReply("budget", "expected an integer", None, "schedule holds")
            return Answer(None, "the scheduled budget holds", rejected=(rejected,))
        return Answer(self.budget, "one at a time", rule=self.tag)

    async def rewrite(self, view: StepView, suggestions: Sequence[Edit]) -> Answer:
        lines = "".join(f"{edit.content}\n" for edit in suggestions)
        return Answer(view.skill + lines, rule=self.tag)

    async def consolidate(self, view: StepView, notes: Sequence[str]) -> Answer:
        return Answer(["mind all trees"], rule=self.tag)

    async def slow_update(self, view: EpochView) -> Answer:
        self.views.append(view)
        return Answer(self.guidance, "from the comparison", rule=self.tag)

    async def meta_skill(self, view: EpochView) -> Answer:
        return Answer(f"epoch {view.epoch}: pairs {len(view.pairs)}", rule=self.tag)


@pytest.fixture
def store(tmp_path: Path) -> FactStore:
    return FactStore.open(tmp_path)


def run_whole(folder: Path, store: FactStore, optimizer: ToyOptimizer, **params: Any) -> ToyRun:
    return run_toy(folder, store, toy_params(**params), optimizer=optimizer)


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_whole_documents_learn_too_and_their_text_is_recorded(
    tmp_path: Path, store: FactStore, mode: str
) -> None:
    done = run_whole(tmp_path, store, Whole(), update_mode=mode)
    assert done.state.best_mean == 1
    built = done.events("candidate.built")
    assert {event["mode"] for event in built} == {mode}
    assert all(event["text"] for event in built)
    budgets = {event["budget"] for event in done.events("budget.decided")}
    assert budgets == ({None} if mode == "full_rewrite_minibatch" else {2})


def test_the_optimizer_chooses_the_budget_and_never_more_than_scheduled(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_whole(tmp_path, store, Whole(budget=9), lr_schedule="autonomous", epochs=1)
    first, second = done.events("budget.decided")[:2]
    assert (first["budget"], second["budget"]) == (2, 2)
    assert second["offered"] == len(done.events("patch.merged")[0]["edits"])
    assert all(len(event["selected"]) <= 2 for event in done.events("edits.selected"))


class Told(Whole):
    """Says itself which budget holds where its model said none, as the prompted one does."""

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        answer = await super().choose_budget(view, edits)
        return replace(answer, value=view.budget, rule=SCHEDULED)


@pytest.mark.parametrize("kind", [Whole, Told])
def test_an_unusable_budget_leaves_the_scheduled_one_and_is_counted(
    tmp_path: Path, store: FactStore, kind: type[Whole]
) -> None:
    done = run_whole(tmp_path, store, kind(budget=None), lr_schedule="autonomous", epochs=1)
    second = done.events("budget.decided")[1]
    assert (second["budget"], second["rule"]) == (2, "scheduled/1")
    assert done.events("step.ended")[0]["counts"]["replies_rejected"] == 1


HEADS = (
    "---\nname: trees # ours\ndescription: >-\n  long\n---\n",
    "\ufeff---\r\ndescription: 'd'\r\nname: trees # ours\r\n---\r\n",
)


class Meddler(Whole):
    """Changes the frontmatter with everything that it proposes."""

    async def reflect(self, view: StepView) -> Answer:
        answer = await super().reflect(view)
        return replace(answer, value=[self._meddled(patch, view) for patch in answer.value])

    def _meddled(self, patch: Patch, view: StepView) -> Patch:
        if view.update_mode == "full_rewrite_minibatch":
            return replace(patch, edits=tuple(map(self._headless, patch.edits)))
        edit = Edit("replace", target="name: trees # ours", content="name: oaks")
        edit = replace(edit, items=patch.items)
        meddles = view.update_mode == "patch" and "name: trees" in view.skill
        return replace(patch, edits=(edit, *patch.edits)) if meddles else patch

    def _headless(self, edit: Edit) -> Edit:
        return replace(edit, content=edit.content.replace("name: trees # ours", "name: oaks"))

    async def rewrite(self, view: StepView, suggestions: Sequence[Edit]) -> Answer:
        answer = await super().rewrite(view, suggestions)
        return replace(answer, value=answer.value[answer.value.index("# Trees") :])

    async def compact(self, view: EpochView) -> Answer:
        lines = split_lines(view.skill.removeprefix("\ufeff"))
        kept = [line for line in lines[lines.index("# Trees") :] if "passed" not in line]
        return Answer("\n".join(kept) + "\n", rule=self.tag)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "mode", ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]
)
def test_a_frozen_frontmatter_stays_byte_for_byte_and_a_trained_one_may_change(
    tmp_path: Path, store: FactStore, mode: str, head: str
) -> None:
    seed = head + SEED_SKILL.replace("\n", "\r\n" if "\r" in head else "\n")
    texts = {}
    for frontmatter in ("frozen", "train"):
        done = run_toy(
            tmp_path / frontmatter,
            store,
            toy_params(
                update_mode=mode, lr=3, compaction=True, skill={"frontmatter": frontmatter},
                skill_aware={"enabled": True},
            ),
            optimizer=Meddler(),
            seed_skill=seed,
        )  # fmt: skip
        assert verify_log(done.log, "log").faults == []
        assert {e.get("frontmatter") for e in done.events("candidate.built")} >= {frontmatter}
        versions = RunLog(done.recorder.events).versions
        assert len(versions) > 1
        texts[frontmatter] = [frontmatter_text(version.text) for version in versions]
    assert set(texts["frozen"]) == {head}
    assert set(texts["train"]) != {head}


def test_a_run_that_leaves_the_frontmatter_alone_says_nothing_of_it(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_toy(tmp_path, store, toy_params(), seed_skill=HEADS[0] + SEED_SKILL)
    assert not any("frontmatter" in event for event in done.events("candidate.built"))


def test_no_schedule_has_no_cap(tmp_path: Path, store: FactStore) -> None:
    done = run_whole(tmp_path, store, Whole(), lr_schedule="none", batch_size=8, epochs=1)
    assert len(done.events("edits.selected")[0]["selected"]) == 8


SLOW = {"slow_update": {"enabled": True, "samples": 4}, "epochs": 2, "lr": 1}


def test_guidance_passes_the_gate_like_any_candidate(tmp_path: Path, store: FactStore) -> None:
    optimizer = Whole()
    done = run_whole(tmp_path, store, optimizer, **SLOW)
    judged = [e for e in done.events("gate.judged") if e["source"] == "slow_update"]
    assert [e["verdict"] for e in judged] == ["rejected"]  # it helps no item
    assert region_text(done.state.skill, "slow_update") is None
    compared = done.events("slow_update.compared")
    assert compared[0]["counts"]["improved"] >= 1
    assert optimizer.views[0].guidance_result == ""


def test_helpful_guidance_is_credited_with_its_gain_and_not_the_next_edit(
    tmp_path: Path, store: FactStore
) -> None:
    helpful = Whole("\n".join(f"- know {word}" for word in WORDS))
    done = run_whole(tmp_path, store, helpful, **SLOW)
    versions = [e for e in done.events("skill.versioned") if e["version"]]
    slow = done.events("slow_update.proposed")[0]["patch"]
    assert versions[-1]["patch"] == slow
    assert versions[-1]["best"]
    gate = [e for e in done.events("gate.judged") if e["source"] == "slow_update"][0]
    assert gate["after"] == 1.0 > gate["before"]


def test_forced_guidance_is_measured_at_once(tmp_path: Path, store: FactStore) -> None:
    slow = SLOW["slow_update"] | {"mode": "force"}  # type: ignore[operator]
    done = run_whole(tmp_path, store, Whole(), **SLOW | {"slow_update": slow})
    gate = [e for e in done.events("gate.judged") if e["source"] == "slow_update"][0]
    assert (gate["verdict"], gate["forced"], gate["judged"]) == ("accepted", True, len(WORDS))
    assert region_text(done.state.skill, "slow_update") == "Take care of pines."
    assert set(done.state.scores) == {f"selection-{word}" for word in WORDS}


def test_a_stalled_epoch_is_compared_from_rollouts_that_exist_and_asks_for_guidance(
    tmp_path: Path, store: FactStore
) -> None:
    optimizer, stalled = HalfHearted(), {"epochs": 3, "batch_size": 8}
    done = run_whole(tmp_path, store, optimizer, **SLOW | stalled)
    first, second = done.events("slow_update.compared")
    assert (first["rule"], second["rule"]) == ("epochs/1", "recorded/1")
    assert "did not change" in second["reason"]
    assert len(second["pairs"]) == 4
    assert {pair["before"] is None for pair in second["pairs"]} == {False}
    rolled = [e for e in done.events("rollouts.scored") if e["purpose"] == "slow_update"]
    assert {e["epoch"] for e in rolled} == {2}
    view = optimizer.views[-1]
    assert view.is_stalled
    assert all(pair.after is not None for pair in view.pairs)
    assert [e["epoch"] for e in done.events("slow_update.proposed")] == [2, 3]
    assert verify_log(done.log, "log").faults == []


def test_a_first_skill_that_never_changes_has_only_one_side(
    tmp_path: Path, store: FactStore
) -> None:
    optimizer = HalfHearted(helps_in=())
    done = run_whole(tmp_path, store, optimizer, **SLOW)
    (compared,) = done.events("slow_update.compared")
    assert {pair["before"] for pair in compared["pairs"]} == {None}
    assert compared["counts"]["persistent_failure"] >= 1
    assert all(pair.before is None for pair in optimizer.views[-1].pairs)
    assert verify_log(done.log, "log").faults == []


def test_a_forged_pair_of_a_stalled_epoch_is_named(tmp_path: Path, store: FactStore) -> None:
    done = run_whole(tmp_path, store, HalfHearted(helps_in=()), **SLOW)
    forged, prev = b"", None
    for event in done.recorder.events:
        data = json.loads(json.dumps(event.data))
        if event.type == "slow_update.compared":
            data["pairs"][0] |= {"after": 0.75, "category": "improved"}
        prev = follow(prev, event.type, data)
        forged += prev.line + b"\n"
    assert {f.what for f in verify_log(forged, "log").faults} >= {
        f"after of {compared_item(done)}"
    }


def test_what_later_steps_are_told_of_selection_items_is_counts_by_type_alone() -> None:
    items = [
        Item(f"s{n}", {}, task_type="date" if n < 3 else "rare" if n < 5 else None)
        for n in range(8)
    ]
    assert by_task_type(items, ["s0", "s2", "s3", "s7"]) == {"date": 2, "other": 2}
    assert by_task_type(items, []) == {}


def compared_item(done: ToyRun) -> str:
    return str(done.events("slow_update.compared")[0]["pairs"][0]["item"])


class HalfHearted(Whole):
    """Helps in some epochs and proposes one and the same useless line in the others."""

    def __init__(self, helps_in: tuple[int, ...] = (1, 2)) -> None:
        super().__init__()
        self.helps_in = helps_in

    async def reflect(self, view: StepView) -> Answer:
        if view.epoch in self.helps_in:
            return await super().reflect(view)
        ids = tuple(o.item.id for o in view.observations)
        edit = Edit("append", content="- trees are plants", items=ids)
        return Answer([Patch("failure", ids, (edit,))], rule=self.tag)


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        ("changed", {"improved", "regressed"}),
        ("unchanged", {"persistent_failure", "stable_success"}),
    ],
)
def test_the_pair_policy_keeps_what_it_says(
    tmp_path: Path, store: FactStore, policy: str, kinds: set[str]
) -> None:
    slow = {"enabled": True, "samples": 4, "pairs": policy, "max_extra": 6}
    done = run_whole(tmp_path, store, Whole(), slow_update=slow, lr=1, epochs=2)
    compared = done.events("slow_update.compared")[0]
    assert {pair["category"] for pair in compared["pairs"]} <= kinds
    rolled = [e for e in done.events("rollouts.scored") if e["purpose"] == "slow_update"]
    extra = sum(len(e["items"]) for e in rolled) - 2 * 4
    assert extra <= (6 if policy == "changed" else 0)


def test_the_meta_skill_reaches_later_calls_and_is_no_part_of_the_skill(
    tmp_path: Path, store: FactStore
) -> None:
    optimizer = Whole()
    meta = {"meta_skill": {"enabled": True}, "epochs": 3, "lr": 1}
    done = run_whole(tmp_path, store, optimizer, **meta)
    written = done.events("meta_skill.written")
    assert [event["epoch"] for event in written] == [1, 2, 3]
    assert optimizer.memories[0] == ""
    assert optimizer.memories[-1] == written[1]["text"]
    assert written[0]["text"] not in done.state.skill


def test_notes_stand_in_the_appendix_and_pass_the_gate_with_the_step(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_whole(tmp_path, store, Whole(), skill_aware={"enabled": True}, epochs=1)
    noted = done.events("appendix.proposed")[0]["edits"][0]
    assert (noted["op"], noted["target"]) == ("write_region", "appendix")
    assert "- mind" in (region_text(done.state.best_skill, "appendix") or "")
    budget = done.events("edits.selected")[0]["budget"]
    assert len(done.events("candidate.built")[0]["results"]) == budget + 1


def test_too_many_notes_are_consolidated(tmp_path: Path, store: FactStore) -> None:
    aware = {"enabled": True, "consolidate_over": 1}
    done = run_whole(tmp_path, store, Whole(), skill_aware=aware, use_gate=False, epochs=1)
    assert region_text(done.state.skill, "appendix") == "- mind all trees"


def test_a_candidate_over_the_size_limit_is_never_evaluated(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_whole(tmp_path, store, Whole(), max_skill_tokens=12, epochs=1)
    ends = done.events("step.ended")
    assert any("max_skill_tokens" in event["reason"] for event in ends)
    assert all(event["tokens"] <= 12 for event in done.events("skill.versioned"))


def test_repeats_are_rolled_out_apart_and_averaged(tmp_path: Path, store: FactStore) -> None:
    done = run_whole(tmp_path, store, Whole(), gate={"repeats": 2}, epochs=1)
    rows = done.events("rollouts.scored")[0]["items"]
    assert [row["repeat"] for row in rows[:2]] == [0, 1]
    assert rows[0]["key"] != rows[1]["key"]
    assert done.events("gate.judged")[0]["repeats"] == 2
    assert done.state.best_mean > 0


def test_warm_up_is_consumed_and_recorded(tmp_path: Path, store: FactStore) -> None:
    done = run_whole(tmp_path, store, Whole(), lr=2, lr_warmup=2, epochs=1)
    assert [event["budget"] for event in done.events("budget.decided")] == [1, 2, 2, 2]
    assert done.events("budget.decided")[0]["warmup"] == 2


@pytest.mark.parametrize("mode", ["patch", "full_rewrite_minibatch"])
def test_every_ability_at_once_gives_one_log_at_any_concurrency(
    tmp_path: Path, mode: str
) -> None:
    params = SLOW | {
        "update_mode": mode,
        "meta_skill": {"enabled": True},
        "skill_aware": {"enabled": True},
        "gate": {"rule": "no_regression", "metric": "soft"},
    }
    logs = set()
    for workers in (1, 16):
        folder = tmp_path / f"{workers}"
        with FactStore.open(folder) as store:
            done = run_toy(
                folder,
                store,
                toy_params(**params),
                ToyModel(workers=workers),
                optimizer=Whole(),
            )
        logs.add(done.log)
    assert len(logs) == 1


def test_patches_may_hold_notes_alone(tmp_path: Path, store: FactStore) -> None:
    class NotesOnly(Whole):
        async def reflect(self, view: StepView) -> Answer:
            return Answer([Patch("failure", (), (), notes=("know oak",))], rule=self.tag)

    done = run_whole(tmp_path, store, NotesOnly(), skill_aware={"enabled": True}, epochs=1)
    assert done.events("candidate.built")[0]["results"][0]["status"] == "applied"
    assert done.events("edits.selected") == []


def test_what_an_environment_says_to_analysts_reaches_them_and_no_event(
    tmp_path: Path, store: FactStore
) -> None:
    told: list[str | None] = []

    class Telling(ToyEnvironment):
        def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
            return None if trajectory.answer else f"{item.id} had no answer"

    class Listening(Whole):
        async def reflect(self, view: StepView) -> Answer:
            told.extend(o.feedback for o in view.observations)
            return await super().reflect(view)

    done = run_toy(tmp_path, store, toy_params(epochs=1), optimizer=Listening(), env=Telling())
    assert "train-oak had no answer" in told
    assert b"had no answer" not in done.log


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b"\xef\xbb\xbf# T\r\n- a\r\n", "# T\n- a\n"),
        *(((head + "# T\n").encode(), head + "# T\n") for head in HEADS),
    ],
)
def test_a_seed_is_read_as_it_is_where_it_has_a_frontmatter(
    tmp_path: Path, raw: bytes, read: str
) -> None:
    (tmp_path / "seed.md").write_bytes(raw)
    assert read_seed_skill(tmp_path / "seed.md") == read


class Stubborn(ToyOptimizer):
    """Proposes one and the same useless line at every step."""

    async def reflect(self, view: StepView) -> Answer:
        ids = tuple(o.item.id for o in view.observations)
        edit = Edit("append", content="- trees are plants", items=ids)
        return Answer([Patch("failure", ids, (edit,))], rule=self.tag)


def test_a_text_that_was_rejected_before_is_not_judged_again(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_whole(tmp_path, store, Stubborn(), epochs=2)
    (judged,) = (e for e in done.recorder.events if e.type == "gate.judged")
    built = done.events("candidate.built")
    assert [event.get("rejected_before") for event in built] == [None] + 7 * [judged.seq]
    ended = done.events("step.ended")
    assert [event["result"] for event in ended] == ["rejected"] + 7 * ["no_change"]
    assert all("rejected before" in event["reason"] for event in ended[1:])
    assert verify_log(done.log, "log").faults == []
    forged, prev = b"", None
    for event in done.recorder.events:
        if "rejected_before" in event.data:
            event = follow(prev, event.type, dict(event.data) | {"rejected_before": 2})
        prev = event if prev is None else follow(prev, event.type, event.data)
        forged += prev.line + b"\n"
    named = {fault.what for fault in verify_log(forged, "log").faults}
    assert named == {"rejected_before"}


def test_a_rejected_text_is_judged_anew_where_the_verdict_need_not_hold(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_whole(tmp_path, store, Stubborn(), epochs=1)
    run = done_run(done, toy_params())
    digest = text_digest(SEED_SKILL + "- trees are plants\n")
    assert digest in done.state.rejected
    other = replace(done.state, skill="# Other\n")
    assert rejected_before(run, done.state, digest, "step") is not None
    assert rejected_before(run, other, digest, "step") is not None  # strict, same mean
    paired = done_run(done, toy_params(gate={"rule": "no_regression"}))
    assert rejected_before(paired, other, digest, "step") is None
    fallen = replace(other, scores={id: Score.scored(0.0) for id in other.scores})
    assert rejected_before(run, fallen, digest, "step") is None
    forced = done_run(done, toy_params(slow_update={"mode": "force"}))
    assert rejected_before(forced, done.state, digest, "slow_update") is None


def done_run(done: ToyRun, params: Params) -> Run:
    rollouts = Rollouts(ToyEnvironment(), done.model, NullStore(), done.tally)
    return Run(params, (), (), SEED_SKILL, rollouts, ToyOptimizer(), done.recorder)


class Mute(ToyOptimizer):
    """Every reply of its model is unusable."""

    async def reflect(self, view: StepView) -> Answer:
        lost = RejectedReply("reflect", "empty: the reply holds no text", None, "no patch")
        return Answer([], rejected=(lost, lost))


def test_a_step_whose_replies_were_all_unusable_says_so_on_the_console(
    tmp_path: Path, store: FactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_whole(tmp_path, store, Mute(), epochs=1)
    Progress("train").step(done.state.history[0], done.state)
    told = capsys.readouterr().err
    assert "every optimizer reply was invalid (2 rejected)" in told
    steps = unusable_steps(done.recorder.events)
    assert steps == [1, 2, 3, 4]
    assert "in 4 steps (1, 2, 3, 4)" in unusable_lines(steps)[0]
    done = run_whole(tmp_path / "b", store, Stubborn(), epochs=1)
    Progress("train").step(done.state.history[0], done.state)
    assert "no reply" not in capsys.readouterr().err
    assert unusable_steps(done.recorder.events) == []

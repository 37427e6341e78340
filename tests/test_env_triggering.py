"""Whether a skill is loaded, by its name and description: by a model, or by an agent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from env_world import ROOT, WHERE, env_of, own_items, roll, scripted

from skilltrail.core.errors import DataError
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.contract.fakes import FakeModel
from skilltrail.models.harness.harness import loaded
from skilltrail.models.protocol import Reply
from skilltrail.skill.folder import files_of
from skilltrail.skill.skill_file import described, offered
from tests.fault_server import Answer, Call, FaultServer
from tests.model_world import run_stages, set_params
from tests.verify_project import role
from tests.verify_world import verified

SKILL = "---\nname: receipts\ndescription: Reads receipts.\n---\n\n# Receipts\n\nAdd up.\n"
ASKED = {"id": "1", "prompt": "Split this bill", "should_trigger": True}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def said(reply: str, *, wanted: bool = True, kind: str = "meant") -> str:
    env = env_of("triggering")
    item = env.parse(ASKED | {"should_trigger": wanted, "task_type": kind}, WHERE)
    trajectory = roll(env, item, scripted([reply], style="chat"), SKILL)
    score = env.score(item, trajectory)
    return f"{trajectory.answer} {score.hard:g} {score.reason}"


def test_it_is_right_to_load_the_skill_exactly_where_it_should_be() -> None:
    assert said("<answer>receipts</answer>") == "load 1 correct"
    assert said("<answer>Receipts.</answer>") == "load 1 correct"
    assert said("<answer>none</answer>") == "none 0 missed"
    assert said("<answer>travel</answer>") == "other 0 other_skill"
    assert said("<answer>none</answer>", wanted=False) == "none 1 correct"
    assert said("<answer>travel</answer>", wanted=False) == "other 1 correct"
    assert said("<answer>receipts</answer>", wanted=False, kind="near miss").endswith(
        "near_miss"
    )
    assert said("<answer>receipts</answer>", wanted=False, kind="far").endswith("false_alarm")
    assert said("<answer>all of them</answer>", wanted=False).endswith("0 no_name")
    assert said("<answer></answer>", wanted=False).endswith("0 empty")


def test_the_model_sees_names_and_descriptions_and_nothing_of_the_text() -> None:
    env, model = env_of("triggering"), scripted(["x"], style="chat")
    roll(env, env.parse(ASKED, WHERE), model, SKILL)
    system = model.requests[0].system
    assert "- receipts: Reads receipts." in system
    assert "- travel: Plans a journey" in system
    assert "Add up" not in system


def test_the_place_on_the_list_says_nothing() -> None:
    env, places = env_of("triggering"), set()
    for n in range(12):
        model = scripted(["x"], style="chat")
        roll(env, env.parse(ASKED | {"id": f"{n}"}, WHERE), model, SKILL)
        lines = [x for x in model.requests[0].system.split("\n") if x.startswith("- ")]
        places.add(next(i for i, line in enumerate(lines) if line.startswith("- receipts")))
    assert len(places) > 2


@pytest.mark.parametrize(
    ("text", "name", "about"),
    [
        (SKILL, "receipts", "Reads receipts."),
        ("# A\n\nFirst\nlines.\n\nMore.\n", "skill", "First lines."),
        ("---\nname: Odd Name!\ndescription: ''\n---\n# A\n\nText.\n", "odd-name", "Text."),
        ("---\nname: [a\n---\nText.\n", "skill", "Text."),
        ("", "skill", ""),
        ("---\ndescription: |\n  two\n  lines\n---\n", "skill", "two lines"),
        (f"---\ndescription: {'x' * 2000}\n---\n", "skill", "x" * 1024),
    ],
)
def test_a_skill_is_described_as_agent_programs_do(text: str, name: str, about: str) -> None:
    assert described(text) == (name, about)


def test_what_is_laid_before_an_agent_has_name_and_description() -> None:
    assert offered("receipts", "Reads receipts.", SKILL) == SKILL
    made = offered("skill", "First <b> lines.", "# A\n\nFirst <b> lines.\n")
    assert described(made) == ("skill", "First b lines.")
    folder = SKILL + "\n<!-- SKILL FILE: references/a.md -->\nmore\n"
    assert files_of(offered("receipts", "x", folder))["references/a.md"] == "more\n"


def test_an_agent_loads_by_its_tool_or_by_reading_the_file() -> None:
    skills = (SKILL, offered("travel", "Plans."))
    tool = {"name": "Skill", "input": {"skill": "receipts"}}
    read = {"name": "exec_command", "input": "sed -n 1,9p .agents/skills/travel/SKILL.md"}
    other = {"name": "exec_command", "input": "ls receipts"}
    assert loaded(skills, [tool]) == ["receipts"]
    assert loaded(skills, [read]) == ["travel"]
    assert loaded(skills, [other]) == []


def test_an_agent_program_gets_the_request_alone_and_the_skills_on_its_disk() -> None:
    env = env_of("triggering", by="agent")
    item = env.parse(ASKED, WHERE)
    for names, answer in ((["receipts"], "load"), (["travel"], "other"), ([], "none")):
        reply = Reply("done", extra={"loaded": names})
        model = FakeModel(answer=lambda turn, reply=reply: reply, style="chat")
        trajectory = roll(env, item, model, SKILL)
        assert trajectory.answer == answer
    (request,) = model.requests
    assert request.system == ""
    assert request.skills[0] == SKILL
    assert [described(skill)[0] for skill in request.skills[1:]] == [
        "code-review", "meeting-notes", "travel", "translation",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [None, "maybe", 1, [True]])
def test_a_record_must_say_whether_it_should_trigger(wrong: Any) -> None:
    with pytest.raises(DataError, match="should_trigger"):
        env_of("triggering").parse(ASKED | {"should_trigger": wrong}, WHERE)


def test_every_knob_changes_what_it_does() -> None:
    item = own_items("triggering")[0].item

    def asked(**params: Any) -> Any:
        model = scripted(["none"] * 3)
        roll(env_of("triggering", **params), item, model, SKILL)
        return [request.to_json() for request in model.requests]

    limits = replace(env_of("triggering").params.limits, turns=2)
    others = [{"by": "agent"}, {"others": ("cats: All.",)}, {"answer_tokens": 3},
              {"limits": limits}]  # fmt: skip
    assert all(asked(**params) != asked() for params in others)


def test_half_of_our_own_items_are_meant_and_most_others_are_near() -> None:
    items = [one.item for one in own_items("triggering")]
    meant = [item for item in items if item.gold == "load"]
    near = [item for item in items if item.task_type == "near miss"]
    assert (len(items), len(meant), len(near)) == (84, 42, 28)


def says(call: Call) -> Answer:
    """Load receipts where the description names splitting; propose that description once."""
    text = "\n".join(str(message["content"]) for message in call.body["messages"])
    if call.body["model"] == "target":
        request = text.split("Request:\n")[1]
        fits = "split" in request and "bill" in request
        wide = "shopping" in text.split("Request:")[0]
        name = "receipts" if (fits if "split a bill" in text else wide) else "none"
        return Answer(f"<answer>{name}</answer>", input=40, output=4)
    line = "description: Use to split a bill; not for other shopping."
    old = "description: Helps with shopping."
    edits = [{"op": "replace", "target": old, "content": line, "section": None, "kind": "rule",
              "reason": "as told", "items": []}]  # fmt: skip
    told = {"reasoning": "too wide", "edits": edits if old in text else [], "notes": []}
    return Answer(json.dumps(told), input=90, output=9)


def test_a_description_is_trained_and_nothing_below_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = (ROOT / "skills/seeds/triggering.md").read_text("utf-8")
    asks = {"bill": True, "garden": False, "shop": False}
    for split in ("train", "selection", "test"):
        rows = [
            {"id": f"{split}-{n}-{word}", "prompt": f"Please split the {word} {split} {n}",
             "should_trigger": wanted, "task_type": "meant" if wanted else "near miss"}
            for n in range(2) for word, wanted in asks.items()
        ]  # fmt: skip
        path = tmp_path / f"data/small/{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (tmp_path / "skills/seeds").mkdir(parents=True)
    (tmp_path / "skills/seeds/triggering.md").write_text(seed, "utf-8")
    (tmp_path / "skills/seeds/default").write_text("", "utf-8")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", "utf-8")
    with FaultServer(say=says) as server:
        set_params(
            tmp_path, role(server.url, "target"), env="triggering", batch_size=6,
            optimizer=role(server.url, "optimizer"), skill={"frontmatter": "train"},
            slow_update={"enabled": False}, meta_skill={"enabled": False},
        )  # fmt: skip
        run_stages(tmp_path, monkeypatch)
    best = (tmp_path / "skills/best_skill.md").read_text("utf-8")
    assert best == seed.replace(
        "Helps with shopping.", "Use to split a bill; not for other shopping."
    )
    metrics = json.loads((tmp_path / "reports/out/metrics.json").read_text("utf-8"))
    assert metrics["test"]["best"] == 1.0
    assert [str(fault) for fault in verified(tmp_path).faults] == []


def test_the_same_trajectory_scores_by_the_gold_alone() -> None:
    env = env_of("triggering")
    wanted = env.parse(ASKED, WHERE)
    score = env.score(wanted, Trajectory((), "load"))
    assert (score.hard, env.reference(wanted)) == (1.0, "load")
    assert asyncio.iscoroutinefunction(type(env).rollout)

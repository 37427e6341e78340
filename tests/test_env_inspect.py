"""Tasks of Inspect as items: its solver, its tools and its scorer over our own models."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from env_world import ROOT, env_of, own_items, roll, scripted

from skilltrail.core.errors import DataError, ParamError, UsageError
from skilltrail.core.item import Item
from skilltrail.core.score import Outcome, Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.contract.fakes import FakeModel
from skilltrail.envs.protocol import Environment
from skilltrail.models.errors import Transient
from skilltrail.models.protocol import Reply
from skilltrail.skill.folder import folder_text

pytest.importorskip("inspect_ai", reason="needs the extra inspect")

ENDS = """
import os, sys, warnings
sys.path.insert(0, "tests")
from env_world import env_of, own_items, roll, scripted
item = own_items("inspect")[0].item
roll(env_of("inspect"), item, scripted(["1"]))
warnings.warn("coroutine 'throttle.<locals>.x' was never awaited", RuntimeWarning)
warnings.warn("coroutine 'ours' was never awaited", RuntimeWarning)
print(os.environ["INSPECT_TRACE_FILE"])
"""
PRICE, LEDGER = "data/inspect/tasks.py@price", "data/inspect/tasks.py@ledger"
HEAD = """
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, ResponseSchema, get_model
from inspect_ai.scorer import Score, match, model_graded_qa, scorer, mean
from inspect_ai.solver import generate, solver
from inspect_ai.util import JSONSchema, sandbox
"""
ASKED = """
@task
def own():
    config = GenerateConfig({})
    sample = Sample("What is 2 + 2?", target="4")
    return Task([sample], solver=generate(), scorer=match(), config=config)
"""
FORCED = """
from inspect_ai.solver import use_tools
from inspect_ai.tool import tool

@tool
def add():
    async def execute(a: int) -> int:
        "Add one.\\n\\nArgs:\\n    a: a number."
        return a + 1
    return execute

@task
def own():
    solver = [use_tools(add(), tool_choice="{}"), generate()]
    return Task([Sample("What is 2 + 2?", target="4")], solver=solver, scorer=match())
"""
SCHEMA = (
    "ResponseSchema(name='n', json_schema=JSONSchema(type='object',"
    " properties={'n': JSONSchema(type='integer')}))"
)


def items(task: str, root: Path = ROOT, **params: Any) -> list[Item]:
    return [one.item for one in own_items("inspect", root, task=task, **params)]


def own_task(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, **params: Any) -> Any:
    """Return the environment and the items of a task `own` in a project of its own."""
    place = folder / "data" / "inspect"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "dvc.yaml").write_text("stages: {}\n")
    (place / "own.py").write_text(HEAD + text)
    monkeypatch.chdir(folder)
    task = "data/inspect/own.py@own"
    return env_of("inspect", task=task, **params), items(task, folder, **params)


def scored(env: Environment, item: Item, model: FakeModel, skill: str = "Be brief.") -> Score:
    return env.score(item, roll(env, item, model, skill))


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_samples_are_items_and_the_same_task_gives_the_same_items() -> None:
    found = items(PRICE)
    assert [found[0].id, len(found)] == ["price-1", 60]
    assert [i.content_digest for i in found] == [i.content_digest for i in items(PRICE)]
    assert len(items(PRICE, task_args={"count": 3})) == 3


def test_the_skill_stands_before_the_question_of_a_completion() -> None:
    env, item = env_of("inspect", task=PRICE), items(PRICE)[0]
    model = scripted([Reply(item.gold["target"])])
    assert scored(env, item, model, "Read with care.") == Score.scored(1.0, reason="correct")
    assert model.requests[0].system == "Read with care.\n\n"
    assert str(model.requests[0].prompt).endswith("\nAnswer:")


def test_a_chat_model_has_the_skill_as_system_message() -> None:
    env, item = env_of("inspect", task=PRICE), items(PRICE)[0]
    model = scripted(["no idea"], style="chat")
    assert scored(env, item, model, "Read with care.").reason == "wrong"
    assert model.requests[0].system == "Read with care."
    assert [m.role for m in model.requests[0].messages] == ["user"]


def test_a_tool_is_called_and_what_it_says_is_the_next_turn() -> None:
    env, item = env_of("inspect", task=LEDGER), items(LEDGER)[0]
    words = item.input["sample"]["input"].rstrip("?").split()  # What did NAME pay for the WARE?
    name, ware = words[2], words[-1]
    call = {"id": "c1", "name": "look_up", "arguments": {"name": name, "ware": ware}}
    answer = item.gold["target"]
    model = scripted(
        [Reply("", "tool", (call,)), Reply(f"It was {answer}.")],
        style="chat",
        abilities=frozenset({"tools"}),
    )
    trajectory = roll(env, item, model)
    assert env.score(item, trajectory).hard == 1.0
    assert [t.finish for t in trajectory.turns] == ["tool", "stop"]
    assert trajectory.turns[1].sent[-1] == {
        "role": "tool", "parts": [answer], "tool_call_id": "c1",
    }  # fmt: skip
    assert [tool["name"] for tool in model.requests[0].tools] == ["look_up"]


def test_a_completion_model_writes_its_call_as_json() -> None:
    env, item = env_of("inspect", task=LEDGER), items(LEDGER)[0]
    model = scripted(['{"name": "look_up", "arguments": {"name": "a", "ware": "b"}}', "1.00"])
    trajectory = roll(env, item, model)
    assert "Result: There is no such entry." in str(trajectory.turns[1].sent)
    assert env.score(item, trajectory).reason == "wrong"


def test_a_target_without_tools_is_refused_in_words() -> None:
    env, item = env_of("inspect", task=LEDGER), items(LEDGER)[0]
    with pytest.raises(UsageError, match="takes none"):
        roll(env, item, scripted(["1.00"], style="chat"))


def test_an_agent_that_never_ends_has_used_up_its_turns() -> None:
    env = env_of("inspect", task=LEDGER, limits=env_of("inspect").params.limits.__class__(2))
    item = items(LEDGER)[0]
    model = scripted(['{"name": "look_up", "arguments": {"name": "a", "ware": "b"}}'] * 9)
    trajectory = roll(env, item, model)
    assert [trajectory.ending, len(model.requests)] == ["out_of_turns", 2]


def test_a_failed_call_is_a_failed_call_and_hurts_no_other_item() -> None:
    env, found = env_of("inspect", task=PRICE), items(PRICE)[:2]
    bad = FakeModel(fails=Transient("asked", "the line is dead"))
    good = scripted([found[1].gold["target"]])

    async def both() -> list[Any]:
        tasks = [
            env.rollout(item, "", model) for item, model in zip(found, (bad, good), strict=True)
        ]
        return await asyncio.gather(*tasks, return_exceptions=True)

    lost, right = asyncio.run(both())
    assert isinstance(lost, Transient)
    assert env.score(found[1], right).hard == 1.0


def test_rollouts_at_once_are_told_apart() -> None:
    env, found = env_of("inspect", task=PRICE), items(PRICE)[:20]

    async def all_of() -> list[Trajectory]:
        models = [scripted([f"answer {i.id}"]) for i in found]
        return await asyncio.gather(
            *(env.rollout(i, f"skill {i.id}", m) for i, m in zip(found, models, strict=True))
        )

    assert [t.answer for t in asyncio.run(all_of())] == [f"answer {i.id}" for i in found]


def test_an_open_session_serves_another_loop_too() -> None:
    env, item = env_of("inspect", task=PRICE), items(PRICE)[0]
    assert roll(env, item, scripted(["1"])) == roll(env, item, scripted(["1"]))


def test_a_cancelled_rollout_leaves_nothing_behind() -> None:
    env, item = env_of("inspect", task=PRICE), items(PRICE)[0]

    class Slow(FakeModel):
        async def complete(self, request: Any) -> Reply:
            await asyncio.sleep(60)
            return Reply("never")

    async def cut() -> int:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(env.rollout(item, "", Slow()), 3)
        await asyncio.sleep(1)
        return len(asyncio.all_tasks())

    assert asyncio.run(cut()) == 1


def test_another_target_of_a_sample_is_another_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@task\ndef own():\n    return Task([Sample('q', target='{}')], scorer=match())\n"
    _, (one,) = own_task(tmp_path, text.format("a"), monkeypatch)
    _, (other,) = own_task(tmp_path, text.format("b"), monkeypatch)
    assert one.input_digest != other.input_digest
    assert one.input["sample"] == other.input["sample"]


def test_the_code_of_a_task_is_part_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@task\ndef own():\n    return Task([Sample('q', target='a')], scorer=match())\n"
    one, _ = own_task(tmp_path, text, monkeypatch)
    other, _ = own_task(tmp_path, text + "# changed\n", monkeypatch)
    assert one.version != other.version


def test_a_grader_asks_through_the_same_door_and_is_no_turn_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "@task\ndef own():\n"
        "    return Task([Sample('Say hello.', target='hello')], scorer=model_graded_qa())\n"
    )
    env, (item,) = own_task(tmp_path, text, monkeypatch)
    model = scripted(["hello", "GRADE: C"], style="chat")
    trajectory = roll(env, item, model, "Be kind.")
    assert env.score(item, trajectory).hard == 1.0
    assert [len(trajectory.turns), len(model.requests)] == [1, 2]
    assert "Be kind." not in model.requests[1].system


def test_a_skill_can_lie_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "@solver\ndef reads():\n    async def solve(state, generate):\n"
        "        told = await sandbox().read_file('skills/own/SKILL.md')\n"
        "        given = await sandbox().read_file('note.txt')\n"
        "        state.messages.append(ChatMessageUser(content=told + given))\n"
        "        return await generate(state)\n    return solve\n"
        "@task\ndef own():\n"
        "    note = str(Path(__file__).parent / 'note.txt')\n"
        "    return Task([Sample('q', target='a', files={'note.txt': note})], solver=reads(),\n"
        "                scorer=match(), sandbox='local')\n"
    )
    (tmp_path / "data" / "inspect").mkdir(parents=True)
    note = tmp_path / "data" / "inspect" / "note.txt"
    note.write_text("A note.")
    env, (item,) = own_task(tmp_path, text, monkeypatch, skill_path="skills/own/SKILL.md")
    model = scripted(["a"], style="chat")
    assert scored(env, item, model, "Be kind. ").hard == 1.0
    assert model.requests[0].system == ""
    assert model.requests[0].messages[1].parts[0].text == "Be kind. A note."
    note.write_text("Another note.")
    with pytest.raises(DataError, match=r"note\.txt"):
        roll(env, item, scripted(["a"], style="chat"))


def test_a_skill_folder_is_laid_into_the_sandbox_and_what_is_opened_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "from inspect_ai.tool import tool\nfrom inspect_ai.solver import use_tools\n"
        "@tool\ndef look():\n    async def execute(file: str):\n"
        "        'Read a file.\\n\\nArgs:\\n  file: its path'\n"
        "        return await sandbox().read_file('skills/own/' + file)\n    return execute\n"
        "@task\ndef own():\n    return Task([Sample('q', target='a', id='x')], scorer=match(),"
        " solver=[use_tools(look()), generate()], sandbox='local')\n"
    )
    env, (item,) = own_task(tmp_path, text, monkeypatch, skill_path="skills/own/SKILL.md")
    files = {"SKILL.md": "See a.\n", "references/a.md": "Say a.\n", "references/b.md": "No.\n"}
    call = {"id": "1", "name": "look", "arguments": {"file": "references/a.md"}}
    replies = [Reply("", "tool", tool_calls=(call,)), Reply("a")]
    model = scripted(replies, style="chat", abilities=frozenset({"tools"}))
    trajectory = roll(env, item, model, folder_text(files))
    assert env.score(item, trajectory).hard == 1.0
    assert trajectory.extra["opened"] == ["references/a.md"]
    assert "Say a." in str(model.requests[-1].messages)


def test_code_of_a_task_that_raises_names_the_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "@scorer(metrics=[mean()])\ndef bad():\n    async def score(state, target):\n"
        "        raise RuntimeError('no such table')\n    return score\n"
        "@task\ndef own():\n    return Task([Sample('q', target='a', id='x7')], scorer=bad())\n"
    )
    env, (item,) = own_task(tmp_path, text, monkeypatch)
    with pytest.raises(DataError, match=r"x7.*\n?.*no such table"):
        roll(env, item, scripted(["a"]))


@pytest.mark.parametrize(
    ("value", "hard", "reason"),
    [
        ("C", 1.0, "correct"), ("I", 0.0, "wrong"), ("P", 0.5, "partial"), ("N", 0.0, "wrong"),
        (True, 1.0, "correct"), (0.25, 0.25, "partial"), ("yes", 1.0, "correct"),
        ("0.5", 0.5, "partial"), ({"a": 1, "b": 0}, 1.0, "correct"),
    ],
)  # fmt: skip
def test_values_of_inspect_are_numbers(value: Any, hard: float, reason: str) -> None:
    env, item = env_of("inspect"), Item("x", {"sample": {"input": "q"}}, {"target": "a"})
    trajectory = Trajectory((), "a", extra={"scores": {"own": {"value": value}}})
    assert env.score(item, trajectory) == Score.scored(hard, reason=reason)


@pytest.mark.parametrize("value", [7, -1, "good", None, float("nan"), [1], {}])
def test_a_value_that_is_no_score_is_said_and_never_bent(value: Any) -> None:
    env, item = env_of("inspect"), Item("x", {"sample": {"input": "q"}}, {"target": "a"})
    trajectory = Trajectory((), "a", extra={"scores": {"own": {"value": value}}})
    assert env.score(item, trajectory).outcome is Outcome.INVALID


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ("", "''"),
        ("price", "'price'"),
        ("data/inspect/tasks.py", r"tasks\.py"),
        ("data/inspect/none.py@price", "no file"),
        ("data/inspect/tasks.py@none", "no task 'none'"),
        ("../tasks.py@price", "is under neither"),
        ("nobodys_package/gsm8k", "no installed package"),
    ],
)
def test_a_task_that_is_not_there_is_named(task: str, found: str) -> None:
    with pytest.raises(ParamError, match=found):
        items(task)


def test_arguments_that_a_task_does_not_take_are_named() -> None:
    with pytest.raises(ParamError, match="unexpected keyword"):
        items(PRICE, task_args={"colour": "red"})


def test_a_tasks_file_finds_what_lies_beside_it_as_in_inspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "data" / "inspect"
    place.mkdir(parents=True)
    (place / "beside.py").write_text("WORD = 'one'\n")
    (place / "rows.jsonl").write_text('{"input": "Q?", "target": "one"}\n')
    (place / "note.txt").write_text("A note.")
    text = (
        "from inspect_ai.dataset import json_dataset\nfrom beside import WORD\n"
        "@task\ndef own():\n"
        "    rows = json_dataset('rows.jsonl')\n"
        "    rows[0].metadata = {'task_type': WORD}\n"
        "    rows[0].files = {'a.txt': 'note.txt'}\n"
        "    return Task(rows, scorer=match(), sandbox='local')\n"
    )
    _, (item,) = own_task(tmp_path, text, monkeypatch)
    assert [item.task_type, Path.cwd()] == ["one", tmp_path]
    assert item.input["sample"]["files"]["a.txt"]["path"] == "data/inspect/note.txt"
    (place / "beside.py").write_text("WORD = 'two'\n")
    _, (again,) = own_task(tmp_path, text, monkeypatch)
    assert again.task_type == "two"
    assert not (place / "__pycache__").exists()


def test_a_tasks_own_model_and_roles_are_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "@solver\ndef asks():\n    async def solve(state, generate):\n"
        "        await get_model(role='critic').generate('Look at it.')\n"
        "        return state\n    return solve\n"
        "@task\ndef own():\n    return Task([Sample('q', target='a')], scorer=match(),\n"
        "        setup=asks(), solver=[generate(), asks()],\n"
        "        model='mockllm/model', model_roles={'critic': 'mockllm/model'})\n"
    )
    env, (item,) = own_task(tmp_path, text, monkeypatch)
    model = scripted(["warm", "a", "fine"], style="chat")
    assert scored(env, item, model).hard == 1.0
    asked = [request.messages[-1].parts[0].text for request in model.requests]
    assert asked == ["Look at it.", "q", "Look at it."]


def test_a_model_that_a_task_asks_by_name_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "from inspect_ai.model import ModelOutput\n"
        "@solver\ndef strays():\n    async def solve(state, generate):\n"
        "        said = [ModelOutput.from_content('mockllm/model', 'x')]\n"
        "        other = get_model('mockllm/model', custom_outputs=said)\n"
        "        try:\n            await other.generate('q')\n"
        "        except Exception:\n            pass\n"
        "        return await generate(state)\n    return solve\n"
        "@task\ndef own():\n"
        "    return Task([Sample('q', target='a', id='x')], solver=strays(), scorer=match())\n"
    )
    env, (item,) = own_task(tmp_path, text, monkeypatch)
    with pytest.raises(DataError, match=r"'x': it asks mockllm/model by name") as told:
        roll(env, item, scripted(["a"]))
    assert "role=" in str(told.value)


def test_inspects_own_cache_hands_no_reply_of_one_target_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    text = (
        "@task\ndef own():\n"
        "    return Task([Sample('q', target='a')], scorer=match(),\n"
        "        solver=generate(cache=True))\n"
    )
    env, (item,) = own_task(tmp_path, text, monkeypatch)
    assert [roll(env, item, scripted([text])).answer for text in ("a", "b")] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def own():\n    return 5\n", "gives a int and no Task"),
        ("@task\ndef own():\n    return Task([Sample('q')])\n", "has no scorer"),
    ],
)
def test_what_is_no_task_to_train_on_is_said_before_any_call(
    text: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ParamError, match=found):
        own_task(tmp_path, text, monkeypatch)


def test_the_values_of_a_table_are_metrics_and_a_value_that_is_not_there_is_named() -> None:
    item = Item("x", {"sample": {"input": "q"}}, {"target": "a"})
    table = {"tone": "P", "facts": 1, "length": 9}
    trajectory = Trajectory((), "a", extra={"scores": {"own": {"value": table}}})
    env = env_of("inspect", value="facts")
    assert env.score(item, trajectory).hard == 1.0
    assert env.metrics(item, trajectory) == {"own.tone": 0.5, "own.facts": 1.0}
    wrong = env_of("inspect", value="fact").score(item, trajectory)
    assert wrong.reason == "the score 'own' has no value 'fact', but tone, facts, length"


def test_a_program_that_ends_takes_its_traces_away_and_no_device() -> None:
    """Inspect packs and removes its trace file at exit; once that was /dev/null."""
    own = {k: v for k, v in os.environ.items() if k != "INSPECT_TRACE_FILE"}
    done = subprocess.run(
        [sys.executable, "-c", ENDS],
        cwd=ROOT,
        env=own,
        capture_output=True,
        text=True,
        check=True,
    )
    # Its display draws nothing here, and what it still had to draw is no warning of ours.
    assert "RuntimeWarning: coroutine 'ours'" in done.stderr
    assert done.stderr.count("RuntimeWarning:") == 1
    trace = Path(done.stdout.strip())
    assert trace.name == "trace.log"
    assert not trace.parent.exists()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ("num_choices=3", "num_choices"),
        ("top_k=5, logit_bias={1: 2.0}", "logit_bias, top_k"),
        (f"response_schema={SCHEMA}", "response_schema, which this target cannot be held to"),
    ],
)
def test_what_no_target_is_asked_for_is_refused_and_not_left_out_silently(
    config: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env, [item] = own_task(tmp_path, ASKED.format(config), monkeypatch)
    with pytest.raises(UsageError, match=re.escape(found)):
        roll(env, item, scripted(["4"], style="chat"))


def test_a_schema_and_an_effort_that_a_task_sets_reach_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = f"response_schema={SCHEMA}, reasoning_effort='low', num_choices=1, max_retries=3"
    env, [item] = own_task(tmp_path, ASKED.format(config), monkeypatch)
    model = scripted(["4"], style="chat", abilities=frozenset({"schema"}))
    assert scored(env, item, model).hard == 1.0
    [request] = model.requests
    assert request.decoding.effort == "low"
    assert request.schema == {"type": "object", "properties": {"n": {"type": "integer"}}}


def test_a_task_that_makes_its_agent_call_a_tool_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted(["4"], style="chat", abilities=frozenset({"tools"}))
    env, [item] = own_task(tmp_path, FORCED.format("any"), monkeypatch)
    with pytest.raises(UsageError, match="tool_choice is 'any'"):
        roll(env, item, model)
    env, [item] = own_task(tmp_path / "none", FORCED.format("none"), monkeypatch)
    assert scored(env, item, model).hard == 1.0
    assert not model.requests[-1].tools

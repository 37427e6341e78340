"""The Python call: the same run that the pipeline makes, from a program or a notebook."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skilltrail
from skilltrail import Result, aoptimize, optimize
from skilltrail.api.items import splits_of
from skilltrail.cli.main import run
from skilltrail.core.errors import DataError, SkilltrailError
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.by_function import FUNCTION, MetricEnv, MetricParams
from skilltrail.envs.protocol import Where
from skilltrail.envs.scoring import by_rule
from skilltrail.history.git.repository import Git
from tests.fault_server import FaultServer
from tests.skill_server import ITEMS, RULE, metric, says

ROOT = Path(__file__).resolve().parents[1]
SKILL = "# Prices\n\n- Answer with the price.\n"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=says) as one:
        yield one


def model(server: FaultServer) -> dict[str, Any]:
    return {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
            "base_url": f"{server.url}/v1", "max_tokens": 200}  # fmt: skip


@pytest.fixture(scope="module")
def done(server: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return optimize(
        skill=SKILL, items=ITEMS, metric=metric, target=model(server), lr=2, epochs=2,
        workspace=tmp_path_factory.mktemp("run") / "prices", progress=False,
    )  # fmt: skip


def test_feedback_of_the_metric_reaches_the_analyst_and_the_skill_gets_its_rule(
    done: Result, server: FaultServer
) -> None:
    asked = [str(call.body) for call in server.calls if '"edits"' in str(call.body)]
    assert any("the currency is missing" in text for text in asked)
    assert RULE in done.best
    assert done.version(0) == done.seed == SKILL
    assert done.scores["test"]["seed"] == 0.5
    assert done.scores["test"]["best"] == 1.0
    assert done.gain == 0.5
    assert done.history[0]["verdict"] == "accepted"


def test_its_workspace_is_a_repository_that_every_command_works_in(
    done: Result, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(done.workspace)
    git = Git.find(done.workspace)
    assert git is not None
    assert [ref for ref in git.refs("refs/evolution") if ref.startswith("refs/evolution/")]
    assert run(["audit", "--text", RULE]) == 0
    assert "by" in capfd.readouterr().out
    assert run(["summary"]) == 0
    assert "+0.500" in capfd.readouterr().out
    assert run(["verify"]) == 3  # the function that scores is in this program alone
    assert "not checked" in capfd.readouterr().out


def test_the_page_and_the_skill_are_written_where_asked(done: Result, tmp_path: Path) -> None:
    page = done.report(tmp_path / "page.html")
    assert "currency" in page.read_text("utf-8")
    assert done.save(tmp_path / "SKILL.md").read_text("utf-8") == done.best
    assert "0.500 -&gt; 1.000" in done._repr_html_()
    assert "gain +0.500" in str(done)


def test_the_same_call_again_makes_no_call_of_a_model(
    done: Result, server: FaultServer
) -> None:
    before = len(server.calls)
    again = optimize(
        skill=SKILL, items=ITEMS, metric=metric, target=model(server), lr=2, epochs=2,
        workspace=done.workspace, progress=False,
    )  # fmt: skip
    assert len(server.calls) == before
    assert [e.line for e in again.events] == [e.line for e in done.events]


def test_in_a_running_loop_both_forms_work(server: FaultServer) -> None:
    async def notebook() -> list[Result]:
        given = {"items": ITEMS, "metric": metric, "target": model(server), "epochs": 1}
        waited = await aoptimize(**given, evaluate=False, progress=False)
        return [waited, optimize(**given, evaluate=False, progress=False)]

    one, two = asyncio.run(notebook())
    assert one.events[-1].id == two.events[-1].id
    assert one.gain is None
    assert one.workspace != two.workspace


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"items": ITEMS[:3]}, "at least 6 items"),
        ({"items": [{"x": 1, "y": 2, "z": 3}] * 9}, "the question: there are x, y, z"),
        ({"columns": {"question": "asked"}}, "the question: there are question, answer"),
        ({"items": {"train": ITEMS, "test": ITEMS}}, "Name train, selection"),
        ({"items": [{"question": object()}] * 9}, "not JSON"),
        ({"metric": lambda item, reply: 2.0}, "a score is a number in"),
        ({"metric": lambda item, reply: None}, "a score is a number in"),
        ({"metric": lambda item, reply: item["gold"]}, "KeyError"),
        ({"epoch": 3}, "epochs"),
        ({"lr": -1}, "lr"),
        ({"target": "nobody:m"}, "nobody"),
        ({"skill": "missing.md"}, "no file at"),
    ],
)
def test_wrong_use_is_one_clear_error(
    server: FaultServer, change: Mapping[str, Any], said: str
) -> None:
    given = {"items": ITEMS, "metric": metric, "target": model(server), "progress": False}
    with pytest.raises(SkilltrailError, match=said) as raised:
        optimize(**{**given, **change})
    assert "no running event loop" not in repr(raised.value.__context__)


def test_a_files_rows_without_a_question_are_left_out_and_told_unless_quiet(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prices.csv"
    rows = "".join(f"{one['question']},{one['answer']}\n" for one in ITEMS)
    path.write_text(f"질문,정답\n{rows},total 18\n", "utf-8")
    kind = MetricEnv(MetricParams(function="m"))
    splits = splits_of(path, kind, 42, None)
    assert sum(map(len, splits.values())) == len(ITEMS)
    assert "left out for want of a question: 1 of 19 rows" in capfd.readouterr().err


def test_fields_of_any_name_are_the_question_where_the_program_says_so(tmp_path: Path) -> None:
    rows = [{"Ticket": one["question"], "Team": one["answer"], "Who": "Ann"} for one in ITEMS]
    path = tmp_path / "tickets.csv"
    lines = [";".join(row.values()) for row in rows]
    path.write_text("\n".join(["Ticket;Team;Who", *lines]) + "\n", "utf-8")
    for items in (rows, path):
        kind = MetricEnv(MetricParams(function="m"))
        splits = splits_of(items, kind, 42, None, {"question": "Ticket"})
        found = [one for part in splits.values() for one in part]
        asked = {one["question"] for one in ITEMS}
        assert {one.input["question"] for one in found} == asked


def test_a_workspace_of_the_pipeline_is_not_taken_over(
    server: FaultServer, tmp_path: Path
) -> None:
    (tmp_path / "params.yaml").write_text("env: textqa\n", "utf-8")
    with pytest.raises(SkilltrailError, match="did not make"):
        optimize(items=ITEMS, metric=metric, target=model(server), workspace=tmp_path)
    assert (tmp_path / "params.yaml").read_text("utf-8") == "env: textqa\n"


def judged(metric: Any) -> Score:
    """Return what an item's reply scores by a function."""
    context = copy_context()
    context.run(FUNCTION.set, metric)
    env = context.run(MetricEnv, MetricParams())
    record = {"id": "q7", "question": "1+1", "record": {"question": "1+1"}}
    item = env.parse(record, Where(Path("items.jsonl"), 3))
    return by_rule(env, item, Trajectory((), "2"))


@pytest.mark.parametrize(
    ("value", "hard"),
    [
        (np.bool_(True), 1.0), (np.float32(0.25), 0.25), (Decimal("0.5"), 0.5), (True, 1.0),
        ((np.int64(1), "fine"), 1.0), ((0.5, None), 0.5), (-0.0, 0.0),
    ],
)  # fmt: skip
def test_any_number_of_a_metric_is_a_score(value: Any, hard: float) -> None:
    found = judged(lambda item, reply: value)
    assert repr(found.hard) == repr(hard)


def test_what_is_no_score_of_a_metric_names_item_and_value() -> None:
    for value in (None, "0.5", float("nan"), 1.5, {"score": 1}, (0.5,), (0.5, "a", "b"), 1j):
        with pytest.raises(DataError, match="item 'q7' .* invalid_score: a score"):
            judged(lambda item, reply, value=value: value)
    with pytest.raises(DataError, match="feedback is a text, found 3"):
        judged(lambda item, reply: (0.5, 3))


def test_a_metric_that_ends_the_program_is_told_as_one_that_raises() -> None:
    with pytest.raises(DataError, match=r"item 'q7' .* SystemExit: 0 \(tests/test_optimize.py"):
        judged(lambda item, reply: sys.exit(0))


def test_the_page_names_every_argument() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    table = page.split("| argument |")[1].split("| of the result |")[0]
    told = set(re.findall(r"`(\w+)(?:\(|`)", table))
    assert set(inspect.signature(optimize).parameters) - told == {"params"}


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, skilltrail; heavy = {'typer', 'dvc', 'numpy', 'openai', 'rich'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "assert callable(skilltrail.optimize)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="optimise"):
        skilltrail.optimise  # noqa: B018


# --- documentation ---


def code_of(name: str) -> list[str]:
    """Return the code of a page of docs/, or of a notebook's cells."""
    text = (ROOT / "docs" / name).read_text("utf-8")
    if name.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        return ["".join(one["source"]) for one in cells if one["cell_type"] == "code"]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("name", ["python.md", "notebooks/optimize.ipynb"])
def test_the_code_of_the_documentation_runs(
    name: str, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a notebook runs it: one name space, a loop that is running."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(code_of(name))
    names: dict[str, Any] = {"MODEL": model(server)}
    changed = code.replace('"openai:gpt-4o-mini"', "MODEL").replace(
        "range(1, 61)", "range(1, 19)"
    )
    assert changed.count("MODEL") == 1

    async def cells() -> None:
        exec(compile(changed, name, "exec"), names)

    asyncio.run(cells())
    assert RULE in names["result"].best
    assert names["result"].gain > 0


# --- a scorer in another language ---


class Scorer(BaseHTTPRequestHandler):
    """Answers as the metric does."""

    def do_POST(self) -> None:  # noqa: N802
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        item = asked["item"] | {"answer": asked["item"]["answers"][0]}
        score, feedback = metric(item, asked["reply"])
        body = json.dumps({"score": score, "feedback": feedback}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def scorer() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Scorer) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/score"
        http.shutdown()


def test_a_web_service_scores_and_its_feedback_is_read(scorer: str) -> None:
    from skilltrail.core.trajectory import Trajectory
    from skilltrail.envs.protocol import Where
    from skilltrail.envs.qa.env import Qa, QaParams

    env = Qa(QaParams(scorer="http", url=scorer))
    item = env.parse({"id": "1", "question": "q", "answer": "2.50 EUR"}, Where("f", 1))
    half = Trajectory((), "2.50")
    assert env.score(item, half).hard == 0.5
    assert env.feedback(item, half) == "the currency is missing"
    assert env.score(item, Trajectory((), "2.50 EUR")).reason == "correct"


@pytest.mark.parametrize(
    ("url", "said"),
    [(None, "envs.qa.url"), ("file:///etc/passwd", "envs.qa.url"), ("http://127.0.0.1:9", "9")],
)
def test_a_service_that_is_not_there_is_named(url: str | None, said: str) -> None:
    from skilltrail.envs.kit.http_scorer import asked

    with pytest.raises(SkilltrailError, match=said):
        asked(url, {}, "x")

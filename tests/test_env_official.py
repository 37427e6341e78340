"""Our scores against the published evaluators: `tests/vectors` holds what those said.

Each row was made up by us; its outcome was computed by the publisher's own code.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from skilltrail.cli.main import run
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.docvqa.anls import anls, script_anls
from skilltrail.envs.kit.answers import extract_answer
from skilltrail.envs.kit.choices import lenient_label, read_label
from skilltrail.envs.officeqa.official import score_answer
from skilltrail.envs.protocol import Environment, Where
from skilltrail.envs.spreadsheet.judge import from_json, judge_case, same
from skilltrail.envs.spreadsheet.reader import answer_cells
from skilltrail.optimizers.protocol import Observation, StepView
from skilltrail.optimizers.rules.lessons import KnownItems, read_lessons, sort_evidence
from skilltrail.optimizers.rules.memory import Memory
from skilltrail.optimizers.rules.moves import Desk, advise
from tests.env_world import ROOT, env_of, record

VECTORS = Path(__file__).parent / "vectors"


def rows(name: str) -> list[Any]:
    text = (VECTORS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def test_officeqa_scores_as_the_published_reward() -> None:
    wrong = [row for row in rows("officeqa") if score_answer(*row[:3]) != row[3]]
    assert wrong == []
    assert len(rows("officeqa")) > 400


@pytest.mark.parametrize(
    ("gold", "said", "score"),
    [
        ("[(5,062), (6,533)]", "[(5,062), (6,533)]", 1),
        ("[$1,234 million, $5,678 million]", "[$1,234 million, $5,678 million]", 1),
        ("[1, 2]", "The values are 1 and 2", 1),
        ("[1, 2]", "**1; 2**", 1),
        ("[19, 41]", "low 19, high 41", 1),
        ("[(19), (41)]", "[(foo), (bar)]", 0),
        ("5", "<5>", 0),
        ("3 and 7", "3 and 7 (1977)", 1),
        ("tax 5", "tax  5", 1),
        ("1.234", "1.234,567", 0),
    ],
)
def test_officeqa_reads_lists_with_signs_and_groups_prose_and_labels(
    gold: str, said: str, score: int
) -> None:
    assert score_answer(gold, said) == score


def test_a_long_list_is_scored_in_no_time() -> None:
    numbers = ",".join(["123"] * 60)
    assert score_answer(f"[{', '.join(['123123'] * 30)}]", numbers) == 1.0


def test_docvqa_scores_by_the_paper_and_names_what_the_script_says() -> None:
    for said, golds, paper, script in rows("docvqa"):
        assert anls(said, golds) == pytest.approx(paper, abs=1e-6), (said, golds)
        assert script_anls(said, golds) == pytest.approx(script, abs=1e-6), (said, golds)


def test_docvqa_counts_a_half_by_the_script_alone() -> None:
    assert (anls("ab", ["abcd"]), script_anls("ab", ["abcd"])) == (0.0, 0.5)
    env = env_of("docvqa")
    item = Item("1", {"question": "q", "image": "", "page_text": None}, ["abcd"])
    assert env.metrics(item, Trajectory((), "ab")) == {"anls": 0.0, "anls_script": 0.5}


def test_cells_are_compared_as_by_the_published_evaluation() -> None:
    wrong = [
        row for row in rows("spreadsheet_cells") if same(*map(from_json, row[:2])) != row[2]
    ]
    assert wrong == []


def book(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    made = Workbook()
    made.remove(made.worksheets[0])
    for title, cells in sheets.items():
        sheet = made.create_sheet(title)
        for line in cells:
            sheet.append(line)
    made.save(path)
    return path


def test_answer_positions_are_read_as_by_the_published_evaluation(tmp_path: Path) -> None:
    for row in rows("spreadsheet_positions"):
        gold = answer_cells(book(tmp_path / "g.xlsx", row["gold"]), row["position"])
        output = answer_cells(book(tmp_path / "o.xlsx", row["output"]), row["position"])
        assert judge_case(gold, output, row["position"]).passes is row["passes"], row


# -- livemath, searchqa -------------------------------------------------------------------

labels = st.dictionaries(
    st.sampled_from("ABCDE"), st.text("xy. ()$*B=", min_size=1, max_size=8), min_size=2
)


@given(labels, st.text("ABCDE xy.)(:*$=", max_size=12))
def test_a_lenient_label_is_never_below_the_strict_one(
    choices: dict[str, str], answer: str
) -> None:
    strict = read_label(answer, choices)
    assert strict is None or lenient_label(answer, choices) == strict


@pytest.mark.parametrize("wrap", ["{}", "**{}**", "({})", "$ {} $", "\\boxed{{{}}}", "{}."])
@pytest.mark.parametrize("text", ["The product ab is at most 676.", "x = 2", "(a) holds."])
def test_the_whole_right_text_is_right_to_the_lenient_reader(wrap: str, text: str) -> None:
    choices = {"A": "something else.", "B": text}
    assert lenient_label(wrap.format(text), choices) == "B"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\f", "\u2028", "\x85", "\v", "\n \n"])
def test_the_last_line_is_the_answer_whatever_ends_lines(end: str) -> None:
    assert extract_answer(f"I think so.{end} Spain {end}") == "Spain"
    assert extract_answer(end) == ""


# -- docvqa, import -----------------------------------------------------------------------


@pytest.mark.parametrize("other", ["elsewhere/337.png", "data/docvqa/images/own01.jpg"])
def test_a_record_with_image_and_image_path_uses_the_file_that_is_there(
    monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.chdir(ROOT)
    env = env_of("docvqa")
    for fields in ({"image_path": other}, {"image": other, "image_path": "own01_1.png"}):
        item = env.parse(record("docvqa", **fields), Where("val.json", 1))
        assert str(item.extra["image_name"]).endswith("own01_1.png")


def commands() -> list[str]:
    texts = [path.read_text("utf-8") for path in (ROOT / "skilltrail/envs").glob("*/README.md")]
    texts.append((ROOT / "docs/environments.md").read_text("utf-8"))
    lines = {line.strip() for text in texts for line in text.split("\n")}
    return sorted(line for line in lines if line.startswith("skilltrail data import"))


@pytest.mark.parametrize("command", commands())
def test_import_commands_of_the_docs_are_understood(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(command)[1:]) == 2
    err = capfd.readouterr().err
    assert "unexpected extra argument" not in err
    assert "folder" in err  # what is missing are the files alone


def test_the_command_after_an_import_with_shared_sources_allows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    names = {"train": "1", "val": "2", "test": "3"}
    for name, id in names.items():
        (tmp_path / "ids" / name).mkdir(parents=True)
        rows = [{"uid": id}]
        (tmp_path / "ids" / name / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    full = [record("officeqa", uid=id) for id in names.values()]
    (tmp_path / "full.json").write_text(json.dumps(full), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    args = ["data", "import", "officeqa", "--manifest", "ids", "--source", "full.json"]
    assert run(args) == 0
    assert "-S data.allow_overlap=true" in capfd.readouterr().err.splitlines()[-1]


# -- rules --------------------------------------------------------------------------------


def proposed(env: Environment, *items: Item) -> set[str]:
    observations = [
        Observation(item, Trajectory((), "x"), Score.scored(0.0, 0.0, "wrong"), item.id, None)
        for item in items
    ]
    view = StepView(
        epoch=1, step=1, seed=1, skill="# S\n\nBe brief.\n", budget=4,
        observations=tuple(observations), pool={o.item.id: o for o in observations}, history=(),
    )  # fmt: skip
    known = KnownItems(env)
    lessons = read_lessons(view, known)
    desk = Desk(view, known, lessons, sort_evidence(view, known, lessons), Memory())
    return {edit.content.strip() for edits in advise(desk) for edit in edits}


def test_no_line_about_a_context_is_proposed_to_items_that_have_none() -> None:
    qa = env_of("qa")
    bare = qa.parse(record("qa"), Where("a.jsonl", 1))
    blank = qa.parse(record("qa", id="2", context=""), Where("a.jsonl", 2))
    full = qa.parse(record("qa", id="3", context="c of x"), Where("a.jsonl", 3))
    about = (
        "- Find the words of the question in the context and take the answer from beside them."
    )
    assert about not in proposed(qa, bare, blank)
    assert proposed(qa, bare, blank)
    assert about in proposed(qa, bare, full)


def test_no_line_about_documents_is_proposed_to_a_closed_book(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    closed = env_of("officeqa", local_tools=False)
    item = closed.parse(record("officeqa"), Where("a.csv", 2))
    assert not any("table" in line for line in proposed(closed, item))
    assert any(
        "table" in line
        for line in proposed(
            env_of("officeqa"), env_of("officeqa").parse(record("officeqa"), Where("a.csv", 2))
        )
    )

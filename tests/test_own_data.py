"""`skilltrail init --data`: from somebody's own file to a workspace, and what is told of it."""

from __future__ import annotations

import csv
import json
import subprocess
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.cli.main import run
from skilltrail.core.errors import DataError, UsageError
from skilltrail.core.item import SPLITS
from skilltrail.data.intake.choose import choose
from skilltrail.data.intake.columns import find_columns
from skilltrail.data.intake.exact import assign_exactly, shares
from skilltrail.data.intake.power import size_warnings, smallest_gain
from skilltrail.data.intake.records import make_records
from skilltrail.data.intake.tables import read_table
from skilltrail.data.read import read_records
from skilltrail.models.names import model_params

TEN = range(10)
THINGS = ("lamp", "rope", "kettle", "mirror", "ladder", "basket")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of somebody's own, with nothing in it."""
    folder = tmp_path / "my project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder


def priced(n: int, first: int = 0) -> list[dict[str, str]]:
    return [
        {"Question": f"What does {THINGS[i % 6]} {i} cost?", "Expected": f"{i}.50"}
        for i in range(first, first + n)
    ]


def write_csv(path: Path, rows: list[dict[str, str]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def splits_of(folder: Path) -> dict[str, str]:
    """Return the split of each item by its question."""
    return {
        record.data["question"]: split
        for split in SPLITS
        for record in read_records(folder / f"{split}.jsonl")
    }


def told(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["init", "--json", "--yes", *words]) == 0
    return dict(json.loads(capfd.readouterr().out))


# --- columns ---


@pytest.mark.parametrize(
    ("names", "question", "answer"),
    [
        (["Question", "ANSWER"], "Question", "ANSWER"),
        (["input", "output"], "input", "output"),
        (["id", "Prompt", "expected_output"], "Prompt", "expected_output"),
        (["prompt", "completion", "note"], "prompt", "completion"),
        (["text", "label"], "text", "label"),
        (["질문", "정답", "유형"], "질문", "정답"),
        (["Kundenfrage", "Antwort"], "Kundenfrage", "Antwort"),
    ],
)
def test_usual_columns_are_known_in_any_case(
    names: list[str], question: str, answer: str
) -> None:
    found = find_columns(names)
    assert (found.get("question"), found.get("answer")) == (question, answer)
    assert found.guessed == (names[0] == "Kundenfrage")


def test_an_instruction_with_input_has_the_input_as_context() -> None:
    found = find_columns(["instruction", "input", "output"])
    assert found.of == {"question": "instruction", "context": "input", "answer": "output"}


def test_columns_a_to_d_are_choices_and_no_answers() -> None:
    found = find_columns(["question", "A", "B", "C", "D", "answer"])
    assert found.options == ("A", "B", "C", "D")
    assert found.get("answer") == "answer"


def test_one_column_is_one_role_only() -> None:
    found = find_columns(["text", "category", "topic"])
    assert len(set(found.of.values())) == len(found.of)


# --- files ---


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_csv_may_be_separated_as_excel_likes(tmp_path: Path, mark: str) -> None:
    table = read_table(write_csv(tmp_path / "prices.csv", priced(6), mark))
    assert table.rows == priced(6)
    assert bool(table.notes) == (mark != ",")


def test_a_korean_excel_file_is_read_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "문제.csv"
    path.write_bytes("질문,정답\n수도는?,서울\n".encode("cp949"))
    table = read_table(path)
    assert table.rows == [{"질문": "수도는?", "정답": "서울"}]
    assert "CP949" in table.notes[0]


def test_a_workbook_gives_values_and_whole_numbers(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        ["Question", "Answer", None],
        ["1+1?", 2, None],
        [None, None, None],
        ["?", 2.5, "x"],
    ):
        sheet.append(row)
    book.save(tmp_path / "sums.xlsx")
    table = read_table(tmp_path / "sums.xlsx")
    assert table.rows == [
        {"Question": "1+1?", "Answer": "2"},
        {"Question": "?", "Answer": "2.5"},
    ]


# As people keep them: a title, merged cells over the heading, a total below.
SHEET: list[list[Any]] = [
    ["2026년 고객 문의 (내부용)", None, None, None],
    ["문의", None, "처리", None],
    ["번호", "질문", "정답", "담당"],
    [1, "환불은 언제 되나요?", "환불", "김"],
    [2, "택배가 안 왔어요", "배송", None],
    [None, "합계", None, 2],
]


def test_a_title_and_merged_cells_above_a_heading_are_passed_over_and_told(
    tmp_path: Path,
) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in SHEET:
        sheet.append(row)
    for cells in ("A1:D1", "A2:B2", "C2:D2"):
        sheet.merge_cells(cells)
    book.save(tmp_path / "문의.xlsx")
    with (tmp_path / "문의.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(SHEET)
    for name in ("문의.xlsx", "문의.csv"):
        table = read_table(tmp_path / name)
        assert [row["질문"] for row in table.rows] == [row[1] for row in SHEET[3:-1]]
        assert table.notes[1] == "line 6 sums up the table and is left out: '합계 2'"
        assert "the heading is line 3" in table.notes[0]
        assert "문의" in table.notes[0]
        made = make_records(table.rows, find_columns(list(table.rows[0])))
        assert [one["id"] for one in made.records] == ["1", "2"]
        assert made.notes == []


def test_sums_below_a_table_are_no_items_and_a_question_about_a_sum_is_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tickets.csv"
    rows = ["Ticket;Team", "Total price?;billing", "It crashes;bug", "sum;math"]
    path.write_text("\n".join([*rows, ";", "Total:;84", "Average;41,5 %"]) + "\n", "utf-8")
    table = read_table(path)
    assert [row["Ticket"] for row in table.rows] == ["Total price?", "It crashes", "sum"]
    assert [note for note in table.notes if "sums up" in note] == [
        "line 8 sums up the table and is left out: 'Average 41,5 %'",
        "line 7 sums up the table and is left out: 'Total: 84'",
    ]


def test_all_columns_that_are_not_known_are_asked_for_at_once(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "tickets.csv").write_text("Ticket;Team;Who\nIt crashes;bug;Ann\n", "utf-8")
    assert run(["init", "--data", "tickets.csv", "--yes"]) == 2
    err = capfd.readouterr().err
    assert "for the question and the answer: there are Ticket, Team, Who." in err
    assert "--column question=NAME --column answer=NAME" in err


def test_cells_that_are_missing_at_the_end_of_a_row_count_as_empty_and_are_told(
    tmp_path: Path,
) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("질문,정답,비고\n값은?,5,\n색은?,빨강\n끝\n", "utf-8")
    table = read_table(path)
    assert table.rows[1:] == [
        {"질문": "색은?", "정답": "빨강", "비고": ""},
        {"질문": "끝", "정답": "", "비고": ""},
    ]
    assert table.notes == [
        "2 rows have fewer cells than the heading (line 3, 4); missing ones count as empty"
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("질문,정답\n값은, 얼마?,5\n", "3 cells under 2 columns"),
        ("질문,정답,정답\n값은?,5,6\n", "column '정답' twice"),
    ],
)
def test_a_row_that_could_mean_something_else_is_an_error_with_its_line(
    tmp_path: Path, text: str, found: str
) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=found):
        read_table(path)


def test_a_column_without_a_name_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("질문,,정답\n값은?,x,5\n색은?,,빨강\n", "utf-8")
    table = read_table(path)
    assert table.rows == [{"질문": "값은?", "정답": "5"}, {"질문": "색은?", "정답": "빨강"}]
    assert table.notes == ["column 2 has no name and is left out"]


def test_fields_inside_objects_are_columns_where_the_question_lies_there(
    tmp_path: Path,
) -> None:
    nested = {
        "meta": {"n": 1},
        "input": {"question": "상태는?", "passage": "배송중이다."},
        "output": {"answer": "배송중", "confidence": 0.9},
    }
    table = read_table(write_json(tmp_path / "nested.json", [nested]))
    found = find_columns(list(table.rows[0]))
    assert found.of == {
        "question": "input.question", "answer": "output.answer", "context": "input.passage",
    }  # fmt: skip
    [record] = make_records(table.rows, found).records
    assert (record["question"], record["answers"]) == ("상태는?", ["배송중"])
    plain = {"question": "?", "answers": {"text": ["yes"]}, "meta": {"n": 1}}
    assert read_table(write_json(tmp_path / "plain.json", [plain])).rows == [plain]


def test_promptfoo_tests_become_answers_and_checks(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "prompts: ['Translate: {{text}}']\n"
        "tests:\n"
        "- vars: {text: Hallo}\n  assert: [{type: equals, value: hello}]\n"
        "- vars: {text: Tag}\n"
        "  assert: [{type: icontains, value: day}, {type: llm-rubric, value: polite}]\n",
        "utf-8",
    )
    table = read_table(path)
    assert table.kind == "promptfoo"
    assert table.rows == [
        {"question": "Translate: Hallo", "answers": ["hello"]},
        {"question": "Translate: Tag", "checks": [{"op": "contains", "arg": "day"}]},
    ]
    assert "1 assertions" in table.notes[0]


def test_promptfoo_csv_reads_what_is_expected(tmp_path: Path) -> None:
    rows = [{"q": "2+2", "__expected": "4"}, {"q": "sky", "__expected": "contains: blue"}]
    table = read_table(write_csv(tmp_path / "tests.csv", rows))
    assert table.rows == [
        {"question": "2+2", "answers": ["4"]},
        {"question": "sky", "checks": [{"op": "contains", "arg": "blue"}]},
    ]


def test_promptfoo_assertions_that_are_code_or_a_judges_are_no_answers(tmp_path: Path) -> None:
    cells = {
        "fn:output.length > 3": None, "is-json": None, "llm-rubric: is polite": None,
        "similar(0.8): hello": None, "not-is-json": None, "file://check.py": None,
        "a: b": ["a: b"], "Paris": ["Paris"], "equals: Rome": ["Rome"],
    }  # fmt: skip
    path = tmp_path / "tests.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["city", "__expected"])
        writer.writerows((f"city {n}", cell) for n, cell in enumerate(cells))
    table = read_table(path)
    assert [row.get("answers") for row in table.rows] == list(cells.values())
    assert table.notes == ["6 assertions have no check of ours and are left out"]


def test_of_several_promptfoo_prompts_the_first_is_what_items_ask(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        """
prompts: ['Say in {{language}}: {{input}}', 'Translate to {{language}}: {{input}}']
tests:
  - vars: {language: French, input: Good day}
    assert: [{type: contains, value: Bonjour}]
  - vars: {language: German, input: Good day}
    assert:
""",
        "utf-8",
    )
    table = read_table(path)
    assert [row["question"] for row in table.rows] == [
        "Say in French: Good day", "Say in German: Good day",
    ]  # fmt: skip
    assert table.notes == ["of 2 prompts the first is what items ask"]


def test_labels_of_a_data_set_are_named_as_it_names_them(tmp_path: Path) -> None:
    """`datasets` keeps labels as numbers and their names in the file's own metadata."""
    pa = pytest.importorskip("pyarrow")
    about = {"info": {"features": {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}}}}
    table = pa.table({"text": ["a", "b", "c"], "label": [0, 1, None]})
    named = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    for metadata, found in ((named, ["bad", "good", None]), (table, [0, 1, None])):
        path = str(tmp_path / "data.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, metadata.schema) as writer:
            writer.write_table(metadata)
        assert [row["label"] for row in read_table(tmp_path).rows] == found


@pytest.mark.parametrize("suffix", [".json", ".eval", ".zstd.eval"])
def test_an_inspect_log_gives_each_sample_once(tmp_path: Path, suffix: str) -> None:
    sample = {"id": 1, "input": [{"role": "user", "content": "Capital?"}], "target": "Paris"}
    path = tmp_path / f"log{suffix}"
    if suffix == ".json":
        write_json(path, {"eval": {}, "samples": [sample, {**sample, "epoch": 2}]})
    else:
        packing = zipfile.ZIP_DEFLATED
        if "zstd" in suffix:  # as Inspect writes it by now
            pytest.importorskip("zipfile_zstd")
            packing = 93
        with zipfile.ZipFile(path, "w", packing) as log:
            log.writestr("samples/1_epoch_1.json", json.dumps(sample))
            log.writestr("samples/1_epoch_2.json", json.dumps(sample))
    table = read_table(path)
    assert table.rows == [{"id": 1, "question": "Capital?", "answers": ["Paris"]}]


def test_dspy_examples_and_chats_are_read(tmp_path: Path) -> None:
    stored = {
        "_store": {"question": "1+1", "answer": "2", "dspy_uuid": "x"},
        "_input_keys": ["q"],
    }
    assert read_table(write_json(tmp_path / "dspy.json", [stored])).rows == [
        {"question": "1+1", "answer": "2"}
    ]
    program = {"predict": {"demos": [{"augmented": True, "question": "1+1", "answer": "2"}]}}
    assert read_table(write_json(tmp_path / "program.json", program)).rows == [
        {"question": "1+1", "answer": "2"}
    ]
    chat = {
        "messages": [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
    }
    assert read_table(write_json(tmp_path / "chat.json", [chat])).rows == [
        {"question": "1+1", "answer": "2"}
    ]


def test_a_saved_data_set_keeps_its_splits(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    for split in ("train", "validation", "test"):
        folder = tmp_path / "set" / split
        folder.mkdir(parents=True)
        table = pa.table({"question": [f"{split}?"], "answers": [["yes"]]})
        with pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink, \
                pa.ipc.new_stream(sink, table.schema) as writer:  # fmt: skip
            writer.write_table(table)
        write_json(folder / "state.json", {})
    write_json(tmp_path / "set" / "dataset_dict.json", {})
    rows = read_table(tmp_path / "set").rows
    assert {row["question"]: row["split"] for row in rows} == {
        "train?": "train", "validation?": "selection", "test?": "test",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "no rows"),
        ("a.json", "{", "not valid JSON"),
        ("a.json", '{"a": 1}', "an object with a"),
        ("a.yaml", "a: [", "not valid YAML"),
        ("a.eval", "no zip", "no readable Inspect log"),
        ("a.xlsx", "no zip", "no workbook"),
        ("a.doc", "x", "suffix"),
        ("b.csv", None, "no such file"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(
    tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(DataError, match=said):
        read_table(tmp_path / name)


# --- records and choice ---


def records(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return make_records(rows, find_columns(list(rows[0]))).records


def test_ids_come_from_what_is_asked_and_a_repeated_question_is_one_item() -> None:
    rows = [
        {"question": "Capital?", "answer": "Paris"},
        {"question": "capital?", "answer": "paris"},
    ]
    made = make_records(rows, find_columns(["question", "answer"]))
    assert [one["answers"] for one in made.records] == [["Paris", "paris"]]
    assert "repeat" in made.notes[0]
    again = records([{"question": "Capital?", "answer": "Lyon"}])
    assert again[0]["id"] == made.records[0]["id"]


@pytest.mark.parametrize(
    ("rows", "env", "scorer"),
    [
        ([{"q": f"{i}?", "a": f"{i}.5"} for i in TEN], "qa", "number"),
        ([{"q": f"{i}?", "a": "yes" if i % 2 else "no"} for i in TEN], "qa", "exact"),
        ([{"q": f"{i}?", "a": f"name {i}"} for i in TEN], "qa", "exact"),
        ([{"q": f"{i}?", "a": f"an answer of many long words, {i}"} for i in TEN], "qa", "f1"),
        ([{"q": f"{i}?", "choices": ["x", "y"], "a": 1} for i in TEN], "qa", "choice"),
        ([{"q": f"{i}?", "context": f"It is x{i}", "a": f"x{i}"} for i in TEN], "textqa", None),
        ([{"q": f"{i}?", "context": f"답은 가{i}", "a": f"가{i}"} for i in TEN], "korqa", None),
    ],
)  # fmt: skip
def test_environment_and_scorer_follow_from_the_answers(
    rows: list[dict[str, Any]], env: str, scorer: str | None
) -> None:
    chosen = choose(records(rows), None, None)
    assert (chosen.env, chosen.scorer) == (env, scorer)
    assert chosen.why


# --- splits ---


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=6, max_size=60),
    st.integers(0, 3),
    st.integers(1, 30),
)
def test_splits_are_exact_stratified_and_never_moved_by_new_items(
    types: list[str], seed: int, n_new: int
) -> None:
    old = [{"id": f"old-{i}", "task_type": kind} for i, kind in enumerate(types)]
    found = assign_exactly(old, shares(len(old)), seed)
    counts = Counter(found.values())
    assert max(counts.values()) - min(counts.values()) <= 1
    for kind in set(types):
        inside = Counter(found[one["id"]] for one in old if one["task_type"] == kind)
        sizes = [inside[split] for split in SPLITS]
        assert max(sizes) - min(sizes) <= 1
    assert assign_exactly(old[::-1], shares(len(old)), seed) == found
    new = [{"id": f"new-{i}", "task_type": types[0]} for i in range(n_new)]
    grown = assign_exactly(old + new, shares(len(old) + n_new), seed, found)
    assert grown.items() >= found.items()
    after = Counter(grown.values())
    assert max(after.values()) - min(after.values()) <= 1


def test_a_group_stays_in_one_split_when_it_grows() -> None:
    old = [{"id": str(i), "group": f"g{i % 9}"} for i in range(18)]
    found = assign_exactly(old, shares(18), 1)
    grown = assign_exactly([*old, {"id": "new", "group": "g4"}], shares(19), 1, found)
    assert grown["new"] == found["4"] == found["13"]


def test_a_large_set_keeps_a_hundred_for_training_and_for_selection() -> None:
    counts = Counter(
        assign_exactly([{"id": str(i)} for i in range(400)], shares(400), 1).values()
    )
    assert (counts["train"], counts["selection"], counts["test"]) == (100, 100, 200)


def test_the_smallest_gain_is_told_for_a_split_that_is_too_small() -> None:
    assert smallest_gain(60) < 0.11 < smallest_gain(20)
    lines = list(size_warnings({"train": 12, "selection": 12, "test": 60}))
    assert len(lines) == 2
    assert "one item moves its mean by 0.083" in lines[1]
    assert not list(size_warnings({"train": 60, "selection": 60, "test": 60}))


# --- the command ---


def test_a_csv_becomes_a_workspace_whose_splits_are_frozen(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "Till prices.csv", priced(30))
    found = told(capfd, "--data", "Till prices.csv")
    assert (found["env"], found["scorer"], found["split_dir"]) == (
        "qa",
        "number",
        "data/till-prices",
    )
    assert found["splits"] == {"train": 10, "selection": 10, "test": 10}
    assert len(found["next"]) >= 3
    params = (here / "params.yaml").read_text("utf-8")
    assert params.startswith("# env qa, scorer number: every answer is one number\n")
    assert "# passes over the train split" in params
    assert run(["params", "--json"]) == 0
    capfd.readouterr()
    before = splits_of(here / "data" / "till-prices")
    write_csv(here / "Till prices.csv", priced(45))
    assert told(capfd, "--data", "Till prices.csv")["splits"] == dict.fromkeys(SPLITS, 15)
    assert splits_of(here / "data" / "till-prices").items() >= before.items()


def test_the_split_stage_takes_what_init_wrote(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "prices.csv", priced(12))
    told(capfd, "--data", "prices.csv")
    assert run(["plan"]) == 0
    assert "steps, as if nothing were cached" in capfd.readouterr().out


def test_ones_own_skill_and_server_are_set(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "prices.csv", priced(12))
    (here / "SKILL.md").write_text("---\nname: prices\n---\n# Prices\n", "utf-8")
    told(
        capfd, "--data", "prices.csv", "--skill", "SKILL.md",
        "--target", "ollama:qwen2.5:7b@http://127.0.0.1:9/v1",
    )  # fmt: skip
    assert run(["params", "--json"]) == 0
    params = {row["key"]: row["value"] for row in json.loads(capfd.readouterr().out)}
    assert params["skill.seed"] == "skills/seeds/prices.md"
    for role in ("target", "optimizer"):
        assert params[f"{role}.backend"] == "openai"
        assert params[f"{role}.model"] == "qwen2.5:7b"
        assert params[f"{role}.base_url"] == "http://127.0.0.1:9/v1"
        assert params[f"{role}.provider"] == "ollama"
    assert params["stop.calls"] == 0


def test_a_first_run_of_the_embedded_model_is_bounded_and_says_by_what(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "prices.csv", priced(12))
    assert run(["init", "--data", "prices.csv", "--yes"]) == 0
    assert "after 600 calls of training (stop.calls) at most" in capfd.readouterr().out
    text = (here / "params.yaml").read_text("utf-8")
    (here / "params.yaml").write_text(text.replace("calls: 600", "calls: 900"), "utf-8")
    write_csv(here / "prices.csv", priced(15))
    assert run(["init", "--data", "prices.csv", "--yes"]) == 0
    assert "after 900 calls" in capfd.readouterr().out, "a later choice is kept"


def test_data_of_ones_own_in_the_folder_data_is_no_obstacle(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "data").mkdir()
    write_csv(here / "data" / "prices.csv", priced(12))
    assert told(capfd, "--data", "data/prices.csv")["splits"]["train"] == 4


def test_a_column_that_cannot_be_told_is_asked_for_by_name(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"x": f"{i}?", "y": str(i), "z": "-"} for i in TEN]
    write_csv(here / "odd.csv", rows)
    assert run(["init", "--data", "odd.csv", "--yes"]) == 2
    assert "--column question=NAME" in capfd.readouterr().err
    assert not (here / "dvc.yaml").exists()
    words = ("--data", "odd.csv", "--column", "question=x", "--column", "answer=y")
    assert told(capfd, *words)["columns"] == {"question": "x", "answer": "y"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--data", "few.csv"], "at least 6 items"),
        (["--data", "few.csv", "--target", "nobody:x"], "no backend or server 'nobody'"),
        (["--data", "few.csv", "--column", "colour=x"], "not ROLE=NAME"),
        (["--skill", "SKILL.md"], "it goes with --data"),
        (["--data", "few.csv", "--ratio", "1:1"], "data.ratio"),
    ],
)
def test_wrong_use_is_one_error_and_writes_nothing(
    here: Path, capfd: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    write_csv(here / "few.csv", priced(4))
    assert run(["init", "--yes", *words]) == 2
    assert said in " ".join(capfd.readouterr().err.split())
    assert not (here / "dvc.yaml").exists()


def test_outside_a_repository_one_is_made_when_agreed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "prices.csv", priced(12))
    assert run(["init", "--data", "prices.csv"]) == 2
    assert "not interactive" in capfd.readouterr().err
    told(capfd, "--data", "prices.csv")
    assert (tmp_path / ".git").is_dir()


def test_short_names_of_models_are_params() -> None:
    assert model_params("optimizer", "rules") == {"optimizer.backend": "rules"}
    found = model_params("target", "openai:gpt-4o-mini")
    assert found == {"target.backend": "openai", "target.model": "gpt-4o-mini"}
    assert (
        model_params("target", "vllm:Qwen/Qwen3-8B@http://h:1/v1")["target.base_url"]
        == "http://h:1/v1"
    )
    with pytest.raises(UsageError, match="not NAME:MODEL"):
        model_params("target", "anthropic")

"""Reading records: the suffix decides, "\\n" alone ends lines, errors name file and line."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.errors import DataError
from skilltrail.data.csv_text import csv_records
from skilltrail.data.json_text import json_records, jsonl_records
from skilltrail.data.read import read_records
from skilltrail.data.record import Record

SHARED = Path(
    os.environ.get("SKILLTRAIL_SHARED", Path(__file__).resolve().parents[1] / ".." / "shared")
)


def read(tmp_path: Path, name: str, raw: str | bytes) -> list[Record]:
    path = tmp_path / name
    path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return read_records(path, name)


def data(records: list[Record]) -> list[dict[str, object]]:
    return [dict(record.data) for record in records]


def lines(records: list[Record]) -> list[int]:
    return [record.where.line for record in records]


# What is read


def test_a_jsonl_file_of_one_line_is_one_record(tmp_path: Path) -> None:
    records = read(tmp_path, "a.jsonl", '{"id": "1", "question": "q", "answers": ["x"]}\n')
    assert data(records) == [{"id": "1", "question": "q", "answers": ["x"]}]


def test_u2028_inside_a_string_does_not_split_a_jsonl_record(tmp_path: Path) -> None:
    records = read(tmp_path, "a.jsonl", '{"id":"1","q":"a\u2028b"}\n{"id":"2","q":"c"}\n')
    assert [record["q"] for record in data(records)] == ["a\u2028b", "c"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_no_other_line_end_splits_a_csv_cell(tmp_path: Path, mark: str) -> None:
    records = read(tmp_path, "a.csv", f"id,q\n1,a{mark}b\n2,c\n")
    assert [record["q"] for record in data(records)] == [f"a{mark}b", "c"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '[\r\n{"id": "1", "q": "é"},\r\n{"id": "2", "q": "x"}\r\n]\r\n'),
        ("a.jsonl", '{"id": "1", "q": "é"}\r\n{"id": "2", "q": "x"}\r\n'),
        ("a.csv", "id,q\r\n1,é\r\n2,x\r\n"),
        ("a.JSON", '[{"id": "1", "q": "é"}, {"id": "2", "q": "x"}]'),
    ],
)
def test_a_byte_order_mark_and_crlf_change_nothing(
    tmp_path: Path, name: str, text: str
) -> None:
    expected = [{"id": "1", "q": "é"}, {"id": "2", "q": "x"}]
    assert data(read(tmp_path, name, b"\xef\xbb\xbf" + text.encode())) == expected
    assert data(read(tmp_path, name, text.replace("\r\n", "\n").rstrip("\n"))) == expected


def test_records_know_the_line_they_begin_on(tmp_path: Path) -> None:
    array = '[\n{"id": 1,\n "q": "a"},\n\n  {"id": 2}, {"id": 3}]\n'
    assert lines(read(tmp_path, "a.json", array)) == [2, 5, 5]
    assert lines(read(tmp_path, "a.jsonl", '\n{"id": 1}\n  \n{"id": 2}')) == [2, 4]
    assert lines(read(tmp_path, "a.csv", 'id,q\n1,"two\nlines"\n\n2,b\n')) == [2, 5]


def test_csv_cells_keep_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    records = read(tmp_path, "a.csv", 'id,q\n1,"a, ""b""\r\nc"\n2,\n')
    assert data(records) == [{"id": "1", "q": 'a, "b"\r\nc'}, {"id": "2", "q": ""}]


def test_a_csv_cell_may_be_far_larger_than_the_library_allows_by_default(
    tmp_path: Path,
) -> None:
    cell = "word " * 100_000
    assert data(read(tmp_path, "a.csv", f"id,q\n1,{cell}\n"))[0]["q"] == cell


def test_an_object_with_a_data_array_is_read_with_its_lines(tmp_path: Path) -> None:
    text = '{"dataset_name": "x", "data": [\n{"questionId": 7},\n{"questionId": 8}\n], "v": {}}'
    records = read(tmp_path, "a.json", text)
    assert data(records) == [{"questionId": 7}, {"questionId": 8}]
    assert lines(records) == [2, 3]


def test_squad_articles_become_one_record_per_question(tmp_path: Path) -> None:
    answers = [{"text": "x", "answer_start": 0}, {"text": "y", "answer_start": 4}]
    qas = [{"id": f"q{k}", "question": f"Q{k}?", "answers": answers} for k in (1, 2)]
    file = {"data": [{"title": "T", "paragraphs": [{"context": "x or y", "qas": qas}]}]}
    records = data(read(tmp_path, "a.json", json.dumps(file)))
    assert [record["id"] for record in records] == ["q1", "q2"]
    assert records[0]["answers"] == ["x", "y"]
    assert records[0]["group"] == records[1]["group"]


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    assert data(read(tmp_path, "a.jsonl", '{"q": "a\\ud800b"}')) == [{"q": "a\ufffdb"}]


# What is refused


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("a.json", "", "a.json: the file is empty"),
        ("a.jsonl", "\n \n", "a.jsonl: the file is empty"),
        ("a.csv", b"\xef\xbb\xbf", "a.csv: the file is empty"),
        ("a.json", "[]", "a.json: the file holds no records"),
        ("a.csv", "id,q\n", "a.csv: the file holds no records"),
        (
            "a.json",
            '"text"',
            "a.json, line 1: expected a JSON array of objects, found a single",
        ),
        ("a.json", '{"id": "1"}', "a.json, line 1: expected a JSON array"),
        ("a.json", '{"id": "1"}\n{"id": "2"}\n', "a.json, line"),
        ("a.json", '[{"id": 1}]\n[{"id": 2}]', "a.json, line 2: more text after the end"),
        ("a.json", '[\n{"id": 1},\n{"id": 2\n]', "a.json, line 4: not valid JSON"),
        ("a.json", '[{"id": 1}\n{"id": 2}]', "a.json, line 2: not valid JSON: expected"),
        ("a.json", '[{"id": 1},\n', "a.json, line 2: not valid JSON"),
        ("a.json", '[{"id": 1},\n7]', "a.json, line 2: expected an object, found int"),
        ("a.jsonl", '{"id": 1}\n["x"]\n', "a.jsonl, line 2: expected an object"),
        ("a.jsonl", '{"id": 1}\n{"id": 2', "a.jsonl, line 2: not valid JSON"),
        ("a.jsonl", '{"id": 1} {"id": 2}', "a.jsonl, line 1: not valid JSON: more text"),
        ("a.jsonl", '{"id": 1}\n{"a": NaN}', "a.jsonl, line 2: NaN is not a JSON number"),
        ("a.json", '[\n{"a": -Infinity}]', "a.json, line 2: -Infinity is not a JSON number"),
        ("a.json", '[{"a": 1e999}]', "a.json, line 1: 1e999 is too large"),
        ("a.jsonl", '{"id": 1, "id": 2}', "a.jsonl, line 1: key 'id' stands twice"),
        ("a.jsonl", '{"a": ' + "[" * 100_000, "a.jsonl, line 1: nested too deeply"),
        ("a.jsonl", b'{"id": 1}\n{"q": "\xe9"}\n', "a.jsonl, line 2: byte 0xe9 is not UTF-8"),
        ("a.csv", "id,q\n1,x\n".encode("utf-16"), "a.csv, line 1: the text is UTF-16"),
        ("a.csv", "id,q\n1,a,b\n", "a.csv, line 2: 3 cells under 2 columns"),
        ("a.csv", "id,q\n1,x\n2\n", "a.csv, line 3: 1 cells under 2 columns"),
        ("a.csv", "id,id\n1,2\n", "a.csv, line 1: column 'id' twice"),
        ("a.csv", "id,,q\n1,2,3\n", "a.csv, line 1: column 2 has no name"),
        ("a.csv", 'id,q\n1,a\n2,"open\n\n', "a.csv, line 3: not valid CSV"),
        ("a.csv", "id;q\n1;a\n", "a.csv, line 1: one column only"),
        ("a.txt", "x", "a.txt cannot be read as items: suffix '.txt'"),
    ],
)
def test_a_bad_file_is_one_error_that_names_file_and_line(
    tmp_path: Path, name: str, raw: str | bytes, said: str
) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, name, raw)
    assert str(caught.value).startswith(said)
    assert caught.value.remedy


def test_a_missing_file_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_records(tmp_path / "none.json")


def test_a_squad_file_with_a_damaged_question_names_the_field(tmp_path: Path) -> None:
    file = {"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1", "answers": []}]}]}]}
    with pytest.raises(DataError, match=r"a\.json, line 1, field 'question'"):
        read(tmp_path, "a.json", json.dumps(file))


# Laws

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "inf" not in repr(value))
objects = st.lists(
    st.dictionaries(st.text(), json_values, max_size=3).filter(
        lambda value: not isinstance(value.get("paragraphs"), list)
    ),
    max_size=5,
)


@given(objects, st.sampled_from([None, 1]), st.booleans())
def test_every_json_array_comes_back_whole(
    values: list[dict[str, object]], indent: int | None, ascii: bool
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii)
    assert data(list(json_records(text, "a.json"))) == values
    text = "".join(json.dumps(value, ensure_ascii=ascii) + "\n" for value in values)
    records = list(jsonl_records(text, "a.jsonl"))
    assert data(records) == values
    assert lines(records) == list(range(1, len(values) + 1))


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(st.tuples(st.text("abc", min_size=1), cells), max_size=5))
def test_every_csv_table_comes_back_whole(rows: list[tuple[str, str]]) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([("id", "q"), *rows])
    records = list(csv_records(buffer.getvalue(), "a.csv"))
    assert [(record.data["id"], record.data["q"]) for record in records] == rows


@pytest.mark.parametrize(
    ("file", "n_records"),
    [
        ("searchqa/standin_xquad_en.json", 120),
        ("korquad/KorQuAD_v1.0_dev.json", 5774),
        ("docvqa/standin_docvqa.csv", 20),
        ("officeqa/standin_tatqa.csv", 40),
        ("spreadsheetbench/dataset.json", 30),
    ],
)
def test_published_files_are_read_whole(file: str, n_records: int) -> None:
    path = SHARED / "data" / file
    if not path.exists():
        pytest.skip(f"{file} is not in ../shared/data (or SKILLTRAIL_SHARED)")
    assert len(read_records(path)) == n_records

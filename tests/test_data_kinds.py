"""Files as real programs write them: read, or refused by what they are."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from skilltrail.core.errors import DataError, FaultError
from skilltrail.data.find import DataSource
from skilltrail.data.freeze import split
from skilltrail.data.load import read_items
from skilltrail.data.read import read_records
from skilltrail.data.splits import FOLDER, read_manifest, read_split
from skilltrail.envs.spreadsheet.reader import answer_cells, preview, sound
from skilltrail.params.read import params_of
from skilltrail.params.tree import node_of
from tests.env_world import ROOT, env_of
from tests.toy_items import Toy, ToyParams, toy_records, write_jsonl

PLAIN = "id,question,answers\n1,Who?,Mira\n2,When?,1850\n"
ROWS = [
    {"id": "1", "question": "Who?", "answers": "Mira"},
    {"id": "2", "question": "When?", "answers": "1850"},
]


def records(folder: Path, raw: str | bytes, name: str = "set.csv") -> list[dict[str, Any]]:
    data = raw if isinstance(raw, bytes) else raw.encode()
    (folder / name).write_bytes(data)
    return [dict(one.data) for one in read_records(folder / name, name)]


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
            "git lfs pull",
        ),
        (b"<!DOCTYPE html><html><title>404</title></html>", "web page"),
        (b"PK\x03\x04\x14\x00\x06\x00\xff", "workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old workbook"),
        (b"\x1f\x8b\x08\x00\x00\xff", "gzip"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"%PDF-1.7\n", "PDF"),
    ],
)
@pytest.mark.parametrize("name", ["set.csv", "set.json", "set.jsonl"])
def test_a_file_of_another_kind_than_its_suffix_says_is_named(
    tmp_path: Path, raw: bytes, what: str, name: str
) -> None:
    with pytest.raises(DataError, match=what):
        records(tmp_path, raw, name)


def test_json_lines_of_files_that_were_put_together_are_read(tmp_path: Path) -> None:
    raw = '\ufeff{"id": "1"}\n\ufeff{"id": "2"}\n'
    assert records(tmp_path, raw, "set.jsonl") == [{"id": "1"}, {"id": "2"}]


@pytest.mark.parametrize("said", [True, "true", "True", 1, "1"])
def test_a_question_that_says_in_any_spelling_that_nothing_is_right_is_so(
    tmp_path: Path, said: Any
) -> None:
    asked = {"id": "1", "question": "Who?", "answers": [], "is_impossible": said}
    told = [{"title": "t", "paragraphs": [{"context": "c", "qas": [asked]}]}]
    (one,) = records(tmp_path, json.dumps({"data": told}), "set.json")
    assert one["is_impossible"] is True


def test_answers_of_squad_are_read_outside_of_its_layout_too(tmp_path: Path) -> None:
    answers = [{"text": "Mira", "answer_start": 3}, {"text": "Mira K.", "answer_start": 3}]
    row = {"id": "1", "question": "Who?", "context": "c Mira K.", "answers": answers}
    write_jsonl(tmp_path / "set.jsonl", [row])
    for env in ("qa", "textqa", "korqa", "searchqa"):
        found = read_items(DataSource({"": tmp_path / "set.jsonl"}), env_of(env), ROOT)
        gold = found.items[0].item.gold
        assert (gold["answers"] if env == "qa" else list(gold)) == ["Mira", "Mira K."]


@pytest.mark.parametrize(
    "raw",
    [
        PLAIN,
        PLAIN.replace("\n", "\r"),  # Excel for Mac
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN.replace("\n", "\r\n"),
        "sep=,\r\n" + PLAIN.replace("\n", "\r\n"),
        "SEP=;\n" + PLAIN.replace(",", ";"),
        "\ufeffsep=;\r" + PLAIN.replace(",", ";").replace("\n", "\r"),
        "sep=\t\n" + PLAIN.replace(",", "\t"),
        '"sep=|"\n' + PLAIN.replace(",", "|"),
        "sep=;;;\n" + PLAIN.replace(",", ";"),  # as saved again
        PLAIN.replace("\n", ",,\n"),  # Excel: columns that were used once
        ",id,question,answers\n0,1,Who?,Mira\n1,2,When?,1850\n",  # pandas' to_csv
        '"id","question","answers"\n"1","Who?","Mira"\n"2","When?","1850"\n',
        "\n\n" + PLAIN.rstrip("\n"),
    ],
)
def test_a_csv_file_is_read_whatever_program_wrote_it(tmp_path: Path, raw: str) -> None:
    """Case data-17."""
    assert records(tmp_path, raw) == ROWS


def test_line_ends_inside_cells_stay_and_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'sep=,\rid,q\r1,"two\rlines"\r\r2,"b\nc"\r3,x\xe2\x80\xa8y\r')
    found = read_records(path, "a.csv")
    assert [one.data["q"] for one in found] == ["two\rlines", "b\nc", "x\u2028y"]
    assert [one.where.line for one in found] == [3, 6, 8]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (PLAIN.encode("utf-16-le"), "line 1: the text is UTF-16"),
        (PLAIN.encode("utf-16-be"), "line 1: the text is UTF-16"),
        (PLAIN.encode("utf-16"), "line 1: the text is UTF-16"),
        (PLAIN.encode("utf-32"), "line 1: the text is UTF-32"),
        (PLAIN.encode("utf-32-le"), "line 1: the text is UTF-32"),
        (PLAIN.replace("Mira", "José").encode("cp1252"), "line 2: byte 0xe9 is not UTF-8"),
        (
            PLAIN.replace(",", ";"),
            "one column only: the row has semicolons, and commas are due",
        ),
        (PLAIN.replace(",", "\t"), "one column only: the row has tabs"),
        ("sep=;\n" + PLAIN, "one column only: the row has commas, and semicolons are due"),
        (",id\nx,1\n", "line 2: column 1 has no name"),
        ("id,,q\n1,,x\n", "line 1: column 2 has no name"),
        (PLAIN.replace("Mira", "Mira,B"), "line 2: 4 cells under 3 columns"),
        ("sep=,\nid,q\n1\n", "line 3: 1 cells under 2 columns"),
        (",,\n,,\n", "holds no records"),
        ("sep=,\n", "holds no records"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_what_it_is(
    tmp_path: Path, raw: str | bytes, said: str
) -> None:
    with pytest.raises(DataError) as caught:
        records(tmp_path, raw)
    assert said in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["set.json", "set.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be"])
def test_json_of_wide_characters_is_refused_by_name(
    tmp_path: Path, name: str, encoding: str
) -> None:
    with pytest.raises(DataError, match="the text is UTF-"):
        records(tmp_path, json.dumps([{"id": 1}]).encode(encoding), name)


# -- names of fields, ids -----------------------------------------------------------------


def items(folder: Path, env: str, rows: list[dict[str, Any]]) -> Any:
    path = write_jsonl(folder / "set.jsonl", rows)
    return read_items(DataSource({"": path}), env_of(env), ROOT).items


@pytest.mark.parametrize(
    "change", [str.upper, str.title, lambda n: f" {n} ", lambda n: n.replace("s", "S")]
)
def test_headings_are_read_in_any_case(tmp_path: Path, change: Any) -> None:
    row = {"id": "1", "question": "Who?", "context": "Mira came.", "answers": ["Mira"],
           "task_type": "name", "group": "g"}  # fmt: skip
    for env in ("textqa", "searchqa", "korqa", "qa"):
        [plain] = items(tmp_path, env, [row])
        [changed] = items(tmp_path, env, [{change(key): value for key, value in row.items()}])
        assert changed.item == plain.item, env


def test_headings_of_several_words_are_read(tmp_path: Path) -> None:
    row = {"Question ID": 7, "Question": "Who?", "Task-Type": "name", "Answer": "Mira"}
    [one] = items(tmp_path, "qa", [{**row, "ID": "1"}])
    assert (one.item.id, one.item.task_type, one.item.gold["answers"]) == (
        "1",
        "name",
        ["Mira"],
    )


def test_a_field_spelt_right_is_not_overwritten_by_one_like_it(tmp_path: Path) -> None:
    row = {"id": "1", "question": "right", "Question": "other", "answers": ["x"]}
    [one] = items(tmp_path, "qa", [row])
    assert one.item.input["question"] == "right"


def test_without_an_id_column_ids_are_made_from_what_the_agent_sees(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "answers": [f"a{n}"]} for n in range(5)]
    ids = [one.item.id for one in items(tmp_path, "qa", rows)]
    assert len(set(ids)) == 5
    assert all(id.startswith("content:") for id in ids)
    changed = [{**row, "answers": ["other"], "task_type": "t"} for row in rows]
    again = [
        one.item.id
        for one in items(tmp_path, "qa", [*reversed(changed), {**rows[0], "question": "n"}])
    ]
    assert again[:5] == ids[::-1]  # neither gold nor order nor a new item changes an id


@pytest.mark.parametrize("env", ["textqa", "searchqa", "korqa", "qa"])
def test_every_set_of_questions_may_come_without_ids(tmp_path: Path, env: str) -> None:
    row = {"question": "Who?", "context": "Mira came.", "answers": ["Mira"]}
    [one] = items(tmp_path, env, [row])
    assert one.item.id.startswith("content:")


def test_the_same_question_twice_without_ids_is_refused_with_both_places(
    tmp_path: Path,
) -> None:
    row = {"question": "q", "answers": ["x"]}
    with pytest.raises(DataError, match=r"stands twice.*line 1 and .*line 2"):
        items(tmp_path, "qa", [row, row])


def test_one_id_missing_among_others_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2, field 'id'"):
        items(tmp_path, "qa", [{"id": 1, "question": "q", "answers": ["a"]},
                               {"question": "r", "answers": ["a"]}])  # fmt: skip


# -- a field that says the split ----------------------------------------------------------


def params(**data: Any) -> Any:
    return params_of(node_of({"env": "toy", "data": data}), {"toy": ToyParams})


def frozen(folder: Path, words: list[str | None], field: str = "split", **data: Any) -> Any:
    rows = toy_records(len(words))
    for row, word in zip(rows, words, strict=True):
        row |= {} if word is None else {field: word}
    write_jsonl(folder / "mine.jsonl", rows)
    split(params(path="mine.jsonl", **data), Toy(), folder)
    return {name: [item.id for item in read_split(folder, name)] for name in
            ("train", "selection", "test")}  # fmt: skip


THREE = ["train"] * 4 + ["validation"] * 3 + ["test"] * 2


@pytest.mark.parametrize("field", ["split", "Split", "SPLIT", "subset", "data_split"])
@pytest.mark.parametrize("names", [THREE, [w.upper() for w in THREE],
                                   ["train", "dev", "valid", "test", "train"]])  # fmt: skip
def test_a_split_column_is_honoured(tmp_path: Path, field: str, names: list[str]) -> None:
    found = frozen(tmp_path, [*names], field)
    assert sum(map(len, found.values())) == len(names)
    assert all(found.values())
    assert read_manifest(tmp_path)["how"] == "ready-made"
    of = {"train": "train", "test": "test"}
    for number, name in enumerate(names, 1):
        assert f"i{number}" in found[of.get(name.lower(), "selection")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["test"] * 60, "60 'test'"),
        (["train"] * 40 + ["test"] * 20, "20 'test', 40 'train'"),
        ([*THREE, None], "1 nothing"),
        ([*THREE, "holdout"], "1 'holdout'"),
        (["0", "1", "2"] * 20, "20 '0'"),
    ],
)
def test_a_split_column_that_cannot_be_honoured_is_refused_saying_how(
    tmp_path: Path, words: list[str | None], told: str
) -> None:
    with pytest.raises(DataError) as caught:
        frozen(tmp_path, words)
    assert told in str(caught.value)
    assert "data.split_dir" in caught.value.remedy
    assert "rename the field" in caught.value.remedy
    assert not (tmp_path / FOLDER).exists()


def test_another_field_that_names_one_split_is_warned_about(tmp_path: Path) -> None:
    frozen(tmp_path, ["val"] * 60, "data_split")
    kinds = [one["kind"] for one in read_manifest(tmp_path)["warnings"]]
    assert "split_unread" in kinds


# -- damaged splits -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["train.jsonl", "selection.jsonl", "test.jsonl", "manifest.json"]
)
@pytest.mark.parametrize(
    "raw", [b"[" * 2000, b'{"a":' * 5000, b"\xff\xfe", b"", b"[]", b"{}", b"null", b"1" * 5000]
)
def test_a_damaged_split_file_is_named_and_never_a_recursion_error(
    tmp_path: Path, name: str, raw: bytes
) -> None:
    frozen(tmp_path, [*THREE])
    (tmp_path / FOLDER / name).write_bytes(raw)
    split_name = "train" if name == "manifest.json" else name.partition(".")[0]
    with pytest.raises(FaultError, match=f"data/splits/{name} is damaged"):
        read_split(tmp_path, split_name)


def test_an_item_of_a_split_knows_its_line(tmp_path: Path) -> None:
    frozen(tmp_path, [*THREE])
    assert [item.place for item in read_split(tmp_path, "test")] == [
        "data/splits/test.jsonl, line 1",
        "data/splits/test.jsonl, line 2",
    ]


# -- workbooks ----------------------------------------------------------------------------


def with_empty_fill(path: Path, fill: str) -> Path:
    made = Workbook()
    sheet = made.worksheets[0]
    sheet["A1"] = 5
    made.save(path)
    whole = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(whole, "w") as new:
        for part in old.namelist():
            text = old.read(part)
            if part == "xl/styles.xml":
                assert b"<fill>" in text
                text = text.replace(b"<fill>", fill.encode() + b"<fill>", 1)
            new.writestr(part, text)
    path.write_bytes(whole.getvalue())
    return path


@pytest.mark.parametrize("fill", ["<fill/>", "<fill />", "<fill></fill>", "<fill>\n</fill>"])
def test_a_workbook_with_an_empty_fill_is_read(tmp_path: Path, fill: str) -> None:
    path = with_empty_fill(tmp_path / "a.xlsx", fill)
    assert answer_cells(path, "A1")["parts"] == [{"Sheet": [5]}]
    assert "A1 5" in preview(path, 5, 5)
    raw = path.read_bytes()
    assert sound(raw) != raw  # what the model's own program is given


def test_a_sound_workbook_is_given_as_it_is(tmp_path: Path) -> None:
    made = Workbook()
    made.save(tmp_path / "a.xlsx")
    raw = (tmp_path / "a.xlsx").read_bytes()
    assert sound(raw) == raw


def test_a_workbook_that_cannot_be_read_is_one_item_set_apart(tmp_path: Path) -> None:
    rows = []
    for name in ("good", "bad"):
        folder = tmp_path / "spreadsheet" / name
        folder.mkdir(parents=True)
        for kind, value in (("input", None), ("answer", 7)):
            made = Workbook()
            made.worksheets[0]["A1"] = value
            made.save(folder / f"1_{name}_{kind}.xlsx")
        rows.append({"id": name, "instruction": name, "answer_position": "A1",
                     "spreadsheet_path": f"spreadsheet/{name}"})  # fmt: skip
    (tmp_path / "spreadsheet/bad/1_bad_answer.xlsx").write_bytes(b"PK not a zip")
    path = write_jsonl(tmp_path / "set.jsonl", rows)
    env = env_of("spreadsheet", data_dirs=(str(tmp_path),))
    reading = read_items(DataSource({"": path}), env, tmp_path)
    assert [one.item.id for one in reading.items] == ["good"]
    assert "1_bad_answer.xlsx cannot be read" in reading.told_apart()

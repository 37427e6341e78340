"""Items: our own sets, the official layouts, real data, and what is wrong with a file."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from env_world import OURS, RECORDS, ROOT, WHERE, env_of, own_items, record, shared

from skilltrail.core.errors import DataError
from skilltrail.core.item import SPLITS
from skilltrail.data.find import NOTHING, find_source
from skilltrail.data.load import read_items
from skilltrail.data.overlap import overlaps
from skilltrail.data.splits import split_digest
from skilltrail.envs.contract.fakes import STRANGE_IDS
from skilltrail.envs.registry import environment_names


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", OURS)
def test_our_own_items_load_and_share_nothing_between_splits(name: str) -> None:
    loaded = own_items(name)
    splits = {one.item.id: one.split for one in loaded}
    assert {
        split: list(splits.values()).count(split) >= 15 for split in SPLITS
    } == dict.fromkeys(SPLITS, True)
    assert overlaps(loaded, splits) == []


@pytest.mark.parametrize("name", OURS)
def test_our_own_items_are_what_their_generator_writes(name: str, tmp_path: Path) -> None:
    options = ["--no-images"] if name == "docvqa" else []
    script = f"data/{name}/generate.py"
    run([sys.executable, script, "--out", str(tmp_path), *options], check=True)
    written = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(written) >= 3
    for path in written:
        ours = ROOT / "data" / name / path.relative_to(tmp_path)
        assert path.read_bytes() == ours.read_bytes()


@pytest.mark.parametrize("name", ["korqa", "officeqa", "searchqa"])
def test_the_easy_items_load_and_are_what_their_generator_writes(
    name: str, tmp_path: Path
) -> None:
    script = f"data/{name}/generate.py"
    run([sys.executable, script, "--easy", "--out", str(tmp_path)], check=True)
    written = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.stem for path in written} >= set(SPLITS)
    for path in written:
        ours = ROOT / "data" / name / "easy" / path.relative_to(tmp_path)
        assert path.read_bytes() == ours.read_bytes()
    found = find_source(ROOT, name, NOTHING, f"data/{name}/easy")
    env = env_of(name, oracle=True) if name == "officeqa" else env_of(name)
    loaded = read_items(found, env, ROOT).items
    splits = {one.item.id: one.split for one in loaded}
    assert min(list(splits.values()).count(split) for split in SPLITS) >= 15
    assert overlaps(loaded, splits) == []
    shown = "page" if name == "officeqa" else "context"
    golds = [one.item.gold if name == "officeqa" else one.item.gold[0] for one in loaded]
    assert all(gold in one.item.input[shown] for gold, one in zip(golds, loaded, strict=True))


def test_the_truth_of_a_livemath_question_is_among_its_options_once() -> None:
    for one in own_items("livemath"):
        labels = [label for label, _ in one.item.input["choices"]]
        texts = [text for _, text in one.item.input["choices"]]
        assert labels == list("ABCDE")
        assert len(set(texts)) == 5
        right = one.record["mcq"]["correct_choice"]["text"]
        assert dict(one.item.input["choices"])[one.item.gold["label"]] == right


def test_the_right_option_stands_under_every_label() -> None:
    labels = [one.item.gold["label"] for one in own_items("livemath")]
    assert set(labels) == set("ABCDE")
    assert max(map(labels.count, set(labels))) < len(labels) / 2
    unshuffled = own_items("livemath", shuffle_choices=False)
    assert {one.item.gold["label"] for one in unshuffled} == {"A"}


def test_korquad_loads_in_two_seconds() -> None:
    path = shared("korquad", "KorQuAD_v1.0_dev.json")
    best = min(_timed(path) for _ in range(3))
    assert best < 2.0


def _timed(path: Path) -> float:
    began = time.process_time()
    loaded = read_items(
        find_source(ROOT, "korqa", str(path), NOTHING), env_of("korqa"), ROOT
    ).items
    assert len(loaded) == 5774
    return time.process_time() - began


@pytest.mark.parametrize(
    ("env", "parts", "folder", "n"),
    [
        ("searchqa", ("searchqa", "standin_xquad_en.json"), None, 120),
        ("docvqa", ("docvqa", "standin_docvqa.csv"), "docvqa", 20),
        ("officeqa", ("officeqa", "standin_tatqa.csv"), "officeqa", 40),
    ],
)
def test_stand_ins_in_the_official_layout_load(
    env: str, parts: tuple[str, ...], folder: str | None, n: int
) -> None:
    path = shared(*parts)
    params: dict[str, Any] = {} if folder is None else {"data_dirs": (str(shared(folder)),)}
    loaded = read_items(
        find_source(ROOT, env, str(path), NOTHING), env_of(env, **params), ROOT
    ).items
    assert len(loaded) == n
    assert all(one.item.gold for one in loaded)


def test_where_files_lie_changes_no_item(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (ROOT / "data" / "docvqa" / "documents").iterdir():
        (elsewhere / path.name).write_bytes(path.read_bytes())
    here = own_items("docvqa")
    there = own_items("docvqa", data_dirs=(str(elsewhere),))
    assert split_digest(one.item for one in here) == split_digest(one.item for one in there)


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not for the agent", encoding="utf-8")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "link.txt").symlink_to(outside)
    env = env_of("officeqa", data_dirs=(str(folder),))
    with pytest.raises(DataError, match="no file 'link.txt'"):
        env.parse(record("officeqa", source_files="link.txt"), WHERE)


def test_pages_of_one_document_are_one_group() -> None:
    env = env_of("docvqa")
    first, second = (
        env.parse(record("docvqa", questionId=n, image=f"documents/own0{n}_1.png"), WHERE)
        for n in (1, 2)
    )
    assert first.group == second.group == "document:own01"


@pytest.mark.parametrize("id", [*STRANGE_IDS, 17])
@pytest.mark.parametrize(
    ("env", "field"), [("searchqa", "key"), ("docvqa", "questionId"), ("officeqa", "uid")]
)
def test_any_id_is_data(env: str, field: str, id: str | int) -> None:
    fields = {"id": None, field: id}
    assert env_of(env).parse(record(env, **fields), WHERE).id == str(id)


@pytest.mark.parametrize("name", environment_names())
def test_an_id_is_data_in_every_environment(name: str) -> None:
    first, env = own_items(name)[0].record, env_of(name)
    plain = {k: v for k, v in first.items() if k not in ("questionId", "uid", "month", "no")}
    for id in (*STRANGE_IDS, 17):
        assert env.parse({**plain, "id": id}, WHERE).id == str(id)


def test_whole_numbers_are_ids_as_text() -> None:
    assert env_of("docvqa").parse(record("docvqa"), WHERE).id == "1"
    assert env_of("livemath").parse(record("livemath"), WHERE).id == "202601:4"
    fields = {"questionId": 337.0, "docId": 279.0, "ucsf_document_id": None}
    item = env_of("docvqa").parse(record("docvqa", **fields), WHERE)
    assert (item.id, item.group) == ("337", "document:279")  # as a table with gaps has them


DAMAGED = [
    ("searchqa", {"question": None}, "question"),
    ("searchqa", {"answers": []}, "answers"),
    ("searchqa", {"answers": [1]}, "answers"),
    ("searchqa", {"id": True}, "id"),
    ("searchqa", {"context": "  "}, "context"),
    ("korqa", {"answers": "['open"}, "answers"),
    ("docvqa", {"image": None}, "image"),
    ("docvqa", {"image": "documents/none.png"}, "image"),
    ("docvqa", {"image": "../../README.md"}, "image"),
    ("docvqa", {"image": "/etc/hostname"}, "image"),
    ("docvqa", {"image": "documents/own01_1.txt"}, "image"),
    ("docvqa", {"answers": None}, "answer"),
    ("docvqa", {"answers": None, "answer": "['0.28'"}, "answer"),
    ("docvqa", {"answers": None, "answer": "['0.28' '28 %']"}, "answer"),
    ("docvqa", {"answers": None, "answer": "[1, 2]"}, "answer"),
    ("docvqa", {"answers": None, "answer": "[" * 9000}, "answer"),
    ("docvqa", {"image": "i" * 300}, "image"),
    ("officeqa", {"source_files": ""}, "source_files"),
    ("officeqa", {"source_files": "missing.txt"}, "source_files"),
    ("officeqa", {"source_files": "../generate.py/../../x"}, "source_files"),
    ("officeqa", {"answer": None}, "ground_truth"),
    ("livemath", {"mcq": None}, "mcq"),
    ("livemath", {"mcq": {"question": "q"}}, "mcq.correct_choice"),
    ("livemath", {"month": None}, "month"),
    ("livemath", {"theorem_type": 5}, "theorem_type"),
    ("qa", {"answers": None}, "answer"),
    ("qa", {"scorer": "exakt"}, "scorer"),
    ("qa", {"scorer": "number"}, "answers"),
    ("qa", {"scorer": "choice"}, "choices"),
    ("qa", {"choices": ["a", "b"], "answers": ["C"]}, "answers"),
    ("qa", {"choices": "ab"}, "choices"),
    ("qa", {"scorer": "regex", "answers": ["(?i)foo|(?i)bar"]}, "answers"),
    ("qa", {"checks": [{"op": "regex", "arg": "(?i)foo|(?i)bar"}]}, "checks"),
    ("qa", {"checks": [{"op": "contain", "arg": "x"}]}, "checks"),
    ("qa", {"checks": [{"op": "max_words", "arg": "9"}]}, "checks"),
    ("qa", {"checks": []}, "checks"),
    ("qa", {"answers": ["4"], "scorer": "number", "tolerance": 2}, "tolerance"),
]


@pytest.mark.parametrize(("env", "fields", "field"), DAMAGED)
def test_a_damaged_record_is_refused_by_file_line_and_field(
    env: str, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(DataError) as caught:
        env_of(env).parse(record(env, **fields), WHERE)
    assert f"items.jsonl, line 3, field {field!r}" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("cell", "golds"),
    [
        ("['0.28']", ["0.28"]),
        ("""['it''s', "it's"]""", None),
        ("""["it's", '5"']""", ["it's", '5"']),
        ('["caf\\u00e9", "a/b"]', ["café", "a/b"]),
        ("0.28", ["0.28"]),
        ("[]", []),
    ],
)
def test_a_cell_spells_a_list_or_is_one_answer(cell: str, golds: list[str] | None) -> None:
    fields = record("docvqa", answers=None, answer=cell)
    if golds is None:
        with pytest.raises(DataError, match="without a comma between"):
            env_of("docvqa").parse(fields, WHERE)
    else:
        assert env_of("docvqa").parse(fields, WHERE).gold == golds


def test_two_right_options_or_labels_are_refused() -> None:
    mcq = json.loads(json.dumps(RECORDS["livemath"]["mcq"]))
    mcq["choices"][0]["text"] = "right"
    with pytest.raises(DataError, match="reads like the right one"):
        env_of("livemath").parse(record("livemath", mcq=mcq), WHERE)
    mcq["choices"][0] = {"label": "C", "text": "other"}
    with pytest.raises(DataError, match="label C twice"):
        env_of("livemath").parse(record("livemath", mcq=mcq), WHERE)


def test_an_oracle_page_is_the_named_one_or_an_error() -> None:
    env = env_of("officeqa", oracle=True)
    page = env.parse(record("officeqa"), WHERE).input["page"]
    assert "Table 1" in page
    assert "Table 2" not in page
    with pytest.raises(DataError, match="no page 9"):
        env.parse(record("officeqa", source_docs="https://x.invalid/?page=9"), WHERE)


def test_a_document_without_pages_is_shown_whole_or_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("all of it\n", encoding="utf-8")
    fields = {"source_files": "plain.txt"}
    whole = env_of("officeqa", oracle=True, data_dirs=(str(tmp_path),))
    assert whole.parse(record("officeqa", **fields), WHERE).input["page"] == "all of it"
    short = env_of("officeqa", oracle=True, oracle_chars=4, data_dirs=(str(tmp_path),))
    with pytest.raises(DataError, match="no page to choose"):
        short.parse(record("officeqa", **fields), WHERE)

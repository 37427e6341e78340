"""Items that nobody can pass, or everybody: set apart before any call, told by id and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from skilltrail.cli.checks import not_checked
from skilltrail.cli.commands.start.envs import contract_checks
from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.data.find import DataSource
from skilltrail.data.load import SourceRead, read_items
from skilltrail.data.splits import read_manifest
from skilltrail.envs.scoring import by_rule
from tests.env_world import RECORDS, ROOT, env_of, record, shared
from tests.fault_server import Answer, FaultServer
from tests.model_world import project
from tests.toy_items import Toy, write_jsonl

GOOD = {"id": "good", "question": "q", "context": "c of Mira", "answers": ["Mira"]}


def reading_of(
    folder: Path, env: str, *rows: Any, name: str = "set.jsonl", **params: Any
) -> SourceRead:
    path = folder / name
    if name.endswith(".json"):
        path.write_text(json.dumps(rows[0], ensure_ascii=False), encoding="utf-8")
    else:
        write_jsonl(path, list(rows))
    return read_items(DataSource({"": path}), env_of(env, **params), ROOT)


@pytest.mark.parametrize("gold", ["+", "A", "?!", "the", " An ", "-", "¿".replace("¿", "$")])
@pytest.mark.parametrize("env", ["qa", "textqa", "searchqa"])
def test_a_gold_of_which_normalising_leaves_nothing_is_set_apart(
    tmp_path: Path, env: str, gold: str
) -> None:
    """Case data-12: with an endpoint that answers nothing such items counted as right."""
    bad = {**GOOD, "id": "bad-7", "answers": [gold]}
    reading = reading_of(tmp_path, env, GOOD, bad)
    assert [one.item.id for one in reading.items] == ["good"]
    told = reading.told_apart()
    assert told.startswith("1 of 2 items are set apart")
    assert "'bad-7' (set.jsonl, line 2)" in told


@pytest.mark.parametrize("golds", [["Mira", "the"], ["Mira", " "], [], [""], ["..."]])
def test_one_answer_that_nothing_passes_is_enough(tmp_path: Path, golds: list[str]) -> None:
    for env in ("qa", "textqa", "searchqa", "korqa"):
        if env == "korqa" and golds == ["Mira", "the"]:
            continue  # its rule keeps articles
        reading = reading_of(tmp_path, env, GOOD, {**GOOD, "id": "bad", "answers": golds})
        assert [one.id for one in reading.apart] == ["bad"], env


def test_where_nothing_is_left_the_split_is_refused_with_every_reason(tmp_path: Path) -> None:
    rows = [
        {**GOOD, "id": f"i{n}", "answers": [gold]} for n, gold in enumerate(("+", "A", "?!"))
    ]
    with pytest.raises(DataError) as caught:
        reading_of(tmp_path, "qa", *rows)
    assert all(f"'i{n}' (set.jsonl, line {n + 1})" in str(caught.value) for n in range(3))


CHECKS: list[Any] = [
    {"scorer": "regex", "answers": [".*"]},
    {"scorer": "regex", "answers": ["a", "(b)?"]},
    {"answers": None, "checks": [{"op": "not_contains", "arg": "refund"}]},
    {"answers": None, "checks": [{"op": "max_words", "arg": 5}]},
    {"answers": None, "checks": [{"op": "not_regex", "arg": "x"}]},
    {"scorer": "contains", "answers": ["?!"]},
    {"scorer": "f1", "answers": ["an"]},
]


@pytest.mark.parametrize("fields", CHECKS)
def test_a_rule_that_the_empty_answer_passes_is_set_apart(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    reading = reading_of(tmp_path, "qa", GOOD, {**GOOD, "id": "bad", **fields})
    assert [one.id for one in reading.apart] == ["bad"]


@pytest.mark.parametrize("fields", CHECKS[:5])
def test_an_item_may_declare_that_empty_is_right(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    row = {**GOOD, "id": "must-not", **fields, "empty_is_right": True}
    assert len(reading_of(tmp_path, "qa", GOOD, row).items) == 2


@pytest.mark.parametrize("env", ["korqa", "textqa", "qa", "searchqa"])
def test_questions_of_squad_2_without_answer_say_that_empty_is_right(
    tmp_path: Path, env: str
) -> None:
    """Case data-11: korqa accepted them and training died in max() after paid calls."""
    qas = [
        {"id": "q1", "question": "Who?", "answers": [{"text": "Mira", "answer_start": 0}],
         "is_impossible": False},
        {"id": "q2", "question": "When?", "answers": [], "is_impossible": True},
        {"id": "q3", "question": "Where?", "answers": []},
    ]  # fmt: skip
    paragraph = {"context": "Mira came.", "qas": qas}
    whole = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [paragraph]}]}
    reading = reading_of(tmp_path, env, whole, name="squad2.json")
    assert [one.item.id for one in reading.items] == ["q1", "q2"]
    assert "'q3' (squad2.json, line 1)" in reading.told_apart()
    item, environment = reading.items[1].item, env_of(env)
    score = by_rule(environment, item, Trajectory((), ""))
    assert (score.hard, score.soft) == (1.0, 1.0)
    assert by_rule(environment, item, Trajectory((), "1850")).hard == 0.0


def test_answers_as_tables_of_squad_have_them_are_read(tmp_path: Path) -> None:
    cells = {"text": ["Mira", "she"], "answer_start": [0, 4]}
    for env in ("qa", "textqa", "searchqa", "korqa"):
        for answers in (cells, json.dumps(cells), repr(cells)):  # JSON, or a cell of a CSV file
            [one] = reading_of(tmp_path, env, {**GOOD, "answers": answers}).items
            assert env_of(env).golds(one.item) == ["Mira", "she"]


def test_a_list_printed_as_an_array_of_text_is_no_answer(tmp_path: Path) -> None:
    cell = "{'text': array(['Mira'], dtype=object), 'answer_start': array([1])}"
    with pytest.raises(DataError, match="field 'answers'"):
        reading_of(tmp_path, "textqa", {**GOOD, "answers": cell})


@pytest.mark.parametrize(
    ("env", "fields"),
    [
        ("docvqa", {"answers": []}),
        ("docvqa", {"answers": ["  "]}),
        ("officeqa", {"answer": "5 <6>"}),
        ("officeqa", {"answer": "5\n6"}),
        ("officeqa", {"answer": "Unable to determine"}),
    ],
)
def test_a_gold_that_scores_0_itself_is_set_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str, fields: dict[str, Any]
) -> None:
    monkeypatch.chdir(ROOT)
    id = {"docvqa": "questionId", "officeqa": "uid"}[env]
    bad = {**record(env, **fields), id: "bad"}
    reading = reading_of(tmp_path, env, RECORDS[env], bad)
    assert [one.id for one in reading.apart] == ["bad"]


# -- workbooks ----------------------------------------------------------------------------


def write_case(folder: Path, title: str, gold: Any, given: Any = None) -> None:
    for name, value in (("input", given), ("answer", gold)):
        book = Workbook()
        sheet = book.active
        assert sheet is not None
        sheet.title = title
        sheet["A1"], sheet["A2"], sheet["A3"] = 1, 2, value
        folder.mkdir(parents=True, exist_ok=True)
        book.save(folder / f"1_{folder.name}_{name}.xlsx")


def books(folder: Path, *positions: str, gold: Any = 3, title: str = "S") -> SourceRead:
    """Return what is read of one sound record and one for each position."""
    rows = []
    for number, position in enumerate(("A3", *positions)):
        name = f"t{number}"
        own = 3 if number == 0 else gold
        write_case(folder / "spreadsheet" / name, title, own)
        rows.append(
            {"id": name, "instruction": f"Write {number}.", "answer_position": position,
             "spreadsheet_path": f"spreadsheet/{name}", "instruction_type": "Cell-Level"}
        )  # fmt: skip
    return reading_of(folder, "spreadsheet", *rows, data_dirs=(str(folder),))


@pytest.mark.parametrize(
    ("title", "position"),
    [
        ("b2b, sez, de", "'b2b, sez, de'!A1:A3"),
        ("Bob's list", "'Bob''s list'!A1:A3"),
        ("S", "A:A"),
        ("S", "1:3"),
        ("S", "S!A1, S!A3"),
        ("S", "A1, A3"),
        ("wow!", "'wow!'!A1"),
        ("Received", "'Received'!'Received!A1:G16'"),
        ("S", "'S'!A1:ZZZZZZZZZZZZZZZZZZZZ9"),
        ("S", "Instruction!ABCDEFGHIJKLMNOPQRSTUVWXYZ1:B2"),
        ("S", "A1:A" + "9" * 5000),
        ("S", "A1:A²"),
        ("S", ""),
        ("S", "Nowhere!A1"),
        ("S", "A1:B2:C3"),
        ("S", "A3-A4"),
    ],
)
def test_an_answer_position_that_its_own_gold_fails_is_one_item_set_apart(
    tmp_path: Path, title: str, position: str
) -> None:
    """Case sheet-01: accepted without a word, and every rollout a failure to be explained."""
    if not position:
        with pytest.raises(DataError, match="line 2, field 'answer_position'"):
            books(tmp_path, position, title=title)
        return
    reading = books(tmp_path, position, title=title)
    assert [one.item.id for one in reading.items] == ["t0"]
    assert "'t1' (set.jsonl, line 2)" in reading.told_apart()


def test_a_gold_with_a_formula_without_a_value_is_set_apart(tmp_path: Path) -> None:
    """Case sheet-02: the unchanged workbook scored 1."""
    reading = books(tmp_path, "A3", gold="=SUM(A1:A2)")
    assert [one.id for one in reading.apart] == ["t1"]
    assert "1 formulas of the answer have no value" in reading.told_apart()


@pytest.mark.parametrize("gold", [None, "nan"])
def test_a_task_that_doing_nothing_solves_or_nobody_can_is_set_apart(
    tmp_path: Path, gold: Any
) -> None:
    reading = books(tmp_path, "A1:A3", gold=gold)
    assert [one.id for one in reading.apart] == ["t1"]


def test_real_tasks_are_set_apart_where_doing_nothing_passes(tmp_path: Path) -> None:
    data = shared("spreadsheetbench")
    rows = json.loads((data / "dataset.json").read_text(encoding="utf-8"))
    reading = reading_of(tmp_path, "spreadsheet", *rows, data_dirs=(str(data),))
    why = {one.id: one.why for one in reading.apart}
    assert why["570-43"] == "the unchanged workbook scores 1"
    assert set(why) == {"570-43", "208-20"}  # the second holds formulas without values
    assert len(reading.items) == 28


# -- what is told -------------------------------------------------------------------------


def test_no_call_is_made_for_an_item_set_apart_and_the_manifest_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(say=lambda call: Answer("")) as server:
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1"}  # fmt: skip
        project(tmp_path, target, items=4)
        path = tmp_path / "data/small/train.jsonl"
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        write_jsonl(path, [{**rows[0], "answers": ["+"]}, *rows[1:]])
        monkeypatch.chdir(tmp_path)
        import asyncio

        from stages.split import main

        asyncio.run(main())
        assert server.calls == []
    manifest = read_manifest(tmp_path)
    assert manifest["splits"]["train"]["items"] == 3
    [apart] = manifest["set_apart"]
    assert (apart["id"], apart["file"], apart["line"]) == (rows[0]["id"], "train.jsonl", 1)
    assert [one["kind"] for one in manifest["warnings"]][0] == "set_apart"


def test_doctor_says_what_could_not_be_checked(tmp_path: Path) -> None:
    judged = {**GOOD, "id": "j", "scorer": "judge"}
    reading = reading_of(tmp_path, "qa", GOOD, judged)
    assert not_checked(reading).endswith("scored 1 by a judge")
    toys = write_jsonl(tmp_path / "toys.jsonl", [{"id": "1", "q": "a", "a": ""}])
    assert not_checked(read_items(DataSource({"": toys}), Toy(), ROOT)).endswith(
        "scored 1 by a function of its author"
    )
    found = {one.name: one.found for one in contract_checks(ROOT, "alfworld")}
    assert "scored 24 by a run" in " ".join(found.values()) or "items are read" in str(found)


class Talkative(Toy):
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        raise KeyError("part")


def test_a_scorer_that_raises_over_a_gold_stops_the_load_and_is_named(tmp_path: Path) -> None:
    from skilltrail.envs.protocol import ScoredBy

    class Bad(Talkative):
        scored_by = ScoredBy.ANSWER

    path = write_jsonl(tmp_path / "toys.jsonl", [{"id": "1", "q": "a", "a": "b"}])
    with pytest.raises(DataError, match=r"item '1' \(.*toys.jsonl, line 1\).*KeyError: 'part'"):
        read_items(DataSource({"": path}), Bad(), ROOT)


def test_a_sound_set_is_read_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    from skilltrail.data.find import NOTHING, find_source

    for env in ("qa", "textqa", "korqa", "searchqa", "docvqa", "livemath", "officeqa",
                "spreadsheet", "alfworld"):  # fmt: skip
        source = find_source(ROOT, env, NOTHING, NOTHING)
        reading = read_items(source, env_of(env), ROOT)
        assert not reading.apart, env
        assert bool(reading.unchecked) is (env == "alfworld")

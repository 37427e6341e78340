"""The environment `spreadsheet`: official comparison, layouts, agents, hostile workbooks."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Where
from skilltrail.envs.spreadsheet.agents import code_in
from skilltrail.envs.spreadsheet.case_runner import CaseRunner
from skilltrail.envs.spreadsheet.env import Spreadsheet, SpreadsheetLimits, SpreadsheetParams
from skilltrail.envs.spreadsheet.judge import case_scores, from_json, judge_case, same
from skilltrail.envs.spreadsheet.reader import (
    BadRange,
    BadWorkbook,
    answer_cells,
    cells_of,
    check_size,
    parts_of,
    preview,
    to_json,
)
from skilltrail.envs.spreadsheet.recalculate import Recalculator
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Reply, Request
from skilltrail.sandbox.choose import open_sandbox, why_not

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SKILLTRAIL_SHARED", ROOT.parent / "shared"))
REAL = SHARED / "data" / "spreadsheetbench"
WHERE = Where("items.jsonl", 1)
needs_bubblewrap = pytest.mark.skipif(
    why_not() is not None, reason=f"bubblewrap does not work here: {why_not()}"
)
needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason=f"the real SpreadsheetBench tasks are not at {REAL}"
)
COPY = (
    "import openpyxl\nbook = openpyxl.load_workbook('input.xlsx')\n"
    "sheet = book.worksheets[0]\n{}\nbook.save('output.xlsx')\n"
)
SUM = COPY.format("sheet['E1'] = sum(c.value for c in sheet['B'][1:])")


class Scripted:
    """A model that gives prepared replies, and keeps what it was asked."""

    identity: Mapping[str, Any] = {"backend": "scripted"}
    workers = 1

    def __init__(self, *replies: str | Reply, style: str = "chat") -> None:
        self.style = style
        self.abilities = frozenset({"tools"} if style == "chat" else ())
        self._replies = iter(replies)
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        reply = next(self._replies)
        return Reply(reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        """Nothing is held."""


def book(rows: list[list[Any]], sheet: str = "Stock") -> bytes:
    made = openpyxl.Workbook()
    assert made.active is not None
    made.active.title = sheet
    for row in rows:
        made.active.append(row)
    raw = io.BytesIO()
    made.save(raw)
    return raw.getvalue()


def write_task(
    folder: Path, cases: int = 3, position: str = "E1", **more: Any
) -> dict[str, Any]:
    """Write the workbooks of a task "sum column B into E1" and return its record."""
    place = folder / "spreadsheet" / "7"
    place.mkdir(parents=True)
    for case in range(1, cases + 1):
        rows: list[list[Any]] = [["Item", "Quantity"]]
        rows += [[f"thing {n}", case * n] for n in range(1, 3 + case)]
        (place / f"{case}_7_input.xlsx").write_bytes(book(rows))
        rows[0] += [None, None, sum(row[1] for row in rows[1:])]
        (place / f"{case}_7_answer.xlsx").write_bytes(book(rows))
    return {
        "id": 7,
        "instruction": "Write the sum of column B into E1.",
        "spreadsheet_path": "spreadsheet/7",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": position,
        **more,
    }


@pytest.fixture
def world(tmp_path: Path) -> Callable[..., tuple[Spreadsheet, Item]]:
    def make(position: str = "E1", cases: int = 1, **params: Any) -> tuple[Spreadsheet, Item]:
        record = write_task(tmp_path, cases, position)
        env = Spreadsheet(SpreadsheetParams(data_dirs=(str(tmp_path),), **params))
        return env, env.parse(record, WHERE)

    return make


def roll(env: Spreadsheet, item: Item, model: Scripted, skill: str = "") -> Trajectory:
    return asyncio.run(env.rollout(item, skill, model))


# --- the official comparison --------------------------------------------------------------

VECTORS: list[tuple[Any, Any, bool]] = [
    (1, True, True),
    (1, "1", True),
    (1000, "1e3", True),
    (1000, "1_000", True),
    (1000, "1,000", False),
    (0.05, "5%", False),
    (True, "TRUE", False),
    (2.675, 2.67, True),
    (2.675, 2.68, False),
    (0.125, 0.12, True),
    (0.125, 0.13, False),
    (-0.001, 0, True),
    ("nan", "nan", False),
    ("abc", "abc ", False),
    (0, None, False),
    (0, "", False),
    (None, "", True),
    (datetime(2024, 1, 1), 45292, True),
    (datetime(2024, 1, 1, 12), 45292, True),
    (datetime(2024, 1, 2, 12), 45293, False),
    (datetime(2024, 1, 2, 12), 45294, True),
    (datetime(2024, 1, 1), "2024-01-01", False),
    (time(14, 30), "14:30", True),
    (time(14, 30, 45), "14:30", True),
]


@pytest.mark.parametrize(("gold", "output", "equal"), VECTORS)
def test_cells_compare_as_the_official_code_does(gold: Any, output: Any, equal: bool) -> None:
    assert same(gold, output) is equal
    assert same(from_json(to_json(gold)), from_json(to_json(output))) is equal


def test_a_number_too_large_for_a_float_is_compared() -> None:
    assert not same(10**400, 1)


@pytest.mark.parametrize(
    ("passes", "hard", "soft"),
    [
        ([True, True, False], 0.0, 2 / 3),
        ([True] * 3, 1.0, 1.0),
        ([], 0.0, 0.0),
        ([True], 1.0, 1.0),
    ],
)
def test_hard_is_all_cases_and_soft_their_share(
    passes: list[bool], hard: float, soft: float
) -> None:
    assert case_scores(passes) == (hard, soft)


@pytest.mark.parametrize(
    ("position", "parts"),
    [
        ("A1", [(None, "A1")]),
        ("'Sheet1'!A1:B2,C3", [("Sheet1", "A1:B2"), (None, "C3")]),
        ("'Sheet1!'A2:B19", [("Sheet1", "A2:B19")]),
        ("Updated Data'!B5:B9", [("Updated Data", "B5:B9")]),
        ("'ورقة1'!H2:L4", [("ورقة1", "H2:L4")]),
        ("A1, Sheet!A2", [(None, "A1"), (" Sheet", "A2")]),
    ],
)
def test_positions_are_taken_apart_as_officially(
    position: str, parts: list[tuple[str | None, str]]
) -> None:
    assert parts_of(position) == parts


def test_a_rectangle_is_read_column_by_column() -> None:
    assert cells_of("A1:B2") == [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert cells_of("$A$1") == [(1, 1)]
    assert cells_of("B2:A1") == []


@pytest.mark.parametrize(
    "area", ["A:A", "1:3", "A", " A2", "", "A1:B2:C3", "A0", "A1:ZZZ999999"]
)
def test_what_the_official_code_cannot_read_is_a_bad_range(area: str) -> None:
    with pytest.raises(BadRange):
        cells_of(area)


def verdict(tmp_path: Path, gold: bytes, output: bytes, position: str) -> str:
    found = []
    for name, content in (("gold", gold), ("output", output)):
        path = tmp_path / f"{name}.xlsx"
        path.write_bytes(content)
        found.append(answer_cells(path, position))
    return judge_case(found[0], found[1], position).fault


@pytest.mark.parametrize(
    ("position", "fault"),
    [
        ("A1", ""),
        ("Stock!A1", ""),
        ("B2:A1", ""),
        ("A:A", "bad_range"),
        ("A1, A2", "bad_range"),
        ("Absent!A1", "bad_range"),
    ],
)
def test_a_gold_agrees_with_itself_where_it_can_be_read(
    tmp_path: Path, position: str, fault: str
) -> None:
    assert verdict(tmp_path, book([[1], [2]]), book([[1], [2]]), position) == fault


def test_the_golds_first_sheet_is_looked_for_in_the_output(tmp_path: Path) -> None:
    assert verdict(tmp_path, book([[1]], "A"), book([[1]], "B"), "A1") == "missing_sheet"
    assert verdict(tmp_path, book([[1]]), book([[2]]), "A1") == "wrong_cells"


# --- real tasks ---------------------------------------------------------------------------


@needs_real_data
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_real_tasks_load_and_golds_pass_and_inputs_score_as_measured() -> None:
    env = Spreadsheet(SpreadsheetParams(data_dirs=(str(REAL),)))
    records = json.loads((REAL / "dataset.json").read_text(encoding="utf-8"))
    passing: dict[str, list[bool]] = {}
    for record in records:
        item = env.parse(record, WHERE)
        position = item.input["answer_position"]
        golds = item.gold["cases"]
        assert len(golds) == 3
        assert all(judge_case(gold, gold, position).passes for gold in golds), item.id
        inputs = [answer_cells(REAL / name, position) for name in item.extra["files"]]
        untouched = [
            judge_case(gold, found, position).passes
            for gold, found in zip(golds, inputs, strict=True)
        ]
        if any(untouched):
            passing[item.id] = untouched
    assert len(records) == 30
    assert passing == {
        "193-42": [True, True, False],
        "30468": [True, False, False],
        "570-43": [True, True, True],
    }


# --- loading ------------------------------------------------------------------------------


def test_the_three_cases_of_a_record_are_found(tmp_path: Path) -> None:
    env = Spreadsheet(SpreadsheetParams(data_dirs=(str(tmp_path),)))
    item = env.parse(write_task(tmp_path), WHERE)
    assert item.id == "7"
    assert [case["case"] for case in item.input["cases"]] == [1, 2, 3]
    assert "answer" not in json.dumps(dict(item.input["cases"][0]))
    assert env.reference(item) == "Stock: 6"


@pytest.mark.parametrize(
    "names", [("1_9_init.xlsx", "1_9_golden.xlsx"), ("initial.xlsx", "golden.xlsx")]
)
def test_both_verified_layouts_have_one_case(tmp_path: Path, names: tuple[str, str]) -> None:
    record = write_task(tmp_path, 1)
    folder = tmp_path / "spreadsheet" / "7"
    (folder / "1_7_input.xlsx").rename(folder / names[0])
    (folder / "1_7_answer.xlsx").rename(folder / names[1])
    item = Spreadsheet(SpreadsheetParams(data_dirs=(str(tmp_path),))).parse(record, WHERE)
    assert len(item.gold["cases"]) == 1


@pytest.mark.parametrize("path", ["../7", "spreadsheet/8", "/etc", "", None, 7, "x" * 300])
def test_a_wrong_folder_is_named_with_its_field(tmp_path: Path, path: Any) -> None:
    record = {**write_task(tmp_path), "spreadsheet_path": path}
    with pytest.raises(DataError, match="line 1, field 'spreadsheet_path'"):
        Spreadsheet(SpreadsheetParams(data_dirs=(str(tmp_path),))).parse(record, WHERE)


def test_a_damaged_answer_and_a_missing_one_are_named(tmp_path: Path) -> None:
    record = write_task(tmp_path)
    env = Spreadsheet(SpreadsheetParams(data_dirs=(str(tmp_path),)))
    answer = tmp_path / "spreadsheet" / "7" / "2_7_answer.xlsx"
    answer.write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"2_7_answer\.xlsx cannot be read"):
        env.parse(record, WHERE)
    answer.unlink()
    with pytest.raises(DataError, match=r"without 2_7_answer\.xlsx"):
        env.parse(record, WHERE)


@pytest.mark.parametrize("id", ["../../x", "CON", "x" * 300, "😀", 12])
def test_an_id_is_data_only(tmp_path: Path, id: Any) -> None:
    record = {**write_task(tmp_path, 1), "id": id}
    env = Spreadsheet(SpreadsheetParams(data_dirs=(str(tmp_path),)))
    assert env.parse(record, WHERE).id == str(id)


def test_a_workbook_that_changed_since_the_split_is_refused(
    world: Callable[..., tuple[Spreadsheet, Item]], tmp_path: Path
) -> None:
    env, item = world()
    (tmp_path / "spreadsheet" / "7" / "1_7_input.xlsx").write_bytes(book([["other"]]))
    with pytest.raises(DataError, match="has changed since the splits were made"):
        roll(env, item, Scripted("x"))


def test_our_own_tasks_load() -> None:
    env = Spreadsheet(SpreadsheetParams(data_dirs=(str(ROOT / "data" / "spreadsheet"),)))
    ids = set()
    for split in ("train", "selection", "test"):
        text = (ROOT / "data" / "spreadsheet" / f"{split}.jsonl").read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            item = env.parse(json.loads(line), Where(split, number))
            ids.add(item.id)
            assert len(item.gold["cases"]) == 3
    example = env.example(item)
    assert len(ids) == 24
    assert example is not None
    assert "\n\n" not in example


def test_a_preview_shows_the_first_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(book([["Item", "Price"], ["Rope", 2.5], ["Lamp", 3], ["x", 1]]))
    assert preview(path, 2, 20) == (
        "Sheet 'Stock', cells A1:B4\nA1 Item | B1 Price\nA2 Rope | B2 2.5\n(2 more rows)"
    )


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("text\n```python\nx = 1\n```\n```python\ny\n```", "x = 1"),
        ("x = 1\n", "x = 1"),
        ("```python\nx = 1", "x = 1"),
        ("", ""),
        ("```\n    x\n```", "    x"),
    ],
)
def test_the_first_fenced_block_is_the_code(reply: str, code: str) -> None:
    assert code_in(reply) == code


# --- agents -------------------------------------------------------------------------------


def fenced(code: str) -> str:
    return f"```python\n{code}```"


@needs_bubblewrap
def test_code_that_is_right_on_every_case_scores_one(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(cases=3, agent="single")
    model = Scripted(fenced(SUM))
    done = roll(env, item, model, "# Skill")
    score = env.score(item, done)
    assert (score.hard, score.soft, score.reason) == (1.0, 1.0, "correct")
    assert done.extra["sandbox"] == "bubblewrap"
    assert model.asked[0].system == "# Skill"
    assert "A1 Item | B1 Quantity" in str(done.turns[0].sent)
    assert Trajectory.from_json(json.loads(json.dumps(done.to_json()))) == done


@needs_bubblewrap
def test_a_changed_gold_is_scored_without_a_run(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(cases=1, agent="single")
    done = roll(env, item, Scripted(fenced(SUM)))
    gold = {"cases": [{"sheets": ["Stock"], "parts": [{"Stock": [99]}], "formulas": 0}]}
    assert env.score(replace(item, gold=gold), done).reason == "wrong_cells"


@needs_bubblewrap
def test_code_written_for_the_first_case_alone_gets_its_share(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(cases=2, agent="single", train_feedback=True)
    done = roll(env, item, Scripted(fenced(COPY.format("sheet['E1'] = 6"))))
    score = env.score(item, done)
    assert (score.hard, score.soft, score.reason) == (0.0, 0.5, "only_first_case")
    told = env.feedback(item, done)
    assert told == "Workbook 1: right.\nWorkbook 2: wrong cells; wrong: Stock!E1"


@needs_bubblewrap
def test_an_error_is_fed_back_and_mended(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world()
    model = Scripted(fenced("boom()"), fenced(SUM))
    done = roll(env, item, model)
    assert env.score(item, done).hard == 1.0
    assert "NameError: name 'boom' is not defined" in str(done.turns[0].observation)
    assert "NameError" in model.asked[1].messages[-1].parts[0].text
    assert [request.turn for request in model.asked] == [0, 1]


@needs_bubblewrap
def test_a_completion_model_sees_the_latest_attempt_only(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world()
    model = Scripted("first()", "second()", SUM, style="completion")
    done = roll(env, item, model)
    assert env.score(item, done).hard == 1.0
    last = str(model.asked[2].prompt)
    assert "second()" in last
    assert "first()" not in last
    assert model.asked[0].decoding.stop == ("```",)


@needs_bubblewrap
def test_turns_that_are_used_up_end_the_item(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(limits=SpreadsheetLimits(turns=2))
    done = roll(env, item, Scripted(fenced("one()"), fenced("two()")))
    assert done.ending == "out_of_turns"
    assert env.score(item, done).reason == "out_of_turns"


@needs_bubblewrap
def test_the_same_failing_code_twice_is_the_answer(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world()
    done = roll(env, item, Scripted(fenced("one()"), fenced("one()")))
    assert (done.ending, env.score(item, done).reason) == ("answered", "error")


FAULTS = {
    "no_output": "print('done')",
    "error": "1 / 0",
    "unchanged": COPY.format(""),
    "no_value": COPY.format("sheet['E1'] = '=SUM(B2:B9)'"),
    "wrong_cells": COPY.format("sheet['E1'] = -1"),
    "missing_sheet": COPY.format("sheet.title = 'Other'"),
    "unreadable_output": "open('output.xlsx', 'w').write('no workbook')",
    "out_of_time": "while True: pass",
}


@needs_bubblewrap
@pytest.mark.parametrize("reason", FAULTS)
def test_a_fault_is_the_reason_of_the_score(
    world: Callable[..., tuple[Spreadsheet, Item]], reason: str
) -> None:
    env, item = world(
        agent="single", recalculate=False, limits=SpreadsheetLimits(run_s=3, item_s=9)
    )
    score = env.score(item, roll(env, item, Scripted(fenced(FAULTS[reason]))))
    assert (score.hard, score.reason) == (0.0, reason)
    assert env.catalogue.type_of(score) != "unknown"


@needs_bubblewrap
def test_no_code_and_a_refusal_are_told_apart(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(agent="single")
    assert env.score(item, roll(env, item, Scripted(""))).reason == "no_code"
    assert roll(env, item, Scripted(Reply("no", finish="refusal"))).ending == "refused"


@needs_bubblewrap
def test_tools_run_code_in_a_folder_that_lasts_until_code_is_submitted(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(agent="react")

    def call(name: str, code: str, id: str) -> Reply:
        tool = {"id": id, "name": name, "arguments": {"code": code}}
        return Reply("", finish="tool", tool_calls=(tool,))

    model = Scripted(
        call("run_python", "open('note', 'w').write('kept'); print('seen')", "a"),
        call("run_python", "print(open('note').read())", "b"),
        call("submit", SUM, "c"),
    )
    done = roll(env, item, model)
    assert [turn.observation for turn in done.turns] == ["seen", "kept", None]
    assert env.score(item, done).hard == 1.0
    assert model.asked[2].messages[-1].tool_call_id == "b"


@needs_bubblewrap
def test_a_coding_client_gets_the_workbook_and_leaves_a_program(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(agent="exec")
    left = base64.b64encode(SUM.encode()).decode()
    model = Scripted(Reply("Done.", extra={"files": {"solution.py": left}}))
    done = roll(env, item, model)
    assert env.score(item, done).hard == 1.0
    assert [file.name for file in model.asked[0].files] == ["input.xlsx"]
    assert model.asked[0].returns == ("solution.py",)


def test_tools_need_a_model_that_has_them(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(agent="react", sandbox="none")
    with pytest.raises(ModelConfigError, match="the target has no tools"):
        roll(env, item, Scripted(style="completion"))


def test_without_a_sandbox_the_result_says_so(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(agent="single", sandbox="none")
    done = roll(env, item, Scripted(fenced(SUM)))
    assert done.extra["sandbox"] == "none"
    assert env.score(item, done).hard == 1.0


def test_feedback_is_off_by_default_and_never_holds_the_expected_value(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world()
    assert env.feedback(item, Trajectory((), "")) is None


# --- hostile workbooks --------------------------------------------------------------------


def zip_bomb() -> bytes:
    raw = io.BytesIO()
    with (
        zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/worksheets/sheet1.xml", "w") as part,
    ):
        for _ in range(120):
            part.write(b"0" * 2**20)
    return raw.getvalue()


def with_external_link() -> bytes:
    raw = io.BytesIO(book([["Item"], [1]]))
    link = (
        b'<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/'
        b'2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/'
        b'officeDocument/2006/relationships/externalLinkPath" Target="http://192.0.2.1/x.xlsx" '
        b'TargetMode="External"/></Relationships>'
    )
    with zipfile.ZipFile(raw, "a") as archive:
        archive.writestr("xl/externalLinks/_rels/externalLink1.xml.rels", link)
    return raw.getvalue()


def entity_bomb() -> bytes:
    levels = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' if n else '<!ENTITY e0 "xxxxxxxxxx">'
        for n in range(10)
    )
    raw = io.BytesIO(book([["x"]]))
    changed = io.BytesIO()
    with zipfile.ZipFile(raw) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "xl/workbook.xml":
                data = f"<!DOCTYPE w [{levels}]><w>&e9;</w>".encode()
            new.writestr(name, data)
    return changed.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    path.write_bytes(zip_bomb())
    with pytest.raises(BadWorkbook, match="too large when unpacked"):
        check_size(path)


@needs_bubblewrap
def test_hostile_outputs_are_read_in_the_sandbox_and_harm_nobody() -> None:
    sandbox = open_sandbox("bubblewrap")
    runner = CaseRunner(sandbox, [], "A1", Recalculator(sandbox, False), 9, 9)
    books = {
        "a": zip_bomb(),
        "b": entity_bomb(),
        "c": b"PK\x03\x04 half a zip",
        "d": with_external_link(),
        "e": book([["fine"]]),
    }
    found = asyncio.run(runner.read(books))
    assert [found[name].get("fault") for name in "abc"] == ["unreadable_output"] * 3
    assert found["d"]["parts"] == [{"Stock": ["Item"]}]
    assert found["e"]["parts"] == [{"Stock": ["fine"]}]


# Each tries to get out or to take more than it may; the run ends and the item has its reason.
HOSTILE = {
    "read passwd": ("print(open('/etc/passwd').read())", {"error"}),
    "read home": ("import os; print(os.listdir('/root'), os.listdir('/home'))", {"error"}),
    "write outside": ("open('/usr/bin/mine', 'w').write('x')", {"error"}),
    "open a socket": (
        "import socket; socket.create_connection(('127.0.0.1', 9), 2)",
        {"error"},
    ),
    "fork bomb": ("import os\nwhile True: os.fork()", {"error", "out_of_time"}),
    "fill the disk": (
        "with open('big', 'wb') as f:\n  while True: f.write(bytes(2**20))",
        {"error", "out_of_space"},
    ),
    "10 GB": ("held = bytearray(10 * 2**30)", {"error", "out_of_memory"}),
    "background child": (
        "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)",
        {"no_output"},
    ),
    "zip bomb": (
        "import zipfile\n"
        "with zipfile.ZipFile('output.xlsx', 'w', zipfile.ZIP_DEFLATED) as z:\n"
        "  with z.open('xl/workbook.xml', 'w') as f:\n"
        "    for _ in range(120): f.write(b'0' * 2**20)",
        {"unreadable_output"},
    ),
    "external link": (
        f"import base64\nraw = {base64.b64encode(with_external_link())!r}\n"
        "open('output.xlsx', 'wb').write(base64.b64decode(raw))",
        {"unchanged", "wrong_cells"},
    ),
}


@needs_bubblewrap
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_code_ends_and_its_item_is_scored_with_a_reason(
    world: Callable[..., tuple[Spreadsheet, Item]], what: str
) -> None:
    code, reasons = HOSTILE[what]
    env, item = world(agent="single", limits=SpreadsheetLimits(run_s=5, item_s=10))
    done = roll(env, item, Scripted(fenced(code)))
    score = env.score(item, done)
    assert (done.ending, score.hard) == ("answered", 0.0)
    assert score.reason in reasons


@needs_bubblewrap
def test_code_that_looks_for_the_answer_finds_nothing(
    world: Callable[..., tuple[Spreadsheet, Item]], tmp_path: Path
) -> None:
    env, item = world(agent="single")
    answer = tmp_path / "spreadsheet" / "7" / "1_7_answer.xlsx"
    code = f"import os, shutil\nshutil.copy({str(answer)!r}, 'output.xlsx')\n"
    done = roll(env, item, Scripted(fenced(code)))
    assert env.score(item, done).reason == "error"


@needs_bubblewrap
def test_an_output_that_is_a_link_is_no_output(
    world: Callable[..., tuple[Spreadsheet, Item]],
) -> None:
    env, item = world(agent="single")
    code = "import os; os.symlink('input.xlsx', 'output.xlsx')"
    done = roll(env, item, Scripted(fenced(code)))
    assert env.score(item, done).reason == "no_output"

"""Formulas that code leaves without values are computed by the real LibreOffice.

Without `soffice` these tests skip; `test_env_spreadsheet.py` has what happens then.
"""

from __future__ import annotations

import asyncio
import io
import shutil
from typing import Any

import openpyxl
import pytest

from skilltrail.envs.spreadsheet.case_runner import CaseRunner
from skilltrail.envs.spreadsheet.judge import judge_case
from skilltrail.envs.spreadsheet.recalculate import Recalculator
from skilltrail.sandbox.choose import open_sandbox, why_not

pytestmark = [
    pytest.mark.skipif(
        shutil.which("soffice") is None,
        reason="no LibreOffice: `apt-get install --no-install-recommends libreoffice-calc`",
    ),
    pytest.mark.skipif(
        why_not() is not None, reason=f"bubblewrap does not work here: {why_not()}"
    ),
]
WRITES = (
    "import openpyxl\nbook = openpyxl.load_workbook('input.xlsx')\n"
    "book.worksheets[0]['C1'] = {!r}\nbook.save('output.xlsx')\n"
)


def book(*rows: list[Any]) -> bytes:
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    raw = io.BytesIO()
    made.save(raw)
    return raw.getvalue()


def value(raw: bytes, cell: str = "C1") -> Any:
    return openpyxl.load_workbook(io.BytesIO(raw), data_only=True).active[cell].value


def after(code: str, *inputs: bytes, enabled: bool = True) -> dict[str, Any]:
    """Run code on workbooks and return what is kept for the scorer."""
    sandbox = open_sandbox("bubblewrap")
    runner = CaseRunner(sandbox, inputs, "C1", Recalculator(sandbox, enabled), 30, 60)
    return asyncio.run(runner.all_cases(code))


def recalculated(**books: bytes) -> dict[str, bytes]:
    return asyncio.run(Recalculator(open_sandbox("bubblewrap")).recalculated(books))


def gold(held: Any) -> dict[str, Any]:
    return {"sheets": ["Sheet"], "parts": [{"Sheet": [held]}]}


def test_a_formula_that_openpyxl_wrote_has_its_value_in_every_case() -> None:
    done = after(WRITES.format("=SUM(A1:B2)"), book([1, 2], [3, 4]), book([10, 20], [30, 40]))
    assert done["recalculated"].startswith("LibreOffice ")
    verdicts = [
        judge_case(gold(held), case, "C1")
        for held, case in zip((10, 100), done["cases"], strict=True)
    ]
    assert all(verdict.passes for verdict in verdicts)


def test_a_wrong_formula_is_wrong_and_not_without_value() -> None:
    done = after(WRITES.format("=SUM(A1:A2)"), book([1, 2], [3, 4]))
    assert judge_case(gold(10), done["cases"][0], "C1").fault == "wrong_cells"


def test_switched_off_the_same_formula_has_no_value_and_the_result_says_so() -> None:
    done = after(WRITES.format("=SUM(A1:B2)"), book([1, 2], [3, 4]), enabled=False)
    assert done["recalculated"] is None
    assert judge_case(gold(10), done["cases"][0], "C1").fault == "no_value"


def test_values_alone_are_not_recalculated() -> None:
    assert after(WRITES.format(10), book([1, 2]))["recalculated"] is None


def test_a_formula_that_openpyxl_dropped_the_value_of_gets_it_back() -> None:
    """Case: code that changes one cell takes the values of all formulas of the file."""
    with_value = recalculated(a=book([1, 2, "=A1+B1"]))["a"]
    assert value(with_value) == 3
    copies = (
        "import openpyxl\nbook = openpyxl.load_workbook('input.xlsx')\n"
        "book.worksheets[0]['A1'] = 5\nbook.save('output.xlsx')\n"
    )
    case = after(copies, with_value)["cases"][0]
    assert judge_case(gold(7), case, "C1").passes


def test_a_workbook_that_cannot_be_converted_stays_and_harms_no_other() -> None:
    made = recalculated(a=b"PK\x03\x04 half a zip", b=book([1, 2, "=A1+B1"]))
    assert made["a"] == b"PK\x03\x04 half a zip"
    assert value(made["b"]) == 3


@pytest.mark.parametrize(
    "formula",
    ['=WEBSERVICE("http://127.0.0.1:9/")', "='file:///etc/[passwd]Sheet1'!A1"],
)
def test_a_formula_that_reaches_out_brings_nothing_in(formula: str) -> None:
    found = value(recalculated(a=book([1, 2, formula]))["a"])
    assert found is None or str(found).startswith("#") or found in (0, "Err:540")


def test_the_same_workbook_gets_the_same_values_again() -> None:
    raw = book([1, 2, '=TEXT(A1/3,"0.00")&B1'])
    assert value(recalculated(a=raw)["a"]) == value(recalculated(a=raw)["a"]) == "0.332"

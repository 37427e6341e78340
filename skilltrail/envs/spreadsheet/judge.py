"""From cell values to a verdict on each case, and from cases to a score.

A case passes when every part of the answer position does. hard = all cases pass, soft = the
share that does (of the cases there are; the official code divides by 3).

Cells are compared as SpreadsheetBench's `evaluation.py` does, oddities included: numbers (also
booleans, and texts that `float()` accepts) are rounded to two places; a date with time becomes
whole days since 1899-12-30, half to even; a time of day loses its seconds. Then empty text
equals nothing, values of different types differ, and the rest is `==`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.envs.spreadsheet.reader import BadRange, cells_of, parts_of

_FIRST_DAY = datetime.datetime(1899, 12, 30)
_SECONDS_A_DAY = 86_400


def transform(value: Any) -> Any:
    """Return the form of a cell's value that is compared."""
    if isinstance(value, (int, float)):
        return _rounded(value)
    if isinstance(value, datetime.time):
        return str(value)[:-3]
    if isinstance(value, datetime.datetime):
        since = value - _FIRST_DAY
        return round(since.days + since.seconds / _SECONDS_A_DAY, 0)
    if isinstance(value, str):
        try:
            return _rounded(value)
        except ValueError:
            return value
    return value


def _rounded(value: float | str) -> float:
    """Return a number rounded to two places; one too large for a float equals nothing."""
    try:
        return round(float(value), 2)
    except OverflowError:
        return float("nan")


def same(gold: Any, output: Any) -> bool:
    """Return whether two cells count as equal."""
    wanted, found = transform(gold), transform(output)
    if wanted in (None, "") and found in (None, ""):
        return True
    return type(wanted) is type(found) and bool(wanted == found)


def from_json(value: Any) -> Any:
    """Return the value that `reader.to_json` wrote."""
    if not isinstance(value, Mapping):
        return value
    ((kind, text),) = value.items()
    if kind == "float":
        return float(text)
    if kind == "timedelta":
        return datetime.timedelta(seconds=text)
    kinds: Mapping[str, Any] = {
        "datetime": datetime.datetime,
        "date": datetime.date,
        "time": datetime.time,
    }
    return kinds[kind].fromisoformat(text) if kind in kinds else (kind, text)


def wrong_cells(gold: Sequence[Any], output: Sequence[Any]) -> list[int]:
    """Return the places where two lists of JSON cell values, equally long, differ."""
    return [
        place
        for place, (wanted, found) in enumerate(zip(gold, output, strict=True))
        if not same(from_json(wanted), from_json(found))
    ]


_SHOWN_CELLS = 12
# Why a case fails, worst first: the score's reason is that of the worst case.
FAULTS = (
    "bad_range",
    "no_code",
    "error",
    "out_of_time",
    "out_of_memory",
    "out_of_space",
    "no_output",
    "unreadable_output",
    "missing_sheet",
    "no_value",
    "unchanged",
    "wrong_cells",
)


@dataclass(frozen=True)
class CaseVerdict:
    """One case: the fault "" means that it passes; `cells` are wrong ones, as `Sheet!B2`."""

    fault: str = ""
    cells: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        return not self.fault


def judge_case(
    gold: Mapping[str, Any], output: Mapping[str, Any], position: str
) -> CaseVerdict:
    """Compare one output with its gold.

    Args:
        gold, output: what `reader.answer_cells` returned; the output has besides `fault`
            when there is nothing to compare, `stopped` with the fault of a run that left it
            and did not end well, and `unchanged` when it reads like its input.
    """
    if output.get("fault"):
        return CaseVerdict(output["fault"])
    cells: list[str] = []
    fault = ""
    try:
        parts = parts_of(position)
    except BadRange:
        return CaseVerdict("bad_range")
    for (sheet, area), wanted, found in zip(parts, gold["parts"], output["parts"], strict=True):
        # The official code takes quotes off the first sheet's own name too.
        name = gold["sheets"][0].strip("'") if sheet is None else sheet
        if "" in wanted or name not in wanted:
            return CaseVerdict("bad_range")
        if name not in found:
            return CaseVerdict("missing_sheet")
        places = wrong_cells(wanted[name], found[name])
        if places:
            all_cells = cells_of(area)
            cells += [f"{name}!{_label(*all_cells[place])}" for place in places]
            fault = "wrong_cells"
    if fault and output.get("stopped"):
        fault = output["stopped"]
    elif fault and output.get("formulas"):
        fault = "no_value"
    elif fault and output.get("unchanged"):
        fault = "unchanged"
    return CaseVerdict(fault, tuple(cells))


def case_scores(passes: Sequence[bool]) -> tuple[float, float]:
    """Return (hard, soft) of the cases of one item; of no cases 0."""
    if not passes:
        return 0.0, 0.0
    return float(all(passes)), sum(passes) / len(passes)


def reason_of(verdicts: Sequence[CaseVerdict]) -> str:
    """Return one word for an item: `correct`, `only_first_case`, or the worst fault."""
    faults = [verdict.fault for verdict in verdicts if verdict.fault]
    if not faults:
        return "correct"
    if len(verdicts) > 1 and verdicts[0].passes and set(faults) == {"wrong_cells"}:
        return "only_first_case"
    return min(faults, key=FAULTS.index)


def format_gold(gold: Mapping[str, Any]) -> list[str]:
    """Return what the answer cells of a case hold, a line for each part."""
    return [
        f"{name or '?'}: {_listed(values)}"
        for part in gold["parts"]
        for name, values in part.items()
    ]


def format_verdicts(verdicts: Sequence[CaseVerdict]) -> str:
    """Return which cells are wrong, case by case: never what they should hold."""
    lines = []
    for number, verdict in enumerate(verdicts, 1):
        more = len(verdict.cells) - _SHOWN_CELLS
        wrong = f"; wrong: {', '.join(verdict.cells[:_SHOWN_CELLS])}" if verdict.cells else ""
        what = "right." if verdict.passes else verdict.fault.replace("_", " ") + wrong
        lines.append(f"Workbook {number}: {what}" + (f" and {more} more" if more > 0 else ""))
    return "\n".join(lines)


def _listed(values: Any) -> str:
    if isinstance(values, str):
        return values
    shown = ", ".join(shown_value(value) for value in values[:_SHOWN_CELLS])
    return shown + (", …" if len(values) > _SHOWN_CELLS else "")


def shown_value(value: Any) -> str:
    """Return a JSON cell value as feedback shows it."""
    read = from_json(value)
    return "nothing" if read is None else repr(read) if isinstance(read, str) else str(read)


def _label(row: int, column: int) -> str:
    letters = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row}"

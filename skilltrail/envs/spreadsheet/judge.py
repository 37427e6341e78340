"""From cell values to a verdict on each case, and from cases to a score.

A case passes when every part of the answer position does. hard = all cases pass, soft = the
share that does (of the cases there are; the official code divides by 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.envs.spreadsheet.compare import from_json, wrong_cells
from skilltrail.envs.spreadsheet.reader import cells_of, parts_of

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
            when there is nothing to compare, and `unchanged` when it reads like its input.
    """
    if output.get("fault"):
        return CaseVerdict(output["fault"])
    cells: list[str] = []
    fault = ""
    for (sheet, area), wanted, found in zip(
        parts_of(position), gold["parts"], output["parts"], strict=True
    ):
        name = gold["sheets"][0] if sheet is None else sheet
        if "" in wanted or name not in wanted:
            return CaseVerdict("bad_range")
        if name not in found:
            return CaseVerdict("missing_sheet")
        places = wrong_cells(wanted[name], found[name])
        if places:
            all_cells = cells_of(area)
            cells += [f"{name}!{_label(*all_cells[place])}" for place in places]
            fault = "wrong_cells"
    if fault and output.get("formulas"):
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

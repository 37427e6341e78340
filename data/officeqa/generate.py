"""Write the `officeqa` data set: invented yearly bulletins and questions about their tables.

The CSV files have OfficeQA's columns; each bulletin `docs/own_bulletin_<year>.txt` has three
pages behind `--- PAGE n ---` lines, as the publisher's page-level texts have. Answers are
computed from the figures. The same seed gives the same bytes anywhere.

    python data/officeqa/generate.py            rewrites the splits and documents beside it
    python data/officeqa/generate.py --easy     those in `easy/`: short reports, a value each
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
EASY_SIZES = {"train": 30, "selection": 24, "test": 36}  # pages, one question each
SIZES = {"train": 6, "selection": 5, "test": 8}  # bulletins; four questions each
COLUMNS = ("uid", "question", "answer", "source_docs", "source_files", "difficulty")
QUARTERS = ("March", "June", "September", "December")
TAXES = ("Harbor dues", "Land tax", "Stamp duty", "Salt duty", "Toll receipts", "Mint profits")
SURNAMES = ("Aldersund", "Brandsen", "Fenstad", "Keldova")
FUNDS = (
    "Lighthouse Fund",
    "Road Fund",
    "Seed Fund",
    "Widows Fund",
    "School Fund",
    "Canal Fund",
)
TOWNS = ("Fenmouth", "Aldhaven", "Brinvik", "Marrgate", "Sundford", "Tarnwick")
MONTHS = ("January", "March", "May", "June", "August", "October", "December")
GOODS = ("salt", "timber", "herring", "wool", "copper ore", "barley")


@dataclass(frozen=True)
class Bulletin:
    """One year's figures: taxes by quarter (millions) and fund balances (thousands)."""

    year: int
    taxes: dict[str, list[int]]
    funds: dict[str, tuple[int, int]]
    treasurer: str

    @property
    def name(self) -> str:
        return f"own_bulletin_{self.year}.txt"

    @property
    def text(self) -> str:
        """The bulletin in three pages."""
        head = f"{'Source':16}" + "".join(f"{quarter:>12}" for quarter in QUARTERS)
        taxes = [
            f"{tax:16}" + "".join(f"{value:>12,}" for value in values)
            for tax, values in self.taxes.items()
        ]
        funds = [
            f"{fund:18}{opened:>12,}{closed:>12,}"
            for fund, (opened, closed) in self.funds.items()
        ]
        pages = [
            [
                f"BULLETIN OF THE TREASURY OF OSTERMARK, {self.year}",
                f"Signed by the treasurer, {self.treasurer}.",
                "Receipts stand on page 2, fund balances on page 3.",
            ],
            ["Table 1. Receipts by quarter, in millions of crowns", head, *taxes],
            [
                "Table 2. Balances of the funds, in thousands of crowns",
                f"{'Fund':18}{'January 1':>12}{'December 31':>12}",
                *funds,
            ],
        ]
        return "\n".join(
            f"--- PAGE {number} ---\n\n" + "\n".join(lines) + "\n"
            for number, lines in enumerate(pages, start=1)
        )


def bulletin(year: int, rng: random.Random) -> Bulletin:
    """Return the figures of one year."""
    return Bulletin(
        year,
        {tax: [rng.randint(110, 1990) for _ in QUARTERS] for tax in rng.sample(TAXES, 4)},
        {
            fund: (rng.randint(2200, 9800), rng.randint(2200, 9800))
            for fund in rng.sample(FUNDS, 4)
        },
        f"{rng.choice('ABCEFGHKLM')}. {rng.choice(SURNAMES)}",
    )


def questions(one: Bulletin, rng: random.Random) -> list[tuple[str, str, int, str]]:
    """Return (question, answer, page, difficulty) of one bulletin."""
    tax = rng.choice(sorted(one.taxes))
    quarter = rng.randrange(len(QUARTERS))
    fund = rng.choice(sorted(one.funds))
    opened, closed = one.funds[fund]
    best = max(one.taxes, key=lambda name: (one.taxes[name][quarter], name))
    return [
        (
            f"How much did the {tax.lower()} bring in the quarter of {QUARTERS[quarter]} "
            f"{one.year}, in millions of crowns?",
            f"{one.taxes[tax][quarter]:,} million",
            2,
            "easy",
        ),
        (
            f"What was the balance of the {fund} on December 31, {one.year}, in thousands of "
            "crowns?",
            f"{closed:,} thousand",
            3,
            "easy",
        ),
        (
            f"By how much did the balance of the {fund} change over {one.year}, in thousands "
            "of crowns? A fall is negative.",
            f"{closed - opened:,} thousand",
            3,
            "hard",
        ),
        (
            f"Which of the sources in Table 1 brought most in the quarter of "
            f"{QUARTERS[quarter]} {one.year}?",
            best,
            2,
            "hard",
        ),
    ]


def report(rng: random.Random) -> tuple[str, str, str]:
    """Return the page of one harbor's month, a question on it, and its answer."""
    town, when = rng.choice(TOWNS), f"{rng.choice(MONTHS)} {rng.randint(1921, 1969)}"
    ships, dues = f"{rng.randint(12, 980)}", f"{rng.randint(1100, 9900):,} thousand crowns"
    goods, master = rng.choice(GOODS), f"{rng.choice('ABCEFGHKLM')}. {rng.choice(SURNAMES)}"
    page = (
        f"HARBOR OF {town.upper()}, {when}\n\nShips that came in: {ships}. Dues paid: {dues}. "
        f"Main cargo: {goods}. Harbor master: {master}."
    )
    question, answer = rng.choice(
        (
            (f"How many ships came to {town} in {when}?", ships),
            (f"How much was paid in dues at {town} in {when}?", dues),
            (f"What was the main cargo at {town} in {when}?", goods),
            (f"Who was harbor master of {town} in {when}?", master),
        )
    )
    return page, question, answer


def write_easy(out: Path, rng: random.Random) -> None:
    """Write one file of pages a split, and a question about each page."""
    (out / "docs").mkdir(parents=True, exist_ok=True)
    asked = set[str]()
    for split, size in EASY_SIZES.items():
        rows, pages, name = list[tuple[str, ...]](), "", f"own_harbors_{split}.txt"
        while len(rows) < size:
            page, question, answer = report(rng)
            if question in asked:
                continue
            asked.add(question)
            number = len(rows) + 1
            pages += f"--- PAGE {number} ---\n\n{page}\n"
            url = f"https://harbors.invalid/{split}?page={number}"
            rows.append((f"OWN-{split}-{number}", question, answer, url, name, "easy"))
        (out / "docs" / name).write_text(pages, encoding="utf-8", newline="\n")
        write_rows(out / f"{split}.csv", rows)


def write_splits(out: Path, rng: random.Random) -> None:
    """Write the bulletins, and four questions about each."""
    (out / "docs").mkdir(parents=True, exist_ok=True)
    years = iter(range(1951, 1951 + sum(SIZES.values())))
    for split, size in SIZES.items():
        rows = list[tuple[str, ...]]()
        for _ in range(size):
            one = bulletin(next(years), rng)
            path = out / "docs" / one.name
            path.write_text(one.text, encoding="utf-8", newline="\n")
            for question, answer, page, level in questions(one, rng):
                url = f"https://bulletin.invalid/{one.year}?page={page}"
                uid = f"OWN{one.year}-{len(rows) % 4 + 1}"
                rows.append((uid, question, answer, url, one.name, level))
        write_rows(out / f"{split}.csv", rows)


def write_rows(path: Path, rows: Sequence[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20263)
    parser.add_argument("--easy", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out, rng = options.out, random.Random(options.seed)
    if options.easy:
        write_easy(HERE / "easy" if out is None else out, rng)
    else:
        write_splits(HERE if out is None else out, rng)


if __name__ == "__main__":
    main()

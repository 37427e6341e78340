"""Write the `officeqa` data set: invented yearly bulletins and questions about their tables.

The CSV files have OfficeQA's columns; each bulletin `docs/own_bulletin_<year>.txt` has three
pages behind `--- PAGE n ---` lines, as the publisher's page-level texts have. Answers are
computed from the figures. The same seed gives the same bytes anywhere.

    python data/officeqa/generate.py            rewrites the splits and documents beside it
"""

from __future__ import annotations

import argparse
import csv
import random
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20263)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    (options.out / "docs").mkdir(parents=True, exist_ok=True)
    years = iter(range(1951, 1951 + sum(SIZES.values())))
    for split, size in SIZES.items():
        rows = []
        for _ in range(size):
            one = bulletin(next(years), rng)
            path = options.out / "docs" / one.name
            path.write_text(one.text, encoding="utf-8", newline="\n")
            for question, answer, page, level in questions(one, rng):
                url = f"https://bulletin.invalid/{one.year}?page={page}"
                uid = f"OWN{one.year}-{len(rows) % 4 + 1}"
                rows.append((uid, question, answer, url, one.name, level))
        with (options.out / f"{split}.csv").open("w", encoding="utf-8", newline="\n") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()

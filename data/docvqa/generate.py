"""Write the `docvqa` data set: invented pages, drawn as images and written as text beside them.

The files have the layout of DocVQA's JSON; each image `documents/<id>_1.png` has its text in
`documents/<id>_1.txt`. The same seed gives the same items and texts anywhere. Images are drawn
by Pillow (`pip install pillow`), which nothing needs at run time; `--no-images` leaves them.

    python data/docvqa/generate.py            rewrites the splits, texts and images beside it
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"train": 6, "selection": 5, "test": 8}  # pages; four questions each
WIDTH, LINE, SIZE, MARGIN = 560, 20, 14, 30  # pixels

MONTHS = ("January", "March", "April", "June", "August", "October", "November")
# fmt: off
FIRST = ("Ada", "Bruno", "Elin", "Felix", "Greta", "Hugo", "Irma", "Julius", "Lena", "Milo",
         "Noor", "Oskar", "Pavel", "Rosa", "Selma", "Tomas", "Viktor", "Wanda")
LAST = ("Brandsen", "Fenstad", "Halsrup", "Keldova", "Linden", "Morenwell", "Ostaker",
        "Quillham", "Ruvey", "Sornette", "Thornberg", "Vosley", "Wickdahl", "Yarrow")
FIRMS = ("Orbel Works", "Nordan Freight", "Castis Mills", "Velmo & Sons", "Peral Supply",
         "Hexam Foundry", "Tindra Paper", "Lorvik Tools", "Sabel Glass", "Drumo Textiles")
TOWNS = ("Kalmouth", "Brinvik", "Ovelton", "Sundby", "Marrgate", "Tolholt", "Fjerwick")
GOODS = ("copper wire", "oak planks", "brass hinges", "wool felt", "lamp oil", "paper reels",
         "glass rods", "linen thread", "iron nails", "rubber seals")
# fmt: on


@dataclass(frozen=True)
class Page:
    """A page: its lines as cells at pixel columns, and its questions with accepted answers."""

    lines: list[list[tuple[int, str]]]
    asks: list[tuple[str, list[str]]]

    @property
    def text(self) -> str:
        """The page as text: one line per line, cells parted by two blanks."""
        return "\n".join("  ".join(cell for _, cell in line) for line in self.lines) + "\n"


class Writer:
    """Draws values; no firm and person stand twice together."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.people = [f"{first} {last}" for first in FIRST for last in LAST]
        rng.shuffle(self.people)

    def person(self) -> str:
        return self.people.pop()

    def date(self) -> str:
        month, day = self.rng.choice(MONTHS), self.rng.randint(1, 28)
        return f"{month} {day}, {self.rng.randint(1951, 1989)}"

    def money(self) -> str:
        return (
            f"${self.rng.randint(1, 9)},{self.rng.randint(100, 999)}.{self.rng.randint(0, 9)}0"
        )

    def invoice(self) -> Page:
        """Return a bill: labels with values, a few goods, a total."""
        firm, buyer, date = self.rng.choice(FIRMS), self.person(), self.date()
        number, total = (
            f"{self.rng.randint(10, 99)}-{self.rng.randint(1000, 9999)}",
            self.money(),
        )
        goods = self.rng.sample(GOODS, 3)
        counts = self.rng.sample(range(12, 400), 3)
        rows = [
            [(0, good), (260, str(count))] for good, count in zip(goods, counts, strict=True)
        ]
        lines = [
            [(140, firm.upper())],
            [(170, "INVOICE")],
            [],
            [(0, "Invoice No.:"), (140, number)],
            [(0, "Date:"), (140, date)],
            [(0, "Sold to:"), (140, buyer)],
            [],
            [(0, "Goods"), (260, "Quantity")],
            *rows,
            [],
            [(0, "Total due:"), (140, total)],
        ]
        asks = [
            ("What is the invoice number?", [number]),
            ("To whom were the goods sold?", [buyer]),
            (f"What is the quantity of {goods[1]}?", [str(counts[1])]),
            ("What is the total due?", [total, total.removeprefix("$")]),
        ]
        return Page(lines, asks)

    def table(self) -> Page:
        """Return a table of figures by town and year."""
        years = sorted(self.rng.sample(range(1960, 1985), 3))
        towns = self.rng.sample(TOWNS, 4)
        good = self.rng.choice(GOODS)
        figures = {
            (town, year): f"{self.rng.randint(101, 999)}" for town in towns for year in years
        }
        columns = (0, 160, 260, 360)
        rows = [
            list(zip(columns, [town, *(figures[town, year] for year in years)], strict=True))
            for town in towns
        ]
        prepared = self.person()
        lines = [
            [(60, f"SHIPMENTS OF {good.upper()}")],
            [(120, "in tons, by depot")],
            [],
            list(zip(columns, ["Depot", *map(str, years)], strict=True)),
            *rows,
            [],
            [(0, "Prepared by:"), (140, prepared)],
        ]
        picks = self.rng.sample(sorted(figures), 2)
        asks = [
            ("What are the shipments of?", [good]),
            *(
                (f"How many tons were shipped at {town} in {year}?", [figures[town, year]])
                for town, year in picks
            ),
            ("Who prepared the table?", [prepared]),
        ]
        return Page(lines, asks)

    def memo(self) -> Page:
        """Return a memo: a head, and a text of three sentences."""
        writer, reader, date = self.person(), self.person(), self.date()
        town, room = (
            self.rng.choice(TOWNS),
            f"{self.rng.randint(2, 9)}{self.rng.randint(10, 60)}",
        )
        hour = f"{self.rng.randint(1, 5)}:{self.rng.choice(('15', '30', '45'))} p.m."
        lines = [
            [(170, "MEMORANDUM")],
            [],
            [(0, "To:"), (100, reader)],
            [(0, "From:"), (100, writer)],
            [(0, "Date:"), (100, date)],
            [],
            [(0, f"The safety meeting of the {town} plant begins at {hour}")],
            [(0, f"in room {room}. Please bring the reports of the last quarter.")],
            [(0, "Visitors sign in at the gate.")],
        ]
        asks = [
            ("Who wrote the memo?", [writer]),
            ("What is the date of the memo?", [date]),
            ("In which room is the meeting?", [room, f"room {room}"]),
            ("At what time does the meeting begin?", [hour, hour.removesuffix(" p.m.")]),
        ]
        return Page(lines, asks)


def pages(seed: int) -> dict[str, list[tuple[str, Page]]]:
    """Return (document id, page) of each split."""
    rng = random.Random(seed)
    writer = Writer(rng)
    makers = (writer.invoice, writer.table, writer.memo)
    numbers = iter(range(1, 1 + sum(SIZES.values())))
    return {
        split: [(f"own{next(numbers):02}", makers[k % len(makers)]()) for k in range(size)]
        for split, size in SIZES.items()
    }


def records(document: str, page: Page, split: str) -> list[dict[str, Any]]:
    """Return the records of one page in DocVQA's layout."""
    number = int(document.removeprefix("own"))
    return [
        {
            "questionId": 100 * number + index,
            "question": question,
            "image": f"documents/{document}_1.png",
            "docId": number,
            "ucsf_document_id": document,
            "ucsf_document_page_no": "1",
            "answers": answers,
            "data_split": split,
        }
        for index, (question, answers) in enumerate(page.asks, start=1)
    ]


def draw(page: Page, path: Path) -> None:
    """Draw a page as a black and white PNG."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("L", (WIDTH, 2 * MARGIN + LINE * len(page.lines)), 255)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(SIZE)
    for row, line in enumerate(page.lines):
        for column, cell in line:
            pen.text((MARGIN + column, MARGIN + LINE * row), cell, fill=0, font=font)
    image.convert("1", dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20262)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--no-images", action="store_true")
    options = parser.parse_args()
    documents = options.out / "documents"
    documents.mkdir(parents=True, exist_ok=True)
    for split, made in pages(options.seed).items():
        whole = {
            "dataset_name": "own_docvqa",
            "dataset_version": "1.0",
            "dataset_split": split,
            "data": [record for id, page in made for record in records(id, page, split)],
        }
        text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
        (options.out / f"{split}.json").write_text(text, encoding="utf-8", newline="\n")
        for id, page in made:
            sidecar = documents / f"{id}_1.txt"
            sidecar.write_text(page.text, encoding="utf-8", newline="\n")
            if not options.no_images:
                draw(page, documents / f"{id}_1.png")


if __name__ == "__main__":
    main()

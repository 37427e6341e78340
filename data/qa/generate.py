"""Write the `qa` data set: small questions for each kind of declarative scorer.

The same seed gives the same bytes anywhere. All goods and prices are made up.

    python data/qa/generate.py            rewrites train, selection and test beside it
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"train": 24, "selection": 20, "test": 32}
# fmt: off
GOODS = ("lamp", "rope", "kettle", "ladder", "blanket", "mirror", "basket", "hammer", "candle",
         "compass", "barrel", "saddle", "anchor", "lantern")
PLACES = ("attic", "cellar", "barn", "workshop", "boathouse", "kitchen", "stable", "loft")
PEOPLE = ("Ada", "Bruno", "Elin", "Felix", "Greta", "Hugo", "Irma", "Milo", "Rosa", "Wanda")
# fmt: on


def price(rng: random.Random) -> dict[str, Any]:
    """Return a question whose answer is one number."""
    goods = rng.sample(GOODS, 4)
    prices = {good: f"{rng.randint(2, 79)}.{rng.choice((20, 50, 75, 90))}" for good in goods}
    listed = ", ".join(f"the {good} {value}" for good, value in prices.items())
    wanted = rng.choice(goods)
    return {
        "question": f"What does the {wanted} cost?",
        "context": f"Price list of {rng.choice(PEOPLE)}, in crowns: {listed}.",
        "answers": [prices[wanted]],
        "scorer": "number",
        "task_type": "number",
    }


def place(rng: random.Random) -> dict[str, Any]:
    """Return a question whose answer is one word."""
    goods, places = rng.sample(GOODS, 3), rng.sample(PLACES, 3)
    person, wanted = rng.choice(PEOPLE), rng.randrange(3)
    told = ". ".join(
        f"The {good} is in the {spot}" for good, spot in zip(goods, places, strict=True)
    )
    return {
        "question": f"Where is the {goods[wanted]}?",
        "context": f"{person} tidied up. {told}.",
        "answers": [places[wanted], f"in the {places[wanted]}"],
        "scorer": "exact",
        "task_type": "exact",
    }


def most(rng: random.Random) -> dict[str, Any]:
    """Return a multiple-choice question."""
    goods = rng.sample(GOODS, 4)
    counts = rng.sample(range(3, 90), 4)
    told = ", ".join(f"{count} of {good}" for good, count in zip(goods, counts, strict=True))
    wanted = goods[counts.index(max(counts))]
    return {
        "question": "Which of them were sold most?",
        "context": f"Sold by {rng.choice(PEOPLE)}: {told}.",
        "choices": goods,
        "answers": ["ABCD"[goods.index(wanted)]],
        "scorer": "choice",
        "task_type": "choice",
    }


KINDS = (price, place, most)


def splits(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each split."""
    rng = random.Random(seed)
    made: dict[str, list[dict[str, Any]]] = {}
    for split, size in SIZES.items():
        made[split] = [
            {"id": f"{split}-{number + 1}"} | KINDS[number % len(KINDS)](rng)
            for number in range(size)
        ]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20264)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    for split, records in splits(options.seed).items():
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (options.out / f"{split}.jsonl").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

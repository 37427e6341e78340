"""Write the `triggering` data set: requests that a skill for receipts is meant for, and others.

The same seed gives the same bytes anywhere. All shops and people are made up.

    python data/triggering/generate.py            rewrites train, selection and test beside it
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"train": 32, "selection": 20, "test": 32}
# fmt: off
SHOPS = ("the corner bakery", "Lindqvist Hardware", "the night market", "Orrel's deli",
         "the garden centre", "Tambo Sports", "the harbour kiosk", "the toy shop",
         "Brill & Sons", "the book barn", "the fish hall", "the paint store")
PEOPLE = ("Ada", "Bruno", "Elin", "Felix", "Greta", "Hugo", "Irma", "Milo")
MEANT = (
    "Here is the slip from {shop}. Who owes what if {one} and {two} share it?",
    "Does the total on this bill from {shop} add up?",
    "{one} paid at {shop}; split the receipt between {one}, {two} and me.",
    "I photographed what {shop} charged us. Add up the lines for {one}.",
    "The till printout of {shop} looks wrong, check the sum please.",
    "Work out {two}'s share of what we bought at {shop} from this voucher.",
)
NEAR = (
    "Design a receipt that {shop} could hand to its customers.",
    "What is the difference between a receipt and an invoice for {shop}?",
    "Write {one} a thank-you note for shopping at {shop}.",
    "How long must {shop} keep its receipts by law?",
    "{one} wants to split the garden at {shop} into two beds. How?",
    "What should {one} charge for bread at {shop}?",
)
FAR = (
    "Write a short poem about rain over {shop}.",
    "Remind {one} to call {two} tomorrow.",
    "What is a good name for {one}'s cat?",
    "Explain to {two} how tides work.",
)
# fmt: on
KINDS = (("meant", MEANT, True), ("near miss", NEAR, False), ("far", FAR, False))


def requests(rng: random.Random) -> list[dict[str, Any]]:
    """Return all requests in random order: half of them meant, a third near misses."""
    found = []
    for share, (kind, forms, wanted) in zip((42, 28, 14), KINDS, strict=True):
        texts: dict[str, None] = {}
        while len(texts) < share:
            one, two = rng.sample(PEOPLE, 2)
            form = forms[len(texts) % len(forms)]
            texts[form.format(shop=rng.choice(SHOPS), one=one, two=two)] = None
        found += [{"prompt": t, "should_trigger": wanted, "task_type": kind} for t in texts]
    rng.shuffle(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    rows = requests(random.Random(options.seed))
    for split, size in SIZES.items():
        part, rows = rows[:size], rows[size:]
        named = [{"id": f"{split}-{n}", **row} for n, row in enumerate(part, 1)]
        text = "".join(json.dumps(row) + "\n" for row in named)
        (options.out / f"{split}.jsonl").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

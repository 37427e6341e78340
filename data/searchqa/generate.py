"""Write the `searchqa` data set: invented clues with snippets, in SearchQA's shape.

Each context is a chain of `[DOC] [TLE] title [PAR] snippet` blocks: one is about the answer,
the others about things of the same kind. The last block is cut off mid-way, as in the original.
The same seed gives the same bytes anywhere.

    python data/searchqa/generate.py            rewrites train, selection and test beside it
    python data/searchqa/generate.py --easy     those in `easy/`: no block beside the answer's
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"train": 30, "selection": 24, "test": 36}
OTHERS = 3  # blocks beside the one with the answer
# fmt: off
START = ("Kal", "Brin", "Ovel", "Sund", "Marr", "Tol", "Fjer", "Hest", "Lun", "Gar", "Wex",
         "Ald", "Pern", "Ros", "Ven", "Holm", "Skar", "Tarn", "Dray", "Zel")
END = ("mouth", "berg", "vik", "ton", "haven", "ford", "gate", "holt", "combe", "wick")
FIRST = ("Ada", "Bruno", "Elin", "Felix", "Greta", "Hugo", "Irma", "Milo", "Rosa", "Wanda")
LAST = ("Brandsen", "Fenstad", "Keldova", "Morenwell", "Ostaker", "Quillham", "Thornberg")
NOUN = ("Lantern", "Orchard", "Harbour", "Winter", "Mirror", "Garden", "Bridge", "Mountain")
KIND = ("Silver", "Crooked", "Hidden", "Last", "Burning", "Quiet", "Seventh", "Blue")
# fmt: on


def name_of(kind: str, rng: random.Random) -> str:
    """Return a new name for one kind of thing."""
    place = rng.choice(START) + rng.choice(END)
    return {
        "opera": f"The {rng.choice(KIND)} {rng.choice(NOUN)}",
        "river": rng.choice(START) + rng.choice(("ra", "ida", "elle", "ander")),
        "cheese": f"{place} {rng.choice(('blue', 'gold', 'round'))}",
        "painter": f"{rng.choice(FIRST)} {rng.choice(LAST)}",
        "railway": f"{place} {rng.choice(('Line', 'Express', 'Valley Railway'))}",
    }[kind]


KINDS = {
    "opera": (
        "{name} is an opera in {n} acts by {person}, first sung at {town} in {year}. It tells "
        "of a {job} who loses a ring.",
        (
            "This opera about a {job} was first sung at {town} in {year}",
            "{person} wrote this opera in {n} acts, first sung in {year}",
        ),
    ),
    "river": (
        "{name} is a river of {size} km that rises near {town} and was first mapped in {year} "
        "by the {job} {person}.",
        (
            "It rises near {town} & flows for {size} km",
            "In {year} the {job} {person} first mapped this river",
        ),
    ),
    "cheese": (
        "{name} is a cheese ripened for {n} months in the caves of {town}. A {job} named "
        "{person} made the first wheel in {year}.",
        (
            "{n} months in the caves of {town} ripen this cheese",
            "{person}, a {job}, made the first wheel of this cheese in {year}",
        ),
    ),
    "painter": (
        "{name} was a painter of {town}, trained as a {job}, who finished {size} portraits "
        "before {year}.",
        (
            "Trained as a {job}, this painter of {town} finished {size} portraits",
            "This painter had finished {size} portraits before {year}",
        ),
    ),
    "railway": (
        "{name} is a railway of {size} km opened in {year} from {town} to the sea. Its "
        "builder, {person}, had been a {job}.",
        (
            "Opened in {year}, this railway runs {size} km from {town} to the sea",
            "{person}, once a {job}, built this railway from {town}",
        ),
    ),
}
JOBS = ("baker", "clockmaker", "ferryman", "gardener", "miller", "notary", "shepherd", "tailor")


def facts(kind: str, rng: random.Random) -> dict[str, str]:
    """Return the facts about one thing."""
    return {
        "name": name_of(kind, rng),
        "person": f"{rng.choice(FIRST)} {rng.choice(LAST)}",
        "town": rng.choice(START) + rng.choice(END),
        "year": str(rng.randint(1780, 1960)),
        "size": str(rng.randint(21, 480)),
        "n": str(rng.randint(2, 9)),
        "job": rng.choice(JOBS),
    }


def record(kind: str, rng: random.Random, others: int) -> dict[str, Any]:
    """Return one clue with its snippet and those of `others` things of the kind."""
    snippet, clues = KINDS[kind]
    things: list[dict[str, str]] = []
    while len(things) < 1 + others:
        thing = facts(kind, rng)
        if all(
            thing[key] != other[key] for other in things for key in ("name", "town", "year")
        ):
            things.append(thing)
    wanted = things[0]
    rng.shuffle(things)
    blocks = [
        f"[DOC] [TLE] {thing['name']} [PAR] {snippet.format(**thing)}" for thing in things
    ]
    if others:
        blocks.append(f"[DOC] [TLE] List of {kind}s [PAR] A list of all")
    context = "\n".join(blocks)
    question = rng.choice(clues).format(**wanted)
    return {
        "id": hashlib.sha256(f"{question}\n{context}".encode()).hexdigest()[:32],
        "question": question,
        "context": context,
        "answers": [wanted["name"]],
        "task_type": kind,
    }


def splits(seed: int, others: int) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each split; no clue stands twice."""
    rng, kinds, asked = random.Random(seed), list(KINDS), set()
    made: dict[str, list[dict[str, Any]]] = {split: [] for split in SIZES}
    for split, size in SIZES.items():
        while len(made[split]) < size:
            one = record(kinds[len(made[split]) % len(kinds)], rng, others)
            if one["question"] not in asked:
                asked.add(one["question"])
                made[split].append(one)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20265)
    parser.add_argument("--easy", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or (HERE / "easy" if options.easy else HERE)
    out.mkdir(parents=True, exist_ok=True)
    for split, records in splits(options.seed, 0 if options.easy else OTHERS).items():
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
        (out / f"{split}.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

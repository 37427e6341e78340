"""Write the `textqa` data set: short invented texts, each with one or two questions.

`kinds.yaml` holds the texts as templates; this script fills their slots from a seed, so that
no fact in them can be known to any model. Texts with two questions give items that share a
`group`; the three splits never share a text. The same seed gives the same bytes anywhere.

    python data/textqa/generate.py            rewrites train, selection and test beside it
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
SIZES = {"train": 60, "selection": 60, "test": 120}
SENTENCES = 2  # after the opening
MONTHS = ("January", "February", "March", "April", "May", "June", "July")
MONTHS += ("August", "September", "October", "November", "December")


class Filler:
    """Draws slot values; every proper name is drawn once in the whole data set."""

    def __init__(self, rng: random.Random, names: Mapping[str, Sequence[str]]) -> None:
        self.rng = rng
        self.names = names
        self.used: set[str] = set()

    def value(self, spec: Any) -> str:
        """Return one value for a slot: a kind of name, or a mapping with one key."""
        if isinstance(spec, str):
            return self.named(spec)
        ((how, what),) = spec.items()
        if how == "choice":
            return str(self.rng.choice(what))
        if how == "code":
            return "".join(self.letter(sign) for sign in what)
        if how == "number":
            return self.number(what)
        raise ValueError(f"unknown slot {how!r}")

    def named(self, kind: str) -> str:
        if kind == "date":
            return f"{self.rng.randint(1, 28)} {self.rng.choice(MONTHS)}"
        if kind == "year":
            return str(self.rng.randint(1780, 1995))
        if kind == "clock":
            return f"{self.rng.randint(5, 22)}:{self.rng.choice(range(5, 60, 5)):02d}"
        for _ in range(1000):
            name = self.person() if kind == "person" else self.joined(kind)
            if name not in self.used:
                self.used.add(name)
                return name
        raise ValueError(f"no unused name of kind {kind!r} is left: give it more parts")

    def person(self) -> str:
        return f"{self.rng.choice(self.names['first'])} {self.joined('surname')}"

    def joined(self, kind: str) -> str:
        """Return a name put together from the kind's beginnings and endings."""
        parts = self.names[kind]
        start, end = self.rng.choice(parts["start"]), self.rng.choice(parts["end"])
        return f"{start}{end}"

    def letter(self, sign: str) -> str:
        if sign == "#":
            return str(self.rng.randint(1, 9))
        return self.rng.choice("BCDFGHKLMNPRSTVW") if sign == "@" else sign

    def number(self, spec: Mapping[str, Any]) -> str:
        """Return a number from `low` to `high` in steps of `by`, in the form of `as`."""
        number = self.rng.randrange(spec["low"], spec["high"] + 1, spec.get("by", 1))
        return str(spec.get("as", "{:,}")).format(number / 10 if spec.get("tenths") else number)


def text_of(
    kind: Mapping[str, Any], slots: Mapping[str, str], asked: Sequence[str], rng: random.Random
) -> str:
    """Return one text: an opening, then what is asked about and some more, in a drawn order.

    The embedded model reads some 160 tokens a second, so texts are kept short.
    """
    opening = rng.choice(kind["opening"])
    drawn = [rng.choice(versions) for versions in kind["sentences"]]
    rng.shuffle(drawn)
    needed = [one for one in drawn if any(f"{{{slot}}}" in one for slot in asked)]
    others = [one for one in drawn if one not in needed]
    chosen = {*needed, *others[: max(0, SENTENCES - len(needed))]}
    rest = [one for one in drawn if one in chosen]
    return " ".join(sentence.format(**slots) for sentence in [opening, *rest])


def items_of(
    name: str, kind: Mapping[str, Any], fill: Filler, count: int
) -> list[dict[str, Any]]:
    """Return `count` items about one new text, each asking for another fact of it."""
    rng = fill.rng
    slots = {slot: fill.value(spec) for slot, spec in kind["slots"].items()}
    asked = rng.sample(sorted(kind["asks"]), count)
    context = text_of(kind, slots, asked, rng)
    group = f"{name}-{rng.getrandbits(40):010x}"
    return [
        {
            "id": f"{group}-{slot}",
            "question": rng.choice(kind["asks"][slot]["questions"]).format(**slots),
            "context": context,
            "answers": [slots[slot]],
            "task_type": kind["asks"][slot]["type"],
            "group": group,
        }
        for slot in asked
    ]


def build(seed: int, source: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the items of every split, kinds in turn, about every third text asked twice."""
    fill = Filler(random.Random(seed), source["names"])
    kinds = sorted(source["kinds"])
    splits: dict[str, list[dict[str, Any]]] = {}
    for split, size in sizes.items():
        items: list[dict[str, Any]] = []
        turn = 0
        while len(items) < size:
            name = kinds[turn % len(kinds)]
            count = min(2 if turn % 3 == 2 else 1, size - len(items))
            items += items_of(name, source["kinds"][name], fill, count)
            turn += 1
        fill.rng.shuffle(items)
        splits[split] = items
    return splits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kinds", type=Path, default=HERE / "kinds.yaml")
    parser.add_argument("--out", type=Path, default=HERE)
    chosen = parser.parse_args()
    source = YAML(typ="safe").load(chosen.kinds.read_text(encoding="utf-8"))
    sizes = {**SIZES, **source.get("sizes", {})}
    chosen.out.mkdir(parents=True, exist_ok=True)
    for split, items in build(chosen.seed, source, sizes).items():
        lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
        target = chosen.out / f"{split}.jsonl"
        with target.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(lines)


if __name__ == "__main__":
    main()

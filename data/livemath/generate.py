"""Write the `livemath` data set: multiple-choice mathematics whose truth is computed.

The files have the official monthly layout: the wrong options under `choices`, the right one in
`correct_choice` alone, labelled A. Which option is right, weaker or false is found by counting
through all cases, never written by hand. The same seed gives the same bytes anywhere.

    python data/livemath/generate.py            rewrites train, selection and test beside it
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"train": 24, "selection": 18, "test": 30}
MONTH = "900001"


@dataclass(frozen=True)
class Problem:
    """A question with its options; `weaker` is true but says less than `right`, or None."""

    kind: str
    theorem_type: str
    question: str
    theorem: str
    sketch: str
    right: str
    weaker: str | None
    false: tuple[str, ...]


def divisibility(rng: random.Random) -> Problem:
    """Ask for the largest number that divides every value of a polynomial."""
    while True:
        k, a, b = rng.choice((3, 5, 7)), rng.randint(1, 6), rng.randint(0, 9)
        values = [a * (n**k - n) + b * (n**3 - n) for n in range(-60, 60)]
        largest = math.gcd(*values)
        divisors = [d for d in range(2, largest) if largest % d == 0]
        if largest > 5 and divisors:
            break
    first = f"{a}(n^{k} - n)" if a > 1 else f"n^{k} - n"
    value = first if b == 0 else f"{first} + {b}(n^3 - n)"
    said = "It is divisible by {} for every integer n."
    false = [d for d in range(2, 4 * largest) if largest % d and d != 2 * largest]
    near = sorted(rng.sample(false, 2)) + [2 * largest]
    return Problem(
        "divisibility",
        "Universal",
        f"Which is the strongest true statement about {value}?",
        f"For every integer n the number {value} is divisible by {largest}.",
        f"The values for n = 0, 1, 2, 3, ... have the greatest common divisor {largest}.",
        said.format(largest),
        said.format(rng.choice(divisors)),
        tuple(said.format(d) for d in near),
    )


def product_bound(rng: random.Random) -> Problem:
    """Ask for the sharp bound of a product with a given sum."""
    total, weight = rng.randint(9, 60), rng.randint(1, 4)
    best = max(a * (total - weight * a) for a in range(1, total) if total - weight * a > 0)
    second = f"{weight}a + b" if weight > 1 else "a + b"
    said = "The product ab is at most {}."
    return Problem(
        "product_bound",
        "Inequality or Bound",
        f"The positive integers a and b satisfy {second} = {total}. "
        "Which is the strongest true statement?",
        f"If a and b are positive integers with {second} = {total}, then ab <= {best}.",
        f"Of all pairs with that sum the largest product is {best}.",
        said.format(best),
        said.format(best + rng.randint(1, 9)),
        tuple(said.format(best - d) for d in sorted(rng.sample(range(1, 8), 3))),
    )


def power_order(rng: random.Random) -> Problem:
    """Ask when a power leaves the remainder 1."""
    while True:
        p, a = rng.choice((7, 11, 13, 17, 19, 23)), rng.randint(2, 9)
        if a % p == 0:
            continue
        order = next(k for k in range(1, p) if pow(a, k, p) == 1)
        if order > 2:
            break
    exactly = "It leaves the remainder 1 exactly when n is divisible by {}."
    weaker = "It leaves the remainder 1 whenever n is divisible by {}."
    others = [k for k in range(2, 2 * p) if k != order]
    return Problem(
        "power_order",
        "Equivalence",
        f"For a positive integer n the power {a}^n is divided by {p}. "
        "Which is the strongest true statement?",
        f"{a}^n = 1 modulo {p} if and only if {order} divides n.",
        f"The first power of {a} that leaves the remainder 1 is the one with exponent {order}.",
        exactly.format(order),
        weaker.format(2 * order),
        tuple(exactly.format(k) for k in sorted(rng.sample(others, 3))),
    )


def square_residues(rng: random.Random) -> Problem:
    """Ask which last digits or remainders squares have."""
    m = rng.randint(5, 24)
    residues = sorted({n * n % m for n in range(m)})

    def said(values: list[int]) -> str:
        return f"It leaves one of the remainders {', '.join(map(str, values))}."

    missing = [r for r in range(m) if r not in residues]
    wider = sorted([*residues, rng.choice(missing)])
    false = set()
    while len(false) < 3:
        gone = rng.choice(residues)
        put = rng.choice([r for r in missing if r not in wider] or missing)
        false.add(
            said(sorted(({*residues} - {gone}) | ({put} if rng.random() < 0.6 else set())))
        )
    return Problem(
        "square_residues",
        "Universal",
        f"A square number is divided by {m}. Which is the strongest true statement?",
        f"The remainders of squares modulo {m} are {', '.join(map(str, residues))}.",
        f"It is enough to square 0, 1, ..., {m - 1}.",
        said(residues),
        said(wider),
        tuple(sorted(false)),
    )


def last_remainder(rng: random.Random) -> Problem:
    """Ask for the remainder of a large power; the options exclude one another."""
    a, e, m = rng.randint(2, 9), rng.randint(20, 90), rng.randint(7, 30)
    value = pow(a, e, m)
    false = rng.sample([r for r in range(m) if r != value], 4)
    return Problem(
        "last_remainder",
        "Existence",
        f"What is the remainder of {a}^{e} on division by {m}?",
        f"{a}^{e} = {value} modulo {m}.",
        "Square repeatedly and reduce after each step.",
        f"The remainder is {value}.",
        None,
        tuple(f"The remainder is {r}." for r in sorted(false)),
    )


def divisor_count(rng: random.Random) -> Problem:
    """Ask how many divisors a number has."""
    number = rng.choice([n for n in range(60, 900) if n % 4 == 0 or n % 6 == 0])
    count = sum(number % d == 0 for d in range(1, number + 1))
    false = rng.sample([c for c in range(max(2, count - 6), count + 9) if c != count], 4)
    said = "It has exactly {} positive divisors."
    return Problem(
        "divisor_count",
        "Existence",
        f"Which statement about the number {number} is true?",
        f"The number {number} has exactly {count} positive divisors.",
        "Add one to each exponent of the prime factorisation and multiply.",
        said.format(count),
        None,
        tuple(said.format(c) for c in sorted(false)),
    )


KINDS: tuple[Callable[[random.Random], Problem], ...] = (
    divisibility,
    product_bound,
    power_order,
    square_residues,
    last_remainder,
    divisor_count,
)


def record(problem: Problem, number: int, rng: random.Random) -> dict[str, Any]:
    """Return a problem in the official layout, its wrong options under labels B to E."""
    wrong = [*problem.false, *([] if problem.weaker is None else [problem.weaker])]
    rng.shuffle(wrong)
    labels = dict(zip(wrong, "BCDE", strict=True))
    weaker = None if problem.weaker is None else labels[problem.weaker]
    return {
        "no": number,
        "month": MONTH,
        "paper_link": f"own/{problem.kind}/{number}",
        "theorem": problem.theorem,
        "sketch": problem.sketch,
        "theorem_type": [problem.theorem_type],
        "mcq": {
            "question": problem.question,
            "correct_choice": {"label": "A", "text": problem.right},
            "choices": [{"label": label, "text": text} for text, label in labels.items()],
            "meta": {
                "weaker_true_label": weaker,
                "false_labels": [labels[text] for text in wrong if text in problem.false],
            },
        },
    }


def splits(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each split; no question stands twice."""
    rng = random.Random(seed)
    asked: set[str] = set()
    made: list[dict[str, Any]] = []
    while len(made) < sum(SIZES.values()):
        problem = KINDS[len(made) % len(KINDS)](rng)
        if problem.question not in asked:
            asked.add(problem.question)
            made.append(record(problem, len(made) + 1, rng))
    bounds, start = {}, 0
    for split, size in SIZES.items():
        bounds[split] = made[start : start + size]
        start += size
    return bounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20261)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    for split, records in splits(options.seed).items():
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
        (options.out / f"{split}.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

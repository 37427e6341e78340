"""Train on items that nothing here was tuned to, and evaluate on held-out ones.

    python -m benchmarks.trial                 all sets, default params
    python -m benchmarks.trial --set space     one of them
    python -m benchmarks.trial -S lr=8         with another param

Small sets of extraction questions are generated (40 train, 40 selection, 100 test items each),
put in through `data.split_dir` into a clone of this repository, and trained there. `space` and
`court` were not looked at while `rules/1` was written; `order` (a form), `talk` (a dialogue)
and `weather` (a report) were written after `rules/2`, its defaults and the default data stood
(commit 4a21874). Takes some minutes each.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.crash import environment

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"train": 40, "selection": 40, "test": 100}
Facts = dict[str, str]

NAMES = ["Adela", "Brun", "Cosmo", "Daria", "Edwin", "Fatou", "Goran", "Hilde", "Imre", "Jonas"]
SURNAMES = ["Abel", "Bekker", "Castellan", "Dvorak", "Eriksen", "Falk", "Grieg", "Haldane"]


def person(dice: random.Random) -> str:
    return f"{dice.choice(NAMES)} {dice.choice(SURNAMES)}"


def space(dice: random.Random) -> tuple[str, Facts]:
    """Return a text on a probe and (question, answer) pairs."""
    probe = (
        dice.choice(["Petrel", "Quasar", "Rowan", "Saffron", "Tansy"])
        + f" {dice.randint(2, 9)}"
    )
    month = dice.choice(["March", "June", "October"])
    day = f"{dice.randint(1, 28)} {month} {dice.randint(1990, 2040)}"
    weight = f"{dice.randrange(300, 4000, 10):,} kg"
    site = dice.choice(["Alvand", "Borealis Point", "Cape Teal", "Duna Field"])
    moon = dice.choice(["Io", "Triton", "Rhea", "Ariel", "Dione"])
    fuel = dice.choice(["hydrazine", "xenon", "methane", "krypton"])
    chief = person(dice)
    text = (
        f"The probe {probe} left {site} on {day}. It weighs {weight}, runs on {fuel} and is "
        f"bound for the moon {moon}. {chief} leads the mission."
    )
    return text, {
        "When was the probe launched?": day,
        "How heavy is the probe?": weight,
        "Which moon is the probe bound for?": moon,
        "Who leads the mission?": chief,
        "Where was the probe launched?": site,
        "What does the probe run on?": fuel,
    }


def court(dice: random.Random) -> tuple[str, Facts]:
    """Return a text on a court case and (question, answer) pairs."""
    case = f"{dice.choice('KLMPR')}-{dice.randint(100, 999)}/{dice.randint(10, 40)}"
    judge, accused = person(dice), person(dice)
    fine = f"${dice.randrange(200, 9000, 50):,}"
    offence = dice.choice(["forgery", "arson", "smuggling", "fraud", "trespass"])
    months = f"{dice.randint(3, 48)} months"
    city = dice.choice(["Ardal", "Bexford", "Corvane", "Dunmore", "Eskil"])
    text = (
        f"In case {case} the court of {city} found {accused} guilty of {offence}. "
        f"Judge {judge} set a term of {months} and a fine of {fine}."
    )
    return text, {
        "What is the number of the case?": case,
        "Who was found guilty?": accused,
        "Who was the judge?": judge,
        "How high was the fine?": fine,
        "What was the crime?": offence,
        "How long is the term?": months,
        "In which city is the court?": city,
    }


def order(dice: random.Random) -> tuple[str, Facts]:
    """Return an order as a form and (question, answer) pairs."""
    number, customer = f"{dice.choice('BCDF')}{dice.randint(1000, 9999)}", person(dice)
    thing = dice.choice(["lamps", "ropes", "kettles", "stools", "mirrors", "brushes"])
    count, price = str(dice.randint(2, 60)), f"${dice.randrange(40, 900, 5)}.00"
    day = f"{dice.randint(1, 28)} {dice.choice(['April', 'August', 'December'])}"
    town = dice.choice(["Amberley", "Birkdale", "Corby", "Dunster", "Elstow"])
    text = (
        f"Order: {number}. Customer: {customer}. Goods: {thing}. Pieces: {count}. "
        f"Price: {price}. Delivery: {day}. Town: {town}."
    )
    return text, {
        "What is the number of the order?": number,
        "Who is the customer?": customer,
        "What was ordered?": thing,
        "How many pieces were ordered?": count,
        "What is the price?": price,
        "When will it be delivered?": day,
        "To which town will it be delivered?": town,
    }


def talk(dice: random.Random) -> tuple[str, Facts]:
    """Return a talk of two people and (question, answer) pairs."""
    one, other = dice.sample(NAMES, 2)
    place = dice.choice(["the library", "the station", "the old mill", "the fish market"])
    day = dice.choice(["Monday", "Tuesday", "Thursday", "Saturday"])
    time = f"{dice.randint(7, 20)}:{dice.choice(['15', '30', '45'])}"
    thing = dice.choice(["a map", "two tents", "a torch", "warm socks", "the tickets"])
    way = dice.choice(["bus", "train", "bicycle", "boat"])
    text = (
        f'"Shall we meet at {place} on {day}?" asked {one}. "Yes, at {time}," said {other}. '
        f'"Please bring {thing}. I will come by {way}."'
    )
    return text, {
        "Where do they meet?": place,
        "On what day do they meet?": day,
        "At what time do they meet?": time,
        f"What should {one} bring?": thing,
        f"How will {other} come?": way,
        "Who asked the question?": one,
    }


def weather(dice: random.Random) -> tuple[str, Facts]:
    """Return a weather report and (question, answer) pairs."""
    town = dice.choice(["Grimsay", "Hollin", "Ivybridge", "Jarrow", "Kelso"])
    wind = dice.choice(["north", "south", "east", "west"])
    rain, high = f"{dice.randint(2, 60)} mm", f"{dice.randint(4, 33)} degrees"
    rise = f"{dice.randint(4, 8)}:{dice.randint(10, 59)}"
    danger = dice.choice(["fog", "black ice", "high waves", "thunder", "forest fires"])
    text = (
        f"Weather for {town}: wind from the {wind}, {rain} of rain, up to {high}. "
        f"The sun rises at {rise}. There is a warning of {danger}."
    )
    return text, {
        "For which town is the report?": town,
        "Where does the wind come from?": wind,
        "How much rain will fall?": rain,
        "How warm will it get?": high,
        "When does the sun rise?": rise,
        "What is the warning about?": danger,
    }


Kind = Callable[[random.Random], tuple[str, Facts]]
SETS: dict[str, Kind] = {
    "space": space,
    "court": court,
    "order": order,
    "talk": talk,
    "weather": weather,
}


def items(name: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield `count` items, one question a text."""
    dice = random.Random(f"trial {name}")
    for number in range(count):
        text, facts = SETS[name](dice)
        question = dice.choice(sorted(facts))
        yield {
            "id": f"{name}-{number}",
            "question": question,
            "context": text,
            "answers": [facts[question]],
        }


def run(name: str, params: list[str], rev: str, logs: Path | None) -> dict[str, Any]:
    """Train on one set in a clone, with `params` as `KEY=VALUE`, and return its summary.

    `rev` is the commit that is cloned; the run's log is kept in the folder `logs`.
    """
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "run")], check=True)
        subprocess.run(
            ["git", "checkout", "--quiet", "--detach", rev], cwd=folder / "run", check=True
        )
        splits = folder / "run/data/trial"
        splits.mkdir()
        made = items(name, sum(SIZES.values()))
        for split, size in SIZES.items():
            lines = (json.dumps(next(made), ensure_ascii=False) + "\n" for _ in range(size))
            path = splits / f"{split}.jsonl"
            path.write_text("".join(lines), encoding="utf-8", newline="\n")
        environ = environment()
        changed = [f"--set-param={param}" for param in ("data.split_dir=data/trial", *params)]
        for command in (
            ["dvc", "exp", "run", "--quiet", *changed],
            ["skilltrail.cli.main", "summary", "--json"],
        ):
            done = subprocess.run(
                [sys.executable, "-m", *command],
                cwd=folder / "run",
                env=environ,
                check=True,
                stdout=subprocess.PIPE,
            )
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "run/skills/events.jsonl", logs / f"{name}.jsonl")
        told: dict[str, Any] = json.loads(done.stdout)
        return told
    finally:
        shutil.rmtree(folder)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--set", choices=sorted(SETS))
    options.add_argument("--rev", default="HEAD", help="the commit whose code is tried")
    options.add_argument("--logs", type=Path, help="a folder to keep the runs' logs in")
    options.add_argument("-S", dest="params", metavar="KEY=VALUE", action="append", default=[])
    chosen = options.parse_args()
    for name in [chosen.set] if chosen.set else sorted(SETS):
        told = run(name, chosen.params, chosen.rev, chosen.logs)
        test, saved = told["scores"]["test"], told["early_stopping"]
        gap = told["scores"]["selection"]["best"] - test["best"]
        sys.stdout.write(
            f"{name}: held-out exact match {test['seed']:.2f} -> {test['best']:.2f} "
            f"({test['gain']:+.2f}, {test['gain_low']:+.2f} to {test['gain_high']:+.2f}), "
            f"selection above test by {gap:+.2f}, "
            f"{told['calls']['made']} calls, {told['scores']['steps']} steps, "
            f"{saved['saved']} of {saved['of']} rollouts of rejected candidates saved\n"
        )


if __name__ == "__main__":
    main()

"""Planted faults: agents that make one mistake each, in real environments.

Each is rolled out by its environment from a script of replies, so what an analyst is shown is
what such a run leaves. `cause` is the fault in words, `type` the failure type that names it,
`evidence` what must be visible for anybody to find it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
from env_world import ROOT, WHERE, env_of, own_items, scripted

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.alfworld.engine import Game, WorldState
from skilltrail.envs.alfworld.env import Alfworld, AlfworldParams
from skilltrail.envs.protocol import Environment
from skilltrail.envs.spreadsheet.env import Spreadsheet, SpreadsheetParams
from skilltrail.models.protocol import Reply
from skilltrail.optimizers.protocol import Observation

SKILL = "# Skill\n\nDo the task.\n"


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    env: str
    type: str
    cause: str
    replies: tuple[Any, ...]
    evidence: tuple[str, ...]
    item: str = ""  # whose id it is, or the instruction of a spreadsheet task


# --- a small house ------------------------------------------------------------------------

ROOM = ("fridge 1", "microwave 1", "cabinet 1", "cabinet 2", "countertop 1", "sinkbasin 1")
CLOSED = frozenset({"fridge 1", "microwave 1", "cabinet 1", "cabinet 2"})
WELCOME = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
    f"around you, you see {', '.join(f'a {place}' for place in ROOM)}.\n\nYour task is to: "
)


class House:
    """A kitchen in the words of ALFWorld: closed places hide what is in them.

    Won when a `thing` that is `made` (None = as it is) lies in `goal`.
    """

    def __init__(self, thing: str, goal: str, made: str | None, held: dict[str, str]) -> None:
        self.goal = (thing, goal, made)
        self.places = {place: [t for t, at in held.items() if at == place] for place in ROOM}
        self.open: set[str] = set()
        self.here = ""
        self.hand: str | None = None
        self.state_of: dict[str, str] = {}

    async def step(self, command: str) -> WorldState:
        if command not in self.commands():
            return self.state("Nothing happens.")
        verb, _, rest = command.partition(" ")
        if verb == "go":
            self.here = rest.removeprefix("to ")
            return self.state(f"You arrive at {self.here}. {self.seen()}")
        if verb == "open":
            self.open.add(rest)
            return self.state(f"You open the {rest}. The {rest} is open. {self.seen()}")
        if verb == "take":
            self.hand, _, place = rest.partition(" from ")
            self.places[place].remove(self.hand)
            return self.state(f"You pick up the {self.hand} from the {place}.")
        if verb == "move":
            thing, _, place = rest.partition(" to ")
            self.places[place].append(thing)
            self.hand = None
            return self.state(f"You move the {thing} to the {place}.")
        if verb in ("heat", "cool", "clean"):
            thing, _, place = rest.partition(" with ")
            self.state_of[thing] = verb
            return self.state(f"You {verb} the {thing} using the {place}.")
        return self.state(self.seen() if self.here else "You see nothing new.")

    def seen(self) -> str:
        if self.here in CLOSED and self.here not in self.open:
            return f"The {self.here} is closed."
        things = ", ".join(f"a {thing}" for thing in self.places[self.here])
        return f"In it, you see {things or 'nothing'}."

    def commands(self) -> list[str]:
        found = [f"go to {place}" for place in ROOM if place != self.here] + ["look"]
        if self.here in CLOSED and self.here not in self.open:
            return sorted([*found, f"open {self.here}"])
        if self.here and self.hand is None:
            found += [f"take {thing} from {self.here}" for thing in self.places[self.here]]
        elif self.here:
            found.append(f"move {self.hand} to {self.here}")
            does = {"microwave 1": "heat", "fridge 1": "cool", "sinkbasin 1": "clean"}
            if self.here in does:
                found.append(f"{does[self.here]} {self.hand} with {self.here}")
        return sorted(found)

    def state(self, text: str) -> WorldState:
        thing, place, made = self.goal
        won = any(
            one.startswith(thing) and made in (None, self.state_of.get(one))
            for one in self.places[place]
        )
        return WorldState(text, tuple(self.commands()), won)

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class HouseEngine:
    house: House
    task: str

    async def open(
        self, path: Path, task: str | None, most_steps: int
    ) -> tuple[Game, WorldState]:
        return self.house, WorldState(WELCOME + self.task, tuple(self.house.commands()))


def act(command: str, thought: str = "I go on.") -> str:
    return f"<think>{thought}</think>\n<action>{command}</action>"


def wander(*commands: str) -> tuple[str, ...]:
    """Return 50 replies that repeat these commands."""
    return tuple(act(command) for command in itertools.islice(itertools.cycle(commands), 50))


HOUSES: dict[str, tuple[str, House]] = {
    "cup": ("put a cup in countertop.", House(
        "cup", "countertop 1", None,
        {"cup 1": "cabinet 2", "plate 1": "sinkbasin 1", "apple 1": "countertop 1"},
    )),
    "potato": ("put a hot potato in countertop.", House(
        "potato", "countertop 1", "heat",
        {"potato 1": "sinkbasin 1", "knife 1": "countertop 1"},
    )),
    "mug": ("put a clean mug in cabinet.", House(
        "mug", "cabinet 1", "clean",
        {"mug 1": "fridge 1", "cup 1": "countertop 1", "spoon 1": "sinkbasin 1"},
    )),
}  # fmt: skip

ALFWORLD = (
    Fault(
        "alfworld", "never_opened",
        "it walks from place to place and never opens a closed one",
        wander(*(f"go to {place}" for place in ROOM)),
        ("The cabinet 2 is closed.", "open cabinet 2", "put a cup in countertop."), "cup",
    ),
    Fault(
        "alfworld", "wrong_order", "it puts the potato down without heating it first",
        (act("go to sinkbasin 1"), act("take potato 1 from sinkbasin 1"),
         act("go to countertop 1"), act("move potato 1 to countertop 1", "It is done."),
         *wander("look")[:46]),
        ("put a hot potato in countertop.", "move potato 1 to countertop 1", "It is done."),
        "potato",
    ),
    Fault(
        "alfworld", "wrong_object", "it takes the cup where a mug is asked for",
        (act("go to countertop 1"), act("take cup 1 from countertop 1", "A cup will do."),
         act("go to sinkbasin 1"), act("clean cup 1 with sinkbasin 1"), act("go to cabinet 1"),
         act("open cabinet 1"), act("move cup 1 to cabinet 1"), *wander("look")[:43]),
        ("put a clean mug in cabinet.", "take cup 1 from countertop 1", "A cup will do."),
        "mug",
    ),
)  # fmt: skip

# --- workbooks ----------------------------------------------------------------------------

ROWS = [["Item", "Quantity", "Price"], ["nails", 120, 4], ["wire", 35, 11], ["rope", 60, 7]]
PROGRAM = (
    "import openpyxl\nbook = openpyxl.load_workbook('input.xlsx')\nsheet = book['Stock']\n"
    "{}\nbook.save('output.xlsx')\n"
)
SPREADSHEET = (
    Fault(
        "spreadsheet", "wrong_range", "it takes row 2 for the header and starts at row 3",
        ("Row 1 is a title and row 2 the header, so data begins in row 3.\n```python\n"
         + PROGRAM.format("# row 2 is the header\nrows = range(3, sheet.max_row + 1)\n"
                          "sheet['E1'] = sum(sheet.cell(row, 2).value for row in rows)")
         + "```",),
        ("range(3, sheet.max_row + 1)", "A2 nails | B2 120", "95", "215"),
        "Write the sum of column B into E1.",
    ),
    Fault(
        "spreadsheet", "formula_not_value", "it writes a formula, which has no value",
        ("```python\n" + PROGRAM.format("sheet['E1'] = '=SUM(B2:B4)'") + "```",),
        ("'=SUM(B2:B4)'", "no_value", "215"),
        "Write the sum of column B into E1.",
    ),
    Fault(
        "spreadsheet", "wrong_column", "it multiplies quantity by quantity, not by price",
        ("```python\n" + PROGRAM.format(
            "for row in range(2, sheet.max_row + 1):\n"
            "    sheet.cell(row, 4).value = sheet.cell(row, 2).value * sheet.cell(row, 2).value"
         ) + "```",),
        ("sheet.cell(row, 2).value * sheet.cell(row, 2).value", "14400", "480", "Price"),
        "Fill D2:D4 with quantity times price.",
    ),
)  # fmt: skip


def workbook_task(folder: Path, instruction: str) -> dict[str, Any]:
    """Write the workbooks of a task and return its record."""
    place = folder / "spreadsheet" / text_digest(instruction)[:8]
    place.mkdir(parents=True, exist_ok=True)
    fills = "D2:D4" in instruction
    for kind in ("input", "answer"):
        book = openpyxl.Workbook()
        sheet = book.active
        assert sheet is not None
        sheet.title = "Stock"
        for row in ROWS:
            sheet.append(row)
        if kind == "answer" and fills:
            for number, row in enumerate(ROWS[1:], start=2):
                sheet.cell(number, 4, row[1] * row[2])  # type: ignore[operator]
        elif kind == "answer":
            sheet["E1"] = sum(row[1] for row in ROWS[1:])  # type: ignore[misc]
        book.save(place / f"1_{place.name}_{kind}.xlsx")
    return {
        "id": place.name,
        "instruction": instruction,
        "spreadsheet_path": f"spreadsheet/{place.name}",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": "D2:D4" if fills else "E1",
    }


# --- documents ----------------------------------------------------------------------------


def call(name: str, **arguments: Any) -> Reply:
    made = {"id": f"c-{name}", "name": name, "arguments": arguments}
    return Reply("", finish="tool", tool_calls=(made,))


def said(answer: str) -> str:
    return f"<FINAL_ANSWER>{answer}</FINAL_ANSWER>"


BOOK = "own_bulletin_1951.txt"
OFFICEQA = (
    Fault(
        "officeqa", "ignored_unit", "it takes a table in millions for one in thousands",
        (call("grep", path=BOOK, pattern="Harbor"), call("read", path=BOOK, start=9, limit=6),
         Reply("1,842 thousand crowns are 1.842 million.\n" + said("1.842 million"))),
        ("in millions of crowns", "1,842 thousand crowns are 1.842 million", "1,842 million"),
        "OWN1951-1",
    ),
    Fault(
        "officeqa", "wrong_operand", "it subtracts the balance of another fund",
        (call("grep", path=BOOK, pattern="Fund"),
         Reply("School Fund on December 31: 3,454. Road Fund on January 1: 3,203. So 3,454 − "
               "3,203 = 251.\n" + said("251 thousand"))),
        ("School Fund              4,096       3,454", "Road Fund on January 1: 3,203",
         "-642 thousand"), "OWN1951-3",
    ),
    Fault(
        "officeqa", "stopped_early", "it answers after the names of the files, without reading",
        (call("glob", pattern="*.txt"), said("Stamp duty")),
        ("glob pattern: *.txt", "Stamp duty", "Harbor dues"), "OWN1951-4",
    ),
)  # fmt: skip

DOCVQA = (
    Fault(
        "docvqa", "wrong_column", "it takes the value of the next column, 1974 for 1973",
        ("<answer>758</answer>",),
        ("Depot  1973  1974  1978", "Fjerwick  873  758  977", "in 1973?"), "202",
    ),
    Fault(
        "docvqa", "wrong_field", "it gives the person the memo is to, not who wrote it",
        ("<answer>Ada Morenwell</answer>",),
        ("To:  Ada Morenwell", "From:  Felix Wickdahl", "Who wrote the memo?"), "301",
    ),
    Fault(
        "docvqa", "wrong_row", "it takes the value of the row above, copper wire",
        ("<answer>76</answer>",),
        ("copper wire  76", "iron nails  17", "quantity of iron nails"), "103",
    ),
)  # fmt: skip

FAULTS: Sequence[Fault] = (*ALFWORLD, *SPREADSHEET, *OFFICEQA, *DOCVQA)


def observed(fault: Fault, folder: Path) -> Observation:
    """Return the run of a planted fault as an analyst gets it; `folder` takes its workbooks."""
    env, item = _place(fault, folder)
    model = scripted(
        fault.replies,
        style="chat",
        abilities=frozenset({"tools"} if fault.env == "officeqa" else ()),
    )
    trajectory = asyncio.run(env.rollout(item, SKILL, model))
    return observation_of(env, item, trajectory)


def observation_of(env: Environment, item: Item, trajectory: Trajectory) -> Observation:
    return Observation(
        item=item,
        trajectory=Trajectory.from_json(json.loads(json.dumps(trajectory.to_json()))),
        score=env.score(item, trajectory),
        key="k",
        reference=env.reference(item),
        feedback=env.feedback(item, trajectory),
        skill=text_digest(SKILL),
        outcome=env.outcome(item, trajectory),
    )


def _place(fault: Fault, folder: Path) -> tuple[Environment, Item]:
    if fault.env == "alfworld":
        task, house = HOUSES[fault.item]
        params = AlfworldParams(data_dirs=(str(ROOT / "data" / "alfworld"),))
        fresh = House(*house.goal, {t: p for p, things in house.places.items() for t in things})
        env: Environment = Alfworld(params, HouseEngine(fresh, task))
        line = (ROOT / "data" / "alfworld" / "train.jsonl").read_text(encoding="utf-8")
        record = {**json.loads(line.split("\n")[0]), "id": f"own:{fault.item}", "task": task}
        del record["walkthrough"]
        return env, env.parse(record, WHERE)
    if fault.env == "spreadsheet":
        options = SpreadsheetParams(data_dirs=(str(folder),), sandbox="none", agent="single")
        book_env = Spreadsheet(options)
        return book_env, book_env.parse(workbook_task(folder, fault.item), WHERE)
    items = {one.item.id: one.item for one in own_items(fault.env)}
    return env_of(fault.env), items[fault.item]

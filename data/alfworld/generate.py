"""Make the project's own tiny household games: PDDL problems, one for each item.

    python data/alfworld/generate.py     writes {train,selection,test}.jsonl and problems/

A problem is played with the domain and grammar of the package alfworld. Objects and places are
named as ALFWorld names them: `<Type>_bar_<three coordinates>`; a sink ends in `_bar_SinkBasin`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPENABLE = {"Cabinet", "Drawer", "Fridge", "Microwave"}
WAYS = {
    "clean": ("SinkBasin", "cleanable", "isClean", "pick_clean_then_place_in_recep"),
    "heat": ("Microwave", "heatable", "isHot", "pick_heat_then_place_in_recep"),
    "cool": ("Fridge", "coolable", "isCool", "pick_cool_then_place_in_recep"),
}
ADJECTIVES = {"clean": "clean", "heat": "hot", "cool": "cool"}


@dataclass(frozen=True)
class Plan:
    """One game: `things` are (object type, index of the place it lies in)."""

    id: str
    kind: str
    places: tuple[str, ...]
    things: tuple[tuple[str, int], ...]
    target: str
    way: str = ""


PLANS: dict[str, tuple[Plan, ...]] = {
    "train": (
        Plan("pick-1", "pick_and_place_simple", ("Shelf", "Cabinet"),
             (("Cup", 1), ("Spoon", 0)), "Shelf"),
        Plan("clean-1", WAYS["clean"][3], ("DiningTable", "Drawer", "SinkBasin"),
             (("Fork", 1), ("Plate", 0)), "DiningTable", "clean"),
    ),
    "selection": (
        Plan("heat-1", WAYS["heat"][3], ("CounterTop", "Microwave", "Cabinet"),
             (("Potato", 2), ("Cup", 0)), "CounterTop", "heat"),
        Plan("look-1", "look_at_obj_in_light", ("Desk", "Drawer"),
             (("DeskLamp", 0), ("Pen", 1)), "Pen"),
    ),
    "test": (
        Plan("cool-1", WAYS["cool"][3], ("DiningTable", "Fridge", "Cabinet"),
             (("Tomato", 2), ("Bowl", 0)), "DiningTable", "cool"),
        Plan("two-1", "pick_two_obj_and_place", ("Shelf", "Drawer", "CounterTop"),
             (("Spoon", 1), ("Spoon", 2)), "Shelf"),
    ),
}  # fmt: skip


def main() -> None:
    """Write items and problems."""
    (HERE / "problems").mkdir(exist_ok=True)
    for split, plans in PLANS.items():
        lines = []
        for plan in plans:
            name = f"problems/{plan.id}.pddl"
            (HERE / name).write_text(problem(plan), encoding="utf-8", newline="\n")
            record = {
                "id": f"own:{plan.id}",
                "task_type": plan.kind,
                "task": task(plan),
                "problem": name,
                "walkthrough": walkthrough(plan),
            }
            lines.append(json.dumps(record) + "\n")
        (HERE / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


def task(plan: Plan) -> str:
    """Return the task in words."""
    thing = _wanted(plan).lower()
    place = plan.target.lower()
    if plan.kind == "look_at_obj_in_light":
        return f"look at {thing} under the desklamp."
    if plan.kind == "pick_two_obj_and_place":
        return f"put two {thing} in {place}."
    adjective = f"{ADJECTIVES[plan.way]} " if plan.way else ""
    return f"put a {adjective}{thing} in {place}."


def walkthrough(plan: Plan) -> list[str]:
    """Return commands that win."""
    wanted = _wanted(plan)
    # The engine counts things of a kind from the last one.
    found = [index for index, (kind, _) in enumerate(plan.things) if kind == wanted][::-1]
    said: list[str] = []
    for number, index in enumerate(found, 1):
        name, place = f"{wanted.lower()} {number}", _called(plan, plan.things[index][1])
        said.append(f"go to {place}")
        if plan.places[plan.things[index][1]] in OPENABLE:
            said.append(f"open {place}")
        said.append(f"take {name} from {place}")
        if plan.kind == "look_at_obj_in_light":
            return [*said, "go to desk 1", "use desklamp 1"]
        if plan.way:
            tool = f"{WAYS[plan.way][0].lower()} 1"
            said += [f"go to {tool}", f"{plan.way} {name} with {tool}"]
        target = f"{plan.target.lower()} 1"
        said += [f"go to {target}", f"move {name} to {target}"]
    return said


def problem(plan: Plan) -> str:
    """Return the PDDL problem."""
    places = [_place(kind, index) for index, kind in enumerate(plan.places)]
    things = [_thing(kind, index) for index, (kind, _) in enumerate(plan.things)]
    where = [f"loc_bar_{index}_bar_0_bar_1_bar_30" for index in range(len(places))]
    kinds = sorted({kind for kind, _ in plan.things})
    objects = [
        "agent1 - agent", "loc_start - location", *(f"{at} - location" for at in where),
        *(f"{place} - receptacle" for place in places),
        *(f"{thing} - object" for thing in things),
        *(f"{kind}Type - rtype" for kind in sorted(set(plan.places))),
        *(f"{kind}Type - otype" for kind in kinds),
    ]  # fmt: skip
    facts = ["(= (total-cost) 0)", "(atLocation agent1 loc_start)"]
    for kind, place, at in zip(plan.places, places, where, strict=True):
        facts += [
            f"(receptacleType {place} {kind}Type)",
            f"(receptacleAtLocation {place} {at})",
        ]
        facts += [f"(openable {place})"] if kind in OPENABLE else []
        facts += [f"(canContain {kind}Type {one}Type)" for one in kinds if one != "DeskLamp"]
    for (kind, index), thing in zip(plan.things, things, strict=True):
        facts += [
            f"(objectType {thing} {kind}Type)",
            f"(inReceptacle {thing} {places[index]})",
            f"(objectAtLocation {thing} {where[index]})",
        ]
        if kind == "DeskLamp":
            facts.append(f"(toggleable {thing})")
        else:
            able = ("pickupable", "heatable", "coolable", "cleanable")
            facts += [f"({one} {thing})" for one in able]
    return (
        f"(define (problem plan_{plan.id.replace('-', '_')})\n(:domain alfred)\n"
        "(:objects\n" + "\n".join(objects) + "\n)\n(:init\n" + "\n".join(facts) + "\n)\n"
        f"(:goal {goal(plan)})\n)\n"
    )


def goal(plan: Plan) -> str:
    """Return the PDDL goal of a plan."""
    wanted = _wanted(plan)
    if plan.kind == "look_at_obj_in_light":
        return (
            "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and "
            "(objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot) "
            "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r))) "
            "(exists (?o - object ?a - agent) (and "
            f"(objectType ?o {wanted}Type) (holds ?a ?o))))"
        )
    stands = f"(receptacleType ?r {plan.target}Type)"
    if plan.kind == "pick_two_obj_and_place":
        return (
            f"(and (exists (?r - receptacle) (and {stands} (exists (?o1 - object) (and "
            f"(objectType ?o1 {wanted}Type) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and "
            f"(not (= ?o1 ?o2)) (objectType ?o2 {wanted}Type) (inReceptacle ?o2 ?r))))))))"
        )
    done = ""
    if plan.way:
        _, able, state, _ = WAYS[plan.way]
        done = f"({able} ?o) ({state} ?o) "
    return (
        "(and (exists (?r - receptacle ?o - object) (and "
        f"(objectType ?o {wanted}Type) {stands} {done}(inReceptacle ?o ?r))))"
    )


def _wanted(plan: Plan) -> str:
    if plan.kind == "look_at_obj_in_light":
        return plan.target
    return plan.things[0][0]


def _called(plan: Plan, index: int) -> str:
    kind = plan.places[index]
    return f"{kind.lower()} {plan.places[: index + 1].count(kind)}"


def _place(kind: str, index: int) -> str:
    at = f"_bar__plus_{index:02d}_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00"
    return f"Sink{at}_bar_SinkBasin" if kind == "SinkBasin" else kind + at


def _thing(kind: str, index: int) -> str:
    return f"{kind}_bar__plus_{index:02d}_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00"


if __name__ == "__main__":
    main()

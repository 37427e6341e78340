"""Checks on what was proposed: budget, ids, support, merging, selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.method.schedule import edit_budget
from skilltrail.params.fields import SCHEDULES
from skilltrail.skill.edit import Edit
from skilltrail.verify.result import Fault, Tags, differing

ALL, SUPPORT = "all/1", "support/1"  # the budget covers every edit; most support first


def check_budget(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    data = event.data
    earlier = state.latest("budget.decided")
    if earlier is not None:
        cap = earlier.data["budget"]
        if cap is not None and (data["budget"] is None or data["budget"] > cap):
            yield Fault.of(event, "budget", data["budget"], f"at most {cap}")
        return
    if not tags.knows(data["rule"], *(f"{name}/1" for name in SCHEDULES)):
        return
    right = edit_budget(
        data["step"],
        schedule=data["rule"].removesuffix("/1"),
        lr=data.get("lr"),
        lr_min=data.get("lr_min", 1),
        total_steps=data.get("total_steps", 1),
        warmup=data.get("warmup", 0),
        phase=data.get("phase", "start"),
        rounding=data.get("rounding", "up"),
    )
    yield from differing(event, {"budget": right, "schedule": data["rule"][:-2]})


def check_ids(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """A patch and its edits are named after the event; support is counted, not claimed."""
    data = event.data
    yield from differing(event, {"patch": f"p{event.seq}"})
    for index, edit in enumerate(data["edits"]):
        if edit["edit"] != f"{event.seq}.{index}":
            yield Fault.of(event, "edit id", edit["edit"], f"{event.seq}.{index}")
        if edit["support"] != len(set(edit["items"])):
            support = len(set(edit["items"]))
            yield Fault.of(event, f"support of {edit['edit']}", edit["support"], support)


def check_evidence(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """An analyst saw train items that were rolled out by then, and its edits rest on such."""
    data = event.data
    # Other methods show items with their right answers as well, which takes no rollout.
    known = state.rolled_out.union(() if state.documents is None else state.ids("train"))
    strangers = [item for item in data["items"] if item not in state.rolled_out]
    if strangers:
        yield Fault.of(event, "items", strangers[:3], "train items rolled out by then")
    for edit in data["edits"]:
        beyond = [item for item in edit["items"] if item not in known]
        if beyond:
            what = f"items of {edit['edit']}"
            yield Fault.of(event, what, beyond[:3], "train items rolled out by then")


def check_merge(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Merged edits come from the patches that went in, and what was dropped is said."""
    data = event.data
    offered: dict[str, Mapping[str, object]] = {}
    for id in data["inputs"]:
        source = state.patches.get(id)
        if source is None:
            yield Fault.of(event, "inputs", id, "a patch of this step")
        else:
            offered |= {edit["edit"]: edit for edit in source.data["edits"]}
    kept = {parent for edit in data["edits"] for parent in edit["parents"]}
    for edit in data["edits"]:
        strange = [parent for parent in edit["parents"] if parent not in offered]
        if strange or not edit["parents"]:
            yield Fault.of(event, f"parents of {edit['edit']}", strange, "edits that went in")
    if "dropped" in data:
        yield from differing(event, {"dropped": [id for id in offered if id not in kept]})


def check_selection(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The selected edits and those left out are the patch's, within the budget."""
    data = event.data
    source = state.patches.get(data["patch"])
    if source is None:
        yield Fault.of(event, "patch", data["patch"], "a patch of this step")
        return
    budget = state.latest("budget.decided")
    if budget is not None:
        yield from differing(event, {"budget": budget.data["budget"]})
    edits = [Edit.from_json(edit) for edit in source.data["edits"]]
    left = [row["edit"] for row in data["left_out"]]
    if sorted([*data["selected"], *left]) != sorted(edit.id for edit in edits):
        yield Fault.of(event, "edits", [*data["selected"], *left], [e.id for e in edits])
    if data["budget"] is not None and len(data["selected"]) > data["budget"]:
        yield Fault.of(event, "selected", len(data["selected"]), f"at most {data['budget']}")
    ranked = edits if data["rule"] == ALL else sorted(edits, key=lambda edit: -edit.support)
    if data["rule"] in (ALL, SUPPORT):  # any other ranking the loop run again recomputes
        yield from differing(event, {"selected": [e.id for e in ranked[: data["budget"]]]})

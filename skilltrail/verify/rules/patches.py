"""Checks on what was proposed: budget, ids, support, merging, selection."""

from __future__ import annotations

from collections.abc import Iterator

from skilltrail.history.log.events import Event
from skilltrail.history.log.evolve import edits_in
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import BudgetDecided
from skilltrail.history.log.types.proposals import EditsSelected, PatchMerged, PatchProposed
from skilltrail.method.schedule import edit_budget
from skilltrail.params.fields import SCHEDULES
from skilltrail.skill.edit import Edit
from skilltrail.verify.result import Fault, Tags, differing

ALL, SUPPORT = "all/1", "support/1"  # the budget covers every edit; most support first


def check_budget(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    said, earlier = event.read(BudgetDecided), state.told(BudgetDecided)
    if earlier is not None:
        cap = earlier.budget
        if cap is not None and (said.budget is None or said.budget > cap):
            yield Fault.of(event, "budget", said.budget, f"at most {cap}")
        return
    if not tags.knows(said.rule, *(f"{name}/1" for name in SCHEDULES)):
        return
    right = edit_budget(
        said.step,
        schedule=said.rule.removesuffix("/1"),
        lr=said.lr,
        lr_min=1 if said.lr_min is None else said.lr_min,
        total_steps=1 if said.total_steps is None else said.total_steps,
        warmup=0 if said.warmup is None else said.warmup,
        phase="start" if said.phase is None else said.phase,
        rounding="up" if said.rounding is None else said.rounding,
    )
    yield from differing(event, {"budget": right, "schedule": said.rule[:-2]})


def check_ids(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """A patch and its edits are named after the event; support is counted, not claimed."""
    yield from differing(event, {"patch": f"p{event.seq}"})
    for index, edit in enumerate(edits_in(event)):
        if edit.edit != f"{event.seq}.{index}":
            yield Fault.of(event, "edit id", edit.edit, f"{event.seq}.{index}")
        support = len(set(edit.items))
        if edit.support != support:
            yield Fault.of(event, f"support of {edit.edit}", edit.support, support)


def check_evidence(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """An analyst saw train items that were rolled out by then, and its edits rest on such."""
    said = event.read(PatchProposed)
    # Other methods show items with their right answers as well, which takes no rollout.
    known = state.rolled_out
    if state.documents is not None:
        known = known.union(state.ids("train"))
    strangers = [item for item in said.items if item not in state.rolled_out]
    if strangers:
        yield Fault.of(event, "items", strangers[:3], "train items rolled out by then")
    for edit in said.edits:
        beyond = [item for item in edit.items if item not in known]
        if beyond:
            what = f"items of {edit.edit}"
            yield Fault.of(event, what, beyond[:3], "train items rolled out by then")


def check_merge(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Merged edits come from the patches that went in, and what was dropped is said."""
    said = event.read(PatchMerged)
    offered: list[str] = []
    for id in said.inputs:
        source = state.patches.get(id)
        if source is None:
            yield Fault.of(event, "inputs", id, "a patch of this step")
        else:
            offered += [edit.edit for edit in edits_in(source)]
    kept = {parent for edit in said.edits for parent in edit.parents}
    for edit in said.edits:
        strange = [parent for parent in edit.parents if parent not in offered]
        if strange or not edit.parents:
            yield Fault.of(event, f"parents of {edit.edit}", strange, "edits that went in")
    if said.dropped is not None:
        dropped = [id for id in dict.fromkeys(offered) if id not in kept]
        yield from differing(event, {"dropped": dropped})


def check_selection(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The selected edits and those left out are the patch's, within the budget."""
    said = event.read(EditsSelected)
    source = state.patches.get(said.patch)
    if source is None:
        yield Fault.of(event, "patch", said.patch, "a patch of this step")
        return
    budget = state.told(BudgetDecided)
    if budget is not None:
        yield from differing(event, {"budget": budget.budget})
    edits = [Edit.of(edit) for edit in edits_in(source)]
    told = [*said.selected, *(row.edit for row in said.left_out)]
    if sorted(told) != sorted(edit.id for edit in edits):
        yield Fault.of(event, "edits", told, [e.id for e in edits])
    if said.budget is not None and len(said.selected) > said.budget:
        yield Fault.of(event, "selected", len(said.selected), f"at most {said.budget}")
    ranked = edits if said.rule == ALL else sorted(edits, key=lambda edit: -edit.support)
    if said.rule in (ALL, SUPPORT):  # any other ranking the loop run again recomputes
        yield from differing(event, {"selected": [e.id for e in ranked[: said.budget]]})

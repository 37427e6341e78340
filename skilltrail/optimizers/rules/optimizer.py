"""The embedded optimizer: diagnoses, proposes, merges and ranks by rules, without a model.

It works for any environment that offers a catalogue of failure types and can render a solved
item (`envs.kit.teaching`). One patch per failure type says which edits of the step's plan
stem from it; deletions stand in a patch of their own, drawn from successes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skilltrail.core.errors import UsageError
from skilltrail.envs.protocol import Environment
from skilltrail.optimizers.protocol import Answer, Brief, EpochView, StepRecord, StepView
from skilltrail.optimizers.rules.compacting import shorter
from skilltrail.optimizers.rules.epochs import guidance, memory_text
from skilltrail.optimizers.rules.lessons import KnownItems
from skilltrail.optimizers.rules.memory import Recall, face
from skilltrail.optimizers.rules.plan import Plan, make_plan
from skilltrail.optimizers.rules.writing import as_edit, written
from skilltrail.skill.edit import Edit, Patch
from skilltrail.skill.folder import is_folder, main_text

TAG = "rules/5"


class RulesOptimizer:
    """Implements `skilltrail.optimizers.protocol.Optimizer`; keeps a step's plan, no state.

    Raises:
        UsageError: the environment offers nothing to work with.
    """

    def __init__(self, env: Environment) -> None:
        if not env.supports_rules:
            raise UsageError(
                f"optimizer.backend: rules with env {env.name!r}",
                "this environment has no rule catalogue and no worked examples",
                "Choose a prompted optimizer, or write its rules.yaml: docs/environments.md",
            )
        self._env, self._known, self._recall = env, KnownItems(env), Recall()
        self._planned: tuple[StepView, Plan] | None = None

    def _plan(self, view: StepView) -> Plan:
        """Return the plan of a step, which each verb of the step asks for."""
        if self._planned is None or self._planned[0] is not view:
            memory = self._recall.of(view.history)
            self._planned = (view, make_plan(_of_main(view), self._known, memory))
        return self._planned[1]

    @property
    def tag(self) -> str:
        return TAG

    async def reflect(self, view: StepView) -> Answer:
        """Return one patch per failure type with edits, most frequent first, then deletions."""
        plan = self._plan(view)
        return Answer(_patches(plan, view), plan.reason, TAG)

    async def merge(self, view: StepView, patches: Sequence[Patch]) -> Answer:
        """Return the edits of all patches; equal ones become one with the support of all.

        They stand in the order of the plan, since a later example weighs more.
        """
        merged: dict[tuple[str, str, str], Edit] = {}
        for edit in (edit for patch in patches for edit in patch.edits):
            known = merged.get(face(edit))
            merged[face(edit)] = (
                replace(edit, parents=(edit.id,), id="")
                if known is None
                else replace(
                    known,
                    items=tuple(dict.fromkeys((*known.items, *edit.items))),
                    parents=(*known.parents, edit.id),
                )
            )
        offered = sum(len(patch.edits) for patch in patches)
        reason = f"{offered} edits, {len(merged)} of them different"
        edits = list(merged.values())
        return Answer([edits[at] for at in self._order(view, edits)], reason, TAG)

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        """Return how many edits to apply: all on a new document, half after each loss."""
        budget = len(edits) if view.budget is None else min(len(edits), view.budget)
        stalled = 0
        for record in reversed(view.history):
            if record.verdict == "accepted":
                break
            stalled += 1
        chosen = max(min(budget, 1), budget >> min(stalled, budget))
        return Answer(chosen, f"{stalled} steps since the last accepted one", TAG)

    async def rank(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        """Return the indices of `edits` in the order of the plan, others by support."""
        return Answer(self._order(view, edits), "in the order of need, then of support", TAG)

    def _order(self, view: StepView, edits: Sequence[Edit]) -> list[int]:
        """Return the indices of `edits` in the order of the step's plan, then by support."""
        plan = self._plan(view)
        place = {face(edit): at for at, edit in enumerate(plan.edits)}
        last = len(place)
        return sorted(
            range(len(edits)),
            key=lambda at: (place.get(face(edits[at]), last), -edits[at].support, at),
        )

    async def rewrite(self, view: StepView, suggestions: Sequence[Edit]) -> Answer:
        """Return the document with the suggested texts added, put in place or taken out."""
        text = written(view.skill, [as_edit(suggestion) for suggestion in suggestions])
        return Answer(text, f"{len(suggestions)} suggestions followed", TAG)

    async def consolidate(self, view: StepView, notes: Sequence[str]) -> Answer:
        """Return the notes without repeats, in their order."""
        return Answer(list(dict.fromkeys(notes)), "repeats taken out", TAG)

    async def slow_update(self, view: EpochView) -> Answer:
        """Return a catalogue line against what still fails, or None when nothing is left."""
        line = guidance(view, self._env)
        return Answer(line, "against the most frequent failure of the epoch", TAG)

    async def meta_skill(self, view: EpochView) -> Answer:
        """Return how often each sort of change was kept and lost."""
        return Answer(memory_text(view.history), "counted over all steps so far", TAG)

    async def compact(self, view: EpochView) -> Answer:
        """Return the document without its least supported part, or None."""
        text, reason = shorter(view)
        return Answer(text, reason, TAG)

    def is_done(self, history: Sequence[StepRecord]) -> bool:
        """Return whether the document has the full score: `make_plan` has no move then."""
        return self._recall.of(history).perfect

    async def compose(self, view: StepView, brief: Brief) -> Answer:
        """Refuse: what rival methods ask for in words takes a model."""
        raise UsageError(
            f"{brief.prompt} of optimizer.backend: rules",
            "this method asks for whole texts, which no rule writes",
            "Set optimizer.backend to a model, such as openai, or choose another method",
        )

    async def close(self) -> None:
        """Nothing is held."""


def _of_main(view: StepView) -> StepView:
    """Return the view with the `SKILL.md` of a folder alone: rules teach nothing else."""
    return replace(view, skill=main_text(view.skill)) if is_folder(view.skill) else view


def _patches(plan: Plan, view: StepView) -> list[Patch]:
    groups: dict[str, list[Edit]] = {}
    for edit in plan.edits:
        groups.setdefault(_source_type(plan, edit), []).append(edit)
    patches = []
    for name in sorted(groups, key=lambda name: (name == "", name)):
        source = "failure" if name else "success"
        items = dict.fromkeys(id for edit in groups[name] for id in edit.items)
        seen = {id: plan.types[id] for id in items if id in plan.types}
        patches.append(
            Patch(
                source=source,
                items=tuple(items),
                edits=tuple(groups[name]),
                reasoning=plan.reason,
                failure_types=seen,
                shown={"items": len(view.observations)},
            )
        )
    return patches


def _source_type(plan: Plan, edit: Edit) -> str:
    """Return the failure type an edit stems from; "" when it stems from successes."""
    return next((plan.types[id] for id in edit.items if id in plan.types), "")

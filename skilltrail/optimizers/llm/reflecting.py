"""Reflect: analysts look at minibatches of runs, failures apart from successes.

One call per minibatch (`batching`), several at once; patches come back in the
order of the minibatches, failures first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skilltrail.optimizers.llm.analysis import Assignment, Draft, read_analysis
from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.batching import Minibatch, minibatches
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.prompts import example_text
from skilltrail.optimizers.llm.proposals import ProposalContext
from skilltrail.optimizers.llm.question import Query, QueryResult
from skilltrail.optimizers.llm.reading.replies import asked_form
from skilltrail.optimizers.llm.shown.folder import editable
from skilltrail.optimizers.llm.shown.leaks import LEAKED_NOTE, leaks
from skilltrail.optimizers.llm.shown.past import step_state
from skilltrail.optimizers.llm.shown.runs import Shown, fitted, show_observation
from skilltrail.optimizers.parallel import in_parallel
from skilltrail.optimizers.protocol import Answer, Observation, RejectedReply, StepView
from skilltrail.skill.edit import Patch
from skilltrail.skill.fence import fenced

# Update mode -> suffix of the prompt files and name of the analysts' reply schema.
MODES = {
    "patch": ("patch", "patch"),
    "rewrite_from_suggestions": ("suggest", "suggestions"),
    "full_rewrite_minibatch": ("full", "document"),
}
HALVED = "asked again with half as much of each run"
SHRINKS = 3  # how often a request that a model's context cannot hold is halved


@dataclass(frozen=True)
class Analysis:
    """What one analyst came to: a patch, or None, and the replies thrown away."""

    patch: Patch | None
    rejected: tuple[RejectedReply, ...]


async def reflect(
    asker: Asker, view: StepView, ground: ProposalContext, types: Mapping[str, str]
) -> Answer:
    """Return the patches of the step."""
    options = asker.options
    batches = minibatches(view, options)
    state = step_state(view, options, "analyst") | _capped(view, options)

    async def study(batch: Minibatch) -> Analysis:
        return await _study(_Analyst(asker, view, ground, types, state, batch))

    analyses = await in_parallel(batches, study, max(1, options.workers))
    return Answer(
        [analysis.patch for analysis in analyses if analysis.patch is not None],
        rejected=tuple(one for analysis in analyses for one in analysis.rejected),
    )


def _capped(view: StepView, options: LlmOptions) -> dict[str, str]:
    """Return the budget in words with the cap of one analyst, where params set one."""
    if not cap_of(view, options):
        return {}
    budget = "no cap" if view.budget is None else str(view.budget)
    most = options.most_edits
    return {"budget": f"{budget}. You may propose at most {most}: what comes after is cut off"}


def cap_of(view: StepView, options: LlmOptions) -> int:
    """Return the most edits of one analyst; 0 = no cap. A whole document is none."""
    return 0 if view.update_mode == "full_rewrite_minibatch" else options.most_edits


@dataclass(frozen=True)
class _Analyst:
    asker: Asker
    view: StepView
    ground: ProposalContext
    types: Mapping[str, str]
    state: Mapping[str, str]
    batch: Minibatch

    @property
    def wants_notes(self) -> bool:
        options = self.asker.options
        is_asked = self.batch.source == "failure" or options.notes_from == "both"
        return options.skill_aware and is_asked

    @property
    def assignment(self) -> Assignment:
        types = tuple(self.types) if self.batch.source == "failure" else ()
        mode, ids = self.view.update_mode, self.batch.ids
        cap = cap_of(self.view, self.asker.options)
        return Assignment(mode, ids, types, self.wants_notes, self.ground, cap)


async def _study(analyst: _Analyst) -> Analysis:
    """Ask one analyst, with less of the trajectories where its context cannot hold them."""
    rejected: tuple[RejectedReply, ...] = ()
    for shrink in range(SHRINKS + 1):
        question, shown = _question(analyst, shrink)
        asked = await analyst.asker.ask(question)
        rejected += asked.rejected
        if not asked.too_long:
            break
    if asked.value is None:
        return Analysis(None, rejected)
    return Analysis(_patch(analyst, asked, asked.value, shown), rejected)


def _patch(
    analyst: _Analyst, asked: QueryResult[Draft], draft: Draft, shown: Mapping[str, Any]
) -> Patch:
    cap = cap_of(analyst.view, analyst.asker.options)
    capped = {"most_edits": cap, "edits_cut": draft.cut} if cap else {}
    repairs = {"repairs": list(asked.repairs)} if asked.repairs else {}
    told = list(draft.procedures)
    procedures: dict[str, Any] = {"procedures": told} if told else {}
    if analyst.asker.options.judge_reasons:
        procedures["judge_reasons"] = True
    return Patch(
        source=analyst.batch.source,
        items=analyst.batch.ids,
        edits=draft.edits,
        reasoning=draft.reasoning,
        failure_types=draft.failure_types,
        shown={**shown, **repairs, **procedures, **capped},
        reply=asked.reply,
        notes=draft.notes,
    )


def _question(analyst: _Analyst, shrink: int) -> tuple[Query[Draft], Mapping[str, Any]]:
    """Return the question with the runs cut to what fits, halved `shrink` times."""
    options, batch = analyst.asker.options, analyst.batch
    suffix, schema = MODES[analyst.view.update_mode]
    values = {
        **analyst.state,
        "count": str(len(batch.seen)),
        "trajectories": "",
        "example": example_text(
            analyst.asker.prompts,
            f"_example_{batch.source}_{suffix}",
            _narrowed(analyst, asked_form(schema)),
        ),
        "skill_aware": _skill_aware(analyst),
    }
    if batch.source == "failure":
        values["failure_types"] = "\n".join(
            f"- `{name}`" + (f": {means}" if means else "")
            for name, means in analyst.types.items()
        )

    def show(seen: Observation, shown: Sequence[str], limit: int | None) -> Shown:
        note = LEAKED_NOTE if leaks(seen, analyst.view.skill) else ""
        return show_observation(seen, shown, limit, note)

    name = f"{batch.source}_{suffix}"
    bare = analyst.asker.fill(name, values)
    texts, chars = fitted(
        options, "analyst", f"{bare.system}\n{bare.user}", batch.seen, show, shrink
    )
    runs = {f"run {n}": t.text for n, t in enumerate(texts, start=1)}
    values["trajectories"] = "\n\n".join(fenced(runs).values())
    cut = {o.item.id: t.cut for o, t in zip(batch.seen, texts, strict=True) if t.cut}
    limits = {} if chars is None else {"trajectory_chars": chars}
    return Query(
        stage="reflect",
        options="analyst",
        prompt=analyst.asker.fill(name, values),
        schema=schema,
        read=partial(read_analysis, analyst.assignment),
        otherwise="this minibatch gives no patch",
        if_too_long=None if shrink == SHRINKS else HALVED,
        narrow=lambda asked_form: _narrowed(analyst, asked_form),
    ), {"show": list(options.show), **limits, "cut_chars": cut}


def _skill_aware(analyst: _Analyst) -> str:
    if not analyst.wants_notes:
        return ""
    name = "_skill_aware" if analyst.batch.source == "failure" else "_lapse_notes"
    return analyst.asker.prompts.text(name)


def _narrowed(analyst: _Analyst, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the asked form with ids and types that exist, and without what is not asked."""
    properties = schema["properties"]
    ids = {"enum": list(analyst.batch.ids)}
    if analyst.batch.source == "failure":
        of_failure = properties["failures"]["items"]["properties"]
        of_failure["item"] |= ids
        of_failure["type"] = {"type": "string", "enum": list(analyst.types)}
        if not analyst.wants_notes:
            _leave_out(properties["failures"]["items"], "cause")
    else:
        _leave_out(schema, "failures")
    if not analyst.wants_notes:
        _leave_out(schema, "notes")
    for name in ("edits", "suggestions"):
        if name in properties:
            properties[name]["items"]["properties"]["items"]["items"] |= ids
    if "edits" in properties:
        narrow_file(properties["edits"]["items"], analyst.ground)
    if "items" in properties:
        properties["items"]["items"] |= ids
    return schema


def narrow_file(edit: dict[str, Any], ground: ProposalContext) -> None:
    """Let the form of an edit name one of the files that may change, in a skill folder; where
    it may make one, any name fits the form."""
    if ground.files and ground.references:
        return
    if ground.files:
        edit["properties"]["file"]["enum"] = editable(ground.skill, scripts=ground.scripts)
    else:
        _leave_out(edit, "file")


def _leave_out(schema: dict[str, Any], name: str) -> None:
    del schema["properties"][name]
    schema["required"].remove(name)

"""Compose: what rival methods ask for in prompts of their own (`Brief`).

A document is checked as a rewritten one is, so it is worth an evaluation; a text goes on to the
optimizer alone, between fences, and only its length is checked. One that fails twice is not
used (`keep/1`), and the method says what then.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.proposals import ProposalContext, document_faults
from skilltrail.optimizers.llm.question import Query
from skilltrail.optimizers.llm.reflecting import HALVED, SHRINKS
from skilltrail.optimizers.llm.shown.past import size_of
from skilltrail.optimizers.llm.shown.runs import fitted, show_observation
from skilltrail.optimizers.llm.writing import checked
from skilltrail.optimizers.protocol import Answer, Brief, RejectedReply, StepView
from skilltrail.skill.fence import fenced

_TEXT_CHARS = 6000


async def compose(
    asker: Asker, view: StepView, ground: ProposalContext, brief: Brief
) -> Answer:
    """Return the document or the text that a rival method asks for, or None.

    Runs are shown shorter where the context cannot hold them; texts are not cut.
    """
    document = brief.wants == "document"
    faults_of = partial(document_faults, ground=ground) if document else _text_faults
    rejected: tuple[RejectedReply, ...] = ()
    for shrink in range(SHRINKS + 1):
        asked = await asker.ask(
            Query(
                stage="compose",
                options="rewrite" if document else "analyst",
                prompt=asker.fill(brief.prompt, _brief_values(asker, view, brief, shrink)),
                schema="rewrite" if document else "text",
                read=partial(checked, brief.wants, faults_of),
                otherwise="the method goes on without it",
                if_too_long=None if shrink == SHRINKS else HALVED,
                repeat=brief.sample,
            )
        )
        rejected += asked.rejected
        if not asked.too_long or not view.observations:
            break
    return replace(asked, rejected=rejected).answer(None, f"no usable {brief.wants}", "keep/1")


def _brief_values(asker: Asker, view: StepView, brief: Brief, shrink: int) -> dict[str, str]:
    told = fenced({"skill": view.skill, **brief.texts})
    values = {
        "skill": told.pop("skill"),
        "size": size_of(view.skill, view.max_skill_tokens),
        "task": brief.task,
        "material": "\n\n".join(told.values()),
        "count": str(len(view.observations)),
        "trajectories": "",
    }
    bare = asker.fill(brief.prompt, values)
    fixed = f"{bare.system}\n{bare.user}"
    stage = "rewrite" if brief.wants == "document" else "analyst"
    shown, _ = fitted(asker.options, stage, fixed, view.observations, show_observation, shrink)
    runs = {f"run {n}": one.text for n, one in enumerate(shown, start=1)}
    return {**values, "trajectories": "\n\n".join(fenced(runs).values())}


def _text_faults(text: str) -> list[str]:
    if not text.strip():
        return ["text: empty: it holds no text"]
    if len(text) > _TEXT_CHARS:
        return [f"text: too_large: {len(text)} characters of at most {_TEXT_CHARS}"]
    return []

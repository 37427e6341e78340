"""Compact: the whole document in fewer tokens, checked before it is worth an evaluation.

A text that fails twice is not used (`keep/1`): the document stays as it is. The model sees no
task, so nothing but the document itself can find its way into the shorter one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.proposals import ProposalContext, document_faults
from skilltrail.optimizers.llm.question import Parsed, Query, reasoning_of
from skilltrail.optimizers.llm.shown.past import epoch_state
from skilltrail.optimizers.protocol import Answer, EpochView
from skilltrail.optimizers.screen import Screen
from skilltrail.skill.rewrite import rewrite

Texts = tuple[str | None, str]  # the document (None = as it is), and the reasoning


async def compact(asker: Asker, view: EpochView) -> Answer:
    """Return the shorter document, or None."""
    ground = ProposalContext(
        view.skill,
        view.max_skill_tokens,
        Screen.of(view.skill, (), (), asker.options.setting.domain.agent),
        view.frozen,
    )
    asked = await asker.ask(
        Query(
            stage="compact",
            options="rewrite",
            prompt=asker.fill("compact", epoch_state(view, asker.options, "rewrite")),
            schema="shorter_document",
            read=partial(_read, ground=ground),
            otherwise="the document stays as it is",
        )
    )
    return asked.answer(None, "no usable document", "keep/1")


def _read(found: Mapping[str, Any], ground: ProposalContext) -> Parsed[Texts]:
    text, reasoning = found["document"], reasoning_of(found)
    if text is None:
        return Parsed((None, reasoning))
    faults = document_faults(text, ground)
    shorter = rewrite(ground.skill, text, "0", frozen=ground.frozen).text
    before, after = count_tokens(ground.skill), count_tokens(shorter)
    if not faults and after >= before:
        faults = [f"document: not_shorter: {after} tokens, the document now has {before}"]
    return Parsed(None, tuple(faults)) if faults else Parsed((text, reasoning))

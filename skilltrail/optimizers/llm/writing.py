"""Write: whole texts. The rewritten document, the guidance, the memory, fewer reminders.

Each is checked before it is worth an evaluation: structure and protected regions, size, and the
screen. A text that fails twice is not used: no rewrite, the old guidance and memory stay
(`keep/1`), reminders are joined by rule (`dedupe/1`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.merging import proposals_text
from skilltrail.optimizers.llm.proposals import ProposalContext, document_faults
from skilltrail.optimizers.llm.question import Parsed, Query, QueryResult, reasoning_of
from skilltrail.optimizers.llm.reflecting import HALVED, SHRINKS
from skilltrail.optimizers.llm.shown.past import epoch_state, step_state
from skilltrail.optimizers.llm.shown.runs import fitted, show_pair
from skilltrail.optimizers.protocol import Answer, EpochView, RejectedReply, StepView
from skilltrail.optimizers.screen import Screen, normalized_words
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.document import neutralised
from skilltrail.skill.edit import Edit, EditStatus
from skilltrail.skill.fence import fenced

_MEMORY_CHARS = 6000
_REMINDER_CHARS = 300
_CALLING = ("regressed", "persistent_failure")  # what guidance is asked for
_CATEGORIES = ("regressed", "improved", "persistent_failure", "stable_success", "missing")

Texts = tuple[str, str]  # the text asked for, and the reasoning


async def rewrite(
    asker: Asker, view: StepView, ground: ProposalContext, suggestions: Sequence[Edit]
) -> Answer:
    """Return the whole document that follows the suggestions, or None."""
    if not suggestions:
        return Answer(None, "there are no suggestions", "keep/1")
    values = {
        **step_state(view, asker.options, "rewrite"),
        "count": str(len(suggestions)),
        "proposals": proposals_text(suggestions),
    }
    asked = await asker.ask(
        Query(
            stage="rewrite",
            options="rewrite",
            prompt=asker.fill("rewrite", values),
            schema="rewrite",
            read=partial(checked, "document", partial(document_faults, ground=ground)),
            otherwise="there is no rewrite",
        )
    )
    return asked.answer(None, "no usable document", "keep/1")


async def slow_update(asker: Asker, view: EpochView) -> Answer:
    """Return the text of the slow-update region, or None for no change."""
    needed = any(pair.category in _CALLING for pair in view.pairs)
    if asker.options.guide_ask == "needed" and not needed:
        return Answer(None, "nothing regressed or persists", "keep/1")
    screen = screen_of_epoch(view, asker.options.setting.domain.agent)
    read = partial(_read_guidance, view, screen)
    asked = await _ask_of_epoch(
        asker, view, ("slow_update", "slow", "guidance"), read, "the guidance stays as it is"
    )
    found = asked.answer(None, "no usable guidance", "keep/1")
    same = found.value is not None and found.value.strip() == view.guidance.strip()
    return replace(found, value=None) if same else found


async def meta_skill(asker: Asker, view: EpochView) -> Answer:
    """Return the meta skill that later calls are told."""
    if not view.pairs and not view.history:
        return Answer(view.meta_skill, "there is nothing to learn from", "keep/1")
    screen = screen_of_epoch(view, asker.options.setting.domain.agent)
    asked = await _ask_of_epoch(
        asker,
        view,
        ("meta_skill", "meta", "memory"),
        partial(checked, "memory", partial(_memory_faults, screen=screen)),
        "the memory stays as it is",
    )
    found = asked.answer(view.meta_skill, "no usable memory", "keep/1")
    return found if asked.value is None else replace(found, value=found.value.strip("\n"))


async def consolidate(
    asker: Asker, view: StepView, ground: ProposalContext, notes: Sequence[str]
) -> Answer:
    """Return fewer notes that say the same."""
    if len(notes) < 2:
        return Answer(list(notes), "there is nothing to put together", "dedupe/1")
    values = {
        **step_state(view, asker.options, "merge"),
        "count": str(len(notes)),
        **fenced({"notes": "\n".join(f"- {note}" for note in notes)}),
    }
    asked = await asker.ask(
        Query(
            stage="consolidate",
            options="merge",
            prompt=asker.fill("consolidate", values),
            schema="reminders",
            read=partial(_read_reminders, notes=notes, screen=ground.screen),
            otherwise="reminders of the same sense are joined by rule",
        )
    )
    by_sense = {(normalized_words(note) or (note,)): note for note in reversed(notes)}
    fewer = [note for note in dict.fromkeys(notes) if note in by_sense.values()]
    return asked.answer(fewer, "no usable list from the model", "dedupe/1")


def screen_of_epoch(view: EpochView, agent: tuple[str, ...] = ()) -> Screen:
    """Return the screen of an epoch's end, over the compared items."""
    seen = [o for pair in view.pairs for o in (pair.before, pair.after) if o is not None]
    return Screen.of(view.skill, seen, [pair.item for pair in view.pairs], agent)


async def _ask_of_epoch(
    asker: Asker,
    view: EpochView,
    names: tuple[str, str, str],
    read: Callable[[Mapping[str, Any]], Parsed[Texts]],
    otherwise: str,
) -> QueryResult[Texts]:
    """Ask about the compared tasks, with less of each where the context cannot hold them.

    `names`: prompt, stage (of params and events alike), schema.
    """
    prompt, stage, schema = names
    rejected: tuple[RejectedReply, ...] = ()
    for shrink in range(SHRINKS + 1):
        values = _epoch_values(asker, view, prompt, stage, shrink)
        question = Query(
            stage=stage,
            options=stage,
            prompt=asker.fill(prompt, values),
            schema=schema,
            read=read,
            otherwise=otherwise,
            if_too_long=None if shrink == SHRINKS else HALVED,
        )
        asked = await asker.ask(question)
        rejected += asked.rejected
        if not asked.too_long:
            break
    return replace(asked, rejected=rejected)


def _epoch_values(
    asker: Asker, view: EpochView, prompt: str, stage: str, shrink: int
) -> dict[str, str]:
    counts = Counter(pair.category for pair in view.pairs)
    ordered = sorted(view.pairs, key=lambda pair: _CATEGORIES.index(pair.category))
    values = {
        **epoch_state(view, asker.options, stage),
        "count": str(len(view.pairs)),
        "categories": ", ".join(f"{name} {counts[name]}" for name in _CATEGORIES),
        "pairs": "",
    }
    bare = asker.fill(prompt, values)
    fixed = f"{bare.system}\n{bare.user}"
    shown, _ = fitted(asker.options, stage, fixed, ordered, show_pair, shrink)
    texts = {f"task {n}": one.text for n, one in enumerate(shown, start=1)}
    pairs = "\n\n".join(fenced(texts).values()) if texts else "(none was compared)"
    return {**values, "pairs": pairs}


def checked(
    name: str, faults_of: Callable[[str], list[str]], found: Mapping[str, Any]
) -> Parsed[Texts]:
    """Return the text `name` of a reply with its reasoning, or what is wrong with it."""
    text = found[name]
    faults = faults_of(text)
    if faults:
        return Parsed(None, tuple(faults))
    return Parsed((text, reasoning_of(found)))


def _read_guidance(view: EpochView, screen: Screen, found: Mapping[str, Any]) -> Parsed[Texts]:
    if found["guidance"] is None or found["guidance"].strip() == view.guidance.strip():
        return Parsed((view.guidance, reasoning_of(found)))
    return checked("guidance", partial(_guidance_faults, view=view, screen=screen), found)


def _guidance_faults(text: str, view: EpochView, screen: Screen) -> list[str]:
    if neutralised(text) != text:
        return ["guidance: marker: it may not hold a region marker"]
    edit = Edit("write_region", target="slow_update", content=text, kind="guidance")
    candidate = apply_edits(view.skill, [edit], owner="slow_update")
    result = candidate.results[0]
    if result.status is not EditStatus.APPLIED:
        return [f"guidance: {result.status.value}: {result.detail}"]
    faults = [f"guidance: {fault}" for fault in candidate.faults]
    size, limit = count_tokens(candidate.text), view.max_skill_tokens
    if limit is not None and size > limit and size >= count_tokens(view.skill):
        faults.append(f"guidance: too_large: {size} tokens of at most {limit}")
    refusal = screen.text_refusal(text)
    return faults if refusal is None else [*faults, f"guidance: {refusal}"]


def _memory_faults(text: str, screen: Screen) -> list[str]:
    if not text.strip():
        return ["memory: empty: it holds no text"]
    if len(text) > _MEMORY_CHARS:
        return [f"memory: too_large: {len(text)} characters of at most {_MEMORY_CHARS}"]
    refusal = screen.text_refusal(text)
    return [] if refusal is None else [f"memory: {refusal}"]


def _read_reminders(
    found: Mapping[str, Any], notes: Sequence[str], screen: Screen
) -> Parsed[tuple[list[str], str]]:
    reminders = list(dict.fromkeys(" ".join(text.split()) for text in found["reminders"]))
    if not reminders or len(reminders) >= len(notes):
        return Parsed(None, (f"count: return 1 to {len(notes) - 1}, found {len(reminders)}",))
    for text in reminders:
        if not text or len(text) > _REMINDER_CHARS or neutralised(text) != text:
            most = f"1 to {_REMINDER_CHARS} characters without a marker"
            return Parsed(None, (f"bad_note: a reminder is {most}",))
        refusal = screen.text_refusal(text)
        if refusal is not None:
            return Parsed(None, (f"reminders: {refusal}",))
    return Parsed((reminders, reasoning_of(found)))

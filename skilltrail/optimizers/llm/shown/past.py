"""The state of a run in words: budget, size, what earlier steps tried, what is covered. Pure.

Nothing of a selection item is here but counts: how many of a task type a candidate won or lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.shown.coverage import coverage_table
from skilltrail.optimizers.llm.shown.folder import with_folder
from skilltrail.optimizers.protocol import EpochView, StepRecord, StepView
from skilltrail.optimizers.screen import normalized_words
from skilltrail.skill.document import split_lines, unified_diff
from skilltrail.skill.edit import Edit, EditStatus
from skilltrail.skill.fence import clip, fenced
from skilltrail.skill.folder import MAIN

NOT_TOLD = "(not told to this stage: params)"
_EDIT_CHARS = 400
_OLD_EDIT_CHARS = 120  # of an edit of an earlier epoch
_PAST_CHARS = 8000
_PAST_SHARE = 8  # of the context, a token taken for three characters


def step_state(view: StepView, options: LlmOptions, stage: str) -> dict[str, str]:
    """Return the values of the prompt part `_state` for a question of a stage (`STAGES`)."""
    texts = {
        "skill": view.skill,
        "past": _past(view, options, stage),
        "coverage": coverage_table(view.pool, view.skill, view.success_threshold),
        "memory": _memory(view, options, stage),
    }
    told = fenced(texts)
    seen = {**view.pool, **{one.item.id: one for one in view.observations}}.values()
    return {
        "step": str(view.step),
        "epoch": str(view.epoch),
        "budget": "no cap" if view.budget is None else str(view.budget),
        "size": size_of(view.skill, view.max_skill_tokens),
        **told,
        "skill": with_folder(
            view.skill,
            told["skill"],
            seen,
            scripts=view.scripts and view.update_mode == "patch",
            references=view.references,
            whole=view.update_mode != "patch",
        ),
    }


def epoch_state(view: EpochView, options: LlmOptions, stage: str) -> dict[str, str]:
    """Return the values of the prompt part `_epoch_state`, and the guidance."""
    most = _past_chars(options.context_tokens)
    changes = unified_diff(view.previous_skill, view.skill)
    if view.is_stalled:
        changes = "(nothing: no change was accepted in this epoch)"
    texts = {
        "skill": view.skill,
        "changes": clip(changes, most)[0],
        "past": _past(view, options, stage),
        "coverage": coverage_table(view.pool, view.skill, view.success_threshold),
        "memory": _memory(view, options, stage),
        "guidance": view.guidance,
    }
    told = fenced(texts)
    return {
        "epoch": str(view.epoch),
        "size": size_of(view.skill, view.max_skill_tokens),
        "fate": view.guidance_result if view.guidance_result else "none yet",
        **told,
        "skill": with_folder(view.skill, told["skill"], view.pool.values(), scripts=False),
    }


def size_of(skill: str, limit: int | None) -> str:
    """Return the size of a document in words, with the limit where there is one."""
    size = f"{count_tokens(skill)} tokens"
    if limit is None:
        return f"{size}; there is no limit, but short documents win ties"
    return f"{size} of at most {limit}; a larger document is refused"


def _past(view: StepView | EpochView, options: LlmOptions, stage: str) -> str:
    """Return the earlier steps that params let this stage know, as long as the context lets."""
    if stage not in options.past_to:
        return NOT_TOLD
    records = [r for r in view.history if options.past == "run" or r.epoch == view.epoch]
    return past_steps(records, view.epoch, _past_chars(options.context_tokens))


def _memory(view: StepView | EpochView, options: LlmOptions, stage: str) -> str:
    if stage not in options.memory_to:
        return NOT_TOLD
    return clip(view.meta_skill, _past_chars(options.context_tokens))[0]


def _past_chars(context_tokens: int) -> int:
    return min(_PAST_CHARS, 3 * context_tokens // _PAST_SHARE)


def past_steps(records: Sequence[StepRecord], epoch: int, most: int = _PAST_CHARS) -> str:
    """Return the steps of the run as text: those of `epoch` whole, the oldest cut first.

    `most` characters at the most, about.
    """
    texts, tried = [], dict[tuple[Any, ...], int]()
    for record in records:
        chars = _EDIT_CHARS if record.epoch == epoch else _OLD_EDIT_CHARS
        texts.append(_step(record, tried, chars))
        for edit in record.edits:
            tried.setdefault(sense_of(edit), record.step)
    kept: list[str] = []
    room = most
    for text in reversed(texts):
        room -= len(text)
        if room < 0 and kept:
            kept.append(f"({len(texts) - len(kept)} earlier steps are not shown)")
            break
        kept.append(clip(text, most)[0])
    return "\n".join(reversed(kept))


def _step(record: StepRecord, tried: Mapping[tuple[Any, ...], int], chars: int) -> str:
    """Return one step; `tried` says which step was the first to select an edit."""
    means = _means(record.before, record.after)
    lines = [f"Step {record.step} (epoch {record.epoch}): {record.verdict}{means}"]
    if record.won or record.lost:
        lines.append(
            f"  unseen tasks: {_moved('won', record.won)}; {_moved('lost', record.lost)}"
        )
    if record.failure_types:
        counts = _counts(record.failure_types)
        lines.append(f"  runs: {record.failed} of {record.runs} failed: {counts}")
    results = {result.edit: result for result in record.results}
    for edit in record.edits:
        first = tried.get(sense_of(edit))
        news = "" if first is None else f"as in step {first}: "
        if first is None and record.verdict in ("rejected", "indecisive") and tried:
            news = "new: "
        result = results.get(edit.id)
        fate = ""
        if result is not None and result.status is not EditStatus.APPLIED:
            fate = f" [{result.status.value}: {clip(result.detail, chars)[0]}]"
        lines.append(f"  - {news}{describe(edit, chars)}{fate}")
    return "\n".join(lines)


def sense_of(edit: Edit) -> tuple[Any, ...]:
    """Return what an edit does and says, apart from marks, case and endings of words."""
    lines = split_lines(edit.content)
    content = tuple(s if (s := normalized_words(line)) else line.strip() for line in lines)
    where = () if edit.file == MAIN else (edit.file,)
    return edit.op, edit.target, edit.section, content, *where


def describe(edit: Edit, chars: int = _EDIT_CHARS) -> str:
    """Return an edit in one line, each of its texts at most `chars` long."""
    parts = [edit.op if edit.kind != "example" else f"{edit.op} example"]
    if edit.file != MAIN:
        parts.append(f"of {edit.file}")
    if edit.section is not None:
        parts.append(f"in {_one_line(edit.section, chars)}")
    if edit.target:
        parts.append(f"at {_one_line(edit.target, chars)}")
    if edit.content:
        parts.append(f"text {_one_line(edit.content, chars)}")
    return " ".join(parts)


def _one_line(text: str, chars: int) -> str:
    return '"' + clip(text, chars)[0].replace("\n", "\\n") + '"'


def _means(before: float | None, after: float | None) -> str:
    if before is None:
        return ""
    if after is None:
        return f" (score before {before:.4g}; stopped once it could not win)"
    return f" (score {before:.4g} -> {after:.4g})"


def _moved(word: str, counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    types = f" ({_counts(counts)})" if total and set(counts) != {"other"} else ""
    return f"{total} {word}{types}"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)

"""The state of a run in words: budget, size, what earlier steps tried. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.protocol import EpochView, StepRecord, StepView
from skilltrail.skill.diffs import unified_diff
from skilltrail.skill.edit import Edit, EditStatus
from skilltrail.skill.fence import clip, fenced

_EDIT_CHARS = 400
_PAST_CHARS = 8000
_CHANGES_CHARS = 8000


def step_state(view: StepView) -> dict[str, str]:
    """Return the values of the prompt part `_state`."""
    past = [record for record in view.history if record.epoch == view.epoch]
    texts = {"skill": view.skill, "past": past_steps(past), "memory": view.meta_skill}
    return {
        "step": str(view.step),
        "epoch": str(view.epoch),
        "budget": "no cap" if view.budget is None else str(view.budget),
        "size": size_of(view.skill, view.max_skill_tokens),
        **fenced(texts),
    }


def epoch_state(view: EpochView) -> dict[str, str]:
    """Return the values of the prompt part `_epoch_state`, and the guidance."""
    past = [record for record in view.history if record.epoch == view.epoch]
    changes = unified_diff(view.previous_skill, view.skill)
    texts = {
        "skill": view.skill,
        "changes": clip(changes, _CHANGES_CHARS)[0],
        "past": past_steps(past),
        "memory": view.meta_skill,
        "guidance": view.guidance,
    }
    return {
        "epoch": str(view.epoch),
        "size": size_of(view.skill, view.max_skill_tokens),
        "fate": view.guidance_fate if view.guidance_fate else "none yet",
        **fenced(texts),
    }


def size_of(skill: str, limit: int | None) -> str:
    """Return the size of a document in words, with the limit where there is one."""
    size = f"{count_tokens(skill)} tokens"
    if limit is None:
        return f"{size}; there is no limit, but short documents win ties"
    return f"{size} of at most {limit}; a larger document is refused"


def past_steps(records: Sequence[StepRecord]) -> str:
    """Return the steps as text, the newest whole, the oldest cut first."""
    texts = [_step(record) for record in records]
    kept: list[str] = []
    room = _PAST_CHARS
    for text in reversed(texts):
        room -= len(text)
        if room < 0 and kept:
            kept.append(f"({len(texts) - len(kept)} earlier steps are not shown)")
            break
        kept.append(clip(text, _PAST_CHARS)[0])
    return "\n".join(reversed(kept))


def _step(record: StepRecord) -> str:
    head = f"Step {record.step}: {record.verdict}{_means(record.before, record.after)}"
    lines = [head]
    if record.failure_types:
        lines.append(f"  failures seen: {_counts(record.failure_types)}")
    results = {result.edit: result for result in record.results}
    for edit in record.edits:
        result = results.get(edit.id)
        fate = ""
        if result is not None and result.status is not EditStatus.APPLIED:
            fate = f" [{result.status.value}: {clip(result.detail, _EDIT_CHARS)[0]}]"
        lines.append(f"  - {describe(edit)}{fate}")
    return "\n".join(lines)


def describe(edit: Edit) -> str:
    """Return an edit in one line, each of its texts at most `_EDIT_CHARS` long."""
    parts = [edit.op]
    if edit.section is not None:
        parts.append(f"in {_one_line(edit.section)}")
    if edit.target:
        parts.append(f"at {_one_line(edit.target)}")
    if edit.content:
        parts.append(f"text {_one_line(edit.content)}")
    return " ".join(parts)


def _one_line(text: str) -> str:
    return '"' + clip(text, _EDIT_CHARS)[0].replace("\n", "\\n") + '"'


def _means(before: float | None, after: float | None) -> str:
    if before is None:
        return ""
    if after is None:
        return f" (score before {before:.4g}; stopped once it could not win)"
    return f" (score {before:.4g} -> {after:.4g})"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)

"""What analysts see of a rollout: a text of bounded length, and a record of what was cut.

Always shown: item id, task type, scores with the scorer's reason, how it ended, each turn's
reply and tool calls. `reflect.show` adds

    prompt      what the agent was sent (else the item's input stands in its place)
    trace       what the environment answered, an agent program's own trace, and what the
                rollout left behind (`Environment.outcome`)
    preview     the environment's preview of the item's files
    reference   the expected answer

The length goes to the turns (`shown.turns`); what leads and what ends the text is bounded
apart, so that scores and reference survive however long a run was. Secrets are taken out before
anything is cut, and characters that nobody sees are spelled out. Neither the scorer's source
nor an item of another split is ever here.

Runs are made to fit a question: whole where they fit, else cut to one length.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from skilltrail.core.hidden import spelled_block
from skilltrail.core.item import Item
from skilltrail.core.redact import Redactor
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.shown.layout import laid_out
from skilltrail.optimizers.llm.shown.room import LEAST_CHARS, level, room_chars
from skilltrail.optimizers.llm.shown.turns import (
    LinesTold,
    Spoken,
    actions_of,
    squeezed,
    turns_of,
    turns_text,
)
from skilltrail.optimizers.protocol import Observation, Pair
from skilltrail.skill.fence import clip

_SIDE_SHARE = 6  # reference, preview and answer get a sixth of the length each
_LEAST_CHARS = 200
_MOST_CHARS = 400_000  # of one text, before secrets are looked for; the far middle goes first
_REDACT = Redactor()


@dataclass(frozen=True)
class Shown:
    """A rendered trajectory and how many characters of it were cut."""

    text: str
    cut: int


def show_observation(
    seen: Observation, show: Sequence[str], limit: int | None, note: str = ""
) -> Shown:
    """Return one train rollout as text of at most about `limit` characters; None = whole.

    `note` is a remark of ours that follows its scores.
    """
    told = LinesTold()
    turns = _turns(seen, show, told)
    side = None if limit is None else max(limit // _SIDE_SHARE, _LEAST_CHARS)
    head, head_cut = _bounded(_head(seen), side)
    head = f"{head}\nnote: {note}" if note else head
    ends = [_bounded(part, side) for part in _ends(seen, show)]
    rest = None
    if limit is not None:
        rest = max(limit - len(head) - sum(len(text) for text, _ in ends), _LEAST_CHARS)
    body, body_cut = turns_text(turns, rest)
    text = "\n".join(part for part in (head, body, *(text for text, _ in ends)) if part)
    return Shown(text, head_cut + body_cut + sum(cut for _, cut in ends))


def show_pair(pair: Pair, show: Sequence[str], limit: int | None) -> Shown:
    """Return one task under an earlier skill and under that of now.

    A stable success is told in a line; of any other pair both trajectories are shown.
    """
    name = f"item {json.dumps(pair.item.id, ensure_ascii=False)}"
    head = f"{name}, {pair.category}"
    if pair.item.task_type is not None:
        head += f", task type {pair.item.task_type}"
    if pair.category == "stable_success":
        return Shown(head, 0)
    sides = {"earlier document": pair.before, "now": pair.after}
    seen = [side for side in sides.values() if side is not None]
    part = None if limit is None else max(limit // 3, _LEAST_CHARS)
    told, texts, cut = LinesTold(), [head], 0
    if "prompt" not in show:
        texts.append(f"task: {_task(pair.item)}")
    for label, side in sides.items():
        if side is None:
            texts.append(f"{label}: not measured")
            continue
        turns = _turns(side, show, told, f"{label}, ")
        body, body_cut = turns_text(turns, part)
        answer, answer_cut = _bounded(_answer(side.trajectory), part)
        ended = side.trajectory.ending
        how = "" if ended == "answered" else f", ended: {ended}"
        texts += [f"{label}: {_scores(side.score)}{how}", body, f"answer ({label}): {answer}"]
        cut += body_cut + answer_cut
    if "reference" in show and seen and seen[-1].reference is not None:
        reference, reference_cut = _bounded(_clean(seen[-1].reference), part)
        texts.append(f"expected answer: {reference}")
        cut += reference_cut
    return Shown("\n".join(text for text in texts if text), cut)


def _turns(
    seen: Observation, show: Sequence[str], told: LinesTold, label: str = ""
) -> list[list[Spoken]]:
    turns = turns_of(seen.trajectory, show, _clean, told, label)
    if "prompt" not in show and not label:
        turns.insert(0, [Spoken("task:", _task(seen.item))])
    trace = _extra(seen.trajectory, seen.item, "trace")
    if "trace" in show and trace is not None:
        turns += actions_of(trace, _clean, told)
    return turns


def _head(seen: Observation) -> str:
    lines = [f"item {json.dumps(seen.item.id, ensure_ascii=False)}"]
    if seen.item.task_type is not None:
        lines.append(f"task type: {seen.item.task_type}")
    lines.append(_scores(seen.score))
    if seen.trajectory.ending != "answered":
        lines.append(f"ended: {seen.trajectory.ending}")
    if len(seen.trajectory.turns) > 1:
        lines.append(f"turns: {len(seen.trajectory.turns)}")
    return "\n".join(lines)


def _scores(score: Score) -> str:
    if score.hard is None or score.soft is None:
        return "not scored"
    reason = f", scorer says: {score.reason}" if score.reason else ""
    return f"hard {score.hard:.4g}, soft {score.soft:.4g}{reason}"


def _ends(seen: Observation, show: Sequence[str]) -> list[str]:
    parts = []
    preview = _extra(seen.trajectory, seen.item, "preview")
    if "preview" in show and preview is not None:
        parts.append(f"preview:\n{_clean(laid_out(preview))}")
    parts.append(f"final answer: {_answer(seen.trajectory)}")
    if "trace" in show and seen.outcome is not None:
        parts.append(f"what the run left: {_clean(seen.outcome)}")
    if seen.feedback is not None:
        parts.append(f"feedback: {_clean(seen.feedback)}")
    if "reference" in show and seen.reference is not None:
        parts.append(f"expected answer: {_clean(seen.reference)}")
    return parts


def _answer(trajectory: Trajectory) -> str:
    """Return the final answer; a long one that the last reply holds is not told again."""
    answer = _clean(trajectory.answer)
    last = trajectory.turns[-1] if trajectory.turns else None
    if last is not None and len(answer) > _LEAST_CHARS and answer.strip() in last.reply:
        return "as in the last reply"
    return answer if answer.strip() else "(none)"


def _extra(trajectory: Trajectory, item: Item, name: str) -> object:
    for place in (trajectory.extra, item.extra):
        if name in place:
            return place[name]
    return None


def _task(item: Item) -> str:
    return _clean(laid_out(dict(item.input)))


def _bounded(text: str, limit: int | None) -> tuple[str, int]:
    return (text, 0) if limit is None else squeezed(text, limit)


def _clean(text: str) -> str:
    return spelled_block(_REDACT.text(clip(text, _MOST_CHARS)[0]))


T = TypeVar("T")
_FENCE_CHARS = 80  # of the lines around a run
Show = Callable[[T, Sequence[str], int | None], Shown]


def fitted(
    options: LlmOptions, stage: str, fixed: str, runs: Sequence[T], show: Show[T], shrink: int
) -> tuple[list[Shown], int | None]:
    """Return the runs as text, and the length that longer ones were cut to (None = none was).

    Args:
        stage: whose reply limit counts.
        fixed: what the question says besides.
        shrink: how often a model refused the question as too long: each time half is left.
    """
    room = room_chars(options.context_tokens, options.max_tokens_of(stage), fixed)
    whole = [show(run, options.show, None) for run in runs]
    lengths = [len(one.text) + _FENCE_CHARS for one in whole]
    limit = level(lengths, room)
    if options.trajectory_chars is not None:
        own = options.trajectory_chars
        limit = own if limit is None else min(limit, own)
    if shrink:
        longest = max(lengths, default=LEAST_CHARS)
        limit = max(LEAST_CHARS, (longest if limit is None else limit) >> shrink)
    if limit is None or max(lengths, default=0) <= limit:
        return whole, None
    return [
        one if len(one.text) <= limit else show(run, options.show, limit)
        for one, run in zip(whole, runs, strict=True)
    ], limit

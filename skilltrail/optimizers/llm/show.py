"""What analysts see of a trajectory: a text of bounded length, and a record of what was cut.

Always shown: item id, task type, scores with the scorer's reason, how it ended, each turn's
reply and tool calls. `reflect.show` adds

    prompt      what the agent was sent (else the item's input stands in its place)
    trace       what the environment answered, and an agent program's own trace
    preview     the environment's preview of the item's files
    reference   the expected answer

The length goes to the turns, head and tail; what leads and what ends the text is bounded apart,
so that scores and reference survive however long a run was. Secrets are taken out before
anything is cut. Neither the scorer's source nor an item of another split is ever here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.redact import Redactor
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.optimizers.protocol import Observation, Pair
from skilltrail.skill.fence import clip

_SIDE_SHARE = 6  # reference, preview and answer get a sixth of the length each
_LEAST_CHARS = 200
_NEAR = 8
_REDACT = Redactor()


@dataclass(frozen=True)
class Shown:
    """A rendered trajectory and how many characters of it were cut."""

    text: str
    cut: int


def show_observation(seen: Observation, show: Sequence[str], limit: int) -> Shown:
    """Return one train rollout as text of at most about `limit` characters."""
    side = max(limit // _SIDE_SHARE, _LEAST_CHARS)
    head, head_cut = clip(_head(seen), side)
    ends = [clip(part, side) for part in _ends(seen, show)]
    rest = limit - len(head) - sum(len(text) for text, _ in ends)
    body, body_cut = _clipped(_body(seen, show), max(rest, _LEAST_CHARS))
    text = "\n".join([head, body, *(text for text, _ in ends)])
    return Shown(text, head_cut + body_cut + sum(cut for _, cut in ends))


def show_pair(pair: Pair, show: Sequence[str], limit: int) -> Shown:
    """Return one task under an earlier skill and under that of now."""
    sides = {"earlier document": pair.before, "now": pair.after}
    seen = [side for side in sides.values() if side is not None]
    part = max(limit // 4, _LEAST_CHARS)
    task, task_cut = clip(_task(pair.item), part)
    texts, cut = [f"item {json.dumps(pair.item.id)}, {pair.category}\ntask: {task}"], task_cut
    for name, side in sides.items():
        if side is None:
            texts.append(f"{name}: not measured")
            continue
        answer, answer_cut = clip(_REDACT.text(side.trajectory.answer), part)
        texts.append(f"{name}: {_scores(side.score)}\nanswer ({name}): {answer}")
        cut += answer_cut
    if "reference" in show and seen and seen[0].reference is not None:
        reference, reference_cut = clip(_REDACT.text(seen[0].reference), part)
        texts.append(f"expected answer: {reference}")
        cut += reference_cut
    return Shown("\n".join(texts), cut)


def _head(seen: Observation) -> str:
    lines = [f"item {json.dumps(seen.item.id, ensure_ascii=False)}"]
    if seen.item.task_type is not None:
        lines.append(f"task type: {seen.item.task_type}")
    lines.append(_scores(seen.score))
    if seen.trajectory.ending != "answered":
        lines.append(f"ended: {seen.trajectory.ending}")
    return "\n".join(lines)


def _scores(score: Score) -> str:
    if score.hard is None or score.soft is None:
        return "not scored"
    reason = f", scorer says: {score.reason}" if score.reason else ""
    return f"hard {score.hard:.4g}, soft {score.soft:.4g}{reason}"


def _body(seen: Observation, show: Sequence[str]) -> str:
    parts = [] if "prompt" in show else [f"task: {_task(seen.item)}"]
    for number, turn in enumerate(seen.trajectory.turns, start=1):
        parts += _turn(number, turn, show)
    return "\n".join(parts)


def _clipped(text: str, limit: int) -> tuple[str, int]:
    """Return `text` without secrets, then clipped.

    Of a very long text the far middle, which no clip leaves, goes first: it need not be read.
    """
    near, far_cut = clip(text, _NEAR * limit)
    shown, cut = clip(_REDACT.text(near), limit)
    return shown, cut + far_cut


def _turn(number: int, turn: Turn, show: Sequence[str]) -> list[str]:
    parts = []
    if "prompt" in show:
        parts.append(f"[turn {number}] sent to the agent:\n{_sent(turn.sent)}")
    parts.append(f"[turn {number}] the agent's reply ({turn.finish}):\n{turn.reply}")
    for call in turn.tool_calls:
        named = {key: call[key] for key in ("name", "arguments") if key in call}
        parts.append(f"[turn {number}] tool call: {_json(named)}")
    if "trace" in show and turn.observation is not None:
        parts.append(f"[turn {number}] the environment answered:\n{turn.observation}")
    return parts


def _ends(seen: Observation, show: Sequence[str]) -> list[str]:
    trajectory = seen.trajectory
    parts = []
    for name in ("trace", "preview"):
        extra = _extra(trajectory, seen.item, name)
        if name in show and extra is not None:
            parts.append(f"{name}:\n{extra}")
    parts.append(f"final answer: {trajectory.answer}")
    if seen.feedback is not None:
        parts.append(f"feedback: {seen.feedback}")
    if "reference" in show and seen.reference is not None:
        parts.append(f"expected answer: {seen.reference}")
    return [_REDACT.text(part) for part in parts]


def _extra(trajectory: Trajectory, item: Item, name: str) -> str | None:
    for place in (trajectory.extra, item.extra):
        if name in place:
            return place[name] if isinstance(place[name], str) else _json(place[name])
    return None


def _task(item: Item) -> str:
    return _REDACT.text(_json(item.input))


def _sent(sent: Any) -> str:
    if isinstance(sent, str):
        return sent
    if isinstance(sent, Sequence):
        return "\n".join(_message(message) for message in sent)
    return _json(sent)


def _message(message: Any) -> str:
    if not isinstance(message, Mapping):
        return _json(message)
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        parts = "\n".join(parts)
    text = parts if isinstance(parts, str) else _json(parts)
    return f"{message.get('role', 'message')}: {text}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)

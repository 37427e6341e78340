"""A run's rollouts as `.eval` logs, which `inspect view` and `inspect_ai.log` read.

One log for each `rollouts.scored` event. Inspect's logs hold times and our events hold none, so
every log bears one fixed date; nothing else in them varies either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    write_eval_log,
)
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
)
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

from skilltrail.core.item import Item
from skilltrail.core.score import Outcome
from skilltrail.core.targets import case_of
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.protocol import Environment
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.outcomes import RolloutsScored, RunStarted, TestOpened
from skilltrail.history.log.types.parts import RowScored

_DATE = "2000-01-01T00:00:00+00:00"
_SCORES = ("hard", "soft")


def write_eval_logs(
    folder: Path,
    events: Sequence[Event],
    items: Mapping[str, Item],
    env: Environment,
    trajectory_of: Callable[[str], Trajectory | None],
) -> Iterator[Path]:
    """Write one log per scored set of rollouts and yield each path.

    Args:
        items: by id, with what was asked and what was expected.
        trajectory_of: the recorded trajectory of a fact key; None where it is not here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    began = events[0].said
    assert isinstance(began, (RunStarted, TestOpened))
    for event in events:
        if event.type != "rollouts.scored":
            continue
        said = event.read(RolloutsScored)
        log = EvalLog(
            status="success",
            eval=_spec(event.id, said, env, began.target),
            results=_results(said.items),
            samples=[_sample(row, items, env, trajectory_of) for row in said.items],
        )
        path = folder / f"{event.seq:06d}-{said.purpose}.eval"
        write_eval_log(log, str(path))
        yield path


def _spec(
    id: str, said: RolloutsScored, env: Environment, target: Mapping[str, Any]
) -> EvalSpec:
    ids = list(dict.fromkeys(case_of(row) for row in said.items))
    about = {"event": id, "skill": said.skill, "target": dict(target)}
    several = ", ".join(target.get("targets", ()))
    named = target.get("model") or target.get("gguf", several)
    return EvalSpec(
        eval_id=id,
        run_id=id,
        task_id=id,
        created=_DATE,
        task=f"{env.name}/{said.purpose}",
        dataset=EvalDataset(name=env.name, samples=len(ids), sample_ids=ids),
        model=f"{target.get('backend', 'several' if several else 'unknown')}/{named}",
        config=EvalConfig(),
        metadata=about,
    )


def _results(rows: Sequence[RowScored]) -> EvalResults:
    scored = [row for row in rows if row.outcome is Outcome.SCORED]
    scores = [
        EvalScore(name=name, scorer=name, metrics={"mean": _mean(scored, name)})
        for name in _SCORES
        if scored
    ]
    return EvalResults(total_samples=len(rows), completed_samples=len(scored), scores=scores)


def _mean(rows: Sequence[RowScored], name: str) -> EvalMetric:
    return EvalMetric(name="mean", value=sum(getattr(row, name) for row in rows) / len(rows))


def _sample(
    row: RowScored,
    items: Mapping[str, Item],
    env: Environment,
    trajectory_of: Callable[[str], Trajectory | None],
) -> EvalSample:
    item = items.get(row.item)
    asked = "" if item is None else env.asked(item)
    target = "" if item is None else env.reference(item) or ""
    epoch, key = 1 if row.repeat is None else row.repeat + 1, row.key
    found = None if key is None else trajectory_of(key)
    about = {"key": key, "reason": row.reason}
    sample = partial(
        EvalSample, id=case_of(row), epoch=epoch, input=asked, target=target, metadata=about
    )
    if row.outcome is not Outcome.SCORED:
        return sample(error=EvalError(message=row.reason, traceback="", traceback_ansi=""))
    answer = None if found is None else found.answer
    scores = {
        name: Score(value=getattr(row, name), answer=answer, explanation=row.reason)
        for name in _SCORES
    }
    output = ModelOutput(model=found.model if found else "", completion=answer or "")
    messages = [] if found is None else list(_messages(found.turns, str(key)))
    return sample(messages=messages, output=output, scores=scores)


def _messages(turns: Sequence[Turn], key: str) -> Iterator[ChatMessage]:
    """Yield a conversation; each message has an id of its own, the same at every export."""
    number = 0

    def next_id() -> str:
        nonlocal number
        number += 1
        return f"{key[:16]}-{number}"

    for turn in turns:
        sent = [turn.sent] if isinstance(turn.sent, str) else turn.sent
        for one in sent:
            yield _sent(one, next_id())
        calls = [
            ToolCall(str(c["id"]), c["name"], dict(c["arguments"])) for c in turn.tool_calls
        ]
        yield ChatMessageAssistant(content=turn.reply, tool_calls=calls or None, id=next_id())
        if turn.observation is not None:
            yield ChatMessageUser(content=turn.observation, id=next_id())


def _sent(message: Any, id: str) -> ChatMessage:
    if isinstance(message, str):
        return ChatMessageUser(content=message, id=id)
    parts = message.get("parts", ())
    text = "\n".join(p if isinstance(p, str) else f"[image {p['image']}]" for p in parts)
    if message.get("role") == "tool":
        return ChatMessageTool(content=text, tool_call_id=message.get("tool_call_id"), id=id)
    if message.get("role") == "assistant":
        return ChatMessageAssistant(content=text, id=id)
    return ChatMessageUser(content=text, id=id)

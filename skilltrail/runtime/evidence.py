"""Evidence for audits: trajectories from the store, expected answers from the train split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skilltrail.core.canon import texts_in
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.history.ask.audit_record import Seen
from skilltrail.store.protocol import Store


class StoredEvidence:
    """Looks rollouts up in a store; only train items' answers are ever shown."""

    def __init__(self, store: Store | None, env: Environment, train: list[Item]) -> None:
        self._store = store
        self._env = env
        self._train = {item.id: item for item in train}

    def look_up(self, item: str, key: str | None) -> Seen:
        """Return the last turn's prompt and reply, and the expected answer."""
        known = self._train.get(item)
        expected = None if known is None else self._env.reference(known)
        fact = None if key is None or self._store is None else self._store.get(key)
        if fact is None:
            return Seen(expected=expected)
        trajectory = Trajectory.from_json(fact["trajectory"])
        if not trajectory.turns:
            return Seen(reply=f"({trajectory.ending})", expected=expected)
        turn = trajectory.turns[-1]
        return Seen(prompt=_last_text(turn.sent), reply=turn.reply, expected=expected)

    def texts(self, item: str, key: str | None) -> Iterator[tuple[str, str]]:
        """Yield the item's text, then what the rollout's turns held, in order."""
        known = self._train.get(item)
        if known is not None:
            yield "the item", "\n".join(texts_in([known.input, known.extra]))
        fact = None if key is None or self._store is None else self._store.get(key)
        if fact is None:
            return
        trajectory = Trajectory.from_json(fact["trajectory"])
        for number, turn in enumerate(trajectory.turns, start=1):
            yield f"prompt of turn {number}", "\n".join(texts_in(turn.sent))
            yield f"reply of turn {number}", turn.reply
            if turn.observation is not None:
                yield f"tool answer of turn {number}", turn.observation
        yield "trace", "\n".join(texts_in(trajectory.extra))


def _last_text(sent: Any) -> str:
    """Return the text that was sent last: a prompt, or the last message's parts."""
    if isinstance(sent, str):
        return sent
    if isinstance(sent, list) and sent and isinstance(sent[-1], dict):
        parts = sent[-1].get("parts", sent[-1].get("content", ""))
        texts = parts if isinstance(parts, list) else [parts]
        return "\n".join(part for part in texts if isinstance(part, str))
    return ""

"""Rollouts in columns, and the trajectories behind them.

A score is written in thousandths, -1 where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.targets import case_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import JUDGED
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.history.log.types.parts import Purpose, RowScored
from skilltrail.report.book.facts import RunFacts
from skilltrail.report.book.packing import DIGEST_CHARS, Items
from skilltrail.report.book.strings import Strings
from skilltrail.report.book.versions import runs_of

NONE = -1


class RolloutBook:
    """Collects scored rollouts; a trajectory that several events name is stored once."""

    def __init__(self, strings: Strings, items: Items, facts: RunFacts) -> None:
        self._strings, self._items, self._facts = strings, items, facts
        self._numbers: dict[str, int] = {}
        self.trajectories: list[list[Any]] = []

    def scored(self, event: Event) -> dict[str, Any]:
        """Return one `rollouts.scored` event, its rows as columns."""
        said = event.read(RolloutsScored)
        head = {name: getattr(said, name) for name in ("purpose", "epoch", "step", "split")}
        rows = said.items
        return {name: value for name, value in head.items() if value is not None} | {
            "seq": event.seq,
            "skill": said.skill[:DIGEST_CHARS],
            "asked": said.coverage.asked,
            "scored": said.coverage.scored,
            "mean_hard": said.mean_hard,
            "mean_soft": said.mean_soft,
            "item": [self._items.number(named_in(row, said.purpose)) for row in rows],
            "hard": [thousandths(row.hard) for row in rows],
            "soft": [thousandths(row.soft) for row in rows],
            "reason": [self._strings.add(row.reason) for row in rows],
            "trajectory": runs_of([self._trajectory(row.key) for row in rows]),
        }

    def _trajectory(self, key: str | None) -> int:
        if key is None:
            return NONE
        number = self._numbers.get(key)
        if number is None:
            found = self._facts.trajectory(key)
            if found is None:
                return NONE
            number = self._numbers[key] = len(self.trajectories)
            self.trajectories.append(self._packed(found))
        return number

    def _packed(self, trajectory: Mapping[str, Any]) -> list[Any]:
        """Return `[sent, reply]` of one plain turn, `[answer, ending, turns]` of any other.

        A plain turn stopped by itself, and its reply without blanks around it is the answer.
        """
        add = self._strings.add
        if _is_plain(trajectory):
            [turn] = trajectory["turns"]
            return [add(sent(turn["sent"])), add(turn["reply"])]
        turns = [
            [add(sent(turn["sent"])), add(turn["reply"]), turn["finish"]]
            + ([] if turn["observation"] is None else [add(turn["observation"])])
            for turn in trajectory["turns"]
        ]
        return [add(trajectory["answer"]), trajectory["ending"], turns]


def named_in(row: RowScored, purpose: Purpose) -> str:
    """Return what a row is of: where every item is done on several targets, its case."""
    return case_of(row) if purpose in (*JUDGED, Purpose.TEST) else row.item


def _is_plain(trajectory: Mapping[str, Any]) -> bool:
    if len(trajectory["turns"]) != 1 or trajectory["ending"] != "answered":
        return False
    [turn] = trajectory["turns"]
    by_itself = turn["finish"] == "stop" and turn["observation"] is None
    return by_itself and bool(trajectory["answer"] == turn["reply"].strip(" \n"))


def thousandths(score: float | None) -> int:
    """Return a score in [0, 1] as a whole number of thousandths, -1 for None."""
    return NONE if score is None else round(score * 1000)


def sent(value: Any) -> str:
    """Return what was sent in one turn as text: a prompt, or messages one after another."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "\n\n".join(_message(message) for message in value)
    return str(value)


def _message(message: Any) -> str:
    if not isinstance(message, Mapping):
        return str(message)
    return f"[{message.get('role', '')}]\n{message.get('content', '')}"

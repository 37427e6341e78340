"""The course of a run: what was known before each event, for those who check the event.

A fold over the log. It takes events at their word; the checks compare each one with what the
course says before it is taken in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from skilltrail.core.errors import FaultError
from skilltrail.core.score import Outcome
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import Replay
from skilltrail.history.log.rows import Rows, by_item
from skilltrail.history.log.run_log import CARRIERS


class Course:
    """What is known before an event.

    Attributes:
        skill: the document that candidates are made of.
        newest, best, version: the newest and the best version's text, the newest's number.
        pooled: True once a method with a pool was chosen: its patches outlast their step.
        broken: why documents can no longer be rebuilt, None while they can.
        rows, best_rows: the current and the best skill's rows of each selection item.
        shortfall: what selection items lacked to a hard 1, summed over the evaluations that
            were judged so far.
        rolled_out: train items rolled out so far, in any step.
        observed: digest of the skill and soft score of each train item's last rollout.
        earlier: the last soft score of an item with another skill than that one.
        trial: text of the newest candidate, None before the first.
        seen: the step's events so far, newest last; emptied when a step begins or has ended.
        patches: events that carry patches in this step, by patch id.
        rejected: digest of each candidate that was rejected, by the event of the verdict.
        ended: how many steps ended in each way, and sums of their counts.
    """

    def __init__(self) -> None:
        self._replay = Replay()
        self.start: Mapping[str, Any] = {}
        self.skill = self.newest = self.best = ""
        self.pooled = False
        self.version: int | None = None
        self.broken: str | None = None
        self.rows: Rows = {}
        self.best_rows: Rows = {}
        self.shortfall: dict[str, Fraction] = {}
        self.rolled_out: set[str] = set()
        self.observed: dict[str, tuple[str, float | None]] = {}
        self.earlier: dict[str, float | None] = {}
        self.seen: list[Event] = []
        self.patches: dict[str, Event] = {}
        self.trial: str | None = None
        self.rejected: dict[int, str] = {}
        self.ended: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.last: Event | None = None

    def ids(self, split: str) -> list[str]:
        """Return the item ids of `train` or `selection`, in order."""
        return [item["item"] for item in self.start.get(split, [])]

    def latest(self, *types: str) -> Event | None:
        """Return the newest event of one of `types` in this step."""
        return next((event for event in reversed(self.seen) if event.type in types), None)

    def take(self, event: Event) -> None:
        """Take in an event that was checked."""
        data = event.data
        if event.type == "run.started":
            self.start = data
        elif event.type == "rollouts.scored":
            self._rolled_out(data)
        elif event.type in CARRIERS:
            self.patches[data["patch"]] = event
        elif event.type == "method.chosen":
            self.pooled = True
        elif event.type == "parents.chosen":
            self.seen = []
        self._documents(event)
        self.seen.append(event)
        if event.type == "skill.versioned" and data["candidate"] is not None:
            self._accept(best=data["best"])
        elif event.type == "gate.judged":
            if data["verdict"] == "rejected":
                self.rejected[event.seq] = data["candidate"]
            scored = self.latest("rollouts.scored")
            if scored is not None and scored.data["purpose"] == "selection":
                self._fall_short(scored.data["items"])
        elif event.type == "step.ended":
            self.ended[data["result"]] += 1
            self.totals.update(data["counts"])
            self._begin()
        self.last = event

    def _documents(self, event: Event) -> None:
        if self.broken is not None:
            return
        try:
            snapshot = self._replay.feed(event)
        except FaultError as error:
            self.broken = str(error)
            return
        self.skill, self.newest = self._replay.skill, snapshot.skill
        self.best, self.version = snapshot.best, snapshot.version
        if event.type == "candidate.built":
            self.trial = snapshot.candidate

    def _rolled_out(self, data: Mapping[str, Any]) -> None:
        if data["purpose"] == "baseline":
            self.rows = self.best_rows = by_item(data["items"])
            self._fall_short(data["items"])
        elif data["purpose"] == "train" and not self.pooled:
            self._begin()
        if data["purpose"] in ("train", "demonstrations"):
            self.rolled_out |= {row["item"] for row in data["items"]}
            for row in data["items"]:
                if row["outcome"] != Outcome.MISSING.value:
                    self._observe(row["item"], data["skill"], row["soft"])

    def _observe(self, item: str, skill: str, soft: float | None) -> None:
        known = self.observed.get(item)
        if known is not None and known[0] != skill:
            self.earlier[item] = known[1]
        self.observed[item] = (skill, soft)

    def _begin(self) -> None:
        self.seen = []
        if not self.pooled:
            self.patches = {}

    def _fall_short(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            if row["hard"] is not None:
                before = self.shortfall.get(row["item"], Fraction(0))
                self.shortfall[row["item"]] = before + 1 - Fraction(row["hard"])

    def _accept(self, *, best: bool) -> None:
        scored = self.latest("rollouts.scored")
        if scored is not None and scored.data["purpose"] == "selection":
            self.rows = by_item(scored.data["items"])
            if best:
                self.best_rows = self.rows

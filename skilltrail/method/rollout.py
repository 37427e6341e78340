"""Rollouts: let the frozen agent, told a skill, do items; every rollout is a recorded fact.

What is in the store costs nothing, so running again is how a run resumes, forks and replays.
Results come back in item order, whatever order they arrived in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import IncompleteError
from skilltrail.core.item import Item
from skilltrail.core.score import Outcome, Score, mean
from skilltrail.core.served import served_by
from skilltrail.core.trajectory import Trajectory, cost_of
from skilltrail.envs.protocol import Environment
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.history.log.types.parts import CostOf, Coverage, Purpose, RowScored
from skilltrail.method.making import Counter, Here, Maker, Shared
from skilltrail.method.scoring import Scorer
from skilltrail.models.errors import GaveUp, ModelConfigError, ModelError, UnseenRequest
from skilltrail.models.judge import Judge
from skilltrail.models.panel import member_of, members_of
from skilltrail.models.protocol import Model
from skilltrail.params.knob import result_values
from skilltrail.store.protocol import Store, gap_key, rollout_key

# These end the run at once: trying further items would only repeat them.
FATAL = (ModelConfigError, GaveUp, UnseenRequest)


@dataclass(frozen=True)
class Rollout:
    """One rollout with its score.

    `trajectory` is None when the outcome is missing; `repeat` counts from 0 where an item is
    rolled out several times, else it is None. `judgement` is the fact key of what the judge
    said, where one gave the score.
    """

    item: Item
    key: str
    score: Score
    trajectory: Trajectory | None
    repeat: int | None = None
    judgement: str | None = None

    def row(self) -> RowScored:
        """Return the row that `rollouts.scored` records."""
        score, cost = self.score, self.score.cost
        return RowScored(
            item=self.item.id,
            target=self.item.target,
            outcome=score.outcome,
            hard=score.hard,
            soft=score.soft,
            reason=score.reason,
            key=self.key,
            repeat=self.repeat,
            judgement=self.judgement,
            cost=None if cost is None else CostOf(tokens=cost.tokens, calls=cost.calls),
        )


class Rollouts:
    """Makes or recalls rollouts of one environment by one target, or by several (a `Panel`):
    each item then names its own.

    Args:
        counter: counts rollouts; of several targets one each, by name.
        gaps: the run's name. When it may go on with missing items (`min_coverage` < 1), a
            gap is itself a fact of this run, so that reruns agree.
        judge: who scores what no rule can; None = nobody.
        maker: who makes what is not recorded; None = this process.
        shared: where facts are looked for before a phase and sent after it; None = nowhere.
        costs: tell of each rollout what the agent used.
    """

    def __init__(
        self,
        env: Environment,
        target: Model,
        store: Store,
        counter: Counter | Mapping[Any, Counter],
        *,
        gaps: str = "",
        min_coverage: float = 1.0,
        judge: Judge | None = None,
        maker: Maker | None = None,
        shared: Shared | None = None,
        costs: bool = False,
    ) -> None:
        self.costs = costs
        self.env, self.target, self.store = env, target, store
        self._counters: Mapping[Any, Counter] = (
            counter if isinstance(counter, Mapping) else {None: counter}
        )
        self.min_coverage, self.scorer = min_coverage, Scorer(env, judge)
        self._last: tuple[Item | None, str, int, str] = (None, "", 0, "")
        self.maker = Here(env, target) if maker is None else maker
        self._shared = shared
        self._gaps = gaps if min_coverage < 1 else None
        self._agent = [env.name, env.version, result_values(env.params, scorer=False)]

    def cases(self, items: Sequence[Item]) -> list[Item]:
        """Return the items, each on every target where there are several."""
        names = members_of(self.target)
        each = [replace(item, target=name) for item in items for name in names]
        return each if names else list(items)

    def in_turn(self, items: Sequence[Item]) -> list[Item]:
        """Return the items, of several targets each on the next: a pass costs what one does."""
        names = members_of(self.target)
        pairs = zip(items, cycle(names), strict=False)
        return [replace(i, target=name) for i, name in pairs] if names else list(items)

    def key(self, item: Item, skill: str, repeat: int = 0) -> str:
        before, of, told, key = self._last
        if before is item and of is skill and told == repeat:
            return key  # asked for twice of each: whether it is recorded, then what it is
        model = member_of(self.target, item.target)
        shown = [model.style, sorted(model.abilities)]
        key = rollout_key(
            self._agent, item, text_digest(skill), dict(model.identity), shown, repeat
        )
        self._last = (item, skill, repeat, key)
        return key

    async def all(self, items: Sequence[Item], skill: str, repeats: int = 1) -> list[Rollout]:
        """Return the rollouts of `items`, in their order, `repeats` of each.

        Raises:
            IncompleteError: more have no reply than this run may go on without.
        """
        done = [rollout async for rollout in self.in_order(items, skill, repeats)]
        self.require(done)
        return done

    def require(self, rollouts: Sequence[Rollout]) -> None:
        """Raise when more rollouts are missing than this run may go on without."""
        missing = [r for r in rollouts if r.score.outcome is Outcome.MISSING]
        if len(rollouts) - len(missing) >= self.min_coverage * len(rollouts):
            return
        leave = (
            f" (gate.min_coverage is {self.min_coverage:g})" if self.min_coverage < 1 else ""
        )
        raise IncompleteError(
            f"{len(missing)} of {len(rollouts)} rollouts got no reply{leave}, "
            f"first item {missing[0].item.case!r}",
            missing[0].score.reason,
            "Nothing was scored 0 for it and everything paid for is kept: fix the cause and "
            "run the same command again. Where an item fails each time, gate.min_coverage "
            "below 1 lets a run continue without it",
        )

    async def in_order(
        self, items: Iterable[Item], skill: str, repeats: int = 1
    ) -> AsyncGenerator[Rollout, None]:
        """Yield rollouts in item order, the repeats of an item together.

        `maker.workers` are in flight, of several targets each as many as it has.
        When the caller stops early, what is in flight is finished into the store.

        Raises:
            ParamError: an item needs a judge and there is none.
        """
        todo = deque((item, repeat) for item in items for repeat in range(repeats))
        self.scorer.require_judge(item for item, _ in todo)
        await self._expect(todo, skill)
        window: deque[asyncio.Task[Rollout]] = deque()
        running: dict[asyncio.Task[Rollout], str | None] = {}
        # Told by each task once: `asyncio.wait` would look at all that run for each that ends.
        finished: asyncio.Queue[asyncio.Task[Rollout]] = asyncio.Queue()
        try:
            while True:
                # What is recorded comes first and alone: a caller that stops within it, as a
                # rerun does, has no call made for the items beyond.
                while todo and not window and self._recorded(*todo[0], skill):
                    item, repeat = todo.popleft()
                    told = None if repeats == 1 else repeat
                    yield await self._one(item, skill, repeat, told)
                while todo and self._has_room(todo[0][0], running.values()):
                    item, repeat = todo.popleft()
                    told = None if repeats == 1 else repeat
                    task = asyncio.create_task(self._one(item, skill, repeat, told))
                    task.add_done_callback(finished.put_nowait)
                    window.append(task)
                    running[task] = item.target
                if not window:
                    return
                if window[0].done():
                    running.pop(window[0], None)
                    yield window.popleft().result()
                    continue
                ended = await finished.get()
                running.pop(ended, None)
                _raise_fatal(ended)
        except asyncio.CancelledError:
            for task in window:
                task.cancel()
            raise
        finally:
            await asyncio.gather(*window, return_exceptions=True)
            if self._shared is not None:
                await self._shared.share()

    async def _expect(self, todo: Iterable[tuple[Item, int]], skill: str) -> None:
        """Bring at once what others have recorded of these rollouts."""
        if self._shared is not None:
            await self._shared.expect({self.key(item, skill, n) for item, n in todo})

    def _has_room(self, item: Item, running: Collection[str | None]) -> bool:
        if item.target is None:
            return len(running) < self.maker.workers
        own = member_of(self.target, item.target)
        return list(running).count(item.target) < own.workers

    def _recorded(self, item: Item, repeat: int, skill: str) -> bool:
        """Say whether this rollout and its judgement are in the store, or that this run goes
        on without it."""
        key = self.key(item, skill, repeat)
        if self._gaps is not None and self.store.has_many([gap_key(self._gaps, key)]):
            return True
        if not self.scorer.needs_judge(item):
            return bool(self.store.has_many([key]))
        fact = self.store.get(key)
        if fact is None:
            return False
        judgement = self.scorer.judgement(item, Trajectory.from_json(fact["trajectory"]))
        return judgement is None or bool(self.store.has_many([judgement]))

    async def _one(self, item: Item, skill: str, repeat: int, told: int | None) -> Rollout:
        key = self.key(item, skill, repeat)
        gap = None if self._gaps is None else gap_key(self._gaps, key)
        if gap is not None and (known := self.store.get(gap)) is not None:
            return Rollout(item, key, Score.missing(known["reason"]), None, told)
        try:
            trajectory = await self._trajectory(item, skill, key)
            score = await self.scorer.score(item, trajectory)
        except FATAL:
            raise
        except ModelError as error:
            if gap is None:
                return Rollout(item, key, Score.missing(str(error)), None, told)
            # What is recorded has no remedy, for that names addresses.
            reason = f"{error.asked}: {error.found}"
            await self.store.put("gap", gap, {"reason": reason})
            return Rollout(item, key, Score.missing(reason), None, told)
        if self.costs:
            score = replace(score, cost=cost_of(trajectory))
        judgement = self.scorer.judgement(item, trajectory)
        return Rollout(item, key, score, trajectory, told, judgement)

    async def _trajectory(self, item: Item, skill: str, key: str) -> Trajectory:
        """Return what the agent did, made or recalled, and count it."""
        try:
            made = await self.store.get_or_make(
                "rollout", key, lambda: self.maker.make(item, skill)
            )
        except FATAL:
            raise
        except ModelError:
            self._counters[item.target].count(None, reused=False)
            raise
        served = tuple(served_by(made.value))
        trajectory = Trajectory.from_json(made.value["trajectory"], served)
        self._counters[item.target].count(trajectory, reused=made.reused)
        return trajectory


def scored(
    rollouts: Sequence[Rollout], skill: str, purpose: Purpose, **where: Any
) -> RolloutsScored:
    """Return the event of scored rollouts; means are over the scored items only."""
    done = sum(r.score.hard is not None for r in rollouts)
    return RolloutsScored(
        purpose=purpose,
        skill=text_digest(skill),
        items=tuple(r.row() for r in rollouts),
        coverage=Coverage(scored=done, asked=len(rollouts)),
        mean_hard=mean(r.score.hard for r in rollouts),
        mean_soft=mean(r.score.soft for r in rollouts),
        **where,
    )


def _raise_fatal(task: asyncio.Task[Rollout]) -> None:
    error = task.exception()
    if error is not None:
        raise error

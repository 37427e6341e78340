"""Progress on long work: a live line on a terminal, plain lines elsewhere.

Tells rollouts done, calls made and reused, calls per second, cost so far and the time left at
most. Nothing here is an event: times, rates and money stay out of the history.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from skilltrail.history.log.words import count, in_terms
from skilltrail.method.run import State
from skilltrail.optimizers.protocol import StepRecord
from skilltrail.runtime.console import console, say
from skilltrail.store.usage import Meter, Tally

Expect = Callable[[int], None]
EVERY_S = 10.0  # how often a line is written when this is not a terminal


class Progress:
    """Counts rollouts and tells steps as they end.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.done = 0
        self._total: int | None = None
        self._gate_items, self._repeats = 0, 1
        self._meter: Meter | None = None
        self._clock = clock
        self._started = self._told = clock()
        self._live = console.is_terminal
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}", markup=False),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task(name, total=None, pace="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        calls = sum(self._counts().values(), Tally())
        if error is None and calls.made + calls.reused:
            line = f"{self.name}: {calls.made} calls made, {calls.reused} reused"
            say(f"{line}, {format_cost(self._counts())}" if calls.made else line)

    def read(self, meter: Meter) -> None:
        """Tell the calls and the cost that `meter` counts."""
        self._meter = meter

    def expect(self, total: int, *, gate_items: int = 0, repeats: int = 1) -> None:
        """Set how many rollouts there will be at most, and of how many items in each gate."""
        self._total, self._gate_items, self._repeats = total, gate_items, repeats
        self._bar.update(self._task, total=total)

    def rollout(self) -> None:
        """Count one finished rollout; the pace is that since the first call was begun."""
        self.done += 1
        now = self._clock()
        if not any(tally.made for tally in self._counts().values()):
            self._started = now
        self._bar.update(self._task, advance=1, pace=self._pace())
        if not self._live and now - self._told >= EVERY_S:
            self._told = now
            total = "" if self._total is None else f" of at most {self._total}"
            say(f"{self.name}: {self.done}{total} rollouts, {self._pace()}")

    def step(self, record: StepRecord, state: State) -> None:
        """Tell how a step ended, in one line; what its gate did not ask for is not expected."""
        mean = state.best_mean
        score = "unknown" if mean is None else f"{float(mean):.3f}"
        applied = count(record.counts.get("applied", 0), "edit")
        line = (
            f"step {record.step} (epoch {record.epoch}): {in_terms(record.verdict)}, "
            f"{applied}, best {score} at v{state.best_version}"
        )
        saved = record.counts.get("saved", 0)
        if saved:
            line += f", {count(saved, 'item')} skipped by early stopping"
        unusable = record.counts.get("replies_rejected", 0)
        if unusable and not record.counts.get("patches", 0):
            line += f"; every optimizer reply was invalid ({unusable} rejected)"
        say(line)
        if self._total is not None:
            unasked = (self._gate_items - record.counts.get("judged", 0)) * self._repeats
            self._total = max(self.done, self._total - unasked)
            self._bar.update(self._task, total=self._total)

    def _pace(self) -> str:
        left = None if self._total is None else self._total - self.done
        return format_pace(self._counts(), left, self._clock() - self._started)

    def _counts(self) -> Mapping[str, Tally]:
        return {} if self._meter is None else self._meter.counts()


def format_pace(counts: Mapping[str, Tally], left: int | None, elapsed_s: float) -> str:
    """Return calls made and their rate, calls reused, cost and time left, in one line.

    `left` is the number of rollouts still to come at most. The time left supposes that each is
    made, at the pace so far; it is not told before the first rollout is.
    """
    calls = sum(counts.values(), Tally())
    parts = [f"{calls.made} made", f"{calls.reused} reused"]
    if calls.failed:
        parts.append(f"{calls.failed} failed")
    if calls.made and elapsed_s > 0:
        parts[0] += f" ({calls.made / elapsed_s:.1f}/s)"
        parts.append(format_cost(counts))
    rollouts = counts["target"].made if "target" in counts else 0
    if rollouts and left is not None:
        parts.append(f"at most {format_time(left * elapsed_s / rollouts)} left")
    return ", ".join(parts)


def format_cost(counts: Mapping[str, Tally]) -> str:
    """Return the US dollars that the calls made cost so far; unknown is never 0."""
    costs = {role: tally.cost for role, tally in counts.items() if tally.made}
    known = [cost for cost in costs.values() if cost is not None]
    unknown = [role for role, cost in costs.items() if cost is None]
    money = format_usd(sum(known, Fraction(0)))
    if not unknown:
        return f"cost {money}"
    if not known:
        return "cost unknown"
    return f"cost {money} and unknown for {' and '.join(unknown)}"


def format_usd(usd: Fraction) -> str:
    """Return dollars with two digits behind the point, small amounts with four."""
    digits = 2 if usd == 0 or usd >= Fraction(1, 10) else 4
    return f"${float(usd):.{digits}f}" if usd == 0 or usd >= Fraction(1, 10_000) else "<$0.0001"


def format_time(seconds: float) -> str:
    """Return a duration as m:ss, or h:mm:ss, rounded up to a second."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def counting(name: str, every: int = 500) -> Iterator[tuple[Callable[[], None], Expect]]:
    """Yield what counts one thing done, and what is told how many more there will be; a
    terminal shows both, anything else nothing."""
    done = total = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)

        def tick() -> None:
            nonlocal done
            done += 1
            if done % every == 0:
                bar.update(task, completed=done)

        def expect(more: int) -> None:
            nonlocal total
            total += more
            bar.update(task, total=total)

        yield tick, expect

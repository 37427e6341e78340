"""Progress on long work: a live line on a terminal, plain lines elsewhere.

Tells rollouts done, calls made and reused, calls per second, cost so far and the time left at
most; the live page reads the same from a file that is there while the work is on. Nothing here
is an event: times, rates and money stay out of the history.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from skilltrail.core.files import write_atomic
from skilltrail.history.log.terms import in_terms
from skilltrail.history.log.words import count
from skilltrail.method.run import State
from skilltrail.optimizers.protocol import StepRecord
from skilltrail.runtime.console import console, say
from skilltrail.store.usage import Meter, Tally

Expect = Callable[[int], None]
EVERY_S = 10.0  # how often a line is written when this is not a terminal
KEPT_EVERY_S = 0.5
SHOWN_EACH = 500  # of what `counting` counts
PACE_OF = 5  # rollouts that it takes before their pace means something
FILE = "progress.json"  # beside a run's live log


class Progress:
    """Counts rollouts and tells steps as they end.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.done = 0
        self._asked: int | None = None  # rollouts as far as params tell
        self._most: int | None = None  # and where `stop.calls` ends them
        self._gate_items, self._repeats = 0, 1
        self._file: Path | None = None
        self._kept = -math.inf
        self._meter: Meter | None = None
        self._clock = clock
        self._started = self._told = clock()
        self._first_s: float | None = None  # from the start to the first rollout that was made
        self._live = console().is_terminal
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}", markup=False),
            console=console(),
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task(name, total=None, pace="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._bar.stop()
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        calls = sum(self._counts().values(), Tally())
        if error is None and calls.made + calls.reused:
            line = f"{self.name}: {calls.made} calls made, {calls.reused} reused"
            say(f"{line}, {format_cost(self._counts())}" if calls.made else line)

    def read(self, meter: Meter) -> None:
        """Tell the calls and the cost that `meter` counts."""
        self._meter = meter

    def keep_in(self, file: Path) -> None:
        """Keep `done`, `total` and `left_s` in a file until the work ends."""
        self._file = file
        self._keep()

    def expect(
        self, total: int, *, most: int = 0, gate_items: int = 0, repeats: int = 1
    ) -> None:
        """Set how many rollouts there will be at most, and of how many items in each gate;
        after `most` of them (0 = no end) the run ends, whatever a gate skipped."""
        self._asked, self._gate_items, self._repeats = total, gate_items, repeats
        self._most = most if most else None
        self._bar.update(self._task, total=self.total)
        self._keep()

    @property
    def total(self) -> int | None:
        """Rollouts at most, None where nobody said; never fewer than are done."""
        if self._asked is None:
            return None
        ends = self._asked if self._most is None else min(self._asked, self._most)
        return max(self.done, ends)

    def rollout(self) -> None:
        """Count one finished rollout; the pace is that since the first call was begun."""
        self.done += 1
        now = self._clock()
        if not any(tally.made for tally in self._counts().values()):
            self._started = now
        elif self._first_s is None:
            self._first_s = now - self._started
        self._bar.update(self._task, advance=1, total=self.total, pace=self._pace())
        if now - self._kept >= KEPT_EVERY_S:
            self._keep()
        if not self._live and now - self._told >= EVERY_S:
            self._told = now
            total = "" if self.total is None else f" of at most {self.total}"
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
        elif unusable and not record.counts.get("applied", 0):
            line += (
                f"; what {unusable} optimizer replies proposed was refused: `skilltrail log`"
            )
        say(line)
        if self._asked is not None:
            unasked = (self._gate_items - record.counts.get("judged", 0)) * self._repeats
            self._asked = max(self.done, self._asked - unasked)
            self._bar.update(self._task, total=self.total)
            self._keep()

    def _left(self) -> int | None:
        return None if self.total is None else self.total - self.done

    def _keep(self) -> None:
        if self._file is None:
            return
        self._kept = self._clock()
        left_s = time_left(self._counts(), self._left(), *self._times(self._kept))
        told = {"done": self.done, "total": self.total, "left_s": left_s}
        write_atomic(self._file, json.dumps(told) + "\n", synced=False)

    def _pace(self) -> str:
        return format_pace(self._counts(), self._left(), *self._times(self._clock()))

    def _times(self, now: float) -> tuple[float, float]:
        """Return the seconds since the start, and how many of them the first rollout took."""
        return now - self._started, self._first_s or 0.0

    def _counts(self) -> Mapping[str, Tally]:
        return {} if self._meter is None else self._meter.counts()


def format_pace(
    counts: Mapping[str, Tally], left: int | None, elapsed_s: float, first_s: float = 0.0
) -> str:
    """Return calls made and their rate, calls reused, cost and time left, in one line.

    `left` is the number of rollouts still to come at most, `first_s` how much of `elapsed_s`
    went by before the first that was made. The time left supposes that each is made, at the
    pace so far.
    """
    calls = sum(counts.values(), Tally())
    parts = [f"{calls.made} made", f"{calls.reused} reused"]
    if calls.failed:
        parts.append(f"{calls.failed} failed")
    if calls.made and elapsed_s > 0:
        parts[0] += f" ({calls.made / elapsed_s:.1f}/s)"
        parts.append(format_cost(counts))
    left_s = time_left(counts, left, elapsed_s, first_s)
    if left_s is not None:
        parts.append(f"at most {format_time(left_s)} left")
    return ", ".join(parts)


def time_left(
    counts: Mapping[str, Tally], left: int | None, elapsed_s: float, first_s: float
) -> float | None:
    """Return the seconds that `left` rollouts take at the pace so far, None while that would
    be a guess: before `PACE_OF` of them were made, and while most of the time was the wait for
    the first, in which a model is loaded."""
    rollouts = counts["target"].made if "target" in counts else 0
    if left is None or rollouts < PACE_OF or elapsed_s < 2 * first_s:
        return None
    return left * elapsed_s / rollouts


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
def counting(name: str) -> Iterator[tuple[Callable[[], None], Expect]]:
    """Yield what counts one thing done, and what is told how many more there will be; a
    terminal shows both, anything else nothing."""
    done = total = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(
        *columns, console=console(), transient=True, disable=not console().is_terminal
    ) as bar:
        task = bar.add_task(name, total=None)

        def tick() -> None:
            nonlocal done
            done += 1
            if done % SHOWN_EACH == 0:
                bar.update(task, completed=done)

        def expect(more: int) -> None:
            nonlocal total
            total += more
            bar.update(task, total=total)

        yield tick, expect

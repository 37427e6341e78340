"""Progress on long work: a live bar on a terminal, plain lines elsewhere.

Shows rollouts made and reused, calls per second and the latest verdict. Nothing here is an
event: times and rates stay out of the history.
"""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from stages.console import console, say
from stages.optimizers.protocol import StepRecord
from stages.run import State

EVERY_S = 10.0  # how often a line is written when this is not a terminal


class Progress:
    """Counts rollouts and tells steps as they end."""

    def __init__(self, name: str, total: int | None = None) -> None:
        self.name = name
        self.made = self.reused = 0
        self._total = total
        self._started = self._told = time.monotonic()
        self._live = console.is_terminal
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task(name, total=total, rate="")

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
        if error is None and self.made + self.reused:
            say(f"{self.name}: {self.made} calls made, {self.reused} reused")

    def expect(self, total: int) -> None:
        """Set how many rollouts there will be at most."""
        self._total = total
        self._bar.update(self._task, total=total)

    def rollout(self, *, reused: bool) -> None:
        """Count one finished rollout."""
        if reused:
            self.reused += 1
        else:
            self.made += 1
        self._bar.update(self._task, advance=1, rate=self._rate())
        now = time.monotonic()
        if not self._live and now - self._told >= EVERY_S:
            self._told = now
            say(f"{self.name}: {self._rate()}")

    def step(self, record: StepRecord, state: State) -> None:
        """Tell how a step ended, in one line."""
        score = f"{float(state.best.mean):.3f}"
        line = (
            f"step {record.step} (epoch {record.epoch}): {record.verdict}, "
            f"{record.counts.get('applied', 0)} edit(s), best {score} at v{state.best.version}"
        )
        saved = record.counts.get("saved", 0)
        if saved:
            line += f", {saved} rollouts saved by early stopping"
        say(line)

    def _rate(self) -> str:
        elapsed = max(time.monotonic() - self._started, 1e-9)
        return f"{self.made} made ({self.made / elapsed:.1f}/s), {self.reused} reused"

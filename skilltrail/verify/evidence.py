"""What is at hand of one run, each part read at its first use and none of it changed.

By default the run is the workspace's own: `skills/events.jsonl`, its evaluation and what is
drawn from both. A log that was named stands for itself: the params and data here need not be
those it was made with, so what differs from them is not checked, and no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.core.item import SPLITS, Item
from skilltrail.core.layout import EVALUATION, EVENTS, PAGE
from skilltrail.data.splits import read_split
from skilltrail.envs.protocol import Environment
from skilltrail.history.git.repository import Git
from skilltrail.history.log.erasure import Erased
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.types.outcomes import RolloutsScored, RunStarted
from skilltrail.params.fields import Params
from skilltrail.runtime.outputs import TEST_ROLLOUTS, TRAIN_ROLLOUTS
from skilltrail.runtime.workspace import environment_of, load_params
from skilltrail.store.place import Place
from skilltrail.verify.chain import Chain, name_on
from skilltrail.verify.kept import kept_of
from skilltrail.verify.log import LogReport, verify_log
from skilltrail.verify.recorded import RecordedFacts
from skilltrail.verify.result import Check, Fault, together
from skilltrail.verify.stale import Inputs

# Draws the report of workspace, logs, root and the run's name: the texts a file may have.
Draw = Callable[
    [Path, Sequence[Event], Sequence[Event], Path, str | None], Mapping[Path, Iterable[str]]
]
STARTED, OPENED = "run.started", "test.opened"


class Evidence:
    """One run and what surrounds it.

    Args:
        draw: draws the report's files again.
        named: name and bytes of a log to look at in place of the workspace's own.
        anchor: a commit hash or a tag that was published.
        tick, expect: told of each thing that was checked, and of how many more there will be.
    """

    def __init__(
        self,
        place: Place,
        draw: Draw,
        *,
        named: tuple[str, bytes] | None = None,
        allow_unfinished: bool = False,
        anchor: str | None = None,
        tick: Callable[[], None] = lambda: None,
        expect: Callable[[int], None] = lambda more: None,
    ) -> None:
        self.place, self.draw, self.anchor = place, draw, anchor
        self.tick, self.expect = tick, expect
        self.named, self.allow_unfinished = named, allow_unfinished
        self.own = named is None
        self.inputs = Inputs(place.workspace)

    @property
    def name(self) -> str:
        return EVENTS.name if self.named is None else self.named[0]

    @cached_property
    def goes_on(self) -> bool:
        """True for a named log that is an evaluation, which goes on from a training log."""
        return self.named is not None and b'"type":"test.opened","v"' in _first(self.named[1])

    @cached_property
    def training(self) -> LogReport:
        """The training log; that of the workspace where an evaluation was named.

        Raises:
            FaultError: there is none.
        """
        if self.named is not None and not self.goes_on:
            name, data = self.named
        else:
            name, data = EVENTS.name, self._read(EVENTS)
        return verify_log(data, name, allow_unfinished=self.allow_unfinished)

    @cached_property
    def evaluation(self) -> LogReport | None:
        """The evaluation log; None where the split was left sealed.

        Raises:
            FaultError: there is none.
        """
        if self.named is None:
            name, data = EVALUATION.name, self._read(EVALUATION)
            if not data and not self.params.evaluate.enabled:
                return None
            after: LogReport | None = self.training
        elif self.goes_on:
            name, data = self.named
            after = self._before(data)
        else:
            return None
        return verify_log(data, name, allow_unfinished=self.allow_unfinished, after=after)

    def _before(self, data: bytes) -> LogReport | None:
        """Return the workspace's training log where a named evaluation goes on from it."""
        try:
            last = self.training.last
        except FaultError:
            return None
        link = None if last is None else f'"prev":"{last.id}"'.encode()
        return self.training if link is not None and link in _first(data) else None

    @property
    def reports(self) -> list[LogReport]:
        """The logs that are looked at, as far as they are here."""
        return [report for report in self._reports() if report is not None]

    def _reports(self) -> Iterator[LogReport | None]:
        if not self.goes_on:
            yield self.training
        try:
            yield self.evaluation
        except FaultError:
            yield None

    def rows(self, reports: Iterable[LogReport]) -> int:
        """Return how many rollouts logs tell of."""
        events = (event for report in reports for event in report.events)
        return sum(len(said.items) for said in read_all(events, RolloutsScored))

    @cached_property
    def erased(self) -> Erased:
        """What was erased from these logs, and from what they rest on."""
        return _together([self.training, *self.reports])

    def erased_from(self, report: LogReport) -> Erased:
        """What was erased from one log, and from what it rests on."""
        return _together([self.training, report])

    @cached_property
    def kept(self) -> list[LogReport]:
        """This run's evaluations, wherever they are at hand (see `kept_of`)."""
        return kept_of(self.place, self.training, self.reports)

    @property
    def asked(self) -> list[LogReport]:
        """Those of them that are not the workspace's."""
        shown = {report.last for report in self.reports}
        return [one for one in self.kept if one.last not in shown] if self.own else []

    def each_evaluation(self, check: Callable[[LogReport], Check]) -> Check | None:
        """Return one check of the evaluation that is shown and of all others of this run; None
        where there is none."""
        shown = self.evaluation
        checks = [] if shown is None else [check(shown)]
        for report in self.asked:
            try:
                checks.append(check(report))
            except SkilltrailError as error:
                of = max(report.lines, 1)
                checks.append(Check(0, of, f"{report.name}: {error}"))
        return together(checks) if checks else None

    @property
    def start(self) -> Event:
        """The first event of the training log.

        Raises:
            FaultError: it is not the beginning of a run.
        """
        events = self.training.events
        if not events or events[0].type != STARTED:
            raise FaultError(self.training.name, "the log has no beginning")
        return events[0]

    @property
    def started(self) -> RunStarted:
        """What the first event of the training log says; raises as `start`."""
        return self.start.read(RunStarted)

    @cached_property
    def params(self) -> Params:
        return load_params(self.place.workspace)

    @cached_property
    def env(self) -> Environment:
        """The environment as params here choose it.

        Raises:
            FaultError: it is not the run's.
        """
        env, wanted = environment_of(self.params), self.started.env
        if env.name != wanted:
            raise FaultError("env", f"{env.name} here, the run's is {wanted}")
        return env

    @cached_property
    def splits(self) -> dict[str, list[Item]]:
        """The frozen splits that can be read, by name."""
        found: dict[str, list[Item]] = {}
        for name in SPLITS:
            try:
                found[name] = read_split(self.place.workspace, name)
            except SkilltrailError:
                continue  # the rule on splits names it
        return found

    @cached_property
    def items(self) -> dict[str, Item]:
        """Every frozen item by its content digest."""
        return {item.content_digest: item for split in self.splits.values() for item in split}

    @cached_property
    def facts(self) -> RecordedFacts:
        """The recorded facts.

        Raises:
            FaultError: none are here, or the store is damaged.
        """
        exports = [self.place.workspace / one for one in (TRAIN_ROLLOUTS, TEST_ROLLOUTS)]
        facts = RecordedFacts(self.place.root, exports)
        if facts.empty:
            raise FaultError("no store and no exports are here", "", "`dvc pull` brings them")
        return facts

    @cached_property
    def chain(self) -> Chain:
        """The commits that the logs make, beside the refs of this repository.

        Raises:
            FaultError: there is no repository, or the log has no beginning.
        """
        git, more = Git.find(self.place.root), self.reports[-1]
        if git is None:
            raise FaultError("this project is not in git")
        events = [self.start, *self.training.events[1:]]
        return Chain(git, events, [] if more is self.training else more.events)

    @cached_property
    def drawn(self) -> Mapping[Path, Iterable[str]]:
        """The report's files, drawn again."""
        place, training, report = self.place, self.training.events, self.evaluation
        told = [] if report is None else report.events
        return self.draw(place.workspace, training, told, place.root, self.run_name)

    @cached_property
    def run_name(self) -> str | None:
        """The name that the page gives the run: a label, no claim."""
        return name_on(self.place.workspace / PAGE)

    def excuse(self, stage: str) -> str | None:
        """Return why a difference from what is here may be no fault of the run."""
        if not self._ours:
            return "params and data here need not be those of this run"
        changed = self.inputs.changed(stage)
        if not changed:
            return None
        return f"changed since the stage {stage} ran: {', '.join(changed[:4])}"

    @cached_property
    def _ours(self) -> bool:
        """True for the workspace's own logs, however they were named."""
        if self.named is None:
            return True
        paths = (self.place.workspace / one for one in (EVENTS, EVALUATION))
        return any(path.is_file() and path.read_bytes() == self.named[1] for path in paths)

    def held(self, stage: str, of: int, faults: Sequence[Fault], note: str = "") -> Check:
        """Return the check of `of` things against what is here, which `faults` differ from."""
        why = self.excuse(stage) if faults else None
        if why is None:
            return Check(of, of, note, tuple(faults))
        return Check(of - min(of, len(faults)), of, f"{why}; {faults[0]}")

    def _read(self, path: Path) -> bytes:
        here = self.place.workspace / path
        try:
            if here.is_file():  # a pipe would be waited for
                return here.read_bytes()
        except OSError as error:
            raise FaultError(path.as_posix(), str(error), "Make it readable") from error
        raise FaultError(f"no {path.as_posix()}", "", "Run `dvc repro`")


def _together(reports: Iterable[LogReport]) -> Erased:
    found = [report.erased for report in reports]
    return Erased(
        frozenset[int]().union(*(one.events for one in found)),
        frozenset[str]().union(*(one.facts for one in found)),
        frozenset[str]().union(*(one.items for one in found)),
    )


def _first(data: bytes) -> bytes:
    return data.split(b"\n", 1)[0]

"""The page of a log, made once for each state of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from skilltrail.core.errors import SkilltrailError
from skilltrail.data.splits import FOLDER as SPLITS
from skilltrail.history.ask.evaluations import evaluations
from skilltrail.history.ask.sources import Project
from skilltrail.history.git.opening import name_here
from skilltrail.history.log.events import Event
from skilltrail.report.book import RunFacts, book_of
from skilltrail.report.book.facts import read_expected
from skilltrail.report.book.runs import Beside, run_rows
from skilltrail.report.page import (
    LIVE_SCRIPTS,
    SCRIPTS,
    asset,
    document,
    empty_screen,
    first_screen,
    inert,
    policy,
    script,
)
from skilltrail.runtime.outputs import facts_named
from skilltrail.store.place import Place
from skilltrail.store.reader import open_reading
from skilltrail.ui.watch import Log, Stamp, evaluation, logs, revision

FindRuns = Callable[[], Mapping[str, Sequence[Event]]]


class Pages:
    """Makes pages; the last one is kept until its log changes."""

    def __init__(self, place: Place, find_runs: FindRuns) -> None:
        self._place, self._find_runs = place, find_runs
        self._kept: tuple[tuple[Stamp, ...], str] | None = None

    def page(self, log: Log | None) -> str:
        """Return the page of `log`, or one that says that there is none yet.

        Raises:
            FaultError: the log is damaged.
        """
        if log is None:
            return _filled(empty_screen(), None)
        stamp = revision(self._place, log)
        if self._kept is not None and self._kept[0] == stamp:
            return self._kept[1]
        events = log.events()
        text = _filled(*self._book(events)) if events else _filled(empty_screen(), None)
        self._kept = (stamp, text)
        return text

    def _book(self, events: Sequence[Event]) -> tuple[dict[str, Any], dict[str, Any]]:
        after = evaluation(self._place, events)
        facts = self._facts([*events, *after])
        facts = replace(facts, name=name_here(self._place.root, events[-1]))
        book = book_of(events, after, facts, self._runs())
        return first_screen(book, events, after), book

    def _facts(self, events: Sequence[Event]) -> RunFacts:
        """Return facts from the store, which has them before any export does."""
        with open_reading(self._place.root) as store:
            values = {} if store is None else store.get_many(sorted(facts_named(events)))
        project = Project(self._place.workspace, self._place.root)
        expected = read_expected(self._place.workspace / SPLITS, events)
        return RunFacts(values, True, expected, evaluations(project))

    def _runs(self) -> list[dict[str, Any]]:
        try:
            found = self._find_runs()
            project = Project(self._place.workspace, self._place.root)
            beside = Beside.read(project, self._place.state, found)
            ends = {id: log.name for log in logs(self._place) if (id := log.end()) is not None}
            pages = {n: ends[e[-1].id] for n, e in found.items() if e and e[-1].id in ends}
            return run_rows(found, replace(beside, pages=pages))
        except SkilltrailError:
            # A log that is being written may be half there; the next look has it whole.
            return []


def scripts() -> str:
    """Return the live page's script: the report's, and what follows a run."""
    return script((*SCRIPTS, *LIVE_SCRIPTS))


def content_policy() -> str:
    return policy(asset("page.css"), scripts(), connect="'self'")


def _filled(screen: Mapping[str, Any], book: Mapping[str, Any] | None) -> str:
    data = "" if book is None else inert(book)
    block = f'<script type="application/json" id="book">{data}</script>' if data else ""
    return document(
        {**screen, "live": True},
        csp=content_policy(),
        css=asset("page.css"),
        js=scripts(),
        data=Markup(block),
    )

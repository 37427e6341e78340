"""A real Chromium, driven by Playwright; every test here is skipped where either is absent.

`make test-browser` brings Playwright and axe-core; Chromium is the system's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium
from history_world import RestlessOptimizer, World
from report_world import Project, make_project

from skilltrail.history.log.events import Event
from skilltrail.optimizers.protocol import StepView
from skilltrail.report.book.runs import Beside, run_rows
from skilltrail.report.notes import Noted
from skilltrail.report.page import page as page_of
from skilltrail.skill.edit import Edit

# What passes is not told, and so not looked up.
AXE = {"resultTypes": ["violations"]}
WIDTHS = {"phone": 390, "tablet": 820, "wide": 1440}


@dataclass
class Watched:
    """A page of the browser, and what went wrong or out of it."""

    page: Any
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path, route: str = "") -> None:
        self.page.goto(f"{path.as_uri()}#/{route}")

    def turn(self, route: str) -> None:
        """Go to another view of the open page."""
        self.page.evaluate("route => { location.hash = '#/' + route }", route)
        self.page.wait_for_function(
            "view => !document.getElementById(view).hidden", arg=view_of(route)
        )

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.eval_on_selector_all(
            selector, "list => list.map(node => node.textContent)"
        )
        return found

    def rows(self, selector: str) -> list[list[str]]:
        found: list[list[str]] = self.page.eval_on_selector_all(
            f"{selector} tbody tr",
            "list => list.map(r => [...r.children].map(c => c.innerText))",
        )
        return found

    @property
    def left(self) -> list[str]:
        """What was asked for beyond the file itself."""
        return [url for url in self.requests if not url.startswith("file:")]


@dataclass(frozen=True)
class Several:
    """A page with several runs, and their logs by name."""

    page: Path
    runs: dict[str, list[Event]]


def view_of(route: str) -> str:
    """Return the view that a route of the page shows; an unknown one shows the first."""
    views = ("steps", "skill", "audit", "items", "epochs", "cost", "runs", "trust", "log")
    name = route.split("/")[0]
    return name if name in views else "overview"


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path, wanted = chromium()
    if path is None:
        pytest.skip(wanted)
    return path


@pytest.fixture(scope="session")
def project(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def hostile(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("hostile"), hostile=True)


class Rewording(RestlessOptimizer):
    """Restless, and in every third step says one line with more words."""

    def _edits(self, view: StepView, source: str, items: tuple[str, ...]) -> tuple[Edit, ...]:
        lines = [line for line in view.skill.split("\n") if line.startswith("- ")]
        if view.step % 3 or not lines:
            return super()._edits(view, source, items)
        line = lines[view.step % len(lines)]
        return (Edit("replace", line, f"{line}, and kindly", items=items[:2]),)


# Takes every candidate whose mean is higher, and those that are equal.
LENIENT = {"metric": "soft", "rule": "no_regression", "tolerance": 1.0}


@pytest.fixture(scope="session")
def restless(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run whose versions replace and remove what earlier ones wrote; no evaluation."""
    folder = tmp_path_factory.mktemp("restless")
    world = World(params={"gate": LENIENT}, optimizer=Rewording())
    events = world.run(folder).events
    made = Project(folder, list(events), [])
    made.page.parent.mkdir(parents=True)
    made.page.write_text(page_of(events, []), encoding="utf-8", newline="\n")
    return made


@pytest.fixture(scope="session")
def several(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Several:
    """Three runs on one page, two of which part from the first."""
    folder = tmp_path_factory.mktemp("several")
    runs: dict[str, list[Event]] = {}
    for name, params in {"main": {}, "few-edits": {"lr": 1}, "long": {"epochs": 3}}.items():
        (folder / name).mkdir()
        runs[name] = list(World(params=params).run(folder / name).events)
    noted = {"long": Noted(("baseline",), ("<b>good</b> on dates",))}
    beside = Beside({"main": (0.25, 12)}, noted, {"few-edits": "0123abcd"})
    text = page_of(runs["main"], [], None, run_rows(runs, beside))
    (folder / "all.html").write_text(text, encoding="utf-8", newline="\n")
    return Several(folder / "all.html", runs)


@pytest.fixture(scope="module")
def bare_browser(chromium_path: str) -> Iterator[Any]:
    """A browser. While it lives, no `asyncio.run` works."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def browser(
    project: Project, hostile: Project, restless: Project, several: Several, request: Any
) -> Any:
    """A browser that is opened after the projects are made, which takes an `asyncio.run`."""
    return request.getfixturevalue("bare_browser")


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": WIDTHS["wide"], "height": 900})
    page.set_default_timeout(60_000)
    seen = Watched(page)
    page.on("console", lambda message: seen.faults.append(message.text))
    page.on("pageerror", lambda error: seen.faults.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    yield seen
    page.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core, from the file that SKILLTRAIL_AXE names or from node_modules."""
    named = os.environ.get("SKILLTRAIL_AXE")
    for place in ([Path(named)] if named else []) + [Path("node_modules/axe-core/axe.min.js")]:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    pytest.skip("needs axe-core: npm install --no-save axe-core, or SKILLTRAIL_AXE=axe.min.js")

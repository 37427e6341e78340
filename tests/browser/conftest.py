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
from history_world import World
from report_world import Project, make_project

from reports.page import page as page_of

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


@pytest.fixture(scope="session")
def restless(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run whose versions replace and remove what earlier ones wrote; no evaluation."""
    folder = tmp_path_factory.mktemp("restless")
    events = World().run(folder).events
    made = Project(folder, list(events), [])
    made.page.parent.mkdir(parents=True)
    made.page.write_text(page_of(events, []), encoding="utf-8", newline="\n")
    return made


@pytest.fixture(scope="module")
def browser(
    chromium_path: str, project: Project, hostile: Project, restless: Project
) -> Iterator[Any]:
    """A browser. While it lives, no `asyncio.run` works: hence projects are made first."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        yield opened
        opened.close()


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

"""A real Chromium, driven by Playwright; every test here is skipped where either is absent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from report_world import Project, make_project

NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Watched:
    """A page of the browser, and what went wrong or out of it."""

    page: Any
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("hostile"), hostile=True)


@pytest.fixture(scope="session")
def browser(project: Project, hostile: Project) -> Iterator[Any]:
    """A browser; projects are made first, since Playwright keeps an event loop running."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs pip install playwright"
    )
    found = os.environ.get("SKILLTRAIL_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if found is None:
        pytest.skip("needs Chromium: apt install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
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
    places = [
        Path(os.environ.get("SKILLTRAIL_AXE", "")),
        Path("node_modules/axe-core/axe.min.js"),
    ]
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    pytest.skip("needs axe-core: npm install --no-save axe-core, or SKILLTRAIL_AXE=axe.min.js")

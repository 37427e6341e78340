"""The documentation in a real browser: nothing serious for axe-core, nothing loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import AXE

ROOT = Path(__file__).resolve().parents[2]
# One page of each kind: prose, Korean, tables, pictures, params to paste, generated, long.
SEEN = (
    "index.html", "start-ko.html", "concepts.html", "recipes.html", "report.html",
    "howto/ollama.html", "howto/ci.html", "reference/params.html", "reference/commands.html",
    "environments/textqa.html", "changes.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason='needs pip install -e ".[docs]"')
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(out)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def reader(bare_browser: Any) -> Iterator[Any]:
    page = bare_browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    yield page
    page.close()


# Words of a table's code that are broken over lines.
BROKEN = """() => [...document.querySelectorAll('td code')].filter((node) => {
  return !/[\\s-]/.test(node.textContent) && node.getClientRects().length > 1;
}).map((node) => node.textContent)"""


def test_a_page_opened_from_disk_finds_what_is_searched_for(site: Path, reader: Any) -> None:
    """By the site's own script, in English and in Korean, on any screen, and asks no host."""
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    for name, words, found in (
        ("index.html", "learning rate", "Params"), ("howto/ci.html", "게이트", "빠른 시작"),
    ):  # fmt: skip
        reader.goto((site / name).as_uri())
        reader.fill("input.md-search__input", words)
        reader.wait_for_selector(".md-search-result__item a")
        titles = reader.locator(".md-search-result__item h1").all_inner_texts()
        assert found in titles, (name, titles)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_no_word_of_a_table_is_broken_and_no_page_is_wider_than_the_screen(
    site: Path, reader: Any, width: int
) -> None:
    reader.set_viewport_size({"width": width, "height": 900})
    for name in SEEN:
        reader.goto((site / name).as_uri())
        wider = reader.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert (name, wider <= 0, reader.evaluate(BROKEN)) == (name, True, [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_site(
    site: Path, reader: Any, axe: str, scheme: str
) -> None:
    reader.emulate_media(color_scheme=scheme)
    rules = AXE if scheme == "light" else {**AXE, "runOnly": ["color-contrast"]}
    serious, asked = [], []
    reader.on("request", lambda request: asked.append(request.url))
    for name in SEEN:
        reader.goto((site / name).as_uri())
        reader.evaluate(axe)
        found = reader.evaluate("rules => axe.run(rules)", rules)
        serious += [
            (name, rule["id"], rule["nodes"][0]["html"][:200], len(rule["nodes"]))
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
        ]
    assert serious == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []

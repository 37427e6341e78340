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

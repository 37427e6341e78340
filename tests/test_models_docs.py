"""The docs' examples are loaded and run, so that they cannot lie."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from skilltrail.envs.registry import ParamClasses
from skilltrail.models.environ import read_env_file
from skilltrail.models.protocol import Reply
from skilltrail.models.registry import USUAL_KEY
from skilltrail.params.model_options import BACKENDS
from skilltrail.params.read import load_params

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "models"
PAGES = sorted(page.stem for page in DOCS.glob("*.md"))
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def test_every_backend_has_a_page_with_an_example() -> None:
    for backend in BACKENDS:
        assert backend in PAGES
        if backend != "local":
            assert blocks(backend, "yaml"), backend


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")])
def test_the_params_example_of_a_page_loads(page: str, tmp_path: Path) -> None:
    for block in blocks(page, "yaml"):
        file = tmp_path / "params.yaml"
        file.write_text(block, "utf-8")
        params = load_params(file, ParamClasses())
        for role in ("target", "optimizer", "judge"):
            options = getattr(params, role)
            if f"{role}:" in block and options.backend != "rules":
                options.check(role)
                wanted = [page] if page in BACKENDS else list(BACKENDS)
                assert options.backend in wanted


def test_your_own_backend_in_30_lines_runs() -> None:
    (code,) = blocks("your-own", "python")
    room: dict[str, Any] = {}
    exec(compile(code, "your-own.md", "exec"), room)
    reply = room["reply"]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.usage["output"]) == ("HELLO", 5)
    a_class = code[code.index("class Shouting") : code.index("options =")]
    assert len(a_class.strip().splitlines()) <= 30


def test_every_key_variable_is_in_the_example_file() -> None:
    text = (ROOT / ".env.example").read_text("utf-8")
    assert set(USUAL_KEY.values()) <= set(read_env_file(text))
    assert not any(read_env_file(text).values())

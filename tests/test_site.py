"""The site: it builds without network, every link leads somewhere, and its blocks are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import application
from skilltrail.envs.registry import ParamClasses
from skilltrail.params.fields import Params
from skilltrail.params.knob import knobs_of
from skilltrail.params.read import load_params

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCK = re.compile(r"```(\w+)[^\n]*\n(.*?)```", re.DOTALL)
# Those of models/ have a test of their own.
HOW_TO = sorted((DOCS / "howto").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning (a dead link, a page in no menu) fails the build."""
    pytest.importorskip("material")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return out


def test_the_site_builds_strictly_and_asks_no_other_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)\"",
                            page.read_text("utf-8"))  # fmt: skip
        assert [url for url in loaded if "canonical" not in url] == [], page


def test_every_local_link_of_the_built_site_leads_to_a_file(site: Path) -> None:
    dead = []
    for page in site.rglob("*.html"):
        for link in re.findall(r"href=\"([^\"#?]+)", page.read_text("utf-8")):
            local = "://" not in link and not link.startswith(("mailto:", "/", "data:"))
            if local and not (page.parent / link).exists():
                dead.append(f"{page.relative_to(site)}: {link}")
    assert dead == []


def test_the_reference_knows_every_param_command_and_event(site: Path) -> None:
    params = (site / "reference" / "params.html").read_text("utf-8")
    assert [k.key for k in knobs_of(Params) if f"<code>{k.key}</code>" not in params] == [
        "envs"
    ]
    commands = (site / "reference" / "commands.html").read_text("utf-8")
    assert [c.name for c in COMMANDS if f"skilltrail {c.name}</code>" not in commands] == []
    assert "skill.versioned" in (site / "reference" / "events.html").read_text("utf-8")


def test_programs_find_the_pages_in_llms_txt(site: Path) -> None:
    listed = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"))
    assert len(listed) > 40
    assert [name for name in listed if not (site / name).is_file()] == []
    assert "빠른 시작" in (site / "llms-full.txt").read_text("utf-8")


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_params_to_paste_load(page: Path, tmp_path: Path) -> None:
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language == "yaml" and not block.startswith("apiVersion:"):  # Kubernetes' own
            (tmp_path / "params.yaml").write_text(block, "utf-8")
            params = load_params(tmp_path / "params.yaml", ParamClasses())
            for role in ("target", "optimizer"):
                if f"{role}:" in block:
                    getattr(params, role).check(role)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_command_in_a_block_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    lines = [line for language, block in BLOCK.findall(text) if language in ("sh", "console")
             for line in block.splitlines()]  # fmt: skip
    typed = [
        match for line in lines for match in re.findall(r"skilltrail ([a-z][a-z-]*)", line)
    ]
    known = {command.name for command in COMMANDS}
    assert [name for name in typed if name not in known] == []


def test_the_korean_start_types_the_same_commands_as_the_english_one() -> None:
    english, korean = ((DOCS / name).read_text("utf-8") for name in ("index.md", "start-ko.md"))
    for pattern in (r"```sh\n(.*?)```", r"(?m)^\| `([^`]+)` \|", r"\]\(([^)]+)\)"):
        typed = re.findall(pattern, english, re.DOTALL)
        assert len(typed) >= 2
        assert re.findall(pattern, korean, re.DOTALL) == typed


def options_of(command: Any) -> dict[str, set[str]]:
    """Return the options of a command and of each within it, by what is typed for it."""
    within = getattr(command, "commands", {})
    own = {opt for row in command.params for opt in (*row.opts, *row.secondary_opts)}
    found = {"": own | {"--help"}}
    for name, inner in within.items():
        found |= {f"{name} {k}".strip(): v for k, v in options_of(inner).items()}
    return found


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_option_that_is_typed_is_one_of_its_command(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    typed = re.findall(
        r"(?:^|`|&& )skilltrail ([a-z][a-z-]*)([^\n;|&>#`]*)", text, re.MULTILINE
    )
    known = {command.name: command for command in COMMANDS}
    for name, rest in typed:
        if name not in known:
            continue  # told as a sentence, or held to the table above
        options = options_of(application(name, known[name].load()).commands[name])
        words = rest.split()
        inner = next((one for one in words if one in options), "")
        named = {word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
        assert named - options[inner] - options[""] == set(), f"skilltrail {name} {rest}"


def test_the_sizes_named_in_the_concepts_are_those_of_the_interval() -> None:
    from skilltrail.data.intake.power import smallest_gain

    text = (DOCS / "concepts.md").read_text("utf-8")
    told = re.findall(r"that (\d+) items can show (?:is )?about ([\d.]*\d)", text)
    assert len(told) == 3
    for n, gain in told:
        assert abs(smallest_gain(int(n)) - float(gain)) < 0.03

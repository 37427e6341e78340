"""Text that means harm: markup, escapes, other scripts, too much of it. Shown, never obeyed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from history_world import RestlessOptimizer, World
from markdown_it import MarkdownIt
from test_history_commands import committed, told
from test_history_commits import git

from skilltrail.cli.main import run
from skilltrail.core.hidden import UNSEEN
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import RunLog
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.skill.edit import Edit

SIGNS = "\x1b[31m\x1b]0;title\x07 \x9b31m \x7f \u202eevil\u202c \u200b \U000e0041"
MARKUP = "# head `tick ``` <img src=x onerror=alert(1)> [a](javascript:b) | **b** &lt; {% x %}"
SCRIPTS = "한국어 עברית عربى 🙂"
FENCES = "```\n~~~\n# head\n- [x] done\n<script>alert(1)</script>\n"


class HostileOptimizer(RestlessOptimizer):
    """Writes such text into reasons, reasoning and lines."""

    async def reflect(self, view: StepView) -> Answer:
        answer = await super().reflect(view)
        patches = [
            replace(
                patch,
                reasoning=f"{SIGNS}{MARKUP}\n{FENCES}{SCRIPTS}\x00" + "x" * 20_000,
                edits=tuple(self._hostile(edit, n) for n, edit in enumerate(patch.edits)),
            )
            for patch in answer.value
        ]
        return Answer(patches, f"{SIGNS}{FENCES}", rule=self.tag)

    def _hostile(self, edit: Edit, n: int) -> Edit:
        if not edit.content:
            return replace(edit, reason=SIGNS + MARKUP)
        content = f"{edit.content} {(MARKUP, SCRIPTS)[n % 2]}"
        return replace(edit, content=content, reason=f"{SIGNS}{MARKUP}\n{FENCES}")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    world = World(
        n_train=12,
        n_selection=6,
        params={"epochs": 2, "batch_size": 4, "lr": 3},
        optimizer=HostileOptimizer(),
    )
    return world.run(tmp_path_factory.mktemp("run")).events


@pytest.fixture
def here(tmp_path: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> Path:
    committed(tmp_path, events)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


COMMANDS = [
    ["log"],
    ["blame", "--version", "last"],
    ["audit", "--version", "last"],
    ["audit", "--version", "last", "--all"],
    ["audit", "--version", "last", "--markdown"],
    ["audit", "--text", "rule"],
    ["diff", "v0", "last"],
    ["replay", "--version", "last", "--json"],
    ["runs"],
    ["verify", "--allow-absent", "log", "--allow-absent", "facts"],
]


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_no_command_sends_a_control_character(
    here: Path, capfd: pytest.CaptureFixture[str], args: list[str]
) -> None:
    for more in ([], ["--json"]):
        told_all = _told_all(capfd, [*args, *more])
        assert UNSEEN.search(told_all) is None


def _told_all(capfd: pytest.CaptureFixture[str], args: list[str]) -> str:
    """Return what a command wrote to both streams."""
    assert run(args) == 0
    said = capfd.readouterr()
    return said.out + said.err


def test_json_loses_nothing(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    text = json.loads(told(capfd, "replay", "--version", "last", "--json"))["text"]
    assert text == RunLog(events).versions[-1].text
    audits = json.loads(told(capfd, "audit", "--version", "1", "--json"))
    said = [one["reasoning"] for one in audits[0]["proposals"]]
    carriers = [e for e in events if e.type == "patch.proposed"]
    assert set(said) <= {e.data["reasoning"] for e in carriers}
    assert any(SIGNS in one and SCRIPTS in one for one in said)
    logged = json.loads(told(capfd, "log", "--json"))
    assert logged == [json.loads(event.line) for event in events]


def test_replay_to_a_file_gives_the_exact_bytes(here: Path, events: list[Event]) -> None:
    assert run(["replay", "--version", "last", "-o", "last.md"]) == 0
    assert (here / "last.md").read_bytes() == RunLog(events).versions[-1].text.encode()


def test_markdown_holds_no_markup_but_its_own(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for version in ("1", "last"):
        page = told(capfd, "audit", "--version", version, "--markdown")
        tokens = MarkdownIt("commonmark").enable("table").parse(page)
        inline = [child for token in tokens for child in token.children or []]
        kinds = {token.type for token in [*tokens, *inline]}
        assert not kinds & {"html_block", "html_inline", "link_open", "image", "strong_open"}
        assert "table_open" not in kinds
        heads = [
            tokens[at + 1].content for at, t in enumerate(tokens) if t.type == "heading_open"
        ]
        assert heads[0].startswith("Why version")
        assert set(heads[1:]) <= {
            *("Lines", "Origin", "Evidence", "Proposed", "Merged", "Selected", "Applied"),
            *("Verdict", "Aftermath", "Diff"),
        }


def test_an_audit_stays_on_a_screen_however_long_a_reply_is(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = told(capfd, "audit", "--version", "1").splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) < 1200


def test_other_scripts_are_shown_as_they_are(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    assert any(SCRIPTS in version.text for version in RunLog(events).versions)
    assert SCRIPTS in told(capfd, "audit", "--text", SCRIPTS, "--markdown")


def test_a_commit_tells_it_on_one_clean_line(here: Path, events: list[Event]) -> None:
    subjects = git(here, "log", "--format=%s", "evolution/main").splitlines()
    assert len(subjects) == len(events)
    assert not [subject for subject in subjects if UNSEEN.search(subject)]

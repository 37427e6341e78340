"""The report in a real browser: every panel opens, for every reader, at every width."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import AXE, WIDTHS
from report_world import Project

from skilltrail.history.ask.blame import blame
from skilltrail.history.log.run_log import RunLog
from skilltrail.report.book.summary import points_of
from skilltrail.report.charts import run_chart

PANELS = (
    "overview", "steps", "skill", "audit", "items", "epochs", "cost", "runs", "trust", "log",
)  # fmt: skip
ROUTES = (
    "", "steps", "skill", "skill/v1", "skill/v0..v3", "audit", "audit/step/1", "audit/step/6",
    "audit/epoch/2", "audit/line/3", "audit/line/4/v1", "audit/line/0", "items", "items/0",
    "items/9", "epochs", "cost", "runs",
    "trust", "log", "no/such/view", "%E0%A4%A",
)  # fmt: skip
SEEN = ("", "steps", "skill", "audit", "audit/step/1", "audit/epoch/2", "items", "items/2",
        "epochs", "cost", "runs", "trust", "log")  # fmt: skip
A4_PIXELS = 718  # the width of a page within its margins
# Elements whose text is cut at their own edge, unless they scroll, wrap or are meant to be cut.
CLIPPED = """() => [...document.querySelectorAll('main *, header *')].filter((node) => {
  if (!node.offsetParent || node.closest('.quiet, .gist, svg, nav')) return false;
  const style = getComputedStyle(node);
  const cut = style.overflowX === 'hidden' || style.overflowX === 'clip';
  const box = node.getBoundingClientRect();
  const scroller = node.closest('.scroll, pre');
  const out = !scroller && (box.right > innerWidth + 1 || box.left < -1);
  return out || (cut && node.scrollWidth > node.clientWidth + 1);
}).map((node) => node.outerHTML.slice(0, 120))"""
# Text that is set in a column too narrow to be read: a sentence on five lines and more.
SQUEEZED = """() => [...document.querySelectorAll('main *')].filter((node) => {
  const own = [...node.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join('');
  if (!node.offsetParent || own.trim().length < 20 || node.closest('svg, table')) return false;
  const box = node.getBoundingClientRect();
  return box.width < 100 && box.height > 5 * parseFloat(getComputedStyle(node).fontSize);
}).map((node) => node.outerHTML.slice(0, 120))"""
# Labels that stand on another line than their control, or above another one.
PARTED = """() => [...document.querySelectorAll('main .controls label')].filter((label) => {
  if (!label.offsetParent || !label.control || label.control.type === 'range') return false;
  const [a, b] = [label.firstElementChild || label, label.control]
    .map((node) => node.getBoundingClientRect());
  const level = Math.abs((a.top + a.bottom) - (b.top + b.bottom)) < 16;
  const beside = level && a.right <= b.left + 1;
  const above = a.bottom <= b.top + 8 && Math.abs(a.left - b.left) < 2;
  return !beside && !above;
}).map((label) => label.textContent)"""
# A mark or control that the keyboard reached, in words.
FOCUSED = """() => { const at = document.activeElement;
  return (at.getAttribute('aria-label') || at.textContent || at.id).trim().slice(0, 80) }"""


def test_every_panel_opens_without_an_error_or_a_request(
    watched: Any, project: Project
) -> None:
    watched.open(project.page)
    for name in PANELS:
        watched.page.click(f'#nav a[data-view="{name}"]')
        watched.page.wait_for_selector(f"#{name}")
        assert watched.texts(".panel:not([hidden]) h2, .panel:not([hidden]) h1")
        assert watched.page.locator(".panel:not([hidden])").count() == 1
        assert watched.page.inner_text(f"#{name}").strip()
    for route in ROUTES:
        watched.turn(route)
    assert watched.faults == []
    assert watched.left == []


def test_a_mark_of_the_chart_tells_on_hover_and_focus_and_opens_its_audit(
    watched: Any, project: Project
) -> None:
    watched.open(project.page, "steps")
    watched.page.hover('#steps .wide a[data-step="1"]')
    assert "Step 1" in watched.page.inner_text("#tip")
    mark = watched.page.locator('#steps .wide a[data-step="2"]')
    mark.focus()
    assert "Step 2" in watched.page.inner_text("#tip")
    mark.press("Enter")
    assert "Step 2" in watched.page.inner_text("#audit h3")
    for part in ("Evidence", "Proposal", "Merge", "Selection", "Application", "Verdict"):
        assert part in watched.texts("#audit h4")


def test_items_are_found_by_their_words_and_shown_side_by_side(
    watched: Any, project: Project
) -> None:
    watched.open(project.page, "items")
    page = watched.page
    page.select_option("#item-left", "0")
    page.select_option("#item-right", "1")
    heads = [
        text.split("↓")[0].split("↑")[0].strip()
        for text in watched.texts(".sides th[scope=col]")
    ]
    assert heads == ["item", "question", "expected", "v0", "v1"]
    row = page.locator(".sides tbody tr").first
    question = row.locator("td").first.inner_text()
    assert question
    every = page.locator(".sides tbody tr").count()
    page.fill("#item-text", question)
    assert 1 <= page.locator(".sides tbody tr").count() <= every
    assert page.locator(".sides tbody td").first.inner_text() == question
    page.fill("#item-text", "no item says this")
    assert page.locator(".sides tbody tr").count() == 0
    assert watched.faults == []


def test_an_item_that_a_version_turned_opens_that_rollout_and_leads_to_its_audit(
    watched: Any, project: Project
) -> None:
    watched.open(project.page, "items")
    page = watched.page
    page.select_option("#item-fixed", "1")
    name = page.locator(".matrix tbody th a, .matrix tbody td a").first
    name.click()
    assert "v1 fixed this item; why v1 was accepted" in page.inner_text("#items")
    assert page.locator(".trajectory").count() == 1
    page.click("text=the reply under v0")
    assert "hard 0.000" in page.inner_text(".trajectory")
    page.go_back()
    page.click("text=why v1 was accepted")
    assert "Verdict" in watched.texts("#audit h4")
    assert watched.faults == []


def test_the_title_tells_this_run_from_others(watched: Any, project: Project) -> None:
    watched.open(project.page)
    assert re.search(r"^Skilltrail: \w+, lr \d+, .+, seed \d+$", watched.page.title())


def test_a_line_of_the_skill_opens_the_audit_of_its_edit(
    watched: Any, project: Project
) -> None:
    watched.open(project.page, "skill")
    line = watched.page.locator(".blame li > a").first
    text = line.locator("code").inner_text()
    line.click()
    assert text in watched.page.inner_text("#audit blockquote")


def test_a_line_is_counted_from_1_as_by_the_command_audit(
    watched: Any, restless: Project
) -> None:
    story = RunLog(restless.training)
    version = story.versions[-1].number
    watched.open(restless.page)
    for row in blame(story, version):
        watched.turn(f"audit/line/{row.line}/v{version}")
        told = watched.page.inner_text("#audit blockquote")
        assert f"Line {row.line} of v{version}." in told
        writer = "It stood in the seed." if row.version == 0 else f"in version v{row.version}"
        assert writer in told
    for outside in ("0", "999", "1/v99", "x", "1/x"):
        watched.turn(f"audit/line/{outside}")
        assert watched.page.locator("#audit blockquote").count() == 0


def test_a_flip_in_an_audit_opens_the_rollout_that_flipped(
    watched: Any, project: Project
) -> None:
    gate = next(e for e in project.training if e.type == "gate.judged")
    judged = next(
        e
        for e in reversed(project.training[: gate.seq - 1])
        if e.type == "rollouts.scored" and e.data["purpose"] == "selection"
    )
    watched.open(project.page, f"audit/step/{gate.data['step']}")
    chip = watched.page.locator("#audit .chip.up").first
    address = chip.get_attribute("href")
    item = chip.locator("bdi").inner_text()
    row = [row["item"] for row in judged.data["items"]].index(item)
    assert address.endswith(f"@{judged.seq}.{row}")
    chip.click()
    assert "hard 1.000" in watched.page.inner_text(".trajectory")


def test_a_cell_of_the_matrix_opens_its_trajectory(watched: Any, project: Project) -> None:
    watched.open(project.page, "items")
    watched.page.locator("a.cell.fail").first.click()
    assert "Reply" in watched.page.inner_text("#items")


def test_the_slider_and_the_buttons_walk_through_the_versions(
    watched: Any, restless: Project
) -> None:
    watched.open(restless.page, "skill/v1")
    watched.page.click("text=Newer")
    assert watched.page.inner_text("#version-name") == "v2"
    watched.page.focus("#version")
    watched.page.keyboard.press("Home")
    assert watched.page.inner_text("#version-name") == "v0"


def test_a_reworded_line_is_told_word_by_word(watched: Any, restless: Project) -> None:
    versions = [e.data["version"] for e in restless.training if e.type == "skill.versioned"]
    watched.open(restless.page)
    told = []
    for version in versions[1:]:
        watched.turn(f"skill/v{version}")
        told.append("".join(watched.texts("#skill .diff .come ins")))
    assert ", and kindly" in told


def test_every_view_and_mark_is_reached_by_tab_alone(watched: Any, project: Project) -> None:
    watched.open(project.page, "steps")
    told = []
    for _ in range(40):
        watched.page.keyboard.press("Tab")
        told.append(watched.page.evaluate(FOCUSED))
    assert told[0] == "Skip to the content"
    for name in ("Overview", "Steps", "Skill", "Audit", "Items", "Trust", "Log"):
        assert name in told
    assert any(text.startswith("Step 1:") for text in told)
    outline = watched.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_what_was_learnt_is_told_as_wide_as_its_list_on_any_screen(
    watched: Any, project: Project, restless: Project
) -> None:
    """A version of several edits tells them below its first, and not in its column of marks."""
    told = 0
    for made in (project, restless):
        watched.open(made.page)
        for width in WIDTHS.values():
            watched.page.set_viewport_size({"width": width, "height": 900})
            lines = watched.page.eval_on_selector_all(
                ".learnt li li",
                "list => list.map(n => n.offsetWidth / n.closest('ol').offsetWidth)",
            )
            told += len(lines)
            assert [share for share in lines if share < 0.6] == []
    assert told > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_clipped_or_runs_over(
    watched: Any, hostile: Project, project: Project, scheme: str, width: str
) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    for made in (project, hostile):
        watched.open(made.page)
        for route in SEEN:
            watched.turn(route)
            wider = watched.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert (route, wider <= 0) == (route, True)
            for fault in (CLIPPED, SQUEEZED, PARTED):
                assert (route, watched.page.evaluate(fault)) == (route, [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(
    watched: Any, project: Project, restless: Project, axe: str, scheme: str
) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    # Colours are all that the scheme changes.
    rules = AXE if scheme == "light" else {**AXE, "runOnly": ["color-contrast"]}
    for made, routes in ((project, SEEN), (restless, ("skill", "audit/step/2"))):
        watched.open(made.page)
        watched.page.evaluate(axe)
        for route in routes:
            watched.turn(route)
            found = watched.page.evaluate("rules => axe.run(rules)", rules)
            serious = [
                (route, rule["id"], rule["nodes"][0]["html"])
                for rule in found["violations"]
                if rule["impact"] in ("serious", "critical")
            ]
            assert serious == []


def test_the_button_turns_the_colours_and_says_so(watched: Any, project: Project) -> None:
    watched.page.emulate_media(color_scheme="light")
    watched.open(project.page)
    paper = "getComputedStyle(document.body).backgroundColor"
    before = watched.page.evaluate(paper)
    assert watched.page.inner_text("#theme") == "Dark"
    watched.page.click("#theme")
    assert watched.page.inner_text("#theme") == "Light"
    assert watched.page.evaluate(paper) != before


def test_on_paper_stand_all_panels_but_the_audit_and_the_log(
    watched: Any, project: Project
) -> None:
    watched.open(project.page)
    assert watched.page.pdf(format="A4").startswith(b"%PDF")
    watched.page.emulate_media(media="print", color_scheme="dark")
    watched.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for name in ("overview", "steps", "skill", "items", "epochs", "cost", "trust"):
        assert watched.page.is_visible(f"#{name}")
        assert watched.page.inner_text(f"#{name}").strip()
    for name in ("nav", "theme", "audit", "log"):
        assert not watched.page.is_visible(f"#{name}")
    assert watched.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    watched.page.set_viewport_size({"width": A4_PIXELS, "height": 900})
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= A4_PIXELS


def test_a_chart_of_many_steps_is_read_at_the_pointer(
    watched: Any, project: Project, tmp_path: Path
) -> None:
    """Of more steps than there is room for marks, those not accepted are one path."""
    long = tmp_path / "long.html"
    text = project.page.read_text(encoding="utf-8")
    points = points_of(project.training)
    many = [dict(points[n % len(points)], step=n + 1) for n in range(400)]
    chart = re.compile(r'(?<=<div class="wide">)<svg.*?</svg>', re.DOTALL)
    long.write_text(chart.sub(run_chart(many, 0.1), text), encoding="utf-8")
    watched.open(long, "steps")
    drawn = watched.page.locator("#steps .wide svg")
    assert drawn.locator("a").count() == sum(p["verdict"] == "accepted" for p in many)
    box = drawn.bounding_box()
    # The plot begins 40 units from the left of 960; step 2 of 400 is 4.4 units on.
    watched.page.mouse.move(box["x"] + box["width"] * 44.4 / 960, box["y"] + 40)
    assert "Step 2" in watched.page.inner_text("#tip")
    watched.page.mouse.click(box["x"] + box["width"] * 44.4 / 960, box["y"] + 40)
    assert "Step 2" in watched.page.inner_text("#audit h3")

"""The report in a real browser: every panel opens, nothing runs or loads that should not."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_world import MARKER, Project

PANELS = (
    "overview", "steps", "skill", "audit", "items", "epochs", "cost", "runs", "trust", "log",
)  # fmt: skip
ROUTES = (
    "", "steps", "skill", "skill/v1", "skill/v0..v3", "audit", "audit/step/1", "audit/step/6",
    "audit/epoch/2", "audit/line/3", "items", "items/0", "items/9", "epochs", "cost", "runs",
    "trust", "log", "no/such/view", "%E0%A4%A",
)  # fmt: skip
WIDTHS = (390, 768, 1280)


def visit(watched: Any, path: Path, routes: tuple[str, ...]) -> None:
    watched.page.goto(path.as_uri())
    for route in routes:
        watched.page.evaluate("route => { location.hash = '#/' + route }", route)
        watched.page.wait_for_timeout(30)


def test_every_panel_opens_without_an_error_or_a_request(
    watched: Any, project: Project
) -> None:
    watched.page.goto(project.page.as_uri())
    for name in PANELS:
        watched.page.click(f'#nav a[data-view="{name}"]')
        assert watched.page.is_visible(f"#{name}")
        assert (
            watched.page.evaluate("document.querySelectorAll('.panel:not([hidden])').length")
            == 1
        )
        assert watched.page.inner_text(f"#{name}").strip()
    visit(watched, project.page, ROUTES)
    assert watched.faults == []
    assert [url for url in watched.requests if not url.startswith("file:")] == []


def test_numbers_shown_are_those_of_the_log(watched: Any, project: Project) -> None:
    numbers = json.loads((project.folder / "reports/out/metrics.json").read_text("utf-8"))
    watched.page.goto(project.page.as_uri())
    shown = watched.page.eval_on_selector_all(".big dd", "list => list.map(n => n.innerText)")
    test = numbers["test"]
    assert shown == [f"{test['seed']:.3f}", f"{test['best']:.3f}", f"{test['gain']:+.3f}"]
    watched.page.click('#nav a[data-view="steps"]')
    rows = watched.page.eval_on_selector_all(
        "#steps tbody tr", "list => list.map(r => [...r.children].map(c => c.innerText))"
    )
    gates = [e.data for e in project.training if e.type == "gate.judged"]
    gates = [gate for gate in gates if gate["source"] == "step"]
    assert [row[4] for row in rows] == [f"{gate['before']:.3f}" for gate in gates]
    assert [row[2] for row in rows] == [gate["verdict"] for gate in gates]


def test_a_mark_of_the_chart_is_reached_by_keyboard_and_opens_its_audit(
    watched: Any, project: Project
) -> None:
    watched.page.goto(project.page.as_uri() + "#/steps")
    mark = watched.page.locator('#steps .wide a[data-step="2"]')
    mark.focus()
    assert "Step 2" in watched.page.inner_text("#tip")
    mark.press("Enter")
    assert "Step 2" in watched.page.inner_text("#audit h3")
    for part in ("Evidence", "Proposal", "Merge", "Selection", "Application", "Verdict"):
        assert part in watched.page.inner_text("#audit")


def test_a_line_of_the_skill_opens_the_audit_of_its_edit(
    watched: Any, project: Project
) -> None:
    watched.page.goto(project.page.as_uri() + "#/skill")
    line = watched.page.locator(".blame li > a").first
    text = line.locator("code").inner_text()
    line.click()
    assert text in watched.page.inner_text("#audit blockquote")


def test_a_cell_of_the_matrix_opens_its_trajectory(watched: Any, project: Project) -> None:
    watched.page.goto(project.page.as_uri() + "#/items")
    watched.page.locator("a.cell.fail").first.click()
    assert "Reply" in watched.page.inner_text("#items")
    watched.page.goto(project.page.as_uri() + "#/items")
    watched.page.select_option("#item-fixed", index=1)
    flips = next(e.data["flips"] for e in project.training if e.type == "gate.judged")
    shown = watched.page.eval_on_selector_all("#items tbody th", "l => l.map(n => n.innerText)")
    assert sorted(shown) == sorted(flips["won"])


def test_planted_content_is_shown_and_never_runs(watched: Any, hostile: Project) -> None:
    visit(watched, hostile.page, ROUTES)
    watched.page.goto(hostile.page.as_uri() + "#/audit/step/1")
    assert "<script>" in watched.page.inner_text("#audit")
    assert watched.page.evaluate(f"window.{MARKER}") is None
    assert (
        watched.page.evaluate("document.querySelectorAll('img, iframe, script[src]').length")
        == 0
    )
    assert watched.faults == []
    assert [url for url in watched.requests if not url.startswith("file:")] == []


def test_the_policy_would_stop_what_slips_through(watched: Any, project: Project) -> None:
    watched.page.goto(project.page.as_uri())
    watched.page.evaluate(
        "() => { document.body.insertAdjacentHTML('beforeend',"
        f"\"<img src=x onerror='window.{MARKER}=1'>\") }}"
    )
    watched.page.wait_for_timeout(100)
    assert watched.page.evaluate(f"window.{MARKER}") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_clipped_at_any_width(watched: Any, hostile: Project, scheme: str) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    for width in WIDTHS:
        watched.page.set_viewport_size({"width": width, "height": 900})
        for route in ("", "steps", "skill", "audit/step/1", "items", "items/2", "trust", "log"):
            visit(watched, hostile.page, (route,))
            wider = watched.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, (width, route)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(
    watched: Any, project: Project, axe: str, scheme: str
) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.goto(project.page.as_uri())
    watched.page.evaluate(axe)
    for route in (
        "",
        "steps",
        "skill",
        "audit/step/1",
        "items",
        "items/2",
        "cost",
        "trust",
        "log",
    ):
        watched.page.evaluate("route => { location.hash = '#/' + route }", route)
        watched.page.wait_for_timeout(50)
        found = watched.page.evaluate("axe.run()")
        serious = [
            (route, rule["id"], rule["nodes"][0]["html"])
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_printing_shows_every_panel_but_the_lists(watched: Any, project: Project) -> None:
    watched.page.goto(project.page.as_uri())
    watched.page.emulate_media(media="print")
    watched.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for name in ("overview", "skill", "items", "trust"):
        assert watched.page.is_visible(f"#{name}")
    assert not watched.page.is_visible("#nav")

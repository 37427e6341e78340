"""Numbers and accounts on the page are those that the log gives when it is read anew."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import Several
from report_world import Project

from skilltrail.core.score import exact, exact_mean
from skilltrail.history.ask.arena import run_by_calls
from skilltrail.history.ask.audit import audit_patch, audit_version
from skilltrail.history.ask.audit_record import Audit, Judgement, LogOnly
from skilltrail.history.ask.blame import blame
from skilltrail.history.ask.runs import run_tree
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import RunLog
from skilltrail.report.page import shown

PROJECTS = ("project", "restless")


def mean_of(event: Event, metric: str = "hard") -> float:
    """Return an event's mean, from its rows alone."""
    return float(exact_mean([exact(row[metric]) for row in event.data["items"]]))


def test_the_first_screen_tells_the_evaluation(watched: Any, project: Project) -> None:
    digests = [version.digest for version in RunLog(project.training).versions]
    best = RunLog(project.training).of_type("run.finished")[0].data["best"]["version"]
    scored = {e.data["skill"]: e for e in project.evaluation if e.type == "rollouts.scored"}
    before, after = mean_of(scored[digests[0]]), mean_of(scored[digests[best]])
    watched.open(project.page)
    wanted = [f"{before:.3f}", f"{after:.3f}", f"{after - before:+.3f}"]
    assert watched.texts(".big dd") == wanted
    assert watched.texts(".facts dd")[1] == f"v{best}"


@pytest.mark.parametrize("name", PROJECTS)
def test_the_table_of_steps_tells_the_gates(
    watched: Any, request: pytest.FixtureRequest, name: str
) -> None:
    made: Project = request.getfixturevalue(name)
    watched.open(made.page, "steps")
    gates = [e.data for e in made.training if e.type == "gate.judged"]
    gates = [gate for gate in gates if gate["source"] == "step"]
    rows = watched.rows("#steps")
    judged = [row for row in rows if row[2] in ("accepted", "rejected", "indecisive")]
    assert [row[2] for row in judged] == [gate["verdict"] for gate in gates]
    assert [row[4] for row in judged] == [f"{gate['before']:.3f}" for gate in gates]
    assert [row[5] for row in judged] == [after_of(gate) for gate in gates]
    assert [row[9] for row in judged] == [str(gate["saved"]) for gate in gates]
    trained = [e for e in made.training if e.data.get("purpose") == "train"]
    assert [row[3] for row in rows] == [f"{mean_of(event):.3f}" for event in trained]


def after_of(gate: Any) -> str:
    return f"≤ {gate['after_max']:.3f}" if gate["after"] is None else f"{gate['after']:.3f}"


@pytest.mark.parametrize("name", PROJECTS)
def test_every_version_and_the_origin_of_its_lines(
    watched: Any, request: pytest.FixtureRequest, name: str
) -> None:
    made: Project = request.getfixturevalue(name)
    story = RunLog(made.training)
    watched.open(made.page)
    for version in story.versions:
        watched.turn(f"skill/v{version.number}")
        rows = blame(story, version.number)
        shown_lines = watched.texts(".blame:not(.bare) code")
        assert shown_lines == [shown(row.text) or " " for row in rows]
        places = watched.texts(".blame:not(.bare) .at")
        assert places == [str(row.line) for row in rows]
        gutter = watched.texts(".blame:not(.bare) .who")
        assert gutter == [told_of(row) for row in rows]


def told_of(row: Any) -> str:
    if row.version == 0:
        return "seed"
    gain = "" if row.gain is None else f" · {row.gain:+.3f}".replace("-", "−")
    return f"v{row.version} · step {row.step}{gain}"


@pytest.mark.parametrize("name", PROJECTS)
def test_the_matrix_and_its_filters_tell_the_scores(
    watched: Any, request: pytest.FixtureRequest, name: str
) -> None:
    made: Project = request.getfixturevalue(name)
    story = RunLog(made.training)
    hard = [
        {item: rows[0].hard for item, rows in story.scores(version.digest).items()}
        for version in story.versions
    ]
    judged = [n for n, scores in enumerate(hard) if scores]
    watched.open(made.page, "items")
    for before, after in zip(judged, judged[1:], strict=False):
        moves = {item: hard[after][item] - hard[before][item] for item in hard[after]}
        for box, sign in (("#item-fixed", 1), ("#item-broken", -1)):
            watched.page.select_option(box, f"v{after}")
            wanted = {item for item, move in moves.items() if move * sign > 0}
            assert set(watched.texts("#items tbody th")) == wanted
            watched.page.select_option(box, "any")
    rows = watched.rows("#items")
    assert {row[0] for row in rows} == set(hard[judged[0]])
    passing = sum(value == 1 for value in hard[judged[-1]].values())
    assert sum(row[-1] == "●" for row in rows) == passing


def test_the_matrix_is_sorted_by_any_version(watched: Any, project: Project) -> None:
    watched.open(project.page, "items")
    watched.page.click("#items thead button:has-text('v1')")
    order = "○◐●"
    cells = [order.index(row[2]) for row in watched.rows("#items") if row[2] in order]
    assert cells == sorted(cells)
    assert len(set(cells)) > 1
    assert watched.page.locator('#items th[aria-sort="ascending"]').inner_text() == "v1 ↑"


def test_cost_and_trust_tell_the_log(watched: Any, project: Project) -> None:
    events = [*project.training, *project.evaluation]
    keys = [r["key"] for e in events if e.type == "rollouts.scored" for r in e.data["items"]]
    watched.open(project.page, "cost")
    made, reused = watched.texts("#cost .facts dd")[:2]
    assert (made, reused) == (f"{len(set(keys)):,}", f"{len(keys) - len(set(keys)):,}")
    heads = watched.texts("#cost th[scope=col]")
    assert any(head.startswith("cost") for head in heads)
    assert watched.texts("#cost .facts dd")[-1] == "unknown", "a made-up model has no price"
    watched.turn("trust")
    found = dict(
        zip(watched.texts("#trust .trust dt"), watched.texts("#trust .trust dd"), strict=True)
    )
    assert found["Run"] == project.training[-1].id
    assert found["✓Chain"].startswith(f"{len(project.training)} events")
    assert found["Test split"].startswith("opened 1×")


def test_runs_are_told_where_they_part_and_compared_as_chosen(
    watched: Any, several: Several
) -> None:
    watched.open(several.page, "runs")
    tree = watched.page.text_content("#runs .tree")
    rows = {row.name: row for row in run_tree(several.runs)}
    for name, row in rows.items():
        if row.forked_from is not None:
            assert f"{name} shares {row.shared} events with {row.forked_from}" in tree
    shown_rows = {
        row[0].split()[0]: row for row in watched.rows('#runs table:has-text("accepted")')
    }
    heads = [
        head.strip(" ↑↓")
        for head in watched.texts('#runs table:has-text("accepted") th[scope=col]')
    ]
    assert heads[5:9] == ["test gain", "epochs", "lr", "tokens"], (
        "params that differ stand there"
    )
    assert shown_rows["main"][5] == "+0.250 on 12 items"
    assert "baseline" in shown_rows["long"][-1]
    assert "<b>good</b> on dates" in shown_rows["long"][-1]
    opened = watched.page.locator("#runs a:text-is('open')").get_attribute("href")
    assert opened == "/?run=0123abcd#/"

    for name, events in several.runs.items():
        best = RunLog(events).of_type("run.finished")[0].data["best"]
        scored = next(
            e
            for e in reversed(events)
            if e.type == "rollouts.scored"
            and e.data["skill"] == best["digest"]
            and e.data["purpose"] in ("baseline", "selection")
        )
        assert shown_rows[name][4] == f"{mean_of(scored, 'soft'):.3f}"
    assert watched.page.locator("#runs .overlay path.best").count() == 3
    by_calls = {row[0]: row for row in watched.rows('#runs table:has-text("calls to best")')}
    for name, events in several.runs.items():
        course = run_by_calls(events)
        assert by_calls[name][1:4] == [
            "skillopt", f"{course.spent:,}", f"{course.points[-1].calls:,}"
        ]  # fmt: skip
        told = ", ".join(f"{point.mean:.3f} at {point.calls:,}" for point in course.points)
        assert by_calls[name][4] == told
    assert sorted(watched.texts("#runs .anytime path title")) == sorted(several.runs)
    drawn = watched.page.eval_on_selector_all(
        "#runs .anytime path.best",
        "l => l.map(n => getComputedStyle(n).stroke + n.getAttribute('stroke-dasharray'))",
    )
    assert len(set(drawn)) == 3
    watched.page.uncheck("#runs label:has-text('long') input")
    assert watched.page.locator("#runs .overlay path.best").count() == 2
    assert watched.page.locator("#runs .anytime path.best").count() == 2
    differing = watched.rows('#runs table:has-text("Params that differ")')
    assert ["lr", "4", "1"] in [sorted_by_run(row, watched) for row in differing]


def sorted_by_run(row: list[str], watched: Any) -> list[str]:
    """Return a row of params with the value of the run `main` first."""
    heads = watched.texts('#runs table:has-text("Params that differ") thead th')[1:]
    return [row[0], row[1 + heads.index("main")], row[1 + heads.index("few-edits")]]


@pytest.mark.parametrize("name", PROJECTS)
def test_the_account_of_every_candidate_is_that_of_the_audit(
    watched: Any, request: pytest.FixtureRequest, name: str
) -> None:
    made: Project = request.getfixturevalue(name)
    story = RunLog(made.training)
    gates = story.of_type("gate.judged")
    watched.open(made.page)
    for gate in gates:
        built = story.before(gate, "candidate.built")
        assert built is not None
        audit = audit_patch(story, built.data["results"][0]["edit"], LogOnly())
        step = gate.data["source"] == "step"
        where = f"step/{audit.step}" if step else f"epoch/{audit.epoch}"
        watched.turn(f"audit/{where}")
        parts = parts_of(watched)
        same_evidence(parts, audit)
        same_edits(parts, audit)
        assert audit.gate is not None
        same_verdict(parts, audit.gate)
        same_fate(parts, audit, story)


def parts_of(watched: Any) -> dict[str, str]:
    """Return the text under each heading of the account on the page."""
    pairs = watched.page.eval_on_selector_all(
        "#audit .account > li",
        "l => l.map(n => [n.querySelector('h4').textContent, n.textContent])",
    )
    parts: dict[str, str] = {}
    for name, text in pairs:
        parts[name] = parts.get(name, "") + text
    return parts


def same_evidence(parts: dict[str, str], audit: Audit) -> None:
    seen = parts.get("Evidence", "") + parts.get("Evidence of the epoch", "")
    for case in audit.cases:
        assert case.item in seen
    said = parts.get("Proposal", "") + parts.get("Guidance", "") + parts.get("Notes", "")
    for proposal in audit.proposals:
        assert shown(proposal.reasoning) in said
        assert all(edit.id in said for edit in proposal.edits)
        assert proposal.source != "failure" or f"Patch {proposal.patch}," in said


def same_edits(parts: dict[str, str], audit: Audit) -> None:
    for merge in audit.merges:
        made = f"{', '.join(merge.inputs)} → {merge.patch}:"
        assert made in parts["Merge"]
    if audit.selected:
        assert f"{len(audit.selected)} chosen" in parts["Selection"]
        assert all(edit in parts["Selection"] for edit in audit.selected)
        assert all(f"{edit} {why}" in parts["Selection"] for edit, why in audit.left_out)
    for tried in audit.edits:
        lines = ", ".join(map(str, tried.lines[:8]))
        side = "at" if tried.edit.op in ("replace", "delete", "write_region") else "after"
        # A candidate that lost is no version, so its audit has no number for its parent.
        parent = r"\d+" if audit.parent_version is None else str(audit.parent_version)
        place = rf"{side} line {lines} of v{parent}" if lines else ""
        told = place + re.escape(tried.status.replace("_", " "))
        assert re.search(told, parts["Application"])
    assert shown(audit.diff) in parts["Application"]
    if audit.budget is not None:
        assert f"At most {audit.budget} edit" in parts["Edit budget"]


def same_verdict(parts: dict[str, str], gate: Judgement) -> None:
    text = parts["Verdict"]
    after = f"at most {gate.after_max:.3f}" if gate.after is None else f"{gate.after:.3f}"
    assert f"{gate.verdict} {gate.before:.3f} → {after}" in text
    assert f"{gate.judged} of {gate.total} items judged by {gate.rule} on {gate.metric}" in text
    won, lost = text[text.index("Up ") : text.index("Down ")], text[text.index("Down ") :]
    for flips, told in ((gate.won, won), (gate.lost, lost)):
        assert told.count("→") - told.count("Tokens") == len(flips)
        assert all(f"{f.item} {f.before:.3g}→{f.after:.3g}" in told for f in flips)


def same_fate(parts: dict[str, str], audit: Audit, story: RunLog) -> None:
    if audit.version is None:
        assert "The skill stayed" in parts.get("Aftermath", "The skill stayed")
        return
    for tried in audit_version(story, audit.version, LogOnly()).edits:
        fate = tried.fate
        if fate is not None:
            gone = "".join(
                f"{loss.lines} gone in v{loss.version} by {loss.patch}; "
                for loss in fate.losses
            )
            kept = "all" if fate.kept == fate.written else str(fate.kept)
            end = f"{kept} still in v{fate.last_version}." if fate.kept else "none left."
            lines = f"{fate.written} line{'' if fate.written == 1 else 's'}"
            assert f"{tried.edit.id} wrote {lines}: {gone}{end}" in parts["Aftermath"]
    for attempt in audit_version(story, audit.version, LogOnly()).attempts:
        assert f"Step {attempt.step} tried to {attempt.op}" in parts["Aftermath"]
        assert f"({attempt.edit}): {attempt.verdict}" in parts["Aftermath"]

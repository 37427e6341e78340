"""What models and data say is text: it runs, loads and turns nothing."""

from __future__ import annotations

from typing import Any

from report_world import HOSTILE, MARKER, Project

from skilltrail.report.page import shown

ROUTES = (
    "", "steps", "skill", "skill/v1", "skill/v0..v3", "audit", "audit/step/1", "audit/step/2",
    "audit/step/3", "audit/epoch/2", "audit/line/4", "items",
    *(f"items/{n}" for n in range(24)), "epochs", "cost", "runs", "trust", "log",
)  # fmt: skip
ACTIVE = "img, iframe, object, embed, link, form, video, audio, style + style, script[src]"


def test_planted_content_never_runs_in_any_view(watched: Any, hostile: Project) -> None:
    watched.open(hostile.page)
    for route in ROUTES:
        watched.turn(route)
        assert watched.page.locator(ACTIVE).count() == 0
        assert watched.page.evaluate("document.querySelectorAll('script').length") == 2
    assert watched.page.evaluate(f"window.{MARKER}") is None
    assert watched.page.title().startswith("Skilltrail")
    links = watched.page.eval_on_selector_all("a", "l => l.map(n => n.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    assert watched.faults == []
    assert watched.left == []


def test_planted_content_is_shown_as_it_was_said(watched: Any, hostile: Project) -> None:
    watched.open(hostile.page, "audit/step/1")
    text = watched.page.text_content("#audit")
    for said in HOSTILE[:3]:
        assert said in text
    watched.turn("items")
    ids = watched.texts("#items tbody th")
    for said in HOSTILE[:7]:
        assert any(shown(said) in id for id in ids)
    text = watched.page.text_content("#main")
    assert not any(sign in text for sign in "\x00\x07\x1b\u202e\u2066\u2069")


def test_a_long_reply_is_cut_and_the_page_says_so(watched: Any, hostile: Project) -> None:
    event = next(e for e in hostile.training if e.type == "rollouts.scored")
    watched.open(hostile.page, "items")
    texts = []
    for item in range(len(event.data["items"])):
        watched.turn(f"items/{item}@{event.seq}.{item}")
        texts.append(watched.page.text_content("#items .turn.reply"))
    assert any("980,000 characters left out" in text for text in texts)
    assert max(map(len, texts)) < 30_000


def test_text_that_runs_right_to_left_turns_nothing_beside_it(
    watched: Any, hostile: Project
) -> None:
    """Every text from outside stands in an element that isolates its direction."""
    watched.open(hostile.page)
    for route in ("audit/step/1", "items", "items/1", "skill", "log", "trust"):
        watched.turn(route)
        open_ = watched.page.evaluate(
            """words => {
              const bad = [];
              const walk = document.createTreeWalker(document.getElementById('main'), 4);
              while (walk.nextNode()) {
                const text = walk.currentNode;
                if (!words.some((word) => text.data.includes(word))) continue;
                if (!text.parentElement.offsetParent) continue;
                const holds = (node) =>
                  /isolate|plaintext/.test(getComputedStyle(node).unicodeBidi);
                let at = text.parentElement;
                while (at.id !== 'main' && !holds(at)) at = at.parentElement;
                if (at.id === 'main') bad.push(text.parentElement.outerHTML.slice(0, 100));
              }
              return bad;
            }""",
            [MARKER, "gnp.exe", "left out"],
        )
        assert (route, open_) == (route, [])


def test_the_policy_would_stop_what_slips_through(watched: Any, project: Project) -> None:
    watched.open(project.page)
    watched.page.evaluate(
        "() => { document.body.insertAdjacentHTML('beforeend',"
        f"\"<img src=x onerror='window.{MARKER}=1'>"
        f"<a id=slip href='javascript:window.{MARKER}=1'>x</a>\");"
        "const late = document.createElement('script');"
        f"late.textContent = 'window.{MARKER}=1'; document.body.append(late);"
        "document.getElementById('slip').click() }"
    )
    watched.page.wait_for_timeout(100)
    assert watched.page.evaluate(f"window.{MARKER}") is None
    assert any("Content Security Policy" in fault for fault in watched.faults)

"""The report: one file, the same bytes for the same log, numbers that the log holds."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from history_world import World
from report_world import EVERYTHING, HOSTILE, MARKER, Project, make_project

from skilltrail.history.log.events import Event
from skilltrail.history.log.log import follow, read_log
from skilltrail.history.log.replay import versions
from skilltrail.models.backends.weights import EMBEDDED_SHA256
from skilltrail.report.book import RunFacts, book_of, read_facts
from skilltrail.report.book.strings import LEVELS, Strings, cut, written_bytes
from skilltrail.report.book.summary import headline
from skilltrail.report.book.trust import trust_rows
from skilltrail.report.book.versions import runs_of
from skilltrail.report.build import build
from skilltrail.report.page import (
    LIVE_SCRIPTS,
    SCRIPTS,
    asset,
    first_screen,
    inert,
    page,
    shown,
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("hostile"), hostile=True)


def book_in(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="book">(.*?)</script>', text, re.S)
    assert found is not None
    book: dict[str, Any] = json.loads(found[1])
    return book


def lines_of(book: dict[str, Any], version: dict[str, Any]) -> list[str]:
    numbers = [first + at for first, length in version["lines"] for at in range(length)]
    return [book["strings"][book["lines"]["text"][number]] for number in numbers]


def test_the_same_log_gives_the_same_bytes(project: Project) -> None:
    before = project.page.read_bytes()
    build(project.folder)
    assert project.page.read_bytes() == before


def test_concurrency_and_folder_do_not_show(project: Project, tmp_path: Path) -> None:
    again = make_project(tmp_path)
    assert again.page.read_bytes() == project.page.read_bytes()


def test_every_version_can_be_read_from_the_page(project: Project) -> None:
    book = book_in(project.page.read_text(encoding="utf-8"))
    texts = ["\n".join(lines_of(book, version)) + "\n" for version in book["versions"]]
    assert texts == [version.text for version in versions(project.training)]


def test_scores_on_the_page_are_those_of_the_log(project: Project) -> None:
    book = book_in(project.page.read_text(encoding="utf-8"))
    rolled = [
        e for e in [*project.training, *project.evaluation] if e.type == "rollouts.scored"
    ]
    assert len(book["scored"]) == len(rolled)
    for scored, event in zip(book["scored"], rolled, strict=True):
        rows = event.data["items"]
        assert [book["items"]["id"][item] for item in scored["item"]] == [
            r["item"] for r in rows
        ]
        assert scored["hard"] == [round(row["hard"] * 1000) for row in rows]
        assert scored["mean_hard"] == event.data["mean_hard"]


def test_every_rollout_of_the_log_can_be_opened(project: Project) -> None:
    book = book_in(project.page.read_text(encoding="utf-8"))
    for scored in book["scored"]:
        runs = scored["trajectory"]
        assert sum(length for _, length in runs) == len(scored["item"])
        assert all(0 <= first <= len(book["trajectories"]) - length for first, length in runs)
    key = next(e.data["items"][0] for e in project.training if e.type == "rollouts.scored")[
        "key"
    ]
    said = read_facts(project.folder, project.training).values[key]["trajectory"]
    sent, reply = book["trajectories"][0]
    assert book["strings"][sent] == said["turns"][0]["sent"]
    assert book["strings"][reply] == said["turns"][0]["reply"]


def test_the_first_screen_needs_no_script(project: Project) -> None:
    text = project.page.read_text(encoding="utf-8")
    screen = text[: text.index('id="book"')]
    numbers = json.loads((project.folder / "reports/out/metrics.json").read_text("utf-8"))
    for told in (
        f"{numbers['test']['seed']:.3f}",
        f"{numbers['test']['best']:.3f}",
        f"{numbers['test']['gain']:+.3f}",
        f"{numbers['test']['gain_low']:+.3f} to",
        "held-out",
    ):
        assert told in screen
    assert screen.count("<svg") == 7


def test_a_missing_evaluation_is_said_and_not_taken_for_a_sealed_test_split(
    project: Project,
) -> None:
    text = page(project.training, [])
    assert "No evaluation on held-out items is available." in text
    assert "sealed" not in text
    assert "held-out test items" not in text[: text.index('id="book"')]


def test_the_page_names_the_run_and_a_hostile_name_is_only_a_name(project: Project) -> None:
    text = page(project.training, project.evaluation, RunFacts(name="a\u202eb<script>"))
    screen = text[: text.index('id="book"')]
    assert '<meta name="run" content="a\\u{202e}b&lt;script&gt;">' in screen
    assert "<title>Skilltrail: a\\u{202e}b&lt;script&gt;: toy" in screen
    assert "\u202e" not in screen
    assert 'name="run"' not in page(project.training, project.evaluation, RunFacts())


@pytest.mark.parametrize(
    ("gguf", "name"),
    [
        (EMBEDDED_SHA256, "SmolLM2-135M-Instruct,"),
        ("ab" * 32, "a local model (GGUF abababab),"),
    ],
)
def test_a_local_model_is_named_by_its_weights(project: Project, gguf: str, name: str) -> None:
    first, *rest = project.training
    target = {"backend": "local", "gguf": gguf}
    started = follow(None, first.type, {**first.data, "target": target})
    logs = [started]
    for event in rest:
        logs.append(follow(logs[-1], event.type, event.data))
    assert f"A skill document for {name}" in page(logs, [])


def test_without_exports_the_page_stands_without_trajectories(project: Project) -> None:
    book = book_in(page(project.training, project.evaluation, RunFacts()))
    assert book["trajectories"] == []
    assert book["run"]["facts"] is False


def test_the_trust_box_says_what_was_checked(project: Project) -> None:
    book = book_of(project.training, project.evaluation, RunFacts())
    found = {row["what"]: row["verdict"] for row in book["trust"]}
    assert found["Chain"] == found["Coverage"] == "good"
    assert found["Evaluation"] == found["Splits disjoint"] == "good"
    told = ("Run", "Split train", "Split selection", "Selection-to-test gap", "Test split")
    assert {found[what] for what in told} == {"fact"}


def test_the_trust_box_names_an_item_in_two_splits_and_a_gain_that_does_not_follow(
    project: Project,
) -> None:
    start = dict(project.training[0].data)
    start["train"] = [*start["train"], start["selection"][0]]
    shared = [follow(None, "run.started", start), *project.training[1:]]
    found = {row["what"]: row for row in trust_rows(shared, [], {"selection": {}})}
    assert found["Splits disjoint"]["verdict"] == "note"
    assert start["selection"][0]["item"] in found["Splits disjoint"]["found"]
    forged: list[Event] = []
    for event in project.evaluation:
        data = dict(event.data)
        if data.get("gain") is not None:
            data["gain_low"] = 0.0
        forged.append(follow(forged[-1] if forged else project.training[-1], event.type, data))
    rows = trust_rows(project.training, forged, {"selection": {}})
    assert {row["what"]: row["verdict"] for row in rows}["Evaluation"] == "bad"


def test_the_trust_box_names_a_verdict_that_does_not_follow(project: Project) -> None:
    forged: list[Event] = []
    for event in project.training:
        data = dict(event.data)
        if event.type == "gate.judged" and data["verdict"] == "rejected":
            data["saved"] += 1
        forged.append(follow(forged[-1] if forged else None, event.type, data))
    found = {row["what"]: row for row in book_of(forged, [], RunFacts())["trust"]}
    assert found["Chain"]["verdict"] == "good"
    assert found["Decisions"]["verdict"] == "bad"
    assert "gate.judged" in found["Decisions"]["found"]


def test_an_unfinished_log_has_a_page_at_every_length(project: Project) -> None:
    for length in range(2, len(project.training), 29):
        text = page(project.training[:length], [])
        assert book_in(text)["run"]["finished"] is False


def test_a_run_that_goes_on_is_told_in_the_metric_of_its_gate(tmp_path: Path) -> None:
    events = World(n_selection=6, params={"gate": {"metric": "soft"}}).run(tmp_path).events
    judged = next(n for n, event in enumerate(events) if event.type == "gate.judged")
    told = headline(events[: judged + 1], [])["selection"]
    assert told["seed"] == told["best"] == events[judged].data["before"]
    assert told["seed"] != events[2].data["mean_hard"]


def test_cost_counts_each_fact_once(project: Project) -> None:
    book = book_of(project.training, project.evaluation, read_facts(project.folder, []))
    rows = [e.data["items"] for e in project.training if e.type == "rollouts.scored"]
    rows += [e.data["items"] for e in project.evaluation if e.type == "rollouts.scored"]
    keys = [row["key"] for items in rows for row in items]
    assert sum(row["made"] for row in book["cost"]) == len(set(keys))
    assert sum(row["made"] + row["reused"] for row in book["cost"]) == len(keys)


def test_nothing_hostile_is_markup(hostile: Project) -> None:
    text = hostile.page.read_text(encoding="utf-8")
    allowed = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", text, flags=re.S)
    tags = set(re.findall(r"<\s*([a-z]+)", html.unescape("") + allowed, re.I))
    assert "img" not in tags
    assert allowed.count("<script") == 1  # the data block
    assert f"<script>window.{MARKER}" not in text
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text[: text.index('id="book"')]
    )


def test_hostile_texts_reach_the_data_unchanged_or_cut(hostile: Project) -> None:
    strings = book_in(hostile.page.read_text(encoding="utf-8"))["strings"]
    assert set(HOSTILE[1:4]) <= set(strings)
    assert not any(len(text) > LEVELS[0] + 100 for text in strings)
    assert hostile.page.stat().st_size < 2_000_000


def test_the_policy_lets_nothing_load_or_run(project: Project) -> None:
    text = project.page.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    said = html.unescape(policy[1])
    assert said.startswith("default-src 'none'; ")
    assert "unsafe" not in said
    assert "http" not in said
    assert " style=" not in text.replace(": style=", "")
    # The page has no address of the network, but names in SVG.
    assert not re.search(r'(?:src|href)="(?!#)', text[: text.index('id="book"')])


def test_data_cannot_end_its_block() -> None:
    assert "<" not in inert({"a": "</script><!--<script>"})
    assert json.loads(inert(["</script>&\u2028"])) == ["</script>&\u2028"]


def test_hidden_characters_are_spelled_out() -> None:
    assert shown("a\u202eb\x1bc") == "a\\u{202e}b\\u{1b}c"
    assert shown("a\nb\tü") == "a\nb\tü"


def test_long_texts_are_cut_in_the_middle_and_it_is_said() -> None:
    text = cut("a" * 500 + "b" * 500, 300)
    assert text.startswith("a" * 200)
    assert text.endswith("b" * 100)
    assert "700 characters left out" in text


def test_texts_shrink_together_until_they_fit() -> None:
    strings = Strings()
    kept = strings.keep("k" * 15_000)
    numbers = [strings.add(f"{n:04}" * 300) for n in range(20)]
    texts, longest = strings.finish(25_000)
    assert longest == 300
    assert len(texts[kept]) == 15_000
    assert all(len(texts[number]) < 400 for number in numbers)
    texts, longest = strings.finish(17_000)
    assert longest == 48
    assert all(len(texts[number]) == 49 for number in numbers)


def test_where_not_all_texts_fit_the_earliest_are_left_out() -> None:
    strings = Strings()
    numbers = [strings.add(f"{n:04}" * 20) for n in range(100)]
    kept = strings.keep("k" * 90)
    assert strings.add(f"{0:04}" * 20) == numbers[0]  # used once more
    texts, longest = strings.finish(3_000)
    assert longest == 0
    assert texts[numbers[0]] != "…"
    assert sum(map(written_bytes, texts)) <= 3_000
    left = [texts[number] == "…" for number in numbers[1:]]
    assert left == sorted(left, reverse=True)
    assert 0 < sum(left) < 100
    assert texts[kept] == "k" * 90


def test_what_a_text_takes_is_what_the_page_writes() -> None:
    for text in ("plain", "<b>&", "\u2028 ü \U0001f600", 'a "quote"\n'):
        assert written_bytes(text) == len(inert(text).encode()) + 1


def test_an_edit_that_repeats_its_parent_is_written_once(project: Project) -> None:
    book = book_in(project.page.read_text(encoding="utf-8"))
    [first, *_] = [data for _, type, data in book["events"] if type == "patch.merged"]
    assert first["edits"]
    assert all(len(row) == 2 for row in first["edits"])


def test_runs_say_the_same_numbers() -> None:
    assert runs_of([3, 4, 5, 1, 2, 9]) == [[3, 3], [1, 2], [9, 1]]
    assert runs_of([]) == []


def test_every_ability_has_its_events_on_the_page(project: Project) -> None:
    book = book_in(project.page.read_text(encoding="utf-8"))
    packed = {type for _, type, _ in book["events"]}
    log = {event.type for event in read_log(project.folder / "skills/events.jsonl")}
    assert log - packed == {"run.started", "rollouts.scored"}
    assert {"slow_update.compared", "meta_skill.written", "appendix.proposed"} <= packed
    assert EVERYTHING["epochs"] == max(row[1] for row in book["curve"])


def test_no_two_parts_of_the_script_share_a_name() -> None:
    text = "".join(asset(name) for name in (*SCRIPTS, *LIVE_SCRIPTS))
    names = re.findall(r"^(?:async )?(?:function|const|let|class) ([A-Za-z_]\w*)", text, re.M)
    assert sorted(names) == sorted(set(names))
    assert "innerHTML" not in text
    assert "eval(" not in text


def test_the_first_screen_counts_the_new_lines_to_look_at(project: Project) -> None:
    book = book_of(project.training, project.evaluation, RunFacts(), ())
    screen = first_screen(book, project.training, project.evaluation)
    assert dict(screen["facts"])["New lines to review"] == "none"

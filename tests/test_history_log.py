"""The event log: bytes, chain, repair, and a log that is derived again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from history_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.core import schemas
from skilltrail.core.canon import canonical, text_digest
from skilltrail.core.errors import FaultError
from skilltrail.history.log.events import Unreadable, is_canonical, make_event, parse_event
from skilltrail.history.log.log import EventLog, TailCut, read_log, scan_log
from skilltrail.history.log.recorder import ProjectionError, Recorder
from skilltrail.history.log.schema import event_schema, field_table
from skilltrail.history.log.terms import TERMS, in_terms
from skilltrail.history.log.types import CLASSES
from skilltrail.history.log.types.outcomes import GateJudged, RunStarted
from skilltrail.history.log.types.parts import Verdict
from skilltrail.history.log.words import SENTENCES, sentence, sentences

fast = settings(max_examples=30, deadline=None)
SEED = "# Skill\n\n- Answer briefly.\n"


def started(seed: int = 42) -> dict[str, object]:
    return {
        "env": "textqa",
        "agent": {"version": "1"},
        "train": [{"item": "t1", "digest": "a" * 64}],
        "selection": [{"item": "s1", "digest": "b" * 64}],
        "target": {"backend": "scripted"},
        "seed": seed,
        "seed_skill": {"text": SEED, "digest": text_digest(SEED)},
        "parent": None,
    }


def memory(text: str) -> dict[str, object]:
    return {
        "epoch": 1,
        "text": text,
        "digest": text_digest(text),
        "reasoning": "",
        "rule": "rules/1",
        "reply": None,
    }


def write(path: Path, texts: list[str]) -> None:
    with EventLog.open(path) as log:
        log.append("run.started", started())
        for text in texts:
            log.append("meta_skill.written", memory(text))


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def test_an_id_is_the_digest_of_the_canonical_form_without_the_id(tmp_path: Path) -> None:
    write(tmp_path / "log", ["a"])
    first, second = (json.loads(line) for line in lines_of(tmp_path / "log"))
    assert (first["seq"], first["prev"]) == (1, None)
    assert (second["seq"], second["prev"]) == (2, first["id"])
    id = second.pop("id")
    assert text_digest(canonical(second)) == id


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "log", ["a", "b"])
    events = read_log(tmp_path / "log")
    assert [event.type for event in events] == ["run.started"] + ["meta_skill.written"] * 2
    assert [event.line for event in events] == lines_of(tmp_path / "log")
    assert all(is_canonical(event) for event in events)


@given(st.text(st.characters(codec=None)))
def test_any_text_survives_as_one_line(text: str) -> None:
    event = make_event("reply.rejected", reply(text), seq=1, prev=None)
    assert b"\n" not in event.line
    again = parse_event(event.line, "line 1")
    assert again == event
    assert again.data["message"] == text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )


def reply(message: str) -> dict[str, object]:
    return {"stage": "rank", "reply": None, "message": message, "then": "rule"}


def test_a_whole_number_score_is_recorded_as_a_float() -> None:
    data = {
        "best": {"version": 0, "digest": "a" * 64, "score": 1},
        "last": {"version": 0, "digest": "a" * 64, "score": 0},
        "why": "epochs",
        "steps": 0,
        "accepted": 0,
        "rejected": 0,
        "indecisive": 0,
        "totals": {},
    }
    line = make_event("run.finished", data, seq=1, prev=None).line
    assert b'"score":1.0' in line
    assert b'"score":0.0' in line
    assert b'"steps":0,' in line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": "42"}, "data.seed"),
        ({"seed": None}, "data.seed"),
        ({"surprise": 1}, "surprise"),
        ({"train": [{"item": 1, "digest": "a" * 64}]}, "data.train.0.item"),
    ],
)
def test_data_that_break_the_schema_are_not_written(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    with (
        EventLog.open(tmp_path / "log") as log,
        pytest.raises(FaultError, match=words),
    ):
        log.append("run.started", started() | change)
    assert (tmp_path / "log").read_bytes() == b""


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(FaultError, match="JSON"):
        make_event("run.started", started() | {"target": {"t": float("nan")}}, seq=1, prev=None)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(FaultError, match=r"skill\.praised"):
        make_event("skill.praised", {}, seq=1, prev=None)


def test_every_type_has_a_closed_schema_that_names_its_type() -> None:
    for name in schemas.names("events"):
        schema = schemas.load(f"events/{name}")
        assert schema["properties"]["type"] == {"const": name}
        assert schema["properties"]["data"]["additionalProperties"] is False


@fast
@given(st.data())
def test_a_torn_last_line_is_moved_aside_and_the_number_goes_on(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "log"
    write(path, ["a", "b", "c"])
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = whole[: whole.rfind(b"\n", 0, cut) + 1]
    repairs: list[TailCut] = []
    with EventLog.open(path, on_repair=repairs.append) as log:
        assert log.next_seq == kept.count(b"\n") + 1
        assert path.read_bytes() == kept
    fragment = whole[len(kept) : cut]
    assert [repair.size for repair in repairs] == ([len(fragment)] if fragment else [])
    if fragment:
        assert repairs[0].kept.read_bytes() == fragment + b"\n"


def test_a_reader_names_a_torn_line_and_repairs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, ["a"])
    torn = path.read_bytes()[:-1]
    path.write_bytes(torn)
    with pytest.raises(FaultError, match=r"line 2.*not finished"):
        read_log(path)
    assert path.read_bytes() == torn


def test_damage_in_the_middle_is_fatal_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, ["a", "b"])
    lines = lines_of(path)
    damaged = b"\n".join([lines[0], b"{garbage", lines[2]]) + b"\n" + b'{"seq":4,"ty'
    path.write_bytes(damaged)
    with pytest.raises(FaultError, match="line 2"):
        EventLog.open(path)
    assert path.read_bytes() == damaged
    assert not path.with_name("log.torn").exists()


@pytest.mark.parametrize("order", [[0, 2], [0, 2, 1], [0, 1, 1, 2], [1, 2]])
def test_lost_swapped_and_doubled_lines_are_named(tmp_path: Path, order: list[int]) -> None:
    path = tmp_path / "log"
    write(path, ["a", "b"])
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[n] + b"\n" for n in order))
    with pytest.raises(FaultError, match=r"line \d"):
        read_log(path)
    with pytest.raises(FaultError, match=r"line \d"):
        EventLog.open(path)


@fast
@given(st.data())
def test_any_flipped_bit_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("flip") / "log"
    write(path, ["a"])
    changed = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(changed) - 1))
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(changed))
    with pytest.raises(FaultError):
        read_log(path)


def test_an_evaluation_log_goes_on_from_the_last_training_event(tmp_path: Path) -> None:
    write(tmp_path / "log", ["a"])
    last = read_log(tmp_path / "log")[-1]
    with EventLog.open(tmp_path / "more", after=last) as log:
        event = log.append("meta_skill.written", memory("b"))
    assert (event.seq, event.prev) == (last.seq + 1, last.id)
    assert read_log(tmp_path / "more", after=last) == [event]
    assert read_log(tmp_path / "more", continues=True) == [event]
    with pytest.raises(FaultError, match="1 is due"):
        read_log(tmp_path / "more")


# The recorder


class Trouble:
    """Collects what a recorder reports."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def __call__(self, kind: str, details: object) -> None:
        self.kinds.append(kind)


def tell(recorder: Recorder, texts: list[str]) -> None:
    recorder.append("run.started", started())
    for text in texts:
        recorder.append("meta_skill.written", memory(text))
    recorder.flush()


def test_telling_the_same_again_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first = Recorder(path)
    tell(first, ["a", "b"])
    first.finish()
    before = path.read_bytes(), path.stat().st_mtime_ns
    again = Recorder(path)
    tell(again, ["a", "b"])
    again.finish()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert again.events == first.events


@fast
@given(st.integers(0, 3), st.integers(0, 40))
def test_stopped_anywhere_and_told_again_is_never_stopped(
    tmp_path_factory: pytest.TempPathFactory, told: int, torn: int
) -> None:
    texts = ["a", "b", "c"]
    folder = tmp_path_factory.mktemp("stop")
    whole = Recorder(folder / "whole")
    tell(whole, texts)
    whole.finish()
    part = Recorder(folder / "part")
    tell(part, texts[:told])
    part.close()
    with (folder / "part").open("ab") as file:
        file.write(whole.events[3].line[:torn])
    again = Recorder(folder / "part")
    tell(again, texts)
    again.finish()
    assert (folder / "part").read_bytes() == (folder / "whole").read_bytes()


def test_a_different_event_keeps_the_old_log_beside(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first = Recorder(path)
    tell(first, ["a", "b"])
    first.finish()
    old = path.read_bytes()
    trouble = Trouble()
    again = Recorder(path, report=trouble)
    tell(again, ["a", "other"])
    again.finish()
    assert trouble.kinds == ["log.superseded"]
    assert path.with_name("events.jsonl.superseded-1").read_bytes() == old
    assert lines_of(path)[:2] == old.split(b"\n")[:2]
    assert read_log(path) == again.events
    assert read_log(path)[2].data["text"] == "other"


def test_a_shorter_telling_supersedes_the_longer_log_only_when_it_is_finished(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.jsonl"
    first = Recorder(path)
    tell(first, ["a", "b"])
    first.finish()
    old = path.read_bytes()
    stopped = Recorder(path)
    tell(stopped, ["a"])
    stopped.close()
    assert path.read_bytes() == old
    shorter = Recorder(path)
    tell(shorter, ["a"])
    shorter.finish()
    assert len(lines_of(path)) == 2
    assert path.with_name("events.jsonl.superseded-1").read_bytes() == old


class Failing:
    """A projection that never succeeds."""

    def flush(self, events: object) -> None:
        raise ProjectionError("the commits", "the disk is full")

    close = flush


class Counting:
    """A projection that remembers how much of the log it was shown."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def flush(self, events: object) -> None:
        assert isinstance(events, list)
        self.seen.append(len(events))

    close = flush


def test_a_projection_sees_the_whole_log_at_each_flush(tmp_path: Path) -> None:
    projection = Counting()
    recorder = Recorder(tmp_path / "log", projection=projection)
    tell(recorder, ["a"])
    recorder.append("meta_skill.written", memory("b"))
    recorder.finish()
    assert projection.seen == [2, 3]


def test_a_failing_projection_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    trouble = Trouble()
    recorder = Recorder(tmp_path / "log", projection=Failing(), report=trouble)
    tell(recorder, ["a"])
    recorder.finish()
    assert trouble.kinds == ["projection.failed"] * 2
    assert len(read_log(tmp_path / "log")) == 2


def test_the_schemas_are_those_of_the_classes() -> None:
    assert schemas.names("events") == sorted(CLASSES)
    for type in CLASSES:
        assert schemas.load(f"events/{type}") == event_schema(type)


def test_the_documentation_names_every_field_of_every_type() -> None:
    page = (Path(__file__).resolve().parent.parent / "docs/history.md").read_text("utf-8")
    assert f"| type | `data` |\n|---|---|\n{field_table()}\n" in page


def test_every_type_has_a_sentence() -> None:
    assert set(SENTENCES) == set(schemas.names("events"))


def test_the_mean_of_an_early_stopped_evaluation_is_shown_as_the_bound_it_is(
    tmp_path: Path,
) -> None:
    gate = {"metric": "soft", "rule": "no_regression"}
    world = World(n_train=12, n_selection=9, params={"epochs": 2, "gate": gate})
    shown = list(sentences(world.run(tmp_path).events))
    stopped = 0
    for (event, words), (gate, verdict) in zip(shown, shown[1:], strict=False):
        if gate.type != "gate.judged":
            continue
        if gate.data["after_max"] is None:
            assert words == sentence(event, None)
            continue
        stopped += 1
        bound = f"{gate.data['after_max']:.3f}"
        assert f"on {gate.data['judged']} of 9 items" in words
        assert f"soft at most {bound}" in words
        assert f"at most {bound}" in verdict
        assert sentence(event, None) != words  # what commits say stays as it was
    assert stopped


def test_a_typed_event_says_what_its_line_says(tmp_path: Path) -> None:
    reference = scan_log(Path(__file__).resolve().parent.parent / "skills/events.jsonl")
    made = World(n_train=8, n_selection=4, params={"epochs": 2}).run(tmp_path).events
    assert {event.type for event in made} >= {"gate.judged", "skill.versioned"}
    for event in (*reference, *made):
        assert canonical(msgspec.to_builtins(event.said)) == canonical(event.data)
        with pytest.raises(AttributeError):
            event.said.epoch = 2  # type: ignore[attr-defined]


def test_a_typed_event_refuses_what_the_schema_refuses(tmp_path: Path) -> None:
    event = World(n_train=8, n_selection=4).run(tmp_path).events[0]
    for wrong in ({"seed": "x"}, {"more": 1}, {"parent": "no digest"}, {"train": [{}]}):
        data = dict(event.data) | wrong
        with pytest.raises(FaultError):
            make_event(event.type, data, seq=1, prev=None)
        body = canonical({"data": data}).encode()
        with pytest.raises(Unreadable):
            _ = replace(event, line=body).said


def test_an_event_is_read_as_its_own_class_alone(tmp_path: Path) -> None:
    event = World(n_train=8, n_selection=4).run(tmp_path).events[0]
    assert event.read(RunStarted).seed == event.data["seed"]
    with pytest.raises(TypeError, match=r"event 1 \(run.started\) is no GateJudged"):
        event.read(GateJudged)


def test_a_verdict_is_printed_and_recorded_as_its_word() -> None:
    word = Verdict.ACCEPTED
    assert (f"{word}", str(word), canonical(word)) == ("accepted", "accepted", '"accepted"')


def test_the_log_tells_why_a_reply_was_refused_and_a_step_in_the_words_of_the_field(
    tmp_path: Path,
) -> None:
    """Commits keep their shorter lines."""
    long = f'edits[0] (append text "{"x" * 80}"): copies_answer: of train item "a"'
    ended = {"epoch": 1, "step": 1, "result": "no_patch", "reason": "nobody proposed an edit"}
    with EventLog.open(tmp_path / "events.jsonl") as log:
        log.append("run.started", started())
        refused = log.append("reply.rejected", reply(long))
        step = log.append("step.ended", ended | {"counts": {}, "version": 0})
    shown = [words for _, words in sentences([refused, step])]
    assert shown[0].endswith('copies_answer: of train item "a"')
    assert sentence(refused, None).endswith("…")
    assert shown[1] == "step 1: no edit proposed"
    assert sentence(step, None) == "step 1: no_patch, nobody proposed an edit"


def test_recorded_words_are_told_in_the_terms_of_the_field_on_the_page_too() -> None:
    page = Path(schemas.__file__).parents[1] / "report" / "assets" / "dom.js"
    table = page.read_text("utf-8").split("const TERMS = {")[1].split("};")[0]
    assert json.loads("{" + table.strip().rstrip(",") + "}") == TERMS
    assert in_terms("no_patch") == "no edit proposed"
    assert in_terms("cannot win any more; x") == "cannot reach the current score; x"
    assert in_terms("accepted") == "accepted"

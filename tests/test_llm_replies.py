"""Objects out of replies: exactly one, never guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core import schemas
from skilltrail.models.backends.strict import is_closed
from skilltrail.models.protocol import Reply
from skilltrail.optimizers.llm.reading.replies import (
    ObjectFound,
    ReplyFault,
    asked_form,
    read_object,
    read_reply,
)
from skilltrail.optimizers.llm.reading.scan import scan
from skilltrail.optimizers.llm.reading.spelling import respelled

EDIT = {"op": "append", "content": "- x"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
prose = st.text(alphabet=st.characters(exclude_characters="{}[]<>"), max_size=60)


def found(text: str, schema: str = "patch") -> ObjectFound:
    read = read_object(text, schema)
    assert isinstance(read, ObjectFound), read
    return read


def code(text: str, schema: str = "patch") -> str:
    read = read_object(text, schema)
    assert isinstance(read, ReplyFault), read
    return read.code


def test_a_draft_and_a_final_object_are_ambiguous() -> None:
    text = f'Draft: {{"edits": []}}\nFinal answer: {json.dumps({"edits": [EDIT]})}'
    assert code(text) == "multiple_objects"


def test_the_same_object_said_twice_is_one() -> None:
    text = json.dumps({"edits": [EDIT]})
    assert found(f"{text}\n\nAgain: {text}").value["edits"] == [EDIT]


def test_an_object_of_another_kind_beside_the_answer_is_no_rival() -> None:
    assert found('Form: {"op": "append"}. {"edits": []}').value == {"edits": []}


@pytest.mark.parametrize(
    "text",
    [
        '{"patch": {"edits": [EDIT]}}',
        '{"name": "patch", "arguments": {"edits": [EDIT]}}',
        '<think>maybe {"patch": {}} ?</think>\n{"patch": {"edits": [EDIT]}}',
        '{"Result": {"Edits": [EDIT]}}',
    ],
)
def test_an_object_alone_inside_another_is_the_answer_and_the_repair_is_told(text: str) -> None:
    """Case json-parse-02."""
    read = found(text.replace("EDIT", json.dumps(EDIT)))
    assert read.value == {"edits": [EDIT]}
    assert "wrapped" in read.repairs


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"edits": []}, "b": {"edits": []}}',
        '{"a": {"b": {"edits": []}}}',
        '{"a": {"x": 1}}',
    ],
)
def test_of_several_objects_inside_another_none_is_guessed(text: str) -> None:
    assert code(text) == "wrong_shape"


@pytest.mark.parametrize("tag", ["think", "THINK", "thinking", "reasoning", "reflection"])
def test_reasoning_blocks_are_passed_over(tag: str) -> None:
    text = f'<{tag}>maybe {{"edits": [1]}} ?</{tag}>\n{{"edits": []}}'
    assert found(text).value == {"edits": []}


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think >", "</think >"),
        ('<thinking depth="2">', "</thinking>"),
        ("<seed:think>", "</seed:think>"),
        ("[THINK]", "[/THINK]"),
    ],
)
def test_reasoning_blocks_are_known_in_each_spelling(opening: str, closing: str) -> None:
    text = f'{opening}maybe {{"edits": []}} ?{closing}\n{json.dumps({"edits": [EDIT]})}'
    assert found(text).value == {"edits": [EDIT]}


def test_reasoning_whose_opening_stood_in_the_prompt_is_passed_over() -> None:
    assert found('maybe {"edits": [1]} ?</think>{"edits": []}').value == {"edits": []}


def test_a_reasoning_block_inside_another_is_passed_over_whole() -> None:
    text = '<think>a <think>b</think> {"edits": [1]}</think>{"edits": []}'
    assert found(text).value == {"edits": []}


def test_reasoning_that_never_ends_is_a_fault_and_no_answer() -> None:
    assert code('<think>so {"edits": []}') == "open_reasoning"


def test_a_tag_inside_a_string_is_text() -> None:
    edit = {"op": "append", "content": "- write </think> or <think>"}
    assert found(json.dumps({"edits": [edit]})).value["edits"] == [edit]


def test_a_code_fence_in_a_string_and_braces_in_prose_hide_nothing() -> None:
    text = '```json\n{"edits":[{"op":"append","content":"```python\\nx=1\\n```"}]}\n```\n'
    edit = found(text + "Hope {this} helps").value["edits"][0]
    assert edit["content"] == "```python\nx=1\n```"


@pytest.mark.parametrize("text", ["```json\n[1, 2]\n```", '[{"edits": []}]', "Sorry, no."])
def test_anything_but_an_object_is_named(text: str) -> None:
    assert code(text) == "expected_object"


def test_a_raw_line_end_in_a_string_is_kept_and_the_repair_is_told() -> None:
    read = found('{"edits": [{"op": "append", "content": "line one\nline two"}]}')
    assert read.value["edits"][0]["content"] == "line one\nline two"
    assert read.repairs == ("control_characters",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"edits": [', "unfinished"),
        ('{"edits": [{"op": "append", "content": "long te', "unfinished"),
        ('{"edits": [],}', "not_json"),
        ("{'edits': []}", "expected_object"),
        ('{"edits": [NaN]}', "not_json"),
        ('{"edits": [1e999]}', "not_json"),
        ('{"edits": [], "edits": [1]}', "duplicate_key"),
        ('{"edits": "none"}', "wrong_shape"),
        ('{"patch": {"x": []}}', "wrong_shape"),
        ("{}", "wrong_shape"),
        ('{"edits": ' + "[" * 500 + "]" * 500 + "}", "not_json"),
    ],
)
def test_what_is_no_answer_is_named_and_never_mended(text: str, expected: str) -> None:
    assert code(text) == expected


@pytest.mark.parametrize("number", ["3-5", "about 2 of 7", "none", -2, True, "3", 2.5, None])
def test_only_a_whole_number_is_a_number(number: Any) -> None:
    assert code(json.dumps({"budget": number}), "budget") == "wrong_shape"


def test_a_broken_part_is_taken_out_and_named_while_its_neighbours_stay() -> None:
    read = found(json.dumps({"edits": [{"op": "zap"}, EDIT, "words"]}))
    assert read.value["edits"] == [None, EDIT, None]
    assert len(read.broken) == 2
    assert "edits[0].op" in read.broken[0]


def test_a_cut_reply_is_truncated_even_when_it_could_be_read() -> None:
    read = read_reply(Reply('{"edits": []}', finish="length"), "patch")
    assert isinstance(read, ReplyFault)
    assert read.code == "truncated"


@pytest.mark.parametrize(
    ("reply", "expected"), [(Reply(" \n"), "empty"), (Reply("", "refusal"), "refused")]
)
def test_no_text_and_a_refusal_are_told_apart(reply: Reply, expected: str) -> None:
    read = read_reply(reply, "patch")
    assert isinstance(read, ReplyFault)
    assert read.code == expected


@given(st.dictionaries(st.text(), json_values), prose, prose)
def test_an_object_between_prose_is_found_as_it_is(
    value: dict[str, Any], before: str, after: str
) -> None:
    text = f"{before}\n{json.dumps(value, ensure_ascii=False)}\n{after}"
    assert scan(text).objects == [value]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(read_object(text, "patch"), (ObjectFound, ReplyFault))


@pytest.mark.parametrize(
    "text",
    ['{"a":' * 30_000, "[1 " * 60_000, '{"a":1} ' * 20_000, "<think>" * 9000, "<think " * 9000],
)
def test_no_reply_is_slow_to_read(text: str) -> None:
    assert isinstance(read_object(text, "patch"), ReplyFault)


@pytest.mark.parametrize("name", schemas.names("replies"))
def test_each_schema_has_a_strict_form_for_providers(name: str) -> None:
    assert is_closed(asked_form(name))


@pytest.mark.parametrize("op", ["Append", "APPEND", " append ", "Append\n"])
def test_an_operation_in_another_spelling_means_what_it_says(op: str) -> None:
    read = found(json.dumps({"edits": [{"op": op, "content": "- a"}]}))
    assert read.value["edits"][0]["op"] == "append"
    assert read.repairs == ("spelling",)


@pytest.mark.parametrize("op", ["insert-after", "insertAfter", "Insert After", "INSERT_AFTER"])
def test_words_may_be_joined_in_any_way(op: str) -> None:
    edit = {"Op": op, "Target": "- a", "content": "- b", "kind": "Rule", "items": "q1"}
    read = found(json.dumps({"Edits": [edit]}), "patch")
    assert read.broken == ()
    assert read.value["edits"] == [
        {
            "op": "insert_after",
            "target": "- a",
            "content": "- b",
            "kind": "rule",
            "items": ["q1"],
        }
    ]
    assert read.repairs == ("single_text", "spelling")


@pytest.mark.parametrize("op", ["add", "appendix", "rename", "", "insert"])
def test_another_word_stays_unknown(op: str) -> None:
    read = found(json.dumps({"edits": [{"op": op, "content": "- a"}]}))
    assert read.value["edits"] == [None]


def test_numbers_as_texts_of_digits_are_numbers_and_ids_as_numbers_are_ids() -> None:
    read = found('{"order": ["2", 0, " 1 "]}', "ranking")
    assert (read.value["order"], read.repairs) == ([2, 0, 1], ("digits",))
    read = found('{"edits": [{"op": "delete", "target": "x", "items": [7]}]}', "patch")
    assert read.value["edits"][0]["items"] == ["7"]


APPENDED = {"op": "append", "content": "- a"}


@pytest.mark.parametrize(
    ("said", "repair"),
    [
        ({"edits": json.dumps([APPENDED])}, "json_in_text"),
        ({"edits": [json.dumps(APPENDED)]}, "json_in_text"),
        ({"name": "patch", "arguments": json.dumps({"edits": [APPENDED]})}, "wrapped"),
        ({"edits": APPENDED}, "single_object"),
        ({"reasoning": ["It was late.", "It rained."], "edits": [APPENDED]}, "lines"),
    ],
)
def test_json_in_a_text_one_edit_for_a_list_and_lines_for_a_text_are_what_they_are(
    said: dict[str, Any], repair: str
) -> None:
    read = found(json.dumps(said), "patch")
    assert read.value["edits"] == [APPENDED]
    assert read.broken == ()
    assert read.repairs == (repair,)


@pytest.mark.parametrize("order", ["2, 0, 1", "[2, 0, 1]", " 2,0,1 ", ["2", 0, " 1"]])
def test_an_order_of_whole_numbers_is_one_however_it_is_written(order: object) -> None:
    read = found(json.dumps({"order": order}), "ranking")
    assert read.value["order"] == [2, 0, 1]


@pytest.mark.parametrize("order", ["2 0 1", "2, 0, one", [2.5], {"first": 2}, "[2, 0", "{}"])
def test_what_may_be_another_order_stays_a_fault(order: object) -> None:
    assert code(json.dumps({"order": order}), "ranking") == "wrong_shape"


@pytest.mark.parametrize("said", ["3-5", "two", "-1", "1.5", "", "0x1", "٣", "1e3", "#2"])
def test_a_text_that_is_no_number_stays_a_fault(said: str) -> None:
    assert code(json.dumps({"order": [said, 0]}), "ranking") == "wrong_shape"


def test_what_is_right_is_left_as_it_is() -> None:
    for schema in schemas.names("replies"):
        value = {"reasoning": "Append 3", "order": [1], "edits": [], "x": {"Op": 1}}
        assert respelled(value, schemas.load(f"replies/{schema}")) == (value, ())


@given(json_values)
def test_respelling_takes_any_json_and_does_nothing_twice(value: object) -> None:
    for schema in schemas.names("replies"):
        once, _ = respelled(value, schemas.load(f"replies/{schema}"))
        assert respelled(once, schemas.load(f"replies/{schema}")) == (once, ())

"""JSON of other programs: what is read can be recorded, and what cannot is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.canon import canonical, value_of
from skilltrail.models.client.foreign import arguments
from skilltrail.models.harness.harness import Skipped, objects

UNREADABLE = (
    '{"a": NaN}',
    '{"a": -Infinity}',
    '{"a": 1e999}',
    '{"a": ' + "9" * 5000 + "}",
    '{"a": ' * 400 + "1" + "}" * 400,
    "[" * 100_000,
    '{"a": 1, "a": 2}',
    "{'a': 1}",
    "",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES.filter(lambda value: "inf" not in str(value).lower()))
def test_what_has_a_canonical_form_is_read_as_it_is(value: object) -> None:
    assert value_of(canonical(value)) == value


@pytest.mark.parametrize("text", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_could_never_be_recorded_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        value_of(text)


@pytest.mark.parametrize("text", UNREADABLE, ids=range(len(UNREADABLE)))
def test_an_event_that_cannot_be_recorded_is_skipped_and_counted(text: str) -> None:
    """Case json-parse-13: one odd event spoiled all others."""
    skipped = Skipped()
    lines = f'{{"n": 1}}\n{text}\n{{"n": 2}}'
    assert list(objects(lines, skipped)) == [{"n": 1}, {"n": 2}]
    assert skipped.count == (text != "")


def test_line_ends_and_tabs_may_stand_in_a_string_as_they_are() -> None:
    assert value_of('{"a": "one\n\ttwo"}') == {"a": "one\n\ttwo"}


@pytest.mark.parametrize("text", UNREADABLE[:-1], ids=range(len(UNREADABLE) - 1))
def test_arguments_that_cannot_be_recorded_stay_visible_as_text(text: str) -> None:
    assert arguments(text) == {"_unparsed": text}
    assert json.loads(canonical(arguments(text))) == {"_unparsed": text}

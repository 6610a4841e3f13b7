"""Where a JSON value ends: as Python's own reader finds it, without raising."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.tool_call_parsers.json_extent import BROKEN, CUT_OFF, MAX_DEPTH, end_of_json, read_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 1]), st.booleans(), st.text(alphabet=' \n]},:"x'))
def test_value_ends_where_it_was_written(value, indent, is_ascii, rest):
    """Any JSON value, in any layout, ends before what follows it."""
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    number = isinstance(value, int | float) and not isinstance(value, bool)

    end = end_of_json(f"x{text}{rest}", 1)

    assert end == len(text) + 1 or number
    assert read_json(text) == (value, True)


@given(st.text(alphabet='{}[]",:\\ \n1-.eEtrufalsn0x'))
def test_end_is_that_of_pythons_reader(text):
    """Whatever is read as JSON by Python ends at the same place; what Python refuses has no end, or ends in a bad escape."""
    try:
        _, expected = json.JSONDecoder(parse_constant=lambda _: 1 / 0).raw_decode(text)
    except (ValueError, ZeroDivisionError):
        expected = None

    end = end_of_json(text, 0)

    assert end == expected or (expected is None and (end < 0 or "\\" in text))


@pytest.mark.parametrize(
    ("text", "braces"),
    [
        ("{}", {0}),
        ('{"a": {"b": [{}]}}', {0, 6, 13}),
        ('{"a": "{", "b": {"c": !', {0, 16}),
        ("{{{", {0}),
        ('{"{": {"', {0, 6}),
    ],
)
def test_opened_objects_are_told(text, braces):
    """Objects are found whether or not the value is complete; braces in strings do not count."""
    found: set[int] = set()

    end_of_json(text, 0, found)

    assert found == braces


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", CUT_OFF), ("{", CUT_OFF), ('{"a"', CUT_OFF), ('{"a": ', CUT_OFF),
        *((f"[{word[:size]}", CUT_OFF) for word in ("true", "false", "null", "-1.5e+7") for size in range(1, len(word) + 1)),
        ('{"a": -', CUT_OFF),
        ('{"a": 1.', CUT_OFF), ('{"a": 1e+', CUT_OFF), ('{"a": 1', CUT_OFF), ('{"a": 1, ', CUT_OFF), ("[[]", CUT_OFF),
        ("x", BROKEN), ("{1", BROKEN), ('{"a" 1', BROKEN), ('{"a": trux', BROKEN), ('{"a": 1 2', BROKEN), ('{"a\nb": 1}', BROKEN),
        ("1", 1), ("null", 4), ("1.", 1), ("00", 1), ("-", CUT_OFF),
        ('{"a', CUT_OFF), ('{"a": {"b": ["c', CUT_OFF), ('"a\\', CUT_OFF), ('"a\\"', CUT_OFF), ('{"a": 1, "', CUT_OFF),
    ],
)  # fmt: skip
def test_cut_off_is_told_from_broken(text, end):
    """A value that could still become whole is cut off; one that could not is broken."""
    assert end_of_json(text, 0) == end


def test_nesting_has_a_limit():
    """What is nested too deeply is malformed, however deep the caller is."""
    assert end_of_json("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH, 0) == 2 * MAX_DEPTH + 1
    assert end_of_json("[" * (MAX_DEPTH + 1) + "1" + "]" * (MAX_DEPTH + 1), 0) == BROKEN
    assert read_json("[" * 100_000) == (None, False)
    assert read_json("1" * 5000) == (None, False)

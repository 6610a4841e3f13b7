"""Values are read as the tool's schema wants them, as vLLM reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.tool_call_parsers.argument_types import (
    corrected_arguments,
    offered_names,
    parameters_of,
    typed_arguments,
    typed_texts,
)

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "enum", "anyOf", "properties", "items", "name", "function", "a"]), inner, max_size=3
        )
    ),
    max_leaves=15,
)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "1.10", "1.10"),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, " -5\n", -5),
        ({"type": "integer"}, "5.5", 5.5),
        ({"type": "integer"}, "five", "five"),
        ({"type": "number"}, "1.10", 1.1),
        ({"type": "number"}, "2.0", 2),
        ({"type": "number"}, "1e3", 1000),
        ({"type": "number"}, "nan", "nan"),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "0", False),
        ({"type": "boolean"}, "yes", "yes"),
        ({"type": "array"}, '["1", 2]', ["1", 2]),
        ({"type": "object"}, '{"a": "1"}', {"a": "1"}),
        ({"type": "object"}, "{'a': 1}", "{'a': 1}"),
        ({"type": "null"}, "NULL", None),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "integer"]}, "5", 5),
        ({"type": ["string", "integer"]}, "5a", "5a"),
        ({"type": "int"}, "5", 5),
        ({"type": "list"}, "[]", []),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", None),
        ({"oneOf": [{"type": "integer"}, {"type": "boolean"}]}, "true", True),
        ({"enum": ["a", 1]}, "1", 1),
        ({"enum": ["a", "1"]}, "1", "1"),
        ({"type": "unheard-of"}, "[1]", [1]),
        ({}, "5", "5"),
        ({"type": 5}, "5", "5"),
        (True, "5", "5"),
    ],
)
def test_text_is_read_as_its_type(schema, text, value):
    """The first type that fits wins: null, integer, number, boolean, object, array, text; what fits none stays text or JSON."""
    found = typed_arguments({"x": text}, {"x": schema})

    assert found == {"x": value}
    assert type(found["x"]) is type(value)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": "string"}, None, None),
        ({"type": "string"}, {"a": 1}, {"a": 1}),
        ({"type": "integer"}, 5, 5),
        ({"type": "number"}, 5.0, 5),
        ({"type": "boolean"}, 1, True),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2, "x"], [1, 2, "x"]),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": "1", "b": "2"}, {"a": 1, "b": "2"}),
    ],
)
def test_json_value_is_corrected(schema, value, expected):
    """A value of the wrong type becomes one of the right type, also inside lists and objects; null stays null."""
    found = typed_arguments({"x": value}, {"x": schema})

    assert found == {"x": expected}
    assert type(found["x"]) is type(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("1.10", 1.1),
        (" true ", True),
        ("NULL", None),
        ('{"a": [1]}', {"a": [1]}),
        ('"quoted"', "quoted"),
        ("True", True),
        ("{'a': None, 'b': (1, -2)}", {"a": None, "b": (1, -2)}),
        ("'quoted'", "quoted"),
        (" plain text ", " plain text "),
        ("007", "007"),
        ("NaN", "NaN"),
        ("1e999", "1e999"),
        ("{1, 2}", "{1, 2}"),
        ("b'x'", "b'x'"),
        ("1+2j", "1+2j"),
        ("__import__('os')", "__import__('os')"),
        ("9" * 5000, "9" * 5000),
        ("[" * 9000, "[" * 9000),
        ("-" * 9000 + "1", "-" * 9000 + "1"),
        ("(" * 100_000, "(" * 100_000),
        ("", ""),
    ],
)
def test_text_types_itself_when_the_tools_are_not_known(text, value):
    """JSON, then a Python literal that JSON can represent; anything else is the text as it is."""
    found = typed_texts({"x": text}, None, "ls")

    assert found == {"x": value}
    assert type(found["x"]) is type(value)
    assert typed_texts({"x": text}, [], "ls") == {"x": text}


def test_arguments_without_a_change_stay_as_they_were_written():
    """Layout and the spelling of numbers are the model's own, until a value changes."""
    parameters = {"n": {"type": "number"}, "s": {"type": "string"}}

    assert corrected_arguments('{"n":  1.50, "s": "\\u00e9"}', parameters) == '{"n":  1.50, "s": "\\u00e9"}'
    assert corrected_arguments('{"n":  "1.50"}', parameters) == '{"n": 1.5}'
    assert corrected_arguments("[1]", parameters) == "[1]"
    assert corrected_arguments("nope", parameters) is None
    assert corrected_arguments("nope", {}) is None


def test_tools_are_found_in_openais_format(formats):
    """Names and parameters come from the schemas; what is not a schema is skipped."""
    tools = [formats.schema("ls", at={"type": "string"}), {"name": "bare", "parameters": {"properties": {"x": {}}}}, "no", {}]

    assert offered_names(None) is None
    assert offered_names([]) == frozenset()
    assert offered_names(tools) == {"ls", "bare"}
    assert parameters_of(tools, "ls") == {"at": {"type": "string"}}
    assert parameters_of(tools, "bare") == {"x": {}}
    assert parameters_of(tools, "other") == {}
    assert parameters_of(None, "ls") == {}


@given(
    st.dictionaries(st.sampled_from(["a", "type"]), ANY), st.dictionaries(st.sampled_from(["a", "type"]), ANY), st.lists(ANY)
)
def test_no_schema_and_no_value_raises(arguments, parameters, tools):
    """Schemas come from anyone: a strange one types nothing, and raises nothing."""
    typed = typed_arguments(arguments, parameters)

    assert typed.keys() == arguments.keys()
    offered_names(tools)
    parameters_of(tools, "a")

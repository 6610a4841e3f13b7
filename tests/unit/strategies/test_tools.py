"""Drawn tool schemas and calls: arguments that a schema allows, and arguments that are wrong on purpose."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_hermes_env.strategies import tool_calls, tool_schemas
from pytest_hermes_env.strategies.json_values import json_values

drawn = settings(max_examples=50, deadline=None, database=None)
shrunk = settings(max_examples=2000, database=None, phases=[Phase.generate, Phase.shrink])


def tool(name: str = "look", **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **parameters}}}


LOOK = tool(properties={"at": {"type": "string"}, "often": {"type": "integer"}}, required=["at"])
STRICT = tool(properties={}, additionalProperties=False)
PATTERNS = tool("patterns", patternProperties={"^no_such": {}}, additionalProperties=False)
REFERRED = tool(
    "referred", properties={"at": {"$ref": "#/$defs/text"}}, required=["at"], **{"$defs": {"text": {"type": "string"}}}
)
ANYTHING = {"type": "function", "function": {"name": "anything"}}


def is_allowed(call: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Tell whether the arguments can be read and fit the schema."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return False
    return Draft202012Validator(schema["function"].get("parameters", {"type": "object"})).is_valid(arguments)


@drawn
@given(st.data(), tool_schemas())
def test_valid_calls_are_allowed_by_their_schema(data: st.DataObject, schemas: list[dict[str, Any]]) -> None:
    """Whatever the tools: name and arguments belong together."""
    call = data.draw(tool_calls(schemas))

    (schema,) = [schema for schema in schemas if schema["function"]["name"] == call["function"]["name"]]
    assert is_allowed(call, schema)


@drawn
@given(st.data(), tool_schemas(), st.sampled_from([LOOK, STRICT, PATTERNS, REFERRED, ANYTHING]))
def test_invalid_calls_never_are(data: st.DataObject, schemas: list[dict[str, Any]], other: dict[str, Any]) -> None:
    """They lack something, have something of another type, or cannot be read at all."""
    offered = [*[schema for schema in schemas if schema["function"]["name"] != other["function"]["name"]], other]
    call = data.draw(tool_calls(offered, valid=False))

    (schema,) = [schema for schema in offered if schema["function"]["name"] == call["function"]["name"]]
    assert not is_allowed(call, schema)


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("missing", lambda text: text == "{}"),
        ("another type", lambda text: json.loads(text).get("at", "") is None),
        ("cut off", lambda text: text == '{"at": ""'),
        ("no object", lambda text: text == "null"),
    ],
)
def test_each_way_to_be_wrong_is_drawn(kind: str, condition: Callable[[str], bool]) -> None:
    """A property missing, one of another type, text that ends too early, JSON that is no object."""

    def holds(call: dict[str, Any]) -> bool:
        try:
            return condition(call["function"]["arguments"])
        except (ValueError, AttributeError):
            return False

    found = find(tool_calls([LOOK], valid=False), holds, settings=shrunk, random=random.Random(0))

    assert found["function"]["name"] == "look"


def test_either_kind_is_drawn_when_it_does_not_matter() -> None:
    """valid=None gives both."""
    for wanted in (True, False):
        found = find(
            tool_calls([LOOK], valid=None), lambda call, wanted=wanted: is_allowed(call, LOOK) is wanted, settings=shrunk
        )
        assert is_allowed(found, LOOK) is wanted


@pytest.mark.parametrize(
    ("schema", "valid", "smallest"),
    [
        (LOOK, True, {'{"at": ""}'}),
        (LOOK, False, {"{}", "null"}),
        (STRICT, False, {'{"no_such_argument": ""}', "null", "{"}),
        (ANYTHING, True, {"{}"}),
        (ANYTHING, False, {"{", "null"}),
    ],
)
def test_calls_shrink_to_the_plainest(schema: dict[str, Any], valid: bool, smallest: set[str]) -> None:
    """The first call, with what the schema asks for and no more."""
    found = find(tool_calls([schema], valid=valid), lambda call: True, settings=shrunk, random=random.Random(0))

    assert (found["id"], found["type"], found["function"]["name"]) == ("call_1", "function", schema["function"]["name"])
    assert found["function"]["arguments"] in smallest


def test_schemas_shrink_to_a_tool_without_parameters() -> None:
    """One tool with a short name."""
    found = find(tool_schemas(), lambda schemas: True, settings=shrunk, random=random.Random(0))

    parameters = {"type": "object", "properties": {}, "required": []}
    assert found == [{"type": "function", "function": {"name": "a", "description": "", "parameters": parameters}}]


@drawn
@given(tool_schemas(min_size=2, max_size=4))
def test_schemas_are_schemas(schemas: list[dict[str, Any]]) -> None:
    """As many as asked for, with different names, each a JSON schema whose required properties exist."""
    assert 2 <= len(schemas) <= 4
    assert len({schema["function"]["name"] for schema in schemas}) == len(schemas)
    for schema in schemas:
        parameters = schema["function"]["parameters"]
        Draft202012Validator.check_schema(parameters)
        assert set(parameters["required"]) <= set(parameters["properties"])


SCHEMAS: dict[str, tuple[Any, Any]] = {
    # what is described: (schema, the plainest value)
    "text": ({"type": "string", "minLength": 2, "maxLength": 3}, "00"),
    "a pattern": ({"type": "string", "pattern": "^a+b$"}, None),
    "whole numbers": ({"type": "integer", "exclusiveMinimum": 3, "maximum": 9}, 4),
    "multiples": ({"type": "integer", "multipleOf": 5, "minimum": 1}, 5),
    "parts": ({"type": "number", "multipleOf": 0.5, "minimum": 0.25}, 0.5),
    "numbers": ({"type": "number", "minimum": 0.25, "maximum": 0.75}, 0.5),
    "wide numbers": ({"type": "number"}, 0),
    "choices": ({"enum": ["b", "a"]}, "b"),
    "a constant": ({"const": {"a": 1}}, {"a": 1}),
    "several types": ({"type": ["null", "boolean"]}, None),
    "lists": ({"type": "array", "items": {"type": "boolean"}, "minItems": 1}, [False]),
    "sets": ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [0, 1]),
    "pairs": (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2},
        [0, ""],
    ),
    "lists with a head": ({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2}, [1, 2]),
    "objects": ({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"]}, {"a": None, "b": ""}),
    "objects with room": ({"type": "object", "minProperties": 1}, {"0": ""}),
    "objects without room": (
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False, "minProperties": 1},
        {"a": None},
    ),
    "alternatives": ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 0),
    "one of several": ({"oneOf": [{"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 3}]}, 2),
    "parts of objects": (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"const": 2}}, "required": ["b"]},
            ]
        },
        {"a": 1, "b": 2},
    ),
    "a reference": ({"$ref": "#/$defs/yes", "$defs": {"yes": {"const": "yes"}}}, "yes"),
    "a tree": (
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
                    "required": ["next"],
                }
            },
        },
        {"next": None},
    ),
    "no type": ({"minimum": 5, "maximum": 5}, 5),
    "anything": ({}, ""),
    "all": (True, ""),
    "what is excluded": ({"type": "string", "not": {"const": ""}}, "0"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_values_fit_their_schema(name: str) -> None:
    """Every value does, and the plainest one is found."""
    schema, plainest = SCHEMAS[name]
    is_valid = Draft202012Validator(schema).is_valid

    @settings(max_examples=50, deadline=None, database=None)
    @given(json_values(schema))
    def fits(value: Any) -> None:
        assert is_valid(value)
        assert is_valid(json.loads(json.dumps(value)))

    fits()

    if plainest is not None:
        found = find(json_values(schema), lambda value: True, settings=shrunk, random=random.Random(0))
        assert found == plainest

"""Values drawn for a JSON schema are valid under it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from jsonschema import Draft202012Validator

from pytest_hermes_env.strategies.json_values import json_values

shrunk = settings(max_examples=2000, database=None, phases=[Phase.generate, Phase.shrink])


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

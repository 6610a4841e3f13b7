"""The tools that drawn results call: their checked schemas, and a strategy for valid arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from pytest_hermes_env.errors import StrategyError, shorten, with_type
from pytest_hermes_env.strategies.json_values import json_values, validator_of
from pytest_hermes_env.types import ToolSchema

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
NON_OBJECTS = ("null", "[]", '"text"', "7")
"""JSON that is not an object, as models sometimes write for arguments."""


def _schema(name: str, *required: str) -> ToolSchema:
    parameters: Any = {"type": "object", "properties": {key: {"type": "string"} for key in required}, "required": [*required]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


USUAL_TOOLS: tuple[ToolSchema, ...] = (
    _schema("terminal", "command"),
    _schema("read_file", "path"),
    _schema("write_file", "path", "content"),
    _schema("search_files", "pattern"),
)
"""Short schemas of common tools, with hermes' names and required arguments."""


def checked_tools(schemas: object) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each tool's parameters.

    Raises: not a list, an empty one, an invalid tool schema, or a duplicate name → StrategyError.
    """
    if not isinstance(schemas, list | tuple) or not schemas:
        raise StrategyError(
            f"agent_results() takes a non-empty list of tool schemas.\n"
            f"  seen      {with_type(schemas)}\n"
            "  fix       [{'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}]"
        )
    tools: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        name, parameters = _read(schema)
        if name in tools:
            raise StrategyError(f"agent_results() takes tools with different names; got two named {name!r}.")
        tools[name] = parameters
    return tools


def _read(schema: Any) -> tuple[str, dict[str, Any]]:
    from jsonschema import SchemaError  # noqa: PLC0415 - takes 100 ms

    function = schema.get("function") if isinstance(schema, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
        raise StrategyError(
            f"agent_results() takes tool schemas; this one has no function with a name.\n  seen      {with_type(schema)}"
        )
    parameters = function.get("parameters") or NO_PARAMETERS
    try:
        validator_of(parameters)
    except SchemaError as error:
        raise StrategyError(
            f"agent_results(): the parameters of {name!r} are not a valid JSON schema: {error.message}.\n"
            f"  seen      {shorten(repr(parameters))}"
        ) from error
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise StrategyError(
            f"agent_results(): the parameters of {name!r} must have type object.\n  seen      {shorten(repr(parameters))}"
        )
    return name, {**parameters, "type": "object"}


def arguments_of(name: str, parameters: dict[str, Any]) -> st.SearchStrategy[str]:
    """Return a strategy for valid arguments, as JSON text. Raises: no value is valid → StrategyError."""
    values = json_values(parameters)
    try:
        values.validate()
        problem = "no value is valid" if values.is_empty else ""
    except InvalidArgument as error:
        problem = str(error)
    if problem:
        raise StrategyError(
            f"agent_results() cannot draw arguments of {name!r}: {problem}.\n  seen      {shorten(repr(parameters))}"
        )
    return values.map(lambda arguments: json.dumps(arguments, ensure_ascii=False))

"""Strategies for tool schemas, and for tool calls with valid or invalid arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hypothesis import strategies as st

from pytest_hermes_env.errors import StrategyError, shorten, with_type
from pytest_hermes_env.strategies.json_values import broken_objects, json_values, validator_of
from pytest_hermes_env.strategies.limits import check_range, drawable
from pytest_hermes_env.types import ToolCall, ToolSchema

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
NON_OBJECTS = ("null", "[]", '"text"', "7")
"""JSON that is not an object, as models sometimes write for arguments."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAX_PROPERTIES = 3
MAX_NAME_LENGTH = 8


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


def checked_tools(strategy: str, schemas: object) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each tool's parameters.

    Raises: not a list, an empty one, an invalid tool schema, or a duplicate name → StrategyError.
    """
    if not isinstance(schemas, list | tuple) or not schemas:
        raise StrategyError(
            f"{strategy}() takes a non-empty list of tool schemas.\n"
            f"  seen      {with_type(schemas)}\n"
            "  fix       [{'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}]"
        )
    tools: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        name, parameters = _read(strategy, schema)
        if name in tools:
            raise StrategyError(f"{strategy}() takes tools with different names; got two named {name!r}.")
        tools[name] = parameters
    return tools


def _read(strategy: str, schema: Any) -> tuple[str, dict[str, Any]]:
    from jsonschema import SchemaError  # noqa: PLC0415 - takes 100 ms

    function = schema.get("function") if isinstance(schema, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
        raise StrategyError(
            f"{strategy}() takes tool schemas; this one has no function with a name.\n  seen      {with_type(schema)}"
        )
    parameters = function.get("parameters") or NO_PARAMETERS
    try:
        validator_of(parameters)
    except SchemaError as error:
        raise StrategyError(
            f"{strategy}(): the parameters of {name!r} are not a valid JSON schema: {error.message}.\n"
            f"  seen      {shorten(repr(parameters))}"
        ) from error
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise StrategyError(
            f"{strategy}(): the parameters of {name!r} must have type object.\n  seen      {shorten(repr(parameters))}"
        )
    return name, {**parameters, "type": "object"}


def tool_calls(schemas: Sequence[ToolSchema], *, valid: bool | None = True) -> st.SearchStrategy[ToolCall]:
    """Return a strategy for tool calls in the form of assistant messages.

    ``valid``: True for valid arguments; False for an invalid object, JSON that is not an object, or text that is not JSON; None for
    either. Ids are not unique across draws.

    Raises: no tool schemas, or parameters without a valid value → StrategyError.
    """
    tools = checked_tools("tool_calls", schemas)
    if valid is not None and not isinstance(valid, bool):
        raise StrategyError(f"tool_calls(valid=...) takes True, False or None; got {with_type(valid)}.")
    made = [st.tuples(st.just(name), _texts(name, parameters, valid)) for name, parameters in tools.items()]
    return st.builds(_tool_call, st.integers(1, 9), st.one_of(made))


def _tool_call(number: int, called: tuple[str, str]) -> ToolCall:
    name, arguments = called
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _texts(name: str, parameters: dict[str, Any], valid: bool | None) -> st.SearchStrategy[str]:
    right = arguments_of("tool_calls", name, parameters)
    if valid:
        return right
    cut = right.map(lambda text: text[:-1])
    wrong = st.one_of(broken_objects(parameters).map(_text), cut, st.sampled_from(NON_OBJECTS))
    return wrong if valid is False else st.one_of(right, wrong)


def arguments_of(strategy: str, name: str, parameters: dict[str, Any]) -> st.SearchStrategy[str]:
    """Return a strategy for valid arguments, as JSON text. Raises: no value is valid → StrategyError."""
    return drawable(strategy, f"arguments of {name!r}", json_values(parameters), parameters).map(_text)


def _text(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def tool_schemas(*, min_size: int = 1, max_size: int = 3) -> st.SearchStrategy[list[ToolSchema]]:
    """Return a strategy for lists of tool schemas with different names. Raises: sizes that allow nothing → StrategyError."""
    check_range("tool_schemas", "min_size", min_size, "max_size", max_size)
    names = st.text(LETTERS, min_size=1, max_size=MAX_NAME_LENGTH)
    functions = st.fixed_dictionaries(
        {"name": names, "description": st.text(LETTERS + " ", max_size=20), "parameters": _parameters(names)}
    )
    made = st.fixed_dictionaries({"type": st.just("function"), "function": functions})
    return st.lists(
        cast("st.SearchStrategy[ToolSchema]", made),
        min_size=min_size,
        max_size=max_size,
        unique_by=lambda schema: schema["function"]["name"],
    )


def _parameters(names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return a strategy for object schemas with property types that tools use."""
    plain = st.sampled_from(("string", "integer", "number", "boolean")).map(lambda kind: {"type": kind})
    choices = st.lists(names, min_size=1, max_size=3, unique=True).map(lambda values: {"type": "string", "enum": values})
    lists = plain.map(lambda inner: {"type": "array", "items": inner})
    properties = st.dictionaries(names, st.tuples(st.booleans(), st.one_of(plain, choices, lists)), max_size=MAX_PROPERTIES)
    return properties.map(
        lambda held: {
            "type": "object",
            "properties": {name: schema for name, (_, schema) in held.items()},
            "required": [name for name, (is_required, _) in held.items() if is_required],
        }
    )

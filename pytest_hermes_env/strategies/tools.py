"""Strategies of tools: their schemas, and calls of them whose arguments are right, or wrong on purpose."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hypothesis import strategies as st

from pytest_hermes_env.errors import StrategyError, shorten
from pytest_hermes_env.strategies.json_values import broken_objects, json_values, validator_of
from pytest_hermes_env.strategies.limits import check_range, drawable
from pytest_hermes_env.types import ToolCall, ToolSchema

__all__ = ["NO_OBJECTS", "USUAL_TOOLS", "arguments_of", "checked_tools", "tool_calls", "tool_schemas"]

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
NO_OBJECTS = ("null", "[]", '"text"', "7")
"""JSON that is no object, as models write it for arguments."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_PROPERTIES = 3
MOST_LETTERS = 8


def _schema(name: str, *required: str) -> ToolSchema:
    parameters: Any = {"type": "object", "properties": {key: {"type": "string"} for key in required}, "required": [*required]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


USUAL_TOOLS: tuple[ToolSchema, ...] = (
    _schema("terminal", "command"),
    _schema("read_file", "path"),
    _schema("write_file", "path", "content"),
    _schema("search_files", "pattern"),
)
"""What most environments offer, in short: hermes' own names and required arguments."""


def checked_tools(strategy: str, schemas: object) -> dict[str, dict[str, Any]]:
    """Return the parameters' JSON schema of each tool.

    Raises: no list, an empty one, an entry that is no tool schema, or a name twice → StrategyError.
    """
    if not isinstance(schemas, list | tuple) or not schemas:
        raise StrategyError(
            f"{strategy}() takes a list of tool schemas, at least one.\n"
            f"  seen      {type(schemas).__name__} {shorten(repr(schemas))}\n"
            "  fix       [{'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}]"
        )
    tools: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        name, parameters = _read(strategy, schema)
        if name in tools:
            raise StrategyError(f"{strategy}() was given two tools named {name!r}: a call could mean either.")
        tools[name] = parameters
    return tools


def _read(strategy: str, schema: Any) -> tuple[str, dict[str, Any]]:
    from jsonschema import SchemaError  # noqa: PLC0415 - takes 100 ms

    function = schema.get("function") if isinstance(schema, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
        raise StrategyError(
            f"{strategy}() was given something that is no tool schema: it has no function with a name.\n"
            f"  seen      {type(schema).__name__} {shorten(repr(schema))}"
        )
    parameters = function.get("parameters") or NO_PARAMETERS
    try:
        validator_of(parameters)
    except SchemaError as error:
        raise StrategyError(
            f"{strategy}() was given parameters of {name!r} that are no JSON schema: {error.message}.\n"
            f"  seen      {shorten(repr(parameters))}"
        ) from error
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise StrategyError(
            f"{strategy}() was given parameters of {name!r} that are not of type object, but arguments always are.\n"
            f"  seen      {shorten(repr(parameters))}"
        )
    return name, {**parameters, "type": "object"}


def tool_calls(schemas: Sequence[ToolSchema], *, valid: bool | None = True) -> st.SearchStrategy[ToolCall]:
    """Return tool calls as an assistant message holds them.

    ``valid``: arguments that the tool's schema allows; False: an object that it does not allow, JSON that is no object, or text
    that is no JSON; None: either. Ids are not unique among several draws.

    Raises: no tool schemas, or parameters that nothing fits → StrategyError.
    """
    tools = checked_tools("tool_calls", schemas)
    if valid is not None and not isinstance(valid, bool):
        raise StrategyError(f"tool_calls(valid=...) takes True, False or None; got {type(valid).__name__} {valid!r}.")
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
    wrong = st.one_of(broken_objects(parameters).map(_text), cut, st.sampled_from(NO_OBJECTS))
    return wrong if valid is False else st.one_of(right, wrong)


def arguments_of(strategy: str, name: str, parameters: dict[str, Any]) -> st.SearchStrategy[str]:
    """Return arguments that the parameters' schema allows, as JSON text. Raises: nothing fits → StrategyError."""
    return drawable(strategy, f"arguments of {name!r}", json_values(parameters), parameters).map(_text)


def _text(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def tool_schemas(*, min_size: int = 1, max_size: int = 3) -> st.SearchStrategy[list[ToolSchema]]:
    """Return lists of tool schemas with different names. Raises: sizes that leave nothing → StrategyError."""
    check_range("tool_schemas", "min_size", min_size, "max_size", max_size)
    names = st.text(LETTERS, min_size=1, max_size=MOST_LETTERS)
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
    """Return schemas of objects whose properties have the types that tools take."""
    plain = st.sampled_from(("string", "integer", "number", "boolean")).map(lambda kind: {"type": kind})
    choices = st.lists(names, min_size=1, max_size=3, unique=True).map(lambda values: {"type": "string", "enum": values})
    lists = plain.map(lambda inner: {"type": "array", "items": inner})
    properties = st.dictionaries(names, st.tuples(st.booleans(), st.one_of(plain, choices, lists)), max_size=MOST_PROPERTIES)
    return properties.map(
        lambda held: {
            "type": "object",
            "properties": {name: schema for name, (_, schema) in held.items()},
            "required": [name for name, (is_required, _) in held.items() if is_required],
        }
    )

"""Names of the offered tools, and conversion of arguments to the types of their parameters.

Formats that write every argument as plain text leave its type to the tool's schema. Which type takes precedence if a
schema allows several, and how each is parsed, follows vLLM (``vllm.tool_parsers.utils.coerce_to_schema_type``, 0.33).
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from environments.tool_call_parsers.interface import ToolSchemas, json_text
from environments.tool_call_parsers.json_extent import read_json

_NOT_THIS_TYPE = object()

_LITERAL = re.compile(r"[-+.\d\[({'\"]|True\Z|False\Z|None\Z")
_LONGEST_LITERAL = 10_000
"""Characters; Python's compiler takes more than linear time and memory for a longer text that is deeply nested."""

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

_OTHER_NAMES = {
    **dict.fromkeys(("str", "text", "varchar", "char", "enum"), "string"),
    **dict.fromkeys(("int", "int32", "int64", "uint", "uint32", "uint64", "long", "short", "unsigned"), "integer"),
    **dict.fromkeys(("float", "float32", "float64", "double"), "number"),
    **dict.fromkeys(("arr", "list", "sequence"), "array"),
    "bool": "boolean",
    "dict": "object",
}
"""Type names that real tools use in addition to those of JSON Schema."""


def offered_names(tools: ToolSchemas) -> frozenset[str] | None:
    """Return the names of the offered tools; None when they are not known."""
    return None if tools is None else frozenset(name for name, _ in _functions(tools))


def parameters_of(tools: ToolSchemas, name: str) -> Mapping[str, Any]:
    """Return the schemas of a tool's parameters by name; empty when the tool or its parameters are not known."""
    for known, schema in _functions(tools or ()):
        if known == name:
            properties = schema.get("properties") if isinstance(schema, dict) else None
            return properties if isinstance(properties, dict) else {}
    return {}


def _functions(tools: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield function["name"], function.get("parameters")


def typed_arguments(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with every value converted to the type of its parameter; unknown ones stay unchanged."""
    return {key: _typed(value, parameters[key]) if key in parameters else value for key, value in arguments.items()}


def typed_texts(arguments: Mapping[str, str], tools: ToolSchemas, name: str) -> dict[str, Any]:
    """Return the arguments of a format that writes plain text, typed by the tool's schema.

    When the tools are not known, a text that is JSON or a Python literal has the type of its value.
    """
    if tools is None:
        return {key: _guessed(text) for key, text in arguments.items()}
    return typed_arguments(arguments, parameters_of(tools, name))


def _guessed(text: str) -> Any:
    for read in (_null, _json, _python):
        value = read(text.strip())
        if value is not _NOT_THIS_TYPE:
            return value
    return text


def corrected_arguments(text: str, parameters: Mapping[str, Any]) -> str | None:
    """Return JSON arguments with the types of the parameters, unchanged if the types match; None if they are not JSON."""
    value, is_json = read_json(text)
    if not is_json:
        return None
    if not isinstance(value, dict) or not parameters:
        return text
    typed = json_text(typed_arguments(value, parameters))
    return text if typed == json_text(value) else typed


def _typed(value: Any, schema: Any) -> Any:
    """Return the value converted by its schema. None stays None and does not become the text "null"."""
    if not isinstance(schema, dict) or value is None:
        return value
    if isinstance(value, dict):
        properties = schema.get("properties")
        return typed_arguments(value, properties) if isinstance(properties, dict) else value
    if isinstance(value, list):
        return [_typed(item, schema.get("items")) for item in value]
    return _read_as(value if isinstance(value, str) else json.dumps(value), _types_of(schema))


def _types_of(schema: Any) -> frozenset[str]:
    """Return the types that a schema allows; string when it has none."""
    found = set(_named_types(schema))
    return frozenset(_OTHER_NAMES.get(name.strip().lower(), name.strip().lower()) for name in found) or frozenset({"string"})


def _named_types(schema: Any) -> Iterable[str]:
    if not isinstance(schema, dict):
        return
    named = schema.get("type")
    yield from (name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str))
    allowed = schema.get("enum")
    yield from (_type_of(value) for value in (allowed if isinstance(allowed, list) else []))
    for choice in ("anyOf", "oneOf", "allOf"):
        alternatives = schema.get(choice)
        for alternative in alternatives if isinstance(alternatives, list) else []:
            yield from _types_of(alternative)


def _type_of(value: object) -> str:
    names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _read_as(text: str, types: frozenset[str]) -> Any:
    """Return text as the first of its possible types that it can be parsed as; else as any JSON value, else as text."""
    for name, read in _READERS.items():
        if name in types and (value := read(text)) is not _NOT_THIS_TYPE:
            return value
    return _json(text, default=text)


def _null(text: str) -> Any:
    return None if text.lower() == "null" else _NOT_THIS_TYPE


def _integer(text: str) -> Any:
    with contextlib.suppress(ValueError):
        return int(text)
    return _NOT_THIS_TYPE


def _number(text: str) -> Any:
    if (whole := _integer(text)) is not _NOT_THIS_TYPE:
        return whole
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(text)):
            return int(value) if value.is_integer() else value
    return _NOT_THIS_TYPE


def _json(text: str, default: Any = _NOT_THIS_TYPE) -> Any:
    value, is_json = read_json(text)
    return value if is_json and json_text(value) is not None else default


def _python(text: str) -> Any:
    """Return the value of a Python literal that JSON can represent, such as ``{'a': True}``."""
    if len(text) > _LONGEST_LITERAL or not _LITERAL.match(text):
        return _NOT_THIS_TYPE
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NOT_THIS_TYPE
    return value if json_text(value) is not None else _NOT_THIS_TYPE


_READERS: dict[str, Callable[[str], Any]] = {
    "null": _null,
    "integer": _integer,
    "number": _number,
    "boolean": lambda text: _BOOLEANS.get(text.strip().lower(), _NOT_THIS_TYPE),
    "object": _json,
    "array": _json,
    "string": lambda text: text,
}
"""The parser of each type, in the order in which they are tried."""

"""Validates the arguments of builder methods: texts, tool names, call arguments, results and exceptions."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping

from pytest_hermes_env.errors import ResultError, shorten, with_type
from pytest_hermes_env.results.values import Answer, Failure

_LITERALS = (str, int, bool, type(None))
_TO_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def why_invalid(arguments: str) -> str:
    """Return why the loop cannot parse these arguments, or "". A blank text means no arguments."""
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return str(error)
    return "" if isinstance(value, dict) else f"expected a JSON object, got {_json_type(value)}"


def _json_type(value: object) -> str:
    names: dict[type, str] = {type(None): "null", list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")


def read_result(value: object) -> Answer:
    """Return a tool result: a string as it is, an object as the JSON that hermes' tools write."""
    if isinstance(value, str):
        return Answer(text=value)
    if not isinstance(value, Mapping):
        raise ResultError(
            "returns(...) takes a tool result: an object or a string, like the results of hermes' tools.\n"
            f"  seen      {with_type(value)}\n"
            "  fix       returns({'output': 'a.txt', 'exit_code': 0, 'error': None}), or returns('plain text')"
        )
    try:
        return Answer(text=_TO_JSON(dict(value)), is_json=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultError(
            f"the result in returns(...) cannot be written as JSON: {error}.\n"
            f"  seen      {shorten(repr(value))}\n"
            "  fix       use strings, finite numbers, booleans, None, lists and dicts, or pass the text itself"
        ) from error


def read_failure(error: object) -> Failure:
    """Return the failure for an exception, or an exception class, that a tool raised."""
    raised = error() if isinstance(error, type) and issubclass(error, Exception) else error
    if not isinstance(raised, Exception) or isinstance(raised, StopIteration):
        raise ResultError(
            "raises(...) takes an exception that a tool can raise and the loop catches.\n"
            f"  seen      {with_type(error)}\n"
            "  fix       raises(RuntimeError('the sandbox is gone'))"
        )
    return Failure(type_name=type(raised).__name__, message=str(raised), source=_failure_source(raised))


def _failure_source(error: Exception) -> str:
    """Return source for an exception with the same name and text, without an import."""
    kind = type(error)
    is_builtin = getattr(builtins, kind.__name__, None) is kind and all(isinstance(part, _LITERALS) for part in error.args)
    if is_builtin and str(kind(*error.args)) == str(error):
        return f"{kind.__name__}({', '.join(map(repr, error.args))})"
    return f"type({kind.__name__!r}, (Exception,), {{}})({str(error)!r})"


def read_arguments(method: str, raw: object, arguments: dict[str, object]) -> str:
    """Return the arguments as text: the raw text if there is one, else JSON."""
    if raw is not None:
        if arguments:
            raise ResultError(
                f"{method}() takes the arguments as a string or by name, not both; got {shorten(repr(raw))} and names."
            )
        return read_text(method, raw)
    try:
        return _TO_JSON(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultError(
            f"the arguments of {method}(...) cannot be written as JSON: {error}.\n"
            f"  seen      {shorten(repr(arguments))}\n"
            "  fix       use strings, finite numbers, booleans, None, lists and dicts"
        ) from error


def read_text(method: str, value: object) -> str:
    """Return the value if it is a string. Raises: any other value → ResultError, which names the method."""
    if not isinstance(value, str):
        raise ResultError(f"{method}(...) takes a string; got {with_type(value)}.")
    return value


def read_tool_name(method: str, value: object) -> str:
    """Return the value if it is a tool name. Raises: any other value → ResultError, which names the method."""
    if not isinstance(value, str) or not value:
        raise ResultError(f"{method}(...) takes the name of a tool; got {with_type(value)}.")
    return value

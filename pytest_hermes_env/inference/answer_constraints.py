"""``tool_choice``, ``parallel_tool_calls`` and ``response_format``: what they forbid a server to answer.

Place in the flow: `MockModel` refuses requests in which they are invalid, and then holds the scripted turn to them. A server enforces
them while it samples, so a script cannot say what they exclude.
Source: OpenAI's API reference and error messages; vLLM keeps the first of several calls if ``parallel_tool_calls`` is false.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference.conversation import text_of
from pytest_hermes_env.inference.offered_tools import offered_tools
from pytest_hermes_env.inference.refusals import Refusal, openai_refusal
from pytest_hermes_env.inference.steps import Call, EmptyChoices, Fail, Garbage, Say, Turn

CHOICES = ("none", "auto", "required")
FORMATS = ("json_object", "json_schema", "text")


def constraint_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why OpenAI refuses the three fields of a chat request, or None."""
    return next(_refusals(body), None)


def names_a_tool(body: Mapping[str, object]) -> bool:
    """Return whether ``tool_choice`` names the one tool to call; the finish reason of such an answer is ``stop``."""
    return _named(body.get("tool_choice")) is not None


def constrained(turn: Turn, body: Mapping[str, object], *, origin: str) -> Turn:
    """Return the turn that a server can answer: the first call only, if ``parallel_tool_calls`` is false.

    Raises: the turn says what ``tool_choice`` or ``response_format`` excludes → ScriptError.
    """
    if any(isinstance(step, EmptyChoices | Fail | Garbage) for step in turn.steps):
        return turn
    calls = turn.every(Call)
    _check_choice(calls, body.get("tool_choice"), origin)
    if not calls:
        _check_format(turn, body.get("response_format"), origin)
    if body.get("parallel_tool_calls") is False:
        return replace(turn, steps=tuple(step for step in turn.steps if not isinstance(step, Call) or step is calls[0]))
    return turn


def _refusals(body: Mapping[str, object]) -> Iterator[Refusal]:
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not body.get("tools"):
            yield openai_refusal(
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
                fix=f"leave {name!r} out of requests without tools",
            )
    yield from _bad_choice(body.get("tool_choice"), body)
    if not isinstance(body.get("parallel_tool_calls"), bool | None):
        yield openai_refusal(
            "Invalid type for 'parallel_tool_calls': expected a boolean.",
            param="parallel_tool_calls",
            code="invalid_type",
            fix="send true or false",
        )
    yield from _bad_format(body.get("response_format"), body)


def _bad_choice(choice: object, body: Mapping[str, object]) -> Iterator[Refusal]:
    allowed = _allowed(choice)
    if choice is None or choice in CHOICES or (allowed is not None and allowed <= set(offered_tools(body))):
        return
    name = next(iter(allowed - set(offered_tools(body)))) if allowed is not None else _named(choice)
    if name is None:
        yield openai_refusal(
            f"Invalid value: {choice!r}. Supported values are: 'none', 'auto', and 'required'.",
            param="tool_choice",
            code="invalid_value",
            fix="send one of these words, or {'type': 'function', 'function': {'name': ...}}",
        )
    elif name not in offered_tools(body):
        yield openai_refusal(
            f"Invalid value for 'tool_choice': no function named '{name}' was specified in the 'tools' parameter.",
            param="tool_choice",
            fix="name an offered tool",
        )


def _bad_format(wanted: object, body: Mapping[str, object]) -> Iterator[Refusal]:
    if wanted is None:
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    schema = wanted.get("json_schema") if isinstance(wanted, dict) else None
    if kind not in FORMATS:
        yield openai_refusal(
            f"Invalid value: {kind!r}. Supported values are: 'json_object', 'json_schema', and 'text'.",
            param="response_format.type",
            code="invalid_value",
            fix="send one of these types",
        )
    elif kind == "json_object" and not _mentions_json(body):
        yield openai_refusal(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            param="messages",
            fix="tell the model in a message to answer in JSON",
        )
    elif kind == "json_schema":
        for name, given in (
            ("json_schema", schema),
            ("json_schema.name", schema.get("name") if isinstance(schema, dict) else None),
        ):
            if given is None:
                yield openai_refusal(
                    f"Missing required parameter: 'response_format.{name}'.",
                    param=f"response_format.{name}",
                    code="missing_required_parameter",
                    fix=f"send response_format.{name}",
                )
        from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 -- takes 400 ms

        try:
            Draft202012Validator.check_schema(_schema(schema))
        except SchemaError as exc:
            yield openai_refusal(
                f"Invalid schema for response_format: {exc.message}",
                param="response_format",
                fix="send a valid JSON schema",
            )


def _check_choice(calls: tuple[Call, ...], choice: object, origin: str) -> None:
    wanted, allowed = _named(choice), _allowed(choice)
    if allowed is not None:
        choice = choice["allowed_tools"].get("mode")  # type: ignore[index]
        if strange := sorted({step.tool for step in calls} - allowed):
            calls, wanted = tuple(step for step in calls if step.tool in strange), f"one of {', '.join(sorted(allowed))}"
    if choice == "none" and calls:
        seen, expected = f"calls the tool {calls[0].tool!r}", "an answer without calls"
    elif choice == "required" and not calls:
        seen, expected = "calls no tool", "at least one call"
    elif wanted is not None and {step.tool for step in calls} != {wanted}:
        seen, expected = f"calls {', '.join(step.tool for step in calls) or 'no tool'}", f"a call of {wanted!r} only"
    else:
        return
    raise ScriptError(
        f"{origin} {seen}, which no server answers to this request.\n"
        f"  expected  {expected}, because of tool_choice={choice!r}\n"
        "  fix       correct the turn, or the tool_choice of the request"
    )


def _check_format(turn: Turn, wanted: object, origin: str) -> None:
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if not isinstance(wanted, dict) or kind not in ("json_object", "json_schema"):
        return
    from jsonschema import Draft202012Validator, ValidationError  # noqa: PLC0415 -- takes 400 ms

    said = turn.only(Say)
    text = "" if said is None else said.text
    try:
        value = json.loads(text)
        schema = {"type": "object"} if kind == "json_object" else _schema(wanted.get("json_schema"))
        Draft202012Validator(schema).validate(value)
    except (ValueError, RecursionError, ValidationError) as exc:
        why = exc.message if isinstance(exc, ValidationError) else f"it is not JSON ({exc})"
        raise ScriptError(
            f"{origin} says what no server answers to this request: {shorten(why)}.\n"
            f"  expected  JSON that the response_format of type {kind!r} allows\n"
            f"  seen      {shorten(repr(text))}\n"
            "  fix       let the turn say such JSON, or remove response_format from the request"
        ) from exc


def _named(choice: object) -> str | None:
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _allowed(choice: object) -> set[str] | None:
    """Return the tools that ``{"type": "allowed_tools"}`` names, None for any other choice."""
    given = choice.get("allowed_tools") if isinstance(choice, dict) and choice.get("type") == "allowed_tools" else None
    tools = given.get("tools") if isinstance(given, dict) else None
    if not isinstance(tools, list):
        return None
    return {name for tool in tools if (name := _named(tool)) is not None}


def _schema(given: object) -> Any:
    schema = given.get("schema") if isinstance(given, dict) else None
    return {} if schema is None else schema


def _mentions_json(body: Mapping[str, object]) -> bool:
    messages = body.get("messages")
    return (
        any("json" in text_of(one).lower() for one in messages if isinstance(one, dict)) if isinstance(messages, list) else True
    )

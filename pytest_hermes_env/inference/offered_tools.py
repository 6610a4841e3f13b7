"""What a request allows its answer to be: the offered tools, ``tool_choice``, ``parallel_tool_calls`` and ``response_format``.

A server enforces these while it samples, so a scripted turn that breaks them is a mistake of the script.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference.steps import Call, Say, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def offered_tools(request: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the tools of a chat request: name → JSON schema of the arguments, {} for a tool without one."""
    found: dict[str, Mapping[str, object]] = {}
    tools = request.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            found[function["name"]] = parameters if isinstance(parameters, dict) else {}
    return found


def check_calls(turn: Turn, tools: Mapping[str, Mapping[str, object]], *, origin: str) -> None:
    """Check that the turn calls offered tools with arguments of their schemas. ``origin`` names the turn in the error.

    Calls made by `unoffered` are not checked, and calls made by `call_raw` only for their tool.

    Raises: a tool or argument that the request does not offer → ScriptError, which lists the offered ones, nearest first.
    """
    for step in turn.every(Call):
        if not step.is_offered:
            continue
        if step.tool not in tools:
            raise ScriptError(_unknown_tool(step, tools, origin))
        known = _known_arguments(tools[step.tool])
        unknown = [name for name in step.names or () if known is not None and name not in known]
        if unknown and known is not None:
            raise ScriptError(
                f"{origin} calls the tool {step.tool!r} with the argument {unknown[0]!r}, which its schema does not have.\n"
                f"  known     {_listing(nearest_first(unknown[0], known), 'no arguments')}\n"
                "  fix       use a known argument, or unoffered(call(...)) if the model should make this mistake"
            )


def names_of_choice(choice: Any) -> set[str] | None:
    """Return the tools that a valid ``tool_choice`` names, or None if it names none."""
    if not isinstance(choice, dict):
        return None
    if choice["type"] == "allowed_tools":
        return {tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]}
    return {choice[choice["type"]]["name"]}


def schema_of(response_format: Mapping[str, Any]) -> Any:
    """Return the JSON schema that a ``response_format`` requires."""
    if response_format["type"] == "json_object":
        return {"type": "object"}
    return response_format["json_schema"].get("schema") or {}


def constrained(turn: Turn, body: Mapping[str, Any], *, origin: str) -> Turn:
    """Return the turn that a server can answer to a valid chat request: one call, if ``parallel_tool_calls`` is false, as by vLLM.

    Raises: the turn says what ``tool_choice`` or ``response_format`` excludes → ScriptError.
    """
    if turn.replaces_answer:
        return turn
    calls, choice = turn.every(Call), body.get("tool_choice")
    named = names_of_choice(choice)
    mode = choice["allowed_tools"]["mode"] if isinstance(choice, dict) and choice["type"] == "allowed_tools" else choice
    strange = next((step.tool for step in calls if named is not None and step.tool not in named), None)
    if (calls and mode == "none") or strange is not None or (not calls and mode not in (None, "none", "auto")):
        raise ScriptError(
            f"{origin} calls {strange or ', '.join(step.tool for step in calls) or 'no tool'}, "
            "which no server answers to this request.\n"
            f"  expected  {'no call' if mode == 'none' else 'a call of ' + ' or '.join(sorted(named)) if named else 'a call'}, "
            f"because of tool_choice={choice!r}\n"
            "  fix       correct the turn, or the tool_choice of the request"
        )
    if not calls:
        _check_format(turn, body.get("response_format"), origin)
    if body.get("parallel_tool_calls") is False:
        return replace(turn, steps=tuple(step for step in turn.steps if not isinstance(step, Call) or step is calls[0]))
    return turn


def _check_format(turn: Turn, wanted: Any, origin: str) -> None:
    if wanted is None or wanted["type"] == "text":
        return
    from jsonschema import Draft202012Validator, ValidationError  # noqa: PLC0415 -- takes 400 ms

    said = turn.only(Say)
    text = "" if said is None else said.text
    try:
        Draft202012Validator(schema_of(wanted)).validate(json.loads(text))
    except (ValueError, RecursionError, ValidationError) as exc:
        why = exc.message if isinstance(exc, ValidationError) else f"it is not JSON ({exc})"
        raise ScriptError(
            f"{origin} says what no server answers to this request: {shorten(why)}.\n"
            f"  expected  JSON that the response_format of type {wanted['type']!r} allows\n"
            f"  seen      {shorten(repr(text))}\n"
            "  fix       let the turn say such JSON, or remove response_format from the request"
        ) from exc


def nearest_first(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words, most similar to ``word`` first; equally similar ones in their given order."""
    return sorted(known, key=lambda name: -difflib.SequenceMatcher(None, word, name).ratio())


def _unknown_tool(step: Call, tools: Mapping[str, Mapping[str, object]], origin: str) -> str:
    if tools:
        fix = "call an offered tool, or use unoffered(call(...)) if the model should make this mistake"
    else:
        fix = "offer the tool in the request; if this is a judge question, give the script an answer to it: judge=..."
    return (
        f"{origin} calls the tool {step.tool!r}, which this request does not offer.\n"
        f"  offered   {_listing(nearest_first(step.tool, tools), 'no tools')}\n"
        f"  fix       {fix}"
    )


def _known_arguments(schema: Mapping[str, object]) -> list[str] | None:
    """Return the argument names of the schema, or None if it allows any."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
        return None
    return list(properties)


def _listing(names: list[str], nothing: str) -> str:
    return shorten(", ".join(names)) if names else nothing

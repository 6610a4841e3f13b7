"""The tools that a request offers, and the check that a scripted call uses only those."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference.steps import Call, Turn

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

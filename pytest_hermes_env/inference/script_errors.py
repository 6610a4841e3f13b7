"""The errors of a script that does not cover the requests, or whose turns were not all requested."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import LeftoverTurns, UnexpectedRequest, shorten
from pytest_hermes_env.failures import Problem, ordinal, plural
from pytest_hermes_env.inference.conversation import Conversation, text_of
from pytest_hermes_env.inference.steps import Call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_hermes_env.inference.script import Script


def no_script(conversation: Conversation) -> Problem:
    """Return the problem of a request to a model without any script."""
    return Problem(
        error=UnexpectedRequest,
        text="the model received a request, but it has no script.\n"
        f"  request   {_describe_request(conversation)}\n"
        "  fix       give the mock server a script, such as MockServer([say('done')])",
    )


def no_matching_script(conversation: Conversation, scripts: Sequence[tuple[str, Script]]) -> Problem:
    """Return the problem of a conversation that no script matches. ``scripts``: each script with its label."""
    listing = "\n            ".join(f"{label}: {script.describe_when()}" for label, script in scripts)
    return Problem(
        error=UnexpectedRequest,
        text="no script matches this conversation.\n"
        f"  scripts   {listing}\n"
        f"  request   first user message {shorten(repr(conversation.first_user))}\n"
        "  fix       add a Script whose `when` matches that message, or one without `when`, which matches any",
    )


def script_exhausted(conversation: Conversation, script: Script, label: str) -> Problem:
    """Return the problem of a conversation that continues after the last turn of its script."""
    if script.judges_only:
        return Problem(
            error=UnexpectedRequest,
            text=f"the model was asked for turn {conversation.turn + 1} of a conversation with tools, but its {label} only answers judge questions.\n"
            f"  script    {script.describe()}\n"
            f"  request   {_describe_request(conversation)}\n"
            "  fix       add turns to the script: Script([say('done')], judge=...)",
        )
    wanted, has = conversation.turn + 1, len(script.turns)
    fix = f"add a {ordinal(wanted)} turn, or end the conversation with say(...)"
    if not conversation.tools and any(turn.only(Call) for turn in script.turns):
        fix = f"add a {ordinal(wanted)} turn; if this is a judge question (it offers no tools), pass judge=..."
    return Problem(
        error=UnexpectedRequest,
        text=f"the model was asked for turn {wanted} of this conversation, "
        f"but its {label} has {has} {plural('turn', has)}.\n"
        f"  script    {script.describe()}\n"
        f"  request   {_describe_request(conversation)}\n"
        f"  fix       {fix}",
    )


def unused_turns(script: Script, label: str, reached: int) -> Problem:
    """Return the problem of turns that no conversation requested. ``reached``: how many turns were requested.

    It is 0 when the script only answered judge questions.
    """
    has = len(script.turns)
    rest = "   ".join(f"{number}. {script.turns[number - 1]}" for number in range(reached + 1, has + 1))
    extent = f"no conversation went beyond turn {reached}" if reached else "it only answered judge questions"
    fix = "remove them, or let the conversation continue; if this is intended, mark the test hermes_allow_leftovers"
    failure = script.turns[reached - 1].failure if reached else None
    if failure is not None and failure.times is None:
        fix = f"turn {reached} fails on every attempt; to let a retry succeed, use turn(fail({failure.status}, times=1), ...)"
    return Problem(
        error=LeftoverTurns,
        text=f"the {label} has {has} {plural('turn', has)}, but {extent}.\n  unused    {rest}\n  fix       {fix}",
    )


def unused_script(script: Script, label: str, first_messages: Sequence[str]) -> Problem:
    """Return the problem of a script that answered no conversation. ``first_messages``: the first user messages received."""
    seen = shorten(", ".join(repr(text) for text in first_messages)) if first_messages else "no conversation"
    first = "let the test send a request to the model" if script.when is None else "correct its `when`"
    return Problem(
        error=LeftoverTurns,
        text=f"the {label} was never used.\n"
        f"  matches   {script.describe_when()}\n"
        f"  script    {script.describe()}\n"
        f"  seen      {seen}\n"
        f"  fix       {first}, remove the script, or mark the test hermes_allow_leftovers",
    )


def _describe_request(conversation: Conversation) -> str:
    """Return a description of the last message: ``last message: result of `terminal`, exit_code 1``."""
    last = conversation.last_message
    if last.get("role") == "tool":
        tool = _tool_of(conversation.messages, last.get("tool_call_id"))
        return f"last message: result of `{tool}`, {_outcome(text_of(last))}"
    return f"last message: {last.get('role')} {shorten(repr(text_of(last)))}"


def _outcome(text: str) -> str:
    try:
        result = json.loads(text)
    except ValueError:
        return shorten(repr(text))
    if isinstance(result, dict):
        for field in ("exit_code", "error"):
            if result.get(field) is not None:
                return f"{field} {shorten(result[field])}"
    return shorten(repr(text))


def _tool_of(messages: Sequence[Mapping[str, object]], call_id: object) -> str:
    for message in reversed(messages):
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("id") == call_id and isinstance(call.get("function"), dict):
                return str(call["function"].get("name"))
    return "unknown tool"

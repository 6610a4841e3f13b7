"""What went wrong between a script and the requests: the texts, and one error out of many problems."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import HermesEnvError, LeftoverTurns, UnexpectedRequest, shorten
from pytest_hermes_env.inference.conversation import Conversation, text_of
from pytest_hermes_env.inference.steps import Call, Fail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_hermes_env.inference.script import Script

__all__ = [
    "Problem",
    "as_error",
    "beyond_the_end",
    "describe_request",
    "left_over",
    "never_used",
    "no_script",
    "nothing_matches",
]

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that went wrong: the error class, and its text."""

    error: type[HermesEnvError]
    text: str

    def __str__(self) -> str:
        return f"{self.error.__name__}: {self.text}"

    def exception(self) -> HermesEnvError:
        """Return the problem as an exception of its class."""
        return self.error(self.text)


def as_error(problems: Iterable[Problem]) -> HermesEnvError | None:
    """Return one error for all the problems, of the class of the first; None when there are none.

    Equal problems are named once, with their number: clients retry, and a group asks the same thing many times.
    """
    counted = Counter(problems)
    if not counted:
        return None
    first = next(iter(counted))
    if len(counted) == 1:
        return first.error(first.text + _times(counted[first], "\n  came      "))
    entries = (
        f"\n\n{number}. {problem}{_times(count, chr(10) + '  came      ')}"
        for number, (problem, count) in enumerate(counted.items(), start=1)
    )
    return first.error(f"the mock model met {len(counted)} problems." + "".join(entries).replace("\n  ", "\n     "))


def no_script(conversation: Conversation) -> Problem:
    """Return the problem of a model that has nothing to say at all."""
    return Problem(
        error=UnexpectedRequest,
        text="the model was asked, but it has no script.\n"
        f"  request   {describe_request(conversation)}\n"
        "  fix       give the mock server a script, such as MockServer([say('done')])",
    )


def nothing_matches(conversation: Conversation, scripts: Sequence[tuple[str, Script]]) -> Problem:
    """Return the problem of a conversation that no script is for. ``scripts``: their labels and themselves."""
    listing = "\n            ".join(f"{label}: {script.describe_when()}" for label, script in scripts)
    return Problem(
        error=UnexpectedRequest,
        text="no script is for this conversation.\n"
        f"  scripts   {listing}\n"
        f"  request   first user message {shorten(repr(conversation.first_user))}\n"
        "  fix       add a Script whose `when` matches that message, or one without `when`, which is for any",
    )


def beyond_the_end(conversation: Conversation, script: Script, label: str) -> Problem:
    """Return the problem of a conversation that goes on after the last turn of its script."""
    if script.judges_only:
        return Problem(
            error=UnexpectedRequest,
            text=f"the model was asked for turn {conversation.turn + 1} of a conversation with tools, but its {label} only answers judge questions.\n"
            f"  script    {script.describe()}\n"
            f"  request   {describe_request(conversation)}\n"
            "  fix       give it turns, too: Script([say('done')], judge=...)",
        )
    wanted, has = conversation.turn + 1, len(script.turns)
    fix = f"add a {_ordinal(wanted)} turn, or end the conversation with say(...)"
    if not conversation.tools and any(turn.only(Call) for turn in script.turns):
        fix = f"add a {_ordinal(wanted)} turn; if this is a judge question (it offers no tools), give judge=..."
    return Problem(
        error=UnexpectedRequest,
        text=f"the model was asked for turn {wanted} of this conversation, "
        f"but its {label} has {has} {_plural('turn', has)}.\n"
        f"  script    {script.describe()}\n"
        f"  request   {describe_request(conversation)}\n"
        f"  fix       {fix}",
    )


def left_over(script: Script, label: str, reached: int) -> Problem:
    """Return the problem of turns that nobody asked for. ``reached``: how many turns were asked for.

    It is 0 when the script only answered judge questions.
    """
    has = len(script.turns)
    rest = "   ".join(f"{number}. {script.turns[number - 1]}" for number in range(reached + 1, has + 1))
    extent = f"no conversation went beyond turn {reached}" if reached else "it only answered judge questions"
    fix = "remove them, or let the conversation run on; if the test means it, mark it hermes_allow_leftovers"
    failure = script.turns[reached - 1].only(Fail) if reached else None
    if failure is not None and failure.times is None:
        fix = (
            f"turn {reached} fails each time it is asked; "
            f"if a retry shall get past it: turn(fail({failure.status}, times=1), ...)"
        )
    return Problem(
        error=LeftoverTurns,
        text=f"the {label} has {has} {_plural('turn', has)}, but {extent}.\n  left over {rest}\n  fix       {fix}",
    )


def never_used(script: Script, label: str, first_messages: Sequence[str]) -> Problem:
    """Return the problem of a script that spoke in no conversation. ``first_messages``: first user messages seen."""
    seen = shorten(", ".join(repr(text) for text in first_messages)) if first_messages else "no conversation at all"
    first = "let the model be asked" if script.when is None else "correct its `when`"
    return Problem(
        error=LeftoverTurns,
        text=f"the {label} was never used.\n"
        f"  for       {script.describe_when()}\n"
        f"  script    {script.describe()}\n"
        f"  seen      {seen}\n"
        f"  fix       {first}, remove the script, or mark the test hermes_allow_leftovers",
    )


def describe_request(conversation: Conversation) -> str:
    """Return what the request ends with, as words: ``last message: result of `terminal`, exit_code 1``."""
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


def _ordinal(number: int) -> str:
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _times(count: int, before: str) -> str:
    return f"{before}{count} times" if count > 1 else ""

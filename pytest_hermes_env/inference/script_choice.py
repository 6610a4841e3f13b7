"""Chooses the script that answers a conversation, returns its turn, and tracks which turns were requested.

Its errors say which request no script covers, or which turns nobody requested.
"""

from __future__ import annotations

import json
import threading
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import LeftoverTurns, ScriptError, UnexpectedRequest, shorten
from pytest_hermes_env.failures import Problem, ordinal, plural
from pytest_hermes_env.inference.conversation import Conversation, text_of
from pytest_hermes_env.inference.steps import Call, Turn, as_turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_hermes_env.inference.script import Policy, Script

MAX_FIRST_MESSAGES = 3


@dataclass(frozen=True, kw_only=True)
class ChosenTurn:
    """The turn that answers a request, the label of its script, and its ``origin``, with which error messages begin."""

    turn: Turn
    script: str
    origin: str
    is_judge: bool


class ScriptChoice:
    """Answers conversations from several scripts, and tracks how far each was used. Safe to use from several threads."""

    def __init__(self, scripts: Iterable[Script], judge: Turn | Policy | None) -> None:
        self._scripts = list(scripts)
        self._judge = judge
        self._lock = threading.Lock()
        self._reached: dict[int, int] = {}
        self._first_messages: dict[str, None] = {}

    def add(self, scripts: Iterable[Script]) -> None:
        """Append scripts; earlier ones are tried first."""
        with self._lock:
            self._scripts.extend(scripts)

    def reset(self) -> None:
        """Forget how far the scripts were used."""
        with self._lock:
            self._reached.clear()
            self._first_messages.clear()

    def choose(self, conversation: Conversation) -> ChosenTurn:
        """Return the turn that answers the conversation.

        Raises: no script covers it → UnexpectedRequest; a function raised or returned no turn → ScriptError.
        """
        first_user = conversation.first_user
        with self._lock:
            scripts = tuple(self._scripts)
            if len(self._first_messages) < MAX_FIRST_MESSAGES:
                self._first_messages.setdefault(first_user)
        found = next((index for index, script in enumerate(scripts) if script.matches(first_user)), None)
        judge = self._judge if found is None or scripts[found].judge is None else scripts[found].judge
        if judge is not None and not conversation.tools:
            self._mark_reached(found, 0)
            label = "judge" if found is None else _label(scripts, found)
            turn = judge if isinstance(judge, Turn) else _call_policy(judge, conversation)
            return ChosenTurn(turn=turn, script=label, origin="the judge", is_judge=True)
        if found is None:
            labels = [(_label(scripts, index), script) for index, script in enumerate(scripts)]
            problem = _no_matching_script(conversation, labels) if scripts else _no_script(conversation)
            raise problem.exception()
        return self._from_script(scripts, found, conversation)

    def leftovers(self) -> list[Problem]:
        """Return a problem for each script with turns that were not requested, or that was never used."""
        with self._lock:
            scripts, reached, seen = tuple(self._scripts), dict(self._reached), list(self._first_messages)
        problems: list[Problem] = []
        for index, script in enumerate(scripts):
            label = _label(scripts, index)
            if index not in reached:
                problems.append(_unused_script(script, label, seen))
            elif reached[index] < len(script.turns):
                problems.append(_unused_turns(script, label, reached[index]))
        return problems

    def _from_script(self, scripts: tuple[Script, ...], found: int, conversation: Conversation) -> ChosenTurn:
        script, label = scripts[found], _label(scripts, found)
        self._mark_reached(found, min(conversation.turn + 1, len(script.turns)))
        if script.policy is not None:
            turn = _call_policy(script.policy, conversation)
        elif conversation.turn < len(script.turns):
            turn = script.turns[conversation.turn]
        else:
            raise _script_exhausted(conversation, script, label).exception()
        return ChosenTurn(turn=turn, script=label, origin=f"turn {conversation.turn + 1} of the {label}", is_judge=False)

    def _mark_reached(self, index: int | None, turns: int) -> None:
        if index is not None:
            with self._lock:
                self._reached[index] = max(self._reached.get(index, 0), turns)


def _call_policy(policy: Policy, conversation: Conversation) -> Turn:
    name = getattr(policy, "__name__", None) or type(policy).__name__
    where = f"the script function {name} at turn {conversation.turn + 1}"
    try:
        answer = policy(conversation)
    except Exception as exc:
        frame = traceback.extract_tb(exc.__traceback__)[-1]
        raise ScriptError(
            f"{where} raised {type(exc).__name__}: {shorten(str(exc))}.\n"
            f"  at        {PurePath(frame.filename).name}:{frame.lineno}\n"
            "  fix       correct the function; it takes the conversation and returns a turn, such as say('done')"
        ) from exc
    try:
        return as_turn(answer)
    except ScriptError as exc:
        raise ScriptError(f"{where} did not return a turn: {exc}") from exc


def _label(scripts: tuple[Script, ...], index: int) -> str:
    name = scripts[index].name
    if name is not None:
        return f"script {name!r}"
    return "script" if len(scripts) == 1 else f"script {index + 1}"


def _no_script(conversation: Conversation) -> Problem:
    """Return the problem of a request to a model without any script."""
    return Problem(
        error=UnexpectedRequest,
        text="the model received a request, but it has no script.\n"
        f"  request   {_describe_request(conversation)}\n"
        "  fix       give the mock server a script, such as MockServer([say('done')])",
    )


def _no_matching_script(conversation: Conversation, scripts: Sequence[tuple[str, Script]]) -> Problem:
    """Return the problem of a conversation that no script matches. ``scripts``: each script with its label."""
    listing = "\n            ".join(f"{label}: {script.describe_when()}" for label, script in scripts)
    return Problem(
        error=UnexpectedRequest,
        text="no script matches this conversation.\n"
        f"  scripts   {listing}\n"
        f"  request   first user message {shorten(repr(conversation.first_user))}\n"
        "  fix       add a Script whose `when` matches that message, or one without `when`, which matches any",
    )


def _script_exhausted(conversation: Conversation, script: Script, label: str) -> Problem:
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


def _unused_turns(script: Script, label: str, reached: int) -> Problem:
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


def _unused_script(script: Script, label: str, first_messages: Sequence[str]) -> Problem:
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

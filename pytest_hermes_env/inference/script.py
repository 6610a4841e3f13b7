"""`Script`: the answers of a mock model in one conversation, and `ScriptChoice`, which chooses the script that answers.

Standard library only. A script is a list of turns, or a function of the conversation. Of several scripts, the first one whose
``when`` matches the first user message answers. Errors say which request no script covers, or which turns nobody requested.
"""

from __future__ import annotations

import inspect
import json
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from pytest_hermes_env.errors import ENDED, LeftoverTurns, ScriptError, UnexpectedRequest, shorten, with_type
from pytest_hermes_env.failures import Problem, ordinal, plural
from pytest_hermes_env.inference.conversation import Conversation, text_of
from pytest_hermes_env.inference.steps import STEP_TYPES, Call, Say, Step, Turn, TurnLike, as_turn

MAX_FIRST_MESSAGES = 3

Policy: TypeAlias = Callable[[Conversation], TurnLike]
Judge: TypeAlias = "TurnLike | Policy"
When: TypeAlias = str | re.Pattern[str] | Callable[[str], bool] | None
ScriptLike: TypeAlias = "Script | Policy | Turn | Step | str | Sequence[Script | Policy | TurnLike]"


@dataclass(frozen=True, init=False)
class Script:
    """The model's answers in the conversations that match ``when``.

    ``turns``: a list of turns, or a function ``policy(conversation) -> turn``. Optional if there is a ``judge``: such a script
    only answers judge questions.
    ``when``: matches the first user message: a substring, a compiled pattern, or a predicate; None matches any.
    ``judge``: the answer to requests that offer no tools, for conversations that otherwise use tools.
    ``name``: the name in error messages and in the journal.

    Raises: a wrong type, an empty list, or neither turns nor judge → ScriptError.
    """

    turns: tuple[Turn, ...]
    policy: Policy | None
    when: When
    judge: Turn | Policy | None
    name: str | None

    def __init__(
        self,
        turns: Policy | Turn | Step | str | Sequence[TurnLike] | None = None,
        *,
        when: When = None,
        judge: Judge | None = None,
        name: str | None = None,
    ) -> None:
        policy = _policy("script", turns) if callable(turns) else None
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "turns", () if callable(turns) or (turns is None and judge is not None) else _turns(turns))
        object.__setattr__(self, "when", _when(when))
        object.__setattr__(self, "judge", as_judge(judge))
        if name is not None and (not isinstance(name, str) or not name):
            raise ScriptError(f"the name of a script must be a non-empty string; got {with_type(name)}.")
        object.__setattr__(self, "name", name)

    @property
    def judges_only(self) -> bool:
        """Whether the script has no turns, only a judge."""
        return self.policy is None and not self.turns

    def matches(self, first_user: str) -> bool:
        """Return whether the script answers conversations with this first user message.

        Raises: a predicate that raises → ScriptError.
        """
        if self.when is None:
            return True
        if isinstance(self.when, str):
            return self.when in first_user
        if isinstance(self.when, re.Pattern):
            return self.when.search(first_user) is not None
        try:
            return bool(self.when(first_user))
        except Exception as exc:
            raise ScriptError(
                f"the `when` predicate {_name_of(self.when)} raised {type(exc).__name__}: {shorten(str(exc))}.\n"
                f"  seen      first user message {shorten(repr(first_user))}"
            ) from exc

    def describe(self) -> str:
        """Return the turns as one line: ``1. call terminal(command='ls')   2. say 'done'``."""
        if self.policy is not None:
            return f"the function {_name_of(self.policy)}"
        if self.judges_only:
            return f"judge questions only: {self.judge if isinstance(self.judge, Turn) else f'the function {_name_of(self.judge)}'}"
        return "   ".join(f"{number}. {turn}" for number, turn in enumerate(self.turns, start=1))

    def describe_when(self) -> str:
        """Return a description of the conversations that the script matches."""
        if self.when is None:
            return "any conversation"
        if isinstance(self.when, str):
            return f"first user message contains {shorten(repr(self.when))}"
        if isinstance(self.when, re.Pattern):
            return f"first user message matches {shorten(repr(self.when.pattern))}"
        return f"{_name_of(self.when)}(first user message) is true"


def as_scripts(value: ScriptLike | None) -> tuple[Script, ...]:
    """Return the scripts for a script, turns, a function, or a list of scripts and functions.

    Raises: neither turns nor scripts, or a mixture → ScriptError.
    """
    if value is None:
        return ()
    if isinstance(value, Script):
        return (value,)
    if isinstance(value, list | tuple) and any(_is_script(item) for item in value):
        wrong = [item for item in value if not _is_script(item)]
        if wrong:
            raise ScriptError(
                "a list holds either turns or scripts, not both.\n"
                f"  seen      {with_type(wrong[0])} next to a script\n"
                "  fix       wrap the turns: [Script([...]), Script([...])]"
            )
        return tuple(item if isinstance(item, Script) else Script(item) for item in value)
    return (Script(value),)  # type: ignore[arg-type]  # `Script` rejects what is neither turns nor function


def as_judge(value: Judge | None) -> Turn | Policy | None:
    """Return the answer to judge questions as a turn or a function.

    Raises: neither → ScriptError.
    """
    if value is None:
        return None
    return _policy("judge", value) if callable(value) else as_turn(value)


def _is_script(value: object) -> bool:
    return isinstance(value, Script) or callable(value)


def _turns(value: object) -> tuple[Turn, ...]:
    if isinstance(value, (str, Turn, *STEP_TYPES)):
        return (as_turn(value),)
    if value is None:
        raise ScriptError(
            "a script needs turns, or a judge.\n"
            "  fix       Script([call('terminal', command='ls'), say('done')]), or Script(judge='0.5') to answer judge questions only"
        )
    if not isinstance(value, list | tuple):
        raise ScriptError(
            f"a script must be a list of turns or a function of the conversation; "
            f"got {with_type(value)}.\n"
            "  fix       Script([call('terminal', command='ls'), say('done')])"
        )
    if not value:
        raise ScriptError("a script needs at least one turn, such as Script([say('done')]).")
    return tuple(as_turn(item) for item in value)


def _policy(role: str, value: Policy) -> Policy:
    if inspect.isclass(value) or inspect.iscoroutinefunction(value):
        kind = "class" if inspect.isclass(value) else "async function"
        raise ScriptError(
            f"a {role} must be a plain function of the conversation; got the {kind} {_name_of(value)}.\n"
            f"  fix       def {role}(conversation): return say('done')"
        )
    return value


def _when(value: When) -> When:
    if value is None or isinstance(value, str | re.Pattern) or (callable(value) and not inspect.isclass(value)):
        return value
    raise ScriptError(
        f"`when` must be a string, a compiled pattern or a predicate on the first user message; got {with_type(value)}."
    )


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


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
        self._begun: dict[int, int] = {}
        self._first_messages: dict[str, None] = {}

    def add(self, scripts: Iterable[Script]) -> None:
        """Append scripts; earlier ones are tried first."""
        with self._lock:
            self._scripts.extend(scripts)

    def reset(self) -> None:
        """Forget how far the scripts were used."""
        with self._lock:
            self._reached.clear()
            self._begun.clear()
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
            raise _no_matching_script(conversation, scripts)
        return self._from_script(scripts, found, conversation)

    def leftovers(self) -> list[Problem]:
        """Return a problem for each script with turns that were not requested, or that was never used."""
        with self._lock:
            scripts, reached, begun = tuple(self._scripts), dict(self._reached), dict(self._begun)
            seen = list(self._first_messages)
        problems: list[Problem] = []
        for index, script in enumerate(scripts):
            label = _label(scripts, index)
            if index not in reached:
                problems.append(_unused_script(script, label, seen))
            elif reached[index] < len(script.turns):
                problems.append(_unused_turns(script, label, reached[index], is_again=begun.get(index, 0) > 1))
        return problems

    def _from_script(self, scripts: tuple[Script, ...], found: int, conversation: Conversation) -> ChosenTurn:
        script, label = scripts[found], _label(scripts, found)
        self._mark_reached(found, min(conversation.turn + 1, len(script.turns)))
        with self._lock:
            self._begun[found] = self._begun.get(found, 0) + (conversation.turn == 0)
        if script.policy is not None:
            turn = _call_policy(script.policy, conversation)
        elif conversation.turn < len(script.turns):
            turn = script.turns[conversation.turn]
        else:
            raise _script_exhausted(conversation, script, label)
        return ChosenTurn(turn=turn, script=label, origin=f"turn {conversation.turn + 1} of the {label}", is_judge=False)

    def _mark_reached(self, index: int | None, turns: int) -> None:
        if index is not None:
            with self._lock:
                self._reached[index] = max(self._reached.get(index, 0), turns)


def _call_policy(policy: Policy, conversation: Conversation) -> Turn:
    where = f"the script function {_name_of(policy)} at turn {conversation.turn + 1}"
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


def _no_matching_script(conversation: Conversation, scripts: tuple[Script, ...]) -> UnexpectedRequest:
    """Return the error of a conversation that no script matches, of a model that may have none."""
    if not scripts:
        return UnexpectedRequest(
            "the model received a request, but it has no script.\n"
            f"  request   {_describe_request(conversation)}\n"
            "  fix       give the mock server a script, such as MockServer([say('done')])"
        )
    listing = "\n            ".join(f"{_label(scripts, at)}: {script.describe_when()}" for at, script in enumerate(scripts))
    return UnexpectedRequest(
        "no script matches this conversation.\n"
        f"  scripts   {listing}\n"
        f"  request   first user message {shorten(repr(conversation.first_user))}\n"
        "  fix       add a Script whose `when` matches that message, or one without `when`, which matches any"
    )


def _script_exhausted(conversation: Conversation, script: Script, label: str) -> UnexpectedRequest:
    """Return the error of a conversation that continues after the last turn of its script."""
    wanted, has = conversation.turn + 1, len(script.turns)
    what = f"turn {wanted} of this conversation, but its {label} has {has} {plural('turn', has)}"
    fix = f"add a {ordinal(wanted)} turn, or end the conversation with say(...)"
    if script.judges_only:
        what = f"turn {wanted} of a conversation with tools, but its {label} only answers judge questions"
        fix = "add turns to the script: Script([say('done')], judge=...)"
    elif not conversation.tools and any(turn.only(Call) for turn in script.turns):
        fix = f"add a {ordinal(wanted)} turn; if this is a judge question (it offers no tools), pass judge=..."
    return UnexpectedRequest(
        f"the model was asked for {what}.\n"
        f"  script    {script.describe()}\n"
        f"  request   {_describe_request(conversation)}\n"
        f"  fix       {fix}"
    )


def _unused_turns(script: Script, label: str, reached: int, *, is_again: bool) -> Problem:
    """Return the problem of turns that no conversation requested. ``reached``: how many turns were requested.

    It is 0 when the script only answered judge questions. ``is_again``: the first turn was requested more than once.
    """
    has = len(script.turns)
    rest = "   ".join(f"{number}. {script.turns[number - 1]}" for number in range(reached + 1, has + 1))
    extent = f"no conversation went beyond turn {reached}" if reached else "it only answered judge questions"
    fix = "remove them, or let the conversation continue; if this is intended, mark the test hermes_allow_leftovers"
    failure = script.turns[reached - 1].failure if reached else None
    if failure is not None and failure.times is None:
        fix = f"turn {reached} fails on every attempt; to let a retry succeed, use turn(fail({failure.status}, times=1), ...)"
    ended = ""
    if reached and is_again and (last := script.turns[reached - 1]).only(Say) is not None and last.only(Call) is None:
        ended = f"{ENDED}by turn {reached}, which calls no tool: the next conversation begins with turn 1 again\n"
        unused = f"turn {has}" if has == reached + 1 else f"turns {reached + 1} to {has}"
        fix = f"delete {unused}; or, for another conversation, give each its own Script(turns, when=...)"
    return Problem(
        error=LeftoverTurns,
        text=f"the {label} has {has} {plural('turn', has)}, but {extent}.\n  unused    {rest}\n{ended}  fix       {fix}",
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

"""Chooses the script that answers a conversation, returns its turn, and tracks which turns were requested."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference.script_errors import (
    no_matching_script,
    no_script,
    script_exhausted,
    unused_script,
    unused_turns,
)
from pytest_hermes_env.inference.steps import Turn, as_turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_hermes_env.failures import Problem
    from pytest_hermes_env.inference.conversation import Conversation
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
            problem = no_matching_script(conversation, labels) if scripts else no_script(conversation)
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
                problems.append(unused_script(script, label, seen))
            elif reached[index] < len(script.turns):
                problems.append(unused_turns(script, label, reached[index]))
        return problems

    def _from_script(self, scripts: tuple[Script, ...], found: int, conversation: Conversation) -> ChosenTurn:
        script, label = scripts[found], _label(scripts, found)
        self._mark_reached(found, min(conversation.turn + 1, len(script.turns)))
        if script.policy is not None:
            turn = _call_policy(script.policy, conversation)
        elif conversation.turn < len(script.turns):
            turn = script.turns[conversation.turn]
        else:
            raise script_exhausted(conversation, script, label).exception()
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

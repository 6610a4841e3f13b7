"""Which script speaks in a conversation, what it says there, and which of its turns were asked for."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference.script_errors import (
    Problem,
    beyond_the_end,
    left_over,
    never_used,
    no_script,
    nothing_matches,
)
from pytest_hermes_env.inference.steps import Turn, as_turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_hermes_env.inference.conversation import Conversation
    from pytest_hermes_env.inference.script import Policy, Script

__all__ = ["Speaker", "Spoken"]

FIRST_MESSAGES_KEPT = 3


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """What is said, by which script (its label), and in words for the head of an error message."""

    turn: Turn
    script: str
    said_by: str
    is_judge: bool


class Speaker:
    """Speaks the scripts, and remembers how far each was spoken. Safe to use from several threads."""

    def __init__(self, scripts: Iterable[Script], judge: Turn | Policy | None) -> None:
        self._scripts = list(scripts)
        self._judge = judge
        self._lock = threading.Lock()
        self._reached: dict[int, int] = {}
        self._first_messages: dict[str, None] = {}

    def add(self, scripts: Iterable[Script]) -> None:
        """Let more scripts speak, after those that are there."""
        with self._lock:
            self._scripts.extend(scripts)

    def forget(self) -> None:
        """Forget how far the scripts were spoken."""
        with self._lock:
            self._reached.clear()
            self._first_messages.clear()

    def speak(self, conversation: Conversation) -> Spoken:
        """Return what is said at this turn of the conversation.

        Raises: nothing covers it → UnexpectedRequest; a function raised or gave no turn → ScriptError.
        """
        first_user = conversation.first_user
        with self._lock:
            scripts = tuple(self._scripts)
            if len(self._first_messages) < FIRST_MESSAGES_KEPT:
                self._first_messages.setdefault(first_user)
        found = next((index for index, script in enumerate(scripts) if script.matches(first_user)), None)
        judge = self._judge if found is None or scripts[found].judge is None else scripts[found].judge
        if judge is not None and not conversation.tools:
            self._reach(found, 0)
            label = "judge" if found is None else _label(scripts, found)
            return Spoken(turn=_judged(judge, conversation), script=label, said_by="the judge", is_judge=True)
        if found is None:
            labels = [(_label(scripts, index), script) for index, script in enumerate(scripts)]
            problem = nothing_matches(conversation, labels) if scripts else no_script(conversation)
            raise problem.exception()
        return self._from_script(scripts, found, conversation)

    def unspoken(self) -> list[Problem]:
        """Return the turns that nobody asked for and the scripts that never spoke, as problems."""
        with self._lock:
            scripts, reached, seen = tuple(self._scripts), dict(self._reached), list(self._first_messages)
        problems: list[Problem] = []
        for index, script in enumerate(scripts):
            label = _label(scripts, index)
            if index not in reached:
                problems.append(never_used(script, label, seen))
            elif reached[index] < len(script.turns):
                problems.append(left_over(script, label, reached[index]))
        return problems

    def _from_script(self, scripts: tuple[Script, ...], found: int, conversation: Conversation) -> Spoken:
        script, label = scripts[found], _label(scripts, found)
        said_by = f"turn {conversation.turn + 1} of the {label}"
        self._reach(found, min(conversation.turn + 1, len(script.turns)))
        if script.policy is not None:
            turn = _ask(script.policy, conversation)
        elif conversation.turn < len(script.turns):
            turn = script.turns[conversation.turn]
        else:
            raise beyond_the_end(conversation, script, label).exception()
        return Spoken(turn=turn, script=label, said_by=said_by, is_judge=False)

    def _reach(self, index: int | None, turns: int) -> None:
        if index is not None:
            with self._lock:
                self._reached[index] = max(self._reached.get(index, 0), turns)


def _judged(judge: Turn | Policy, conversation: Conversation) -> Turn:
    return judge if isinstance(judge, Turn) else _ask(judge, conversation)


def _ask(policy: Policy, conversation: Conversation) -> Turn:
    name = getattr(policy, "__name__", None) or type(policy).__name__
    where = f"the script function {name} at turn {conversation.turn + 1}"
    try:
        answer = policy(conversation)
    except Exception as exc:
        frame = traceback.extract_tb(exc.__traceback__)[-1]
        raise ScriptError(
            f"{where} raised {type(exc).__name__}: {shorten(str(exc))}.\n"
            f"  at        {PurePath(frame.filename).name}:{frame.lineno}\n"
            "  fix       correct the function; it gets the conversation and returns a turn, such as say('done')"
        ) from exc
    try:
        return as_turn(answer)
    except ScriptError as exc:
        raise ScriptError(f"{where} returned no turn: {exc}") from exc


def _label(scripts: tuple[Script, ...], index: int) -> str:
    name = scripts[index].name
    if name is not None:
        return f"script {name!r}"
    return "script" if len(scripts) == 1 else f"script {index + 1}"

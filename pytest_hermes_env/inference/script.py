"""`Script`: the answers of a mock model in one conversation. Standard library only.

A script is a list of turns, or a function of the conversation. Of several scripts, the first one whose ``when`` matches the first
user message answers.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pytest_hermes_env.errors import ScriptError, shorten, with_type
from pytest_hermes_env.inference.steps import STEP_TYPES, Step, Turn, TurnLike, as_turn

if TYPE_CHECKING:
    from pytest_hermes_env.inference.conversation import Conversation

Policy: TypeAlias = "Callable[[Conversation], TurnLike]"
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
        object.__setattr__(self, "name", _name(name))

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


def _name(value: str | None) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ScriptError(f"the name of a script must be a non-empty string; got {with_type(value)}.")
    return value


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)

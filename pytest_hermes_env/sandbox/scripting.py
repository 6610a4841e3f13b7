"""Builds the entries of a fake sandbox's script, and refuses invalid ones.

Place in the flow: `FakeSandbox.on` and `FakeSandbox.on_tool` call it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.sandbox.answers import Answer, Matches, Scripted, called, shell_words, takes

__all__ = ["Matcher", "as_answer", "for_command", "for_tool"]

Matcher: TypeAlias = "str | re.Pattern[str] | Callable[[str], bool]"
"""The commands of an entry: exact text, a pattern to find in the text, or a function of the text."""


def for_command(
    command: Matcher, single: Answer, *, answers: Sequence[Any] | None, times: int | None, optional: bool
) -> Scripted:
    """Return the entry for a command. Raises: invalid arguments → UsageError."""
    shown, key, matches = _matcher(command)
    given, often = _as_answers(single, answers, times)
    return Scripted(shown=f"on({shown})", key=key, matches=matches, answers=given, times=often, optional=optional)


def for_tool(name: str, single: Answer, *, answers: Sequence[Any] | None, times: int | None, optional: bool) -> Scripted:
    """Return the entry for a tool. Raises: invalid arguments → UsageError."""
    if not isinstance(name, str) or not name:
        raise UsageError(
            "on_tool requires the name of a tool.\n"
            f"  seen      {shorten(repr(name))}\n"
            "  fix       sandbox.on_tool('vision_analyze', {'success': True, 'analysis': '...'})"
        )
    given, often = _as_answers(single, answers, times)
    for answer in given:
        if callable(answer.output) and not takes(answer.output, 1) and not takes(answer.output, 2):
            raise UsageError(
                f"a function that answers the tool `{name}` must take the arguments, and optionally the sandbox.\n"
                f"  seen      {called(answer.output).rpartition('.')[2]}{inspect.signature(answer.output)}\n"
                "  fix       def handler(arguments): ... or def handler(arguments, sandbox): ..."
            )
    return Scripted(
        shown=f"on_tool({name!r})",
        key=name,
        matches=lambda seen, _words: seen == name,
        answers=given,
        times=often,
        optional=optional,
    )


def _matcher(command: Matcher) -> tuple[str, object, Matches]:
    """Return a matcher's text for messages, its key, and the match function."""
    if isinstance(command, str) and command.strip():
        text = command.strip()
        wanted = shell_words(text)
        return repr(command), text, lambda seen, words: seen == text or (bool(words) and words == wanted)
    if isinstance(command, re.Pattern) and isinstance(command.pattern, str):
        search = command.search
        return (
            f"re.compile({command.pattern!r})",
            (command.pattern, command.flags),
            lambda seen, words: bool(search(seen) or (words and search(" ".join(words)))),
        )
    if callable(command):
        return called(command), command, lambda seen, _words: _holds(command, seen)
    raise UsageError(
        "a command must be matched by its text, a compiled text pattern or a function of its text.\n"
        f"  seen      {shorten(repr(command))}\n"
        "  fix       sandbox.on('pytest -q', ...), sandbox.on(re.compile('^pytest'), ...) or sandbox.on(lambda text: ..., ...)"
    )


def _holds(predicate: Callable[[str], bool], text: str) -> bool:
    try:
        return bool(predicate(text))
    except Exception as error:
        raise UsageError(
            f"the function {called(predicate)}, which matches commands, raised {type(error).__name__}.\n"
            f"  command   {shorten(text)}\n"
            f"  seen      {shorten(str(error))}\n"
            "  fix       return True or False for any text"
        ) from error


def _as_answers(single: Answer, answers: Sequence[Any] | None, times: int | None) -> tuple[tuple[Answer, ...], int | None]:
    """Return the answers, and how often they are given; None is unlimited."""
    if answers is None:
        if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
            raise UsageError(
                "`times`, how often an answer is given, must be an integer from 1.\n"
                f"  seen      times={shorten(repr(times))}\n"
                "  fix       leave it out to repeat the answer; use optional=True if the answer may stay unused"
            )
        return (single,), times
    if single != Answer() or times is not None:
        beside = str(single) if single != Answer() else f"times={times}"
        raise UsageError(
            "`answers` is the complete sequence, each given once; it excludes output, faults and times.\n"
            f"  seen      answers={shorten(repr(answers))} with {beside}\n"
            "  fix       put them into the sequence: answers=['1 failed', Answer(timed_out=True), '1 passed']"
        )
    if isinstance(answers, str) or not isinstance(answers, Sequence) or not answers:
        raise UsageError(
            "`answers` must be a list with at least one answer.\n"
            f"  seen      {shorten(repr(answers))}\n"
            "  fix       answers=['1 failed', '1 passed'], or one answer without `answers` to repeat it"
        )
    return tuple(as_answer(answer) for answer in answers), len(answers)


def as_answer(value: Any) -> Answer:
    """Return an `Answer` from any accepted form: an `Answer`, text, an `Outcome`, a function, a complete result, an exception."""
    if isinstance(value, Answer):
        return value
    if isinstance(value, Mapping):
        return Answer(result=value)
    if isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException)):
        return Answer(raises=value)
    return Answer(output=value)

"""Scripted answers of a fake sandbox: their entries, their order, and deliberate faults.

Place in the flow: `FakeSandbox.on` and `FakeSandbox.on_tool` build the entries here; the terminal and the other tools take answers
from them. A rollout's machine shares the entries and has a separate count.
"""

from __future__ import annotations

import inspect
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from pytest_hermes_env.errors import HermesEnvError, UsageError, shorten
from pytest_hermes_env.sandbox.machine import InMemoryMachine, wait
from pytest_hermes_env.sandbox.sandbox_errors import raised

Matcher: TypeAlias = "str | re.Pattern[str] | Callable[[str], bool]"
"""The commands of an entry: exact text, a pattern to find in the text, or a function of the text."""

Matches: TypeAlias = "Callable[[str, tuple[str, ...]], bool]"
"""(text of a command, its words) or (name of a tool, ()) -> whether an entry matches."""

LONGEST_COMMAND = 4096
"""Characters of the longest command that is taken apart into words."""
SHOWN = 60
"""Most characters of an answer in a message."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a terminal shows of a command line: standard output and standard error in their order, and the exit code.

    ``errors`` is the standard error of one scripted command; a whole line's outcome has everything in ``output``.
    """

    output: str
    exit_code: int = 0
    errors: str = ""


@dataclass(frozen=True, kw_only=True)
class CommandCall:
    """The argument of a function that answers a command.

    ``text`` is the simple command as written, ``words`` its words without quotes, ``arguments`` those of the tool ``terminal``.
    ``sandbox`` is the machine that runs it; each rollout has its own.
    """

    text: str
    words: tuple[str, ...]
    arguments: Mapping[str, Any]
    sandbox: InMemoryMachine


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, and its deliberate faults.

    ``output`` is the output of a command: text, an `Outcome`, or a function of the `CommandCall` that returns text, an `Outcome`
    or a complete tool result; for a tool it is the result as text, or a function of the arguments. ``exit_code`` is that of a
    command. ``result`` is the complete result instead. ``timed_out``: a command reaches hermes' time limit; in the background it
    never ends. ``broken_json``: the result is cut off in the middle. ``raises``: the call raises it. ``slow_s``: delay in seconds.
    ``writes``: files that the command writes.
    """

    output: Any = ""
    exit_code: int = 0
    result: Mapping[str, Any] | None = None
    timed_out: bool = False
    broken_json: bool = False
    raises: BaseException | type[BaseException] | None = None
    slow_s: float = 0.0
    writes: Mapping[str, str | bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.result is not None and (self.output != "" or self.exit_code or self.timed_out):
            raise UsageError(
                "an answer has both `result`, the complete tool result, and parts of a result.\n"
                f"  seen      result={_brief(self.result)} with {replace(self, result=None)}\n"
                "  fix       give either result={...} or output, exit_code and timed_out"
            )
        if not isinstance(self.exit_code, int) or isinstance(self.exit_code, bool):
            raise UsageError(f"the exit code of an answer must be an integer.\n  seen      {shorten(repr(self.exit_code))}")
        if not isinstance(self.slow_s, (int, float)) or not self.slow_s >= 0:
            raise UsageError(
                f"slow_s, the delay of an answer in seconds, must be a number from 0.\n  seen      {shorten(repr(self.slow_s))}"
            )
        if self.timed_out and self.raises is not None:
            raise UsageError(
                "an answer cannot both time out and raise.\n"
                f"  seen      timed_out=True and raises={shorten(repr(self.raises))}\n"
                "  fix       give one of them, or several answers in sequence with answers=[...]"
            )
        if not (isinstance(self.output, (str, Outcome)) or callable(self.output)):
            raise UsageError(
                "the output of an answer must be text, an Outcome or a function.\n"
                f"  seen      {shorten(repr(self.output))}\n"
                "  fix       use result={...} for a complete tool result, answers=[...] for several answers"
            )

    def delay(self, at_most_s: float = math.inf) -> None:
        """Wait as long as a slow answer takes."""
        if self.slow_s:
            wait(min(self.slow_s, at_most_s))

    def fail(self) -> None:
        """Raise what the call raises, if it does."""
        if self.raises is not None:
            raise self.raises

    def __str__(self) -> str:
        usual = Answer()
        names = (field.name for field in fields(self) if field.name != "output")
        faults = [f"{name}={_brief(getattr(self, name))}" for name in names if getattr(self, name) != getattr(usual, name)]
        if self.result is not None or (self.output == "" and faults):
            return " ".join(faults)
        if isinstance(self.output, Outcome):
            said = _brief(self.output.output) + (f" exit_code={self.output.exit_code}" if self.output.exit_code else "")
        else:
            said = _brief(self.output) if isinstance(self.output, str) else called(self.output)
        return " ".join([said, *faults])


@dataclass(frozen=True, kw_only=True, eq=False)
class Scripted:
    """One entry of a script: the commands or the tool that it matches, and its answers.

    ``shown`` is the entry as it was scripted. ``key``: an unlimited entry replaces an earlier one with an equal key. ``times``: the
    number of its answers; None is unlimited, with one answer. ``optional``: it may stay unused.
    """

    shown: str
    key: object
    matches: Matches
    answers: tuple[Answer, ...]
    times: int | None = None
    optional: bool = False

    @property
    def name(self) -> str:
        """The matched command or tool, as a list of candidates shows it."""
        return self.key if isinstance(self.key, str) else self.shown.removeprefix("on(").removesuffix(")")

    @property
    def shown_answers(self) -> list[str]:
        """The answers as text, one for each time."""
        texts = [str(answer) for answer in self.answers]
        return texts * (self.times or 1) if len(texts) == 1 else texts


class Scripts:
    """The entries of one machine, and how often each was used. A fork also uses the entries of its origin, later ones included."""

    def __init__(self, origin: Scripts | None = None) -> None:
        self._own: list[Scripted] = []
        self._origin = origin
        self._used: dict[Scripted, int] = dict(origin._used) if origin is not None else {}  # noqa: SLF001 - Scripts as well

    def add(self, scripted: Scripted) -> None:
        """Add an entry. The newest entry answers first; an unlimited one replaces an earlier one with an equal key."""
        kept = [earlier for earlier in self._own if scripted.times is not None or earlier.key != scripted.key]
        self._own = [*kept, scripted]

    @property
    def own(self) -> list[Scripted]:
        """The entries of this machine without its origin's, the oldest first."""
        return list(self._own)

    def entries(self) -> list[Scripted]:
        """Return all entries, the newest first."""
        return self._own[::-1] + (self._origin.entries() if self._origin is not None else [])

    def matching(self, text: str, words: tuple[str, ...] = ()) -> list[Scripted]:
        """Return the entries that match a command or tool, the newest first."""
        return [entry for entry in self.entries() if entry.matches(text, words)]

    def ready(self, matching: Sequence[Scripted]) -> Scripted | None:
        """Return the first of these entries with an unused answer."""
        return next((entry for entry in matching if entry.times is None or self.used(entry) < entry.times), None)

    def take(self, entry: Scripted) -> Answer:
        """Return the next answer of the entry and count it as used."""
        number = self.used(entry)
        self._used[entry] = number + 1
        return entry.answers[min(number, len(entry.answers) - 1)]

    def used(self, entry: Scripted) -> int:
        """Return how often this machine used the entry."""
        return self._used.get(entry, 0)

    def give_back(self, entry: Scripted) -> None:
        """Count the last answer of the entry as unused: the command for which it was taken did not run."""
        self._used[entry] -= 1


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
        also = str(single) if single != Answer() else f"times={times}"
        raise UsageError(
            "`answers` is the complete sequence, each given once; it excludes output, faults and times.\n"
            f"  seen      answers={shorten(repr(answers))} with {also}\n"
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


def shell_words(text: str) -> tuple[str, ...]:
    """Return the words of a simple command, or none if its quotes do not match, or if it is longer than any: shlex takes quadratic time."""
    if len(text) > LONGEST_COMMAND:
        return ()
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return ()


def called(function: object) -> str:
    """Return the name of a function, for messages."""
    return str(getattr(function, "__qualname__", None) or repr(function))


def ask(function: Callable[..., object], who: str, asked: str, *arguments: Any) -> object:
    """Return what a function of the script answers. Raises: it raised → NotAToolResult."""
    try:
        return function(*arguments)
    except HermesEnvError:
        raise
    except Exception as error:
        raise raised(who, error, asked).exception() from error


def takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with ``count`` arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return count == 1
    return True


def _brief(value: object) -> str:
    return shorten(repr(value), SHOWN)

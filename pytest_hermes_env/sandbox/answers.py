"""Scripted answers of a fake sandbox: their order, and deliberate faults.

Place in the flow: `scripting` builds the entries; the terminal and the other tools take answers from them. A rollout's machine
shares the entries and has a separate count.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from pytest_hermes_env.errors import HermesEnvError, UsageError, shorten
from pytest_hermes_env.sandbox.machine import InMemoryMachine
from pytest_hermes_env.sandbox.sandbox_errors import raised

__all__ = ["Answer", "CommandCall", "Matches", "Outcome", "Scripted", "Scripts", "ask", "called", "shell_words", "takes"]

Matches: TypeAlias = "Callable[[str, tuple[str, ...]], bool]"
"""(text of a command, its words) or (name of a tool, ()) -> whether an entry matches."""

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
        if not isinstance(self.slow_s, (int, float)) or self.slow_s < 0:
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
        self._used: dict[Scripted, int] = origin.counts() if origin is not None else {}

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

    def counts(self) -> dict[Scripted, int]:
        """Return how often each entry was used."""
        return dict(self._used)

    def give_back(self, entry: Scripted) -> None:
        """Count the last answer of the entry as unused: the command for which it was taken did not run."""
        self._used[entry] -= 1


def shell_words(text: str) -> tuple[str, ...]:
    """Return the words of a simple command, or none if its quotes do not match."""
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

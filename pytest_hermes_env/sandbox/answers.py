"""Scripted answers of a fake sandbox: what matches a command or a tool, what is answered, in which order, and faults on purpose.

Place in the flow: `FakeSandbox.on` and `FakeSandbox.on_tool` write `Scripted` entries into `Scripts`; the terminal and the other
tools take answers from them. A fork of a sandbox has the same entries and a count of its own.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.sandbox.shell import Outcome

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake import FakeSandbox

__all__ = [
    "Answer",
    "CommandCall",
    "Matcher",
    "Scripted",
    "Scripts",
    "as_answer",
    "called",
    "for_command",
    "for_tool",
    "wants_sandbox",
]

Matcher: TypeAlias = "str | re.Pattern[str] | Callable[[str], bool]"
"""Which commands: exact text, a pattern that is found in the text, or a function of the text."""

Matches: TypeAlias = "Callable[[str, tuple[str, ...]], bool]"

SHOWN = 60
"""Characters of an answer that a message shows."""


@dataclass(frozen=True, kw_only=True)
class CommandCall:
    """What a function that answers a command is given.

    ``text`` is the simple command as it was written, ``words`` what the shell made of it; ``arguments`` are those of the tool
    ``terminal``. ``sandbox`` is the machine that runs it: the rollout's own, where there are rollouts.
    """

    text: str
    words: tuple[str, ...]
    arguments: Mapping[str, Any]
    sandbox: FakeSandbox


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, and what goes wrong with it on purpose.

    ``output`` is what a command says: text, an `Outcome`, or a function of the `CommandCall` that gives text, an `Outcome` or a
    whole tool result; for a tool it is the result as text, or a function of the arguments. ``exit_code`` is a command's.
    ``result`` is the whole raw result instead. ``timed_out``: a command runs into hermes' time limit; in the background it never
    ends. ``broken_json``: the result is cut off in the middle. ``raises``: the call raises it. ``slow_s``: seconds before the
    answer. ``writes``: files that are left behind.
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
                "an answer has both `result`, which is the whole tool result, and parts of one.\n"
                f"  seen      result={_brief(self.result)} with {replace(self, result=None)}\n"
                "  fix       give either result={...}, or output, exit_code and timed_out"
            )
        if not (isinstance(self.output, (str, Outcome)) or callable(self.output)):
            raise UsageError(
                "the output of an answer is text, an Outcome or a function.\n"
                f"  seen      {shorten(repr(self.output))}\n"
                "  fix       for a whole tool result give result={...}; for several answers give answers=[...]"
            )

    def __str__(self) -> str:
        faults = [f"{name}={_brief(getattr(self, name))}" for name, usual in _USUAL if getattr(self, name) != usual]
        if self.result is not None or (self.output == "" and faults):
            return " ".join(faults)
        if isinstance(self.output, Outcome):
            said = _brief(self.output.output) + (f" exit_code={self.output.exit_code}" if self.output.exit_code else "")
        else:
            said = _brief(self.output) if isinstance(self.output, str) else called(self.output)
        return " ".join([said, *faults])


_USUAL: tuple[tuple[str, object], ...] = (
    ("exit_code", 0),
    ("result", None),
    ("timed_out", False),
    ("broken_json", False),
    ("raises", None),
    ("slow_s", 0.0),
    ("writes", {}),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scripted:
    """One entry of a script: which commands or tool it is for, and its answers.

    ``shown`` is the entry as it was scripted. ``key``: a later entry without end and with an equal one takes its place. ``times``:
    how many answers it gives, None without end; then it has one answer. ``optional``: nobody needs to ask for it.
    """

    shown: str
    key: object
    matches: Matches
    answers: tuple[Answer, ...]
    times: int | None = None
    optional: bool = False

    @property
    def name(self) -> str:
        """What it is for, as a list of candidates shows it."""
        return self.key if isinstance(self.key, str) else self.shown.removeprefix("on(").removesuffix(")")

    @property
    def shown_answers(self) -> list[str]:
        """The answers as text, one for each time."""
        texts = [str(answer) for answer in self.answers]
        return texts * (self.times or 1) if len(texts) == 1 else texts


class Scripts:
    """The entries of one machine, and how often each was used. A fork sees the entries of its origin, later ones included."""

    def __init__(self, origin: Scripts | None = None) -> None:
        self._own: list[Scripted] = []
        self._origin = origin
        self._used = origin.counts() if origin is not None else {}

    def add(self, scripted: Scripted) -> None:
        """Take an entry. What was said last is answered first; an endless entry replaces an earlier one for the same."""
        kept = [earlier for earlier in self._own if scripted.times is not None or earlier.key != scripted.key]
        self._own = [*kept, scripted]

    @property
    def own(self) -> list[Scripted]:
        """The entries of this machine alone, in the order in which they were said."""
        return list(self._own)

    def entries(self) -> list[Scripted]:
        """Return all entries, the last first."""
        return self._own[::-1] + (self._origin.entries() if self._origin is not None else [])

    def matching(self, text: str, words: tuple[str, ...] = ()) -> list[Scripted]:
        """Return the entries for a command or tool, the last first."""
        return [entry for entry in self.entries() if entry.matches(text, words)]

    def ready(self, matching: Sequence[Scripted]) -> Scripted | None:
        """Return the first of these entries that has an answer left."""
        return next((entry for entry in matching if entry.times is None or self.used(entry) < entry.times), None)

    def take(self, entry: Scripted) -> Answer:
        """Return the entry's next answer, which then counts as used."""
        number = self.used(entry)
        self._used[entry] = number + 1
        return entry.answers[min(number, len(entry.answers) - 1)]

    def used(self, entry: Scripted) -> int:
        """Return how often this machine used the entry."""
        return self._used.get(entry, 0)

    def counts(self) -> dict[Scripted, int]:
        """Return how often each entry was used, for `restore`."""
        return dict(self._used)

    def restore(self, counts: Mapping[Scripted, int]) -> None:
        """Go back to earlier counts."""
        self._used = dict(counts)


def for_command(
    command: Matcher, single: Answer, *, answers: Sequence[Any] | None, times: int | None, optional: bool
) -> Scripted:
    """Return the entry for a command. Raises: what cannot be meant → UsageError."""
    shown, key, matches = _matcher(command)
    given, often = _as_answers(single, answers, times)
    return Scripted(shown=f"on({shown})", key=key, matches=matches, answers=given, times=often, optional=optional)


def for_tool(name: str, single: Answer, *, answers: Sequence[Any] | None, times: int | None, optional: bool) -> Scripted:
    """Return the entry for a tool. Raises: what cannot be meant → UsageError."""
    if not isinstance(name, str) or not name:
        raise UsageError(
            "a tool is scripted by its name.\n"
            f"  seen      {shorten(repr(name))}\n"
            "  fix       sandbox.on_tool('vision_analyze', {'success': True, 'analysis': '...'})"
        )
    given, often = _as_answers(single, answers, times)
    for answer in given:
        if callable(answer.output) and not _takes(answer.output, 1) and not _takes(answer.output, 2):
            raise UsageError(
                f"a function that answers the tool `{name}` takes its arguments, and the sandbox if it likes.\n"
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


def called(function: object) -> str:
    """Return the name of a function, for messages."""
    return str(getattr(function, "__qualname__", None) or repr(function))


def wants_sandbox(function: Callable[..., Any]) -> bool:
    """Tell whether a function that answers a tool takes the sandbox besides the arguments."""
    return _takes(function, 2)


def _matcher(command: Matcher) -> tuple[str, object, Matches]:
    """Return how a matcher is shown, what it equals, and the test itself."""
    if isinstance(command, str) and command.strip():
        text = command.strip()
        wanted = _words(text)
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
        "a command is matched by its text, a compiled text pattern or a function of its text.\n"
        f"  seen      {shorten(repr(command))}\n"
        "  fix       sandbox.on('pytest -q', ...), sandbox.on(re.compile('^pytest'), ...) or sandbox.on(lambda text: ..., ...)"
    )


def _holds(predicate: Callable[[str], bool], text: str) -> bool:
    try:
        return bool(predicate(text))
    except Exception as error:
        raise UsageError(
            f"the function {called(predicate)}, which tells the commands of an answer, raised {type(error).__name__}.\n"
            f"  command   {shorten(text)}\n"
            f"  seen      {shorten(str(error))}\n"
            "  fix       let it return True or False for any text"
        ) from error


def _as_answers(single: Answer, answers: Sequence[Any] | None, times: int | None) -> tuple[tuple[Answer, ...], int | None]:
    """Return the answers, and how many are given in all."""
    if answers is None:
        if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
            raise UsageError(
                "`times` is how often an answer is given, and at least 1.\n"
                f"  seen      times={shorten(repr(times))}\n"
                "  fix       leave it out for an answer that is given each time; optional=True for one that need not be asked for"
            )
        return (single,), times
    if single != Answer() or times is not None:
        beside = str(single) if single != Answer() else f"times={times}"
        raise UsageError(
            "`answers` is the whole sequence, each given once; output, faults or times beside it have no place.\n"
            f"  seen      answers={shorten(repr(answers))} with {beside}\n"
            "  fix       put them into the sequence: answers=['1 failed', Answer(timed_out=True), '1 passed']"
        )
    if isinstance(answers, str) or not isinstance(answers, Sequence) or not answers:
        raise UsageError(
            "`answers` is a list with at least one answer.\n"
            f"  seen      {shorten(repr(answers))}\n"
            "  fix       answers=['1 failed', '1 passed'], or one answer without `answers`, which is given each time"
        )
    return tuple(as_answer(answer) for answer in answers), len(answers)


def as_answer(value: Any) -> Answer:
    """Return one answer as it may be written: an `Answer`, text, an `Outcome`, a function, a whole result, an exception."""
    if isinstance(value, Answer):
        return value
    if isinstance(value, Mapping):
        return Answer(result=value)
    if isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException)):
        return Answer(raises=value)
    return Answer(output=value)


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return count == 1
    return True


def _words(text: str) -> tuple[str, ...] | None:
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return None


def _brief(value: object) -> str:
    return shorten(repr(value), SHOWN)

"""What a fake sandbox was asked and could not answer, or was told and nobody asked for: the texts, and one error out of many."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.errors import SEEN_LIMIT, HermesEnvError, LeftoverAnswers, NotAToolResult, UnexpectedToolCall, shorten

__all__ = [
    "Problem",
    "as_error",
    "as_json",
    "exhausted",
    "left_over",
    "nearest",
    "not_a_result",
    "raised",
    "unknown_page",
    "unscripted_command",
    "unscripted_line",
    "unscripted_tool",
]

NEAREST = 5
"""How many candidates a message names."""
LONG = 120
"""Characters of a command that are too many for a line to paste."""
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


def as_error(problems: Iterable[Problem], *, who: str) -> HermesEnvError | None:
    """Return one error for all the problems, of the class of the first; None when there are none.

    Equal problems are named once, with their number: a group of rollouts meets the same one many times. ``who`` met them.
    """
    counted = Counter(problems)
    if not counted:
        return None
    first = next(iter(counted))
    if len(counted) == 1:
        return first.error(first.text + _times(counted[first]))
    entries = (f"\n\n{number}. {problem}{_times(count)}" for number, (problem, count) in enumerate(counted.items(), start=1))
    return first.error(f"{who} met {len(counted)} problems." + "".join(entries).replace("\n  ", "\n     "))


def nearest(wanted: str, candidates: Sequence[str]) -> list[str]:
    """Return up to five candidates, those that resemble ``wanted`` most first, and among equals those that were given first."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)

    def unlikeness(candidate: str) -> float:
        matcher.set_seq1(candidate)
        return -matcher.ratio()

    return sorted(dict.fromkeys(candidates), key=unlikeness)[:NEAREST]


def unscripted_command(command: str, line: str, scripted: Sequence[str]) -> Problem:
    """Return the problem of a command that is neither scripted nor built in. ``line``: what the terminal was asked to run."""
    within = f"  line      {shorten(line)}\n" if line.strip() != command else ""
    return Problem(
        error=UnexpectedToolCall,
        text="the sandbox was asked to run a command that is neither scripted nor built in.\n"
        f"  command   {shorten(command)}\n"
        f"{within}"
        f"  scripted  {_listing(command, scripted)}\n"
        f"  fix       sandbox.on({_matcher(command)}, output='...')",
    )


def unscripted_line(line: str, what: str, scripted: Sequence[str]) -> Problem:
    """Return the problem of a line that the sandbox's shell cannot take apart; ``what`` it does not know."""
    return Problem(
        error=UnexpectedToolCall,
        text=f"the sandbox's shell does not know {shorten(what)}, so it cannot run this line.\n"
        f"  line      {shorten(line)}\n"
        f"  scripted  {_listing(line, scripted)}\n"
        f"  fix       script the whole line: sandbox.on({_matcher(line.strip())}, output='...')",
    )


def exhausted(asked: str, shown: str, answers: Sequence[str]) -> Problem:
    """Return the problem of a script all of whose answers are used. ``shown``: the entry as it was scripted."""
    has = len(answers)
    return Problem(
        error=UnexpectedToolCall,
        text=f"the sandbox was asked for {shorten(asked)} {_often(has + 1)}, but its script has {has} {_plural('answer', has)}.\n"
        f"  script    {shorten(shown)}\n"
        f"  answers   {_numbered(answers)}\n"
        f"  fix       give a {_ordinal(has + 1)} answer, or one without `times`, which is given each time",
    )


def unscripted_tool(name: str, arguments: Mapping[str, Any], scripted: Sequence[str], fix: str) -> Problem:
    """Return the problem of a tool that nobody scripted; ``fix`` is what to write."""
    return Problem(
        error=UnexpectedToolCall,
        text=f"the sandbox was asked for the tool `{name}`, which is not scripted.\n"
        f"  arguments {shorten(as_json(arguments))}\n"
        f"  scripted  {_listing(name, scripted)}\n"
        f"  fix       {fix}",
    )


def unknown_page(name: str, kind: str, wanted: str, present: Sequence[str], fix: str) -> Problem:
    """Return the problem of a page or a search (``kind``) that the sandbox's web does not have."""
    return Problem(
        error=UnexpectedToolCall,
        text=f"the tool `{name}` was asked for a {kind} that the sandbox's web does not have.\n"
        f"  wanted    {shorten(wanted)}\n"
        f"  web       {_listing(wanted, present)}\n"
        f"  fix       {fix}",
    )


def not_a_result(who: str, given: object, reason: str, expected: str) -> Problem:
    """Return the problem of a handler whose value no tool could give; ``reason`` says more where the type does not."""
    return Problem(
        error=NotAToolResult,
        text=f"{who} gave a {type(given).__name__}{reason}, which is no tool result.\n"
        f"  expected  {expected}\n"
        f"  seen      {shorten(repr(given))}\n"
        "  fix       correct what the handler returns",
    )


def raised(who: str, error: Exception, asked: str) -> Problem:
    """Return the problem of a handler that raised what was not meant as an answer."""
    return Problem(
        error=NotAToolResult,
        text=f"{who} raised {type(error).__name__}.\n"
        f"  asked     {shorten(asked)}\n"
        f"  seen      {shorten(str(error))}\n"
        "  fix       correct the handler; an exception that is meant as the answer is given with raises=...",
    )


def left_over(shown: str, answers: Sequence[str], used: int) -> Problem:
    """Return the problem of answers that nobody asked for. ``used``: how many of them a machine asked for, at most."""
    has = len(answers)
    extent = f"at most {used} {'was' if used == 1 else 'were'} asked for" if used else "nobody asked for it"
    return Problem(
        error=LeftoverAnswers,
        text=f"{shorten(shown)} has {has} {_plural('answer', has)}, but {extent}.\n"
        f"  left over {_numbered(answers, used)}\n"
        "  fix       remove it, correct what it matches, give it optional=True, or mark the test hermes_allow_leftovers",
    )


def as_json(value: object) -> str:
    """Return ``value`` as JSON text, with what json cannot write as its repr."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def _matcher(command: str) -> str:
    """Return what `on` takes to match ``command``, as it can be pasted: a long command is matched by how it begins."""
    return repr(command) if len(command) <= LONG else f"re.compile({re.escape(command[: LONG // 2])!r})"


def _listing(wanted: str, candidates: Sequence[str]) -> str:
    near = nearest(wanted, candidates)
    more = len(set(candidates)) - len(near)
    return (", ".join(near) + (f" and {more} more" if more else "")) if near else "nothing"


def _numbered(answers: Sequence[str], passed_over: int = 0) -> str:
    """Return answers in one row with their numbers, as many as fit."""
    row = ""
    for number, answer in enumerate(answers[passed_over:], start=passed_over + 1):
        entry = f"{'   ' if row else ''}{number}. {answer}"
        if len(row) + len(entry) > SEEN_LIMIT:
            return f"{row}   …"
        row += entry
    return row


def _ordinal(number: int) -> str:
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def _often(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _times(count: int) -> str:
    return f"\n  came      {count} times" if count > 1 else ""

"""The texts of a fake sandbox's problems: calls that it cannot answer, and scripted answers that were never used."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_hermes_env.errors import RAN, SEEN_LIMIT, LeftoverAnswers, NotAToolResult, SandboxLost, UnexpectedToolCall, shorten
from pytest_hermes_env.failures import Problem, ordinal, plural

NEAREST = 5
"""Most candidates that a message lists."""
ALIKE = 0.75
LONG = 120
"""Longest command, in characters, that a fix quotes whole."""


def lost_sandbox(task_id: str, reason: str) -> Problem:
    """Return the problem of a rollout that cannot be scored, and tell our environment layer of it."""
    layer = sys.modules.get("environments.sandbox.isolation")
    if layer is not None:
        layer.lose_sandbox(task_id, reason)
    return Problem(
        error=SandboxLost,
        text="a command made a rollout's sandbox unusable, so that the rollout cannot be scored.\n"
        "  expected  a sandbox whose commands can be run until the rollout is judged\n"
        f"  seen      {reason}\n"
        "  fix       look at the rollout's commands; the next rollout has a new sandbox, and its score does not depend on this one",
    )


def unscripted_command(name: str, line: str, scripted: Sequence[str]) -> Problem:
    """Return the problem of a command that is nowhere, in a line that ran in real bash."""
    return Problem(
        error=UnexpectedToolCall,
        text="the sandbox was asked to run a command that is neither scripted, nor built in, nor installed.\n"
        f"  command   {shorten(name)}\n"
        f"  line      {shorten(line)}\n"
        f"  scripted  {_listing(line, scripted)}\n"
        f"  fix       sandbox.on({_matcher(line.strip())}, output='...')",
    )


def unscripted_line(line: str, reason: str, fix: str, scripted: Sequence[str]) -> Problem:
    """Return the problem of a line that needs real bash, and why none runs it."""
    return Problem(
        error=UnexpectedToolCall,
        text="the sandbox was asked to run a line that is neither scripted nor a simple command that it answers in memory.\n"
        f"  line      {shorten(line)}\n"
        f"  scripted  {_listing(line, scripted)}\n"
        f"  real bash {reason}\n"
        f"  fix       script the whole line: sandbox.on({_matcher(line.strip())}, output='...'){f', or {fix}' if fix else ''}",
    )


def exhausted(asked: str, shown: str, answers: Sequence[str]) -> Problem:
    """Return the problem of an entry without unused answers. ``shown``: the entry as it was scripted."""
    has = len(answers)
    return Problem(
        error=UnexpectedToolCall,
        text=f"the sandbox was asked for {shorten(asked)} {_often(has + 1)}, but its script has {has} {plural('answer', has)}.\n"
        f"  script    {shorten(shown)}\n"
        f"  answers   {_numbered(answers)}\n"
        f"  fix       add a {ordinal(has + 1)} answer, or leave out `times` to repeat one answer",
    )


def unscripted_tool(name: str, arguments: Mapping[str, Any], scripted: Sequence[str], fix: str) -> Problem:
    """Return the problem of an unscripted tool; ``fix`` is the code to add."""
    return Problem(
        error=UnexpectedToolCall,
        text=f"the sandbox was asked for the tool `{name}`, which is not scripted.\n"
        f"  arguments {shorten(as_json(arguments))}\n"
        f"  scripted  {_listing(name, scripted)}\n"
        f"  fix       {fix}",
    )


def unknown_page(name: str, kind: str, wanted: str, present: Sequence[str], fix: str) -> Problem:
    """Return the problem of a page or a search (``kind``) that the sandbox's web does not define."""
    return Problem(
        error=UnexpectedToolCall,
        text=f"the tool `{name}` was asked for a {kind} that the sandbox's web does not define.\n"
        f"  wanted    {shorten(wanted)}\n"
        f"  web       {_listing(wanted, present)}\n"
        f"  fix       {fix}",
    )


def not_a_result(who: str, given: object, reason: str, expected: str) -> Problem:
    """Return the problem of a handler that returned no tool result; ``reason`` is text after the type."""
    return Problem(
        error=NotAToolResult,
        text=f"{who} returned {type(given).__name__}{reason}, which is not a tool result.\n"
        f"  expected  {expected}\n"
        f"  seen      {shorten(repr(given))}\n"
        "  fix       fix the return value of the handler",
    )


def raised(who: str, error: Exception, asked: str) -> Problem:
    """Return the problem of a handler that raised an exception."""
    return Problem(
        error=NotAToolResult,
        text=f"{who} raised {type(error).__name__}.\n"
        f"  asked     {shorten(asked)}\n"
        f"  seen      {shorten(str(error))}\n"
        "  fix       fix the handler; to answer with an exception, use raises=...",
    )


def left_over(shown: str, answers: Sequence[str], used: int, near: str = "") -> Problem:
    """Return the problem of unused answers. ``used``: the most answers that one machine used; ``near``: a command like it that ran."""
    has, ran = len(answers), f"{RAN}{shorten(near)}\n" if near else ""
    extent = f"at most {used} {'was' if used == 1 else 'were'} used" if used else "it was never used"
    return Problem(
        error=LeftoverAnswers,
        text=f"{shorten(shown)} has {has} {plural('answer', has)}, but {extent}.\n"
        f"  unused    {_numbered(answers, used)}\n"
        f"{ran}  fix       remove it, correct its matcher, add optional=True, or mark the test hermes_allow_leftovers",
    )


def as_json(value: object) -> str:
    """Return ``value`` as JSON text; objects that JSON cannot represent appear as their repr."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def _matcher(command: str) -> str:
    """Return the argument of `on` that matches ``command``, ready to paste: a pattern of its beginning if it is long."""
    return repr(command) if len(command) <= LONG else f"re.compile({re.escape(command[: LONG // 2])!r})"


def _listing(wanted: str, candidates: Sequence[str]) -> str:
    near = difflib.get_close_matches(wanted, list(dict.fromkeys(candidates)), n=NEAREST, cutoff=0.0)
    more = len(set(candidates)) - len(near)
    return (", ".join(near) + (f" and {more} more" if more else "")) if near else "nothing"


def nearest(wanted: str, candidates: Sequence[str]) -> str:
    """Return the text that is much like another, or has all of its words; empty where none is."""
    near = difflib.get_close_matches(wanted, candidates, n=1, cutoff=ALIKE)
    words = {*wanted.split()}
    return next(iter([*near, *(one for one in candidates if len(words) > 1 and words <= {*one.split()})]), "")


def _numbered(answers: Sequence[str], skipped: int = 0) -> str:
    """Return numbered answers in one row, as many as fit."""
    row = ""
    for number, answer in enumerate(answers[skipped:], start=skipped + 1):
        entry = f"{'   ' if row else ''}{number}. {answer}"
        if len(row) + len(entry) > SEEN_LIMIT:
            return f"{row}   …"
        row += entry
    return row


def _often(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")

"""The short texts and patterns in a reward's own code: what it compares answers and files with, unless that is a secret."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

SHORTEST, LONGEST, MOST = 2, 80, 24
"""Characters of a text, and texts in all; longer ones are prompts."""
MOST_PATTERNS = 6
LIKE_A_PATTERN = re.compile(r"\\[a-zA-Z{}()\[\]*?+.^$]|\(.*[*+?].*\)|\[\^?.+\][*+]")
MOST_MEMBERS = 10
"""Members of a constant collection that are looked at; longer ones are data."""


@dataclass(frozen=True, kw_only=True)
class RewardConstants:
    """``texts`` in the order of the code, and ``forms``: for each pattern, the shortest text that it matches.

    ``slots`` are the forms of patterns with a group, with NUL in its place.
    """

    texts: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()

    @property
    def claim(self) -> str:
        """An answer of all of them, which keeps the form that a reward requires and says what it looks for."""
        return "\n".join((*self.forms, " ".join(self.texts))).strip()


def reward_constants(cls: type, reward: Callable[..., Any]) -> RewardConstants:
    """Return the texts of a reward and of the functions of its directory that it names, and the patterns of its whole module."""
    start = inspect.unwrap(getattr(reward, "__func__", reward))
    if not isinstance(start, FunctionType):
        return RewardConstants()
    texts: dict[str, None] = {}
    patterns: dict[str, re.Pattern[str] | None] = {}
    reached = dict.fromkeys(_reached(cls, start))
    for value in dict.fromkeys((*reached, *_of_module(start))):
        for constant in _constants(value) if isinstance(value, FunctionType) else (value,):
            if isinstance(constant, re.Pattern):
                patterns.setdefault(str(constant.pattern), constant)
            elif SHORTEST <= len(constant.strip()) <= LONGEST and constant != value.__doc__:
                if LIKE_A_PATTERN.search(constant):
                    patterns.setdefault(constant.strip(), _compiled(constant))
                elif value in reached:  # elsewhere are items and their answers
                    texts.setdefault(constant.strip())
    chosen = [*filter(None, patterns.values())][:MOST_PATTERNS]
    forms = [(pattern, form) for pattern in chosen if (form := _matched(pattern)).strip()]
    slots = [slot for pattern, form in forms if (slot := _with_slot(pattern, form))]
    return RewardConstants(texts=tuple(texts)[:MOST], forms=tuple(form for _, form in forms), slots=tuple(slots))


def fields_unread(cls: type, reward: Callable[..., Any], names: Iterable[str]) -> frozenset[str]:
    """Return those of an item's fields that no code of a reward names; none where it names none of them, since it may take the item whole."""
    start = inspect.unwrap(getattr(reward, "__func__", reward))
    if not isinstance(start, FunctionType):
        return frozenset()
    read: set[str] = set()
    own: set[str] = set()
    for function in _reached(cls, start):
        read.update(name for code in _codes(function.__code__) for name in code.co_names)
        own.update(name for code in _codes(function.__code__) for name in code.co_varnames)
        read.update(word for text in _constants(function) if isinstance(text, str) for word in re.findall(r"\w+", text))
    fields = frozenset(names)
    return fields - read - own if fields & read else frozenset()


def _with_slot(pattern: re.Pattern[str], form: str) -> str:
    """Return a text that a pattern matches with NUL in place of its first group; empty without a group."""
    match = pattern.search(form) if pattern.groups else None
    if match is None or match.span(1)[0] < 0:
        return ""
    start, end = match.span(1)
    return (form[match.start() : start] + "\0" + form[end : match.end()]).strip()


def _compiled(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text)
    except re.error:
        return None


def _matched(pattern: re.Pattern[str]) -> str:
    """Return the shortest text that hypothesis finds for a pattern; empty where it finds none."""
    from hypothesis import HealthCheck, Phase, find, settings  # noqa: PLC0415 - heavy
    from hypothesis.errors import HypothesisException  # noqa: PLC0415
    from hypothesis.strategies import from_regex  # noqa: PLC0415

    quick = settings(
        max_examples=5,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        return str(find(from_regex(pattern), bool, settings=quick))
    except (HypothesisException, TypeError, ValueError, RecursionError):  # bytes, a lookbehind
        return ""


def _reached(cls: type, start: FunctionType) -> Iterator[FunctionType]:
    directory = os.path.dirname(start.__code__.co_filename)
    pending, seen = [start], {start}
    while pending:
        function = pending.pop(0)
        yield function
        for value in _named(cls, function):
            inner = inspect.unwrap(value) if callable(value) else None
            if isinstance(inner, FunctionType) and inner not in seen:
                seen.add(inner)
                if os.path.dirname(inner.__code__.co_filename) == directory:
                    pending.append(inner)


def _of_module(start: FunctionType) -> Iterator[FunctionType | re.Pattern[str]]:
    """Yield the functions, methods and patterns of a module: a reward may reach them through objects."""
    module = start.__globals__.get("__name__")
    for value in list(start.__globals__.values()):
        members = vars(value).values() if isinstance(value, type) and value.__module__ == module else (value,)
        for member in members:
            function = getattr(member, "fget", getattr(member, "__func__", member))
            if isinstance(function, re.Pattern) or (isinstance(function, FunctionType) and function.__module__ == module):
                yield function


def _named(cls: type, function: FunctionType) -> Iterator[Any]:
    """Yield what the names in a function stand for, on the class and in its module; those for ``getattr`` are texts."""
    for code in _codes(function.__code__):
        for name in (*code.co_names, *(text for text in code.co_consts if isinstance(text, str))):
            found = inspect.getattr_static(cls, name, function.__globals__.get(name))
            yield getattr(found, "__func__", found)


def _constants(function: FunctionType) -> Iterator[str | re.Pattern[str]]:
    for code in _codes(function.__code__):
        for value in (*code.co_consts, *map(function.__globals__.get, code.co_names)):
            if isinstance(value, str | re.Pattern):
                yield value
            elif isinstance(value, tuple | list | frozenset | set) and len(value) <= MOST_MEMBERS:
                yield from sorted(member for member in value if isinstance(member, str))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)

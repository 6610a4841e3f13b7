"""Errors in an environment's own code that it catches itself while it computes a reward: they look like a reward of 0.0.

Place in the flow: `environment` watches each call of compute_reward. A mistake is an exception that no transcript can be the cause
of: a name or an attribute that does not exist, wrong arguments, a key that the item does not have, a recursion without end, a
timeout that nothing needed. Of good work that is not paid any other error may be the cause, too.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.play.journal import Caught, Place
from pytest_hermes_env.play.raised import described

_ARGUMENTS = re.compile(
    r"positional argument|keyword argument|is not callable|object is not subscriptable|can't be used in 'await'"
)
_NOTHING = "NoneType"
"""A check whose file or answer is missing works on None: an honest way to score 0.0."""
_JSON_TYPES = (dict, list, str, int, float, bool)
_ANSWER = re.compile(r"'(int|float|bool)' object is not subscriptable")
"""An answer may be any JSON: where an object was expected, ``42["score"]`` is an honest way to score 0.0, too."""


@dataclass
class _Watch:
    """One call: code below ``directory`` is the environment's own."""

    directory: str
    item: Any
    events: int = 0
    depth: int = 0
    found: dict[int, tuple[BaseException, Place, Place, bool]] = field(default_factory=dict)
    """For each error, by its identity: where it was raised, the frame that it reached last, and whether it is a mistake."""

    def add(self, error: BaseException, place: Place, *, is_mistake: bool) -> None:
        """Note an error, unless there are many of its kind already."""
        if sum(one[3] is is_mistake for one in self.found.values()) < MOST_FOUND:
            self.found[id(error)] = error, place, place, is_mistake


_LIBRARIES = f"{os.sep}site-packages{os.sep}"
MOST_EVENTS = 20_000
"""Calls and exceptions of one reward that are looked at; a reward that computes much is not slowed down beyond that."""
MOST_FOUND = 20
TOO_DEEP = 0.6
"""Of the recursion limit: nested calls of the environment's own code that a reward has no use for."""

_watch: ContextVar[_Watch | None] = ContextVar("hermes_env_caught_errors", default=None)


class _Watches(threading.local):
    number = 0
    """Calls that are watched in this thread, which has one trace function for all of them."""


_watches = _Watches()


@contextmanager
def noting_caught_errors(directory: str, item: Any) -> Iterator[list[Caught]]:
    """Fill the list, when the block ends without an exception, with the errors that were caught in it.

    Nothing is noted where a debugger or a coverage tool traces already: two cannot.
    """
    noted: list[Caught] = []
    if not directory or (sys.gettrace() is not None and sys.gettrace() is not _on_call):
        yield noted
        return
    watch = _Watch(os.path.join(directory, ""), item)
    token = _watch.set(watch)
    _watches.number += 1
    sys.settrace(_on_call)
    try:
        yield noted
    finally:
        _watch.reset(token)
        _watches.number -= 1
        if not _watches.number and sys.gettrace() is _on_call:  # not a debugger's, which a breakpoint in the reward started
            sys.settrace(None)
    noted += [
        Caught(
            error=described(error) if is_mistake else _said(error),
            place=raised,
            caught_at=reached,
            is_own=_is_of_no_transcript(error),
            is_mistake=is_mistake,
        )
        for error, raised, reached, is_mistake in watch.found.values()
    ]


def _said(error: BaseException) -> str:
    """Return type and text of an error; one whose text cannot be made has none."""
    try:
        return f"{type(error).__name__}: {shorten(str(error))}"
    except Exception:  # noqa: BLE001 - the text is the environment's code
        return type(error).__name__


def watched_in_thread(function: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function for another thread, whose mistakes count to the reward that is computed here."""
    if _watch.get() is None or sys.gettrace() is not _on_call:
        return function
    context = copy_context()

    def watched() -> Any:
        sys.settrace(_on_call)
        try:
            return context.run(function)
        finally:
            sys.settrace(None)

    return watched


def _on_call(frame: FrameType, event: str, arg: Any) -> Any:
    """Trace only code of the environment, and only while it computes a reward."""
    del event, arg
    watch = _watch.get()
    if watch is None or not frame.f_code.co_filename.startswith(watch.directory) or _LIBRARIES in frame.f_code.co_filename:
        return None
    watch.events += 1
    if watch.events > MOST_EVENTS:
        sys.settrace(None)
        return None
    frame.f_trace_lines = False
    watch.depth += 1
    if watch.depth > TOO_DEEP * sys.getrecursionlimit() and frame.f_back is not None:
        _note_recursion(watch, frame.f_back)
    return _on_event


def _note_recursion(watch: _Watch, frame: FrameType) -> None:
    """Note it before it happens: afterwards a trace function has no room either, and Python removes it."""
    place = Place(path=frame.f_code.co_filename, line=frame.f_lineno, function=frame.f_code.co_name)
    if not any(isinstance(one[0], RecursionError) for one in watch.found.values()):
        watch.add(RecursionError("maximum recursion depth exceeded"), place, is_mistake=True)


def _on_event(frame: FrameType, event: str, arg: Any) -> Any:
    watch = _watch.get()
    if event == "return" and watch is not None:
        watch.depth -= 1
    if event == "exception" and watch is not None:
        watch.events += 1
        if watch.events > MOST_EVENTS:
            return _on_event
        _, error, trace = arg
        here = Place(path=frame.f_code.co_filename, line=frame.f_lineno, function=frame.f_code.co_name)
        is_raised_here = trace is not None and (trace.tb_next is None or isinstance(error, RuntimeError | TimeoutError))
        if id(error) in watch.found:
            raised, (_, place, _, is_mistake) = error, watch.found[id(error)]
            watch.found[id(error)] = raised, place, here, is_mistake
        elif isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
            watch.add(error, here, is_mistake=is_raised_here and _is_mistake(error, frame, watch.item))
    return _on_event


def _is_mistake(error: BaseException, frame: FrameType, item: Any) -> bool:
    if isinstance(error, NameError | TimeoutError):
        return True
    if isinstance(error, RuntimeError):
        return "cannot be called from a running event loop" in str(error)
    if isinstance(error, AttributeError):
        return error.name is not None and error.obj is not None and not _is_of_an_answer(error, item)
    if isinstance(error, TypeError):
        text = str(error)
        return bool(_ARGUMENTS.search(text)) and _NOTHING not in text and not _ANSWER.search(text)
    return isinstance(error, KeyError) and bool(error.args) and _is_key_of_item(error.args[0], frame, item)


def _is_of_no_transcript(error: BaseException) -> bool:
    """Whether the agent cannot be the cause, whoever catches it: nothing hung, and a thread's own values are not the agent's."""
    is_of_a_thread = isinstance(error, AttributeError) and isinstance(error.obj, threading.local)
    return isinstance(error, TimeoutError) or is_of_a_thread


def _is_of_an_answer(error: AttributeError, item: Any) -> bool:
    """Tell whether JSON of another type has the attribute: ``[1].get("score")`` is the fault of an answer that is a list."""
    name = error.name or ""
    return error.obj is not item and type(error.obj) in _JSON_TYPES and any(hasattr(one, name) for one in _JSON_TYPES)


def _is_key_of_item(key: Any, frame: FrameType, item: Any) -> bool:
    """Tell whether the line asks the item itself for a key that it does not have."""
    if not isinstance(item, Mapping) or not isinstance(key, str) or key in item:
        return False
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    names = [name for name, value in frame.f_locals.items() if value is item]
    return any(re.search(rf"\b{re.escape(name)}\s*\[\s*[\"']{re.escape(key)}[\"']\s*\]", line) for name in names)

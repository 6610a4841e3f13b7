"""Notes what a reward does on the host with the agent's work: programs, code, files and databases outside of the sandbox.

Place in the flow: an audit hook hears what Python does while compute_reward runs, and HE413 reads the events. Whether something depends
on the agent's work is seen from the texts at hand: the values of the environment's frames that lead to it, and what it was given.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.journal import HostUsed, current_journal, current_rewarded, current_rollout
from pytest_hermes_env.play.watchers.call_site import WRAPPERS, EnvironmentCode

_WHAT = {
    "subprocess.Popen": "runs a program on the host",
    "os.system": "runs a program on the host",
    "os.exec": "runs a program on the host",
    "exec": "runs code in the trainer's own process",
    "compile": "runs code in the trainer's own process",
    "pickle.find_class": "unpickles in the trainer's own process",
    "sqlite3.connect": "opens a database on the host",
    "open": "opens a file of the host",
}
_QUERIES, _IMPORTS = "asks a database of the host", "imports code in the trainer's own process"
_IMPORTERS = (*WRAPPERS, "<frozen importlib", "<frozen runpy")
_IN_MEMORY = re.compile(r"^(?:file:)?:memory:|[?&]mode=memory\b")
_BEFORE_FACTORY = 5
"""Positional arguments of ``sqlite3.connect`` before the one that is the class of the connection."""
SHORTEST, LONG = 2, 8
"""Characters of a value that is the work as a whole, and of one that is most of it, or holds it."""
MOST_VALUES, DEEP = 200, 3
_code: EnvironmentCode | None = None
_guard = threading.local()
_is_installed = False


@contextlib.contextmanager
def watching_host(code: EnvironmentCode) -> Iterator[None]:
    """Listen while the context lasts. The hook itself stays, since Python has no way to take one back."""
    global _code, _is_installed  # noqa: PLW0603 - audit hooks belong to the process
    if not _is_installed:
        sys.addaudithook(_heard)
        _is_installed = True
    before, _code = _code, code
    try:
        with intercept("sqlite3.connect", _opened):
            yield
    finally:
        _code = before


def _opened(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Open a database, and hear what one of the host is asked; also where setup opens it."""
    name = args[0] if args else kwargs.get("database", "")
    if _code is not None and name and not _IN_MEMORY.search(os.fsdecode(name)) and len(args) <= _BEFORE_FACTORY:
        kwargs.setdefault("factory", _Connection)
    return real(*args, **kwargs)


class _Cursor(sqlite3.Cursor):
    """Notes queries that the agent wrote."""

    def execute(self, sql: str, *parameters: Any) -> Any:
        _asked(sql)
        return super().execute(sql, *parameters)

    def executescript(self, sql_script: str) -> Any:
        _asked(sql_script)
        return super().executescript(sql_script)


class _Connection(sqlite3.Connection):
    """Makes such cursors."""

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, *parameters: Any) -> Any:
        return self.cursor().execute(sql, *parameters)

    def executescript(self, sql_script: str) -> Any:
        return self.cursor().executescript(sql_script)


def _heard(event: str, given: tuple[Any, ...]) -> None:
    if _code is None or event not in _WHAT or current_rollout.get()[1] != "reward" or getattr(_guard, "is_busy", False):
        return
    _guard.is_busy = True
    try:
        _note(event, given, sys._getframe(1))  # noqa: SLF001 - the frame that caused the event
    finally:
        _guard.is_busy = False


def _asked(query: str) -> None:
    """Note a query that the agent wrote."""
    journal = current_journal.get()
    place = _code.place(sys._getframe(1), behind=_IMPORTERS) if _code is not None else None  # noqa: SLF001 - who asks
    if journal is None or place is None or current_rollout.get()[1] != "reward":
        return
    own, _ = _own_work(journal)
    if _is_of(query, own):
        journal.add(HostUsed(what=_QUERIES, value=" ".join(query.split())[:80], place=place))


def _own_work(journal: Any) -> tuple[set[str], set[str]]:
    """Return the agent's texts without those of its item, which are the environment's own, and the names of its files."""
    item, result = current_rewarded.get()
    own, names = _work(result, journal.tool_calls, current_rollout.get()[0])
    known = {text.strip() for text in texts_of(item)} if item is not None else set()
    return {text for text in own if not _is_of(text, known) and not any(text in one for one in known)}, names


def _note(event: str, given: tuple[Any, ...], frame: FrameType) -> None:
    journal = current_journal.get()
    if event == "compile" and given[1] != "<string>":  # exec and eval of a text; what is only parsed has other names
        return
    place = _code.place(frame, behind=_IMPORTERS if event == "exec" else WRAPPERS) if _code is not None else None
    if journal is None or place is None:
        return
    is_foreign = event in {"exec", "compile"} and frame.f_code.co_filename != place.path
    if is_foreign and event == "compile":
        return
    own, names = _own_work(journal)
    if is_foreign:  # an import, or runpy: what counts is the file
        value = next((text for text in [_source_of(given[0])] if text.strip() and _is_of(text, own)), "")
        if value:
            journal.add(HostUsed(what=_IMPORTS, value=" ".join(value.split())[:80], place=place))
        return
    item = current_rewarded.get()[0]
    known = {text.strip() for text in texts_of(item)} if item is not None else set()
    if event == "open":
        value = _name_of_work(given[0], names) if isinstance(given[0], str | bytes) else ""
    else:
        texts = [text for value in given for text in _strings(value)]
        # a database of the environment's own is asked beside the agent's text, too: what it is asked is not heard
        held = (
            [] if event == "sqlite3.connect" else [text for value in _values_of(frame, place.path) for text in _strings(value)]
        )
        value = next((text for text in (*texts, *held) if text.strip() not in known and _is_of(text, own)), "")
    if value:
        journal.add(HostUsed(what=_WHAT[event], value=" ".join(value.split())[:80], place=place))


def _source_of(code: Any) -> str:
    """Return the text of the file from which code was compiled; empty for the environment's own, and where there is none."""
    path = getattr(code, "co_filename", "")
    if getattr(code, "co_name", "") != "<module>" or not os.path.isfile(path) or (_code is not None and _code.is_beside(path)):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _name_of_work(path: str | bytes, names: set[str]) -> str:
    """Return a path whose file the agent wrote in its sandbox; empty for one that is on the host beside the environment."""
    text = os.fsdecode(path)
    return text if os.path.basename(text) in names and _code is not None and not _code.is_beside(text) else ""


def _work(result: Any, calls: list[Any], task_id: str) -> tuple[set[str], set[str]]:
    """Return the texts of the agent's work, those that the verifier read among them, and the names of the files that it wrote."""
    texts: set[str] = set()
    names: set[str] = set()
    for message in getattr(result, "messages", None) or ():
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        texts.add(str(message.get("content") or "").strip())
        for one in message.get("tool_calls") or ():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                arguments = json.loads(one["function"]["arguments"])
                texts.update(value.strip() for key, value in arguments.items() if isinstance(value, str) and key != "path")
                names.add(os.path.basename(str(arguments.get("path") or "")))
    for one in calls:
        if one.task_id == task_id and not one.by_agent:
            texts.update(text.strip() for text in _strings(one.result))
    return {text for text in texts if len(text) >= SHORTEST}, names - {""}


def _is_of(text: str, own: set[str]) -> bool:
    """Whether a text is the agent's, holds it, or is most of it: words that both use say nothing."""
    plain = text.strip()
    if plain in own:
        return True
    return len(plain) >= LONG and any(
        (plain in one and 2 * len(plain) >= len(one)) or (len(one) >= LONG and one in plain) for one in own
    )


def _values_of(frame: FrameType | None, path: str) -> Iterator[Any]:
    """Yield the values of the frames of one file that lead to this one."""
    while frame is not None:
        if frame.f_code.co_filename == path:
            yield from list(frame.f_locals.values())[:MOST_VALUES]
        frame = frame.f_back


def _strings(value: Any, depth: int = DEEP) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, CodeType):
        yield from (text for text in (*value.co_names, *value.co_consts) if isinstance(text, str) and len(text) >= LONG)
    elif depth and isinstance(value, dict):
        for part in list(value.values())[:MOST_VALUES]:
            yield from _strings(part, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for part in value[:MOST_VALUES]:
            yield from _strings(part, depth - 1)

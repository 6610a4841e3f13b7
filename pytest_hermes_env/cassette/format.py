"""The text of cassette files: JSON documents formatted for review, from which the same tape can be read back."""

from __future__ import annotations

import contextlib
import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_hermes_env.cassette.document import FORMAT, document_of
from pytest_hermes_env.cassette.layout import formatted
from pytest_hermes_env.cassette.reading import Misshapen, NewerFormat, tape_of
from pytest_hermes_env.cassette.tape import Tape
from pytest_hermes_env.errors import BadCassette, shorten

__all__ = ["FORMAT", "read_tape", "text_of"]

_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7}|={7})(?: .*)?$", re.MULTILINE)
_TEST = re.compile(r'"test": ("(?:[^"\\]|\\.)*")')


def read_tape(path: Path) -> Tape:
    """Return the tape in a file. Its calls share common values, so do not modify them.

    Raises: an unreadable or damaged file, a merge conflict, another format, or not a cassette → BadCassette.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadCassette(
            f"{path}: this cassette cannot be read: {error.strerror}.\n  fix       record it: {_command('')}"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _bad(path, "", line, "it is not UTF-8", data[error.start : error.start + 20].hex(" ")) from error
    try:
        with _gc_paused():
            return tape_of(text)
    except json.JSONDecodeError as error:
        raise _not_json(path, text, error) from error
    except NewerFormat as error:
        raise BadCassette(
            f"{path}: this cassette has format {error.args[0]}, and this version of pytest-hermes-env reads up to {FORMAT}.\n"
            f"  fix       pip install --upgrade pytest-hermes-env, or record it again: {_command(text)}"
        ) from error
    except Misshapen as error:
        raise _bad(path, text, _line_of(text, error.call), str(error), "") from error
    except RecursionError as error:
        raise _bad(path, text, 1, "it is nested too deeply for Python's json module", "") from error


def text_of(tape: Tape) -> str:
    """Return the text of a cassette file: one JSON document, encodable as UTF-8 whatever was recorded.

    Raises: calls that are not numbered from 1, or too deeply nested → ValueError.
    """
    try:
        with _gc_paused():
            return formatted(document_of(tape))
    except RecursionError as error:
        raise ValueError("a body is nested too deeply for Python's json module") from error


@contextlib.contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause garbage collection: a tape consists of many small live objects, and scanning them triples the time."""
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_collecting:
            gc.enable()


def _not_json(path: Path, text: str, error: json.JSONDecodeError) -> BadCassette:
    conflict = _CONFLICT.search(text)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        return BadCassette(
            f"{path}, line {line}: this cassette has a merge conflict.\n"
            f"  seen      {shorten(conflict[0])}\n"
            f"  fix       take one side: git checkout --ours {path}, or git checkout --theirs {path};\n"
            f"            or record it again: {_command(text)}"
        )
    is_cut = not text.rstrip().endswith("}") or error.pos >= len(text.rstrip())
    what = "it ends too early: part of the file is missing" if is_cut else f"it is not JSON: {error.msg}"
    return _bad(path, text, error.lineno, what, text.split("\n")[error.lineno - 1])


def _bad(path: Path, text: str, line: int, what: str, seen: str) -> BadCassette:
    shown = f"  seen      {shorten(seen)}\n" if seen.strip() else ""
    return BadCassette(
        f"{path}, line {line}: this cassette is damaged: {shorten(what)}.\n{shown}"
        f"  fix       git checkout -- {path}, or record it again: {_command(text)}"
    )


def _line_of(text: str, call: int) -> int:
    """Return the line on which a call begins; 1 for an error in the whole file."""
    at = re.search(rf'^ *\{{?"call": {call}\b', text, re.MULTILINE) if call else None
    return text.count("\n", 0, at.start()) + 1 if at else 1


def _command(text: str) -> str:
    test = _TEST.search(text)
    return f"pytest --hermes-record=rewrite {json.loads(test[1]) if test else 'TEST'}"

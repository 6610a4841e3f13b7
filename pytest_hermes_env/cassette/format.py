"""Cassette files: the path of each, its text, a JSON document formatted for review, and how it is read and saved."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from pathlib import Path

from pytest_hermes_env.atomic_files import replace_file
from pytest_hermes_env.cassette.document import FORMAT, document_of
from pytest_hermes_env.cassette.escape import dumped
from pytest_hermes_env.cassette.reading import Misshapen, NewerFormat, tape_of
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.stable import is_the_same, numbered
from pytest_hermes_env.cassette.tape import ModelCall, Tape
from pytest_hermes_env.errors import BadCassette, shorten
from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.redaction.file_check import check_text
from pytest_hermes_env.types import JsonValue

SUFFIX = ".json"
MAX_NAME_LENGTH = 100
DIGEST_CHARACTERS = 10
_PORTABLE = re.compile(r"[a-z0-9_][a-z0-9_.+=,@-]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=,@-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
_DIGEST = re.compile(r"-[0-9a-f]{10}$")
WIDTH = 140
_SECOND_MESSAGE = '}, {"role": '
_NUMBERS = re.compile(r'[\[\]{}0-9eE+\-., :"]*')
_UNSEEN = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)

_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7}|={7})(?: .*)?$", re.MULTILINE)
_TEST = re.compile(r'"test": ("(?:[^"\\]|\\.)*")')


def read_tape(path: Path, record_command: str = "") -> Tape:
    """Return the tape in a file. Its calls share common values, so do not modify them.

    ``record_command`` records it again: without it, the one of the test that recorded it.

    Raises: an unreadable or damaged file, a merge conflict, another format, or not a cassette → BadCassette.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadCassette(
            f"{path}: this cassette cannot be read: {error.strerror}.\n  fix       record it: {record_command or _command('')}"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _bad(
            path, record_command or _command(""), line, "it is not UTF-8", data[error.start : error.start + 20].hex(" ")
        ) from error
    again = record_command or _command(text)
    try:
        with no_garbage_collection():  # a tape consists of many small live objects, and scanning them triples the time
            return tape_of(text)
    except json.JSONDecodeError as error:
        raise _not_json(path, text, error, again) from error
    except NewerFormat as error:
        raise BadCassette(
            f"{path}: this cassette has format {error.args[0]}, and this version of pytest-hermes-env reads up to {FORMAT}.\n"
            f"  fix       pip install --upgrade pytest-hermes-env, or record it again: {again}"
        ) from error
    except Misshapen as error:
        raise _bad(path, again, _line_of(text, error.call), str(error), "") from error
    except RecursionError as error:
        raise _bad(path, again, 1, "it is nested too deeply for Python's json module", "") from error


def text_of(tape: Tape) -> str:
    """Return the text of a cassette file: one JSON document, encodable as UTF-8 whatever was recorded.

    Raises: calls that are not numbered from 1, or too deeply nested → ValueError.
    """
    try:
        with no_garbage_collection():
            return _formatted(document_of(tape))
    except RecursionError as error:
        raise ValueError("a body is nested too deeply for Python's json module") from error


def _not_json(path: Path, text: str, error: json.JSONDecodeError, again: str) -> BadCassette:
    conflict = _CONFLICT.search(text)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        return BadCassette(
            f"{path}, line {line}: this cassette has a merge conflict.\n"
            f"  seen      {shorten(conflict[0])}\n"
            f"  fix       take one side: git checkout --ours {path}, or git checkout --theirs {path};\n"
            f"            or record it again: {again}"
        )
    is_cut = not text.rstrip().endswith("}") or error.pos >= len(text.rstrip())
    what = "it ends too early: part of the file is missing" if is_cut else f"it is not JSON: {error.msg}"
    return _bad(path, again, error.lineno, what, text.split("\n")[error.lineno - 1])


def _bad(path: Path, again: str, line: int, what: str, seen: str) -> BadCassette:
    shown = f"  seen      {shorten(seen)}\n" if seen.strip() else ""
    return BadCassette(
        f"{path}, line {line}: this cassette is damaged: {shorten(what)}.\n{shown}"
        f"  fix       git checkout -- {path}, or record it again: {again}"
    )


def _line_of(text: str, call: int) -> int:
    """Return the line on which a call begins; 1 for an error in the whole file."""
    at = re.search(rf'^ *\{{?"call": {call}\b', text, re.MULTILINE) if call else None
    return text.count("\n", 0, at.start()) + 1 if at else 1


def _command(text: str) -> str:
    test = _TEST.search(text)
    return f"pytest --hermes-record=rewrite {json.loads(test[1]) if test else 'TEST'}"


# ---------------------------------------------------------------------- writing


def save_tape(path: Path, tape: Tape, redactor: Redactor) -> None:
    """Write a recording to a file, without its secrets.

    The text is checked before anything is written, so not even a temporary file contains a secret.

    Raises: the redacted text still contains a secret, or the file cannot be written → BadCassette.
    """
    text = numbered(text_of(redactor.tape(tape)))
    fix = (
        "remove it from the rollout, add a pattern for it to the redaction,\n            or add its value to the known secrets"
    )
    check_text(f"{path}: this cassette", text, redactor.known, BadCassette, fix=fix)
    if not (path.is_file() and is_the_same(text, path.read_text(encoding="utf-8", errors="replace"))):
        replace_file(path, text.encode())
    if binary := [call.number for call in tape.calls if isinstance(call, ModelCall) and _has_binary_body(call)]:
        numbers = ", ".join(map(str, binary))
        warnings.warn(f"{path}: the bodies of these calls are binary and could not be searched: {numbers}", stacklevel=2)


def _has_binary_body(call: ModelCall) -> bool:
    for part in (call.request, call.reply):
        if part.body_kind == "bytes" and isinstance(part.body, str):
            try:
                base64.b64decode(part.body).decode()
            except ValueError:  # no text
                return True
    return False


def _formatted(document: JsonValue) -> str:
    r"""Return ``document`` as JSON text with a final newline, encodable as UTF-8 whatever it contains.

    Invisible characters, those that change the writing direction, and those that some programs treat as line breaks become
    ``\uXXXX``, so a diff shows them.
    """
    pieces: list[str] = []
    _write(document, "", pieces)
    text = "".join(pieces) + "\n"
    return text if text.isascii() and "\x7f" not in text else _UNSEEN.sub(_escaped, text)


def _write(value: JsonValue, margin: str, pieces: list[str]) -> None:
    """Append the text of ``value``; ``margin`` is the indentation of the line on which it begins."""
    line = dumped(value)
    fits = len(line) <= WIDTH and _SECOND_MESSAGE not in line
    if not isinstance(value, dict | list) or fits or _NUMBERS.fullmatch(line):
        pieces.append(line)
        return
    deeper = margin + " "
    start = "{\n" if isinstance(value, dict) else "[\n"
    for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        pieces.append(start + deeper if key is None else f"{start}{deeper}{dumped(key)}: ")
        _write(item, deeper, pieces)
        start = ",\n"
    pieces.append(f"\n{margin}{'}' if isinstance(value, dict) else ']'}")


def _escaped(unseen: re.Match[str]) -> str:
    units = unseen[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


# ---------------------------------------------------------------------- paths


def cassette_path(directory: Path, node_module: str, test_name: str, *, readable: str = "") -> Path:
    """Return the file for a test: ``directory/<module>/<test>.json``.

    ``node_module`` is the part of the test's id before the first ``::`` ("tests/test_my_env.py"), or the name of another group, such
    as an environment; ``test_name`` is the rest, including parameters ("TestIt::test_one[a-b]"). Two tests never share a file, even
    on case-insensitive file systems: a name that had to be changed ends with a digest of the original. ``readable`` replaces the
    readable part of the file name if a parameter is a secret.
    """
    folders = node_module.removesuffix(".py").split("/")
    return Path(directory, *(_file_name(folder) for folder in folders), _file_name(test_name, readable) + SUFFIX)


def _file_name(name: str, readable: str = "") -> str:
    """Return ``name`` if it is portable; otherwise its readable characters with a digest of the whole name."""
    readable = readable or name
    is_portable = (
        readable == name and _PORTABLE.fullmatch(name) and len(name) <= MAX_NAME_LENGTH and not _RESERVED.fullmatch(name)
    )
    if is_portable and not name.endswith((".", ".py", SUFFIX)) and not _DIGEST.search(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    readable = _UNSAFE.sub("-", readable)[: MAX_NAME_LENGTH - DIGEST_CHARACTERS - 1].strip(".-") or "_"
    return f"{readable}-{digest}"

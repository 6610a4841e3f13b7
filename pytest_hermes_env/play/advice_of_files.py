"""What to write where a file of the environment, a module or a text of JSON cannot be read as it is asked for.

Place in the flow: `advice` asks for it by the kind of the error.
"""

from __future__ import annotations

import ast
import difflib
import io
import itertools
import json
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.missing_files import MOST_FILES, files_below

ALIKE, VERY_ALIKE = 0.75, 0.85
"""How alike two names must be, and how much where many are known: all modules, all methods of an object."""
NEAR = 30
"""Characters that are shown on both sides of a mistake in JSON."""


def of_json(error: json.JSONDecodeError) -> str:
    """Return where a text of JSON is none, or that each of its lines is a value."""
    if error.msg == "Extra data" and all(_is_json(line) for line in error.doc.split("\n") if line.strip()):
        return "Each line is a JSON value of its own: `[json.loads(line) for line in text.split('\\n') if line.strip()]`."
    text = error.doc[max(0, error.pos - NEAR) : error.pos + NEAR]
    return f"Correct the text near {shorten(text)!r}." if text.strip() else "The text is empty where JSON is expected."


def of_encoding(error: UnicodeDecodeError) -> str:
    """Return how to read the file that a stack has open, or whose text it is asked for, which is in another encoding."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    values = [(frame.f_code.co_name, value) for frame in frames for value in frame.f_locals.values()]
    opened = [str(value.name) for _, value in values if isinstance(value, io.TextIOWrapper) and isinstance(value.name, str)]
    opened += [os.fspath(value) for name, value in values if name == "read_text" and isinstance(value, os.PathLike)]
    name = os.path.basename(opened[-1]) if opened else ""
    return f"{name} is not {error.encoding.upper()}: save it so, or read it with `encoding='latin-1'`." if name else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_OF_A_CIRCLE = "Two modules import each other: move what both need to a third one, or one of the two imports into the function that needs it."


def _defines(path: str | None, name: str) -> bool:
    """Whether a file defines a name at its top, which an import that ended too early did not reach."""
    if not path or not path.endswith(".py") or not os.path.isfile(path):
        return False
    defined = []
    for node in ast.parse("".join(linecache.getlines(path))).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        defined += [getattr(node, "name", ""), *(ast.unparse(target) for target in targets)]
    return name in defined


def of_import(error: ImportError) -> str:
    """Return the module or the name that was meant, what to install, or that two modules import each other."""
    if "circular" in str(error) or "partially initialized" in str(error):
        return _OF_A_CIRCLE
    module = error.name or ""
    if (named := re.match("cannot import name '([^']+)'", str(error))) is not None:
        missing = named[1]
        if _defines(error.path, missing):
            return _OF_A_CIRCLE
        near = near_name(missing, dir(sys.modules.get(module)))
        return f"Write `from {module} import {near}`: it has no {missing}." if near else f"{module} has no {missing}."
    if isinstance(error, ModuleNotFoundError) and module:
        top, _, below = module.partition(".")
        places = [entry for entry in sys.path if os.path.isdir(entry)]
        if below and top in sys.modules:
            places, top = list(getattr(sys.modules[top], "__path__", ())), below.partition(".")[0]
        found = {name.partition(".")[0] for place in places for name in os.listdir(place) if not name.startswith(("_", "."))}
        near = near_name(top, found | sys.stdlib_module_names, VERY_ALIKE)
        install = f"Install the package that has the module `{top}` in the environment that runs the tests."
        return f"Import `{near}`: no module is called `{top}`." if near else install
    return ""


def of_file(path: str, beside: str, *, is_of_a_rollout: bool) -> str:
    """Return the file that was meant, or where a relative path begins."""
    folder = os.path.dirname(path) or "."
    files = itertools.islice(files_below(beside), MOST_FILES) if beside and not is_of_a_rollout else ()
    called = [file for file in files if os.path.basename(file) == os.path.basename(path)]
    if called:
        parts = os.path.relpath(min(called, key=lambda file: file.count(os.sep)), beside).split(os.sep)
        return f"Write `Path(__file__).parent / {' / '.join(map(repr, parts))}`: that file is there."
    near = near_name(os.path.basename(path), os.listdir(folder)) if os.path.isdir(folder) else ""
    if near:
        return f"Write {os.path.join(os.path.dirname(path), near)!r}: that file is there."
    if os.path.isabs(path):
        return ""
    own = "begin it with `Path(__file__).parent`."
    if is_of_a_rollout:
        return f"A file of the agent is in its sandbox: `ctx.read_file({path!r})`. Of one of your own the path is relative to where Python was started: {own}"
    return f"The path is relative to where Python was started: {own}"


def near_name(name: str, known: Iterable[str], cutoff: float = ALIKE) -> str:
    """Return the known name that is most like one; empty where none is much like it."""
    return next(iter(difflib.get_close_matches(name, list(dict.fromkeys(known)), n=1, cutoff=cutoff)), "")

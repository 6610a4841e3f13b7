"""Lets one file of a project be imported, and read, as if it held another text. Nothing on disk changes.

Place in the flow: a trial names the file in the environment variable `VARIABLE`; the plugin calls `install` before the first
conftest is imported, in xdist's workers, too, and a player before it imports a class.
"""

from __future__ import annotations

import importlib.machinery
import json
import linecache
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from pytest_hermes_env.patches import assign
from pytest_hermes_env.source.modules import SourceTree

VARIABLE = "HERMES_ENV_MUTANT"
"""Holds JSON: ``file`` stands in for, ``text`` is a file with the other text, ``seen`` is made when the text was imported."""


def settings(*, file: str, text: str, seen: str) -> dict[str, str]:
    """Return the environment variables that make `install` show ``text`` in the place of ``file``."""
    return {VARIABLE: json.dumps({"file": file, "text": text, "seen": seen})}


def install(environ: Mapping[str, str] = os.environ) -> None:
    """Show the other text to whoever imports or reads the file from now on. Does nothing where the variable is not set."""
    if VARIABLE not in environ:
        return
    wanted = json.loads(environ[VARIABLE])
    file, text = os.path.realpath(wanted["file"]), Path(wanted["text"]).read_bytes()
    _import_as(file, text, Path(wanted["seen"]))
    _read_as(wanted["file"], file, text)


def _import_as(file: str, text: bytes, seen: Path) -> None:
    real = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        if os.path.realpath(self.path) != file:
            return real(self, fullname)
        seen.touch()
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code

    assign("importlib.machinery.SourceFileLoader.get_code", get_code)


def _read_as(given: str, wanted: str, text: bytes) -> None:
    """Show the text to ``inspect`` and tracebacks, and to the rules that read source."""
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    for name in {given, wanted, os.path.abspath(given)}:
        linecache.cache[name] = (len(text), None, lines, name)
    real = SourceTree.text_of

    def text_of(self: SourceTree, file: str) -> bytes:
        return text if os.path.realpath(file) == wanted else real(self, file)

    assign("SourceTree.text_of", text_of, owner=SourceTree)
    sys.dont_write_bytecode = True

"""The syntax checks that hermes runs in its own process after a write, and before one for structured formats.

What parses is known here; what does not, hermes' own check words. External linters never run.

Source: hermes-agent 0.19, tools/file_operations.py (LINTERS_INPROC, _check_lint_delta).
"""

from __future__ import annotations

import ast
import json
import posixpath
import threading
import tomllib
import warnings
from collections.abc import Callable
from typing import Any

from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["lint", "lint_change", "refusal"]

_PROGRAMS = {".js": "node", ".ts": "npx", ".go": "go", ".rs": "rustfmt"}
_filters = threading.Lock()
"""Held while a check changes the process's warning filters, which all threads share."""


def lint(path: str, content: str) -> dict[str, Any]:
    """Return hermes' verdict on a file's content: ``status`` ok, error or skipped."""
    extension = posixpath.splitext(path)[1].lower()
    if extension in _PROGRAMS:
        return {"status": "skipped", "message": f"{_PROGRAMS[extension]} not available"}
    if extension not in _PARSERS:
        return {"status": "skipped", "message": f"No linter for {extension} files"}
    error = _error(extension, content)
    return {"status": "error" if error else "ok", "output": error}


def lint_change(path: str, before: str | None, after: str) -> dict[str, Any]:
    """Return the verdict on ``after``, with the errors that ``before`` had, too, told apart."""
    verdict = lint(path, after)
    if verdict["status"] != "error" or before is None:
        return verdict
    earlier = lint(path, before)
    if earlier["status"] != "error":
        return verdict
    old = {line.strip() for line in earlier["output"].splitlines()}
    new = [line for line in verdict["output"].splitlines() if line.strip() and line.strip() not in old]
    if new:
        header = "New lint errors introduced by this edit (pre-existing errors filtered out):\n"
        return {"status": "error", "output": header + "\n".join(new)}
    note = "Pre-existing lint errors — this edit didn't introduce new ones but the file is still broken."
    return {**verdict, "message": note}


def refusal(path: str, content: str) -> str | None:
    """Return why hermes does not write this content at all: it is JSON, YAML or TOML that does not parse."""
    extension = posixpath.splitext(path)[1].lower()
    error = _error(extension, content) if extension in _PARSERS and extension != ".py" else ""
    if not error:
        return None
    return (
        f"Refusing to write '{path}': candidate content fails {extension} syntax validation ({error}). The file was NOT created or "
        "modified. Fix the content and retry."
    )


def _error(extension: str, content: str) -> str:
    """Return what is wrong with content, empty if it parses."""
    try:
        _PARSERS[extension](content)
    except Exception:  # noqa: BLE001 - whatever a parser raises, hermes' check says it
        with _filters, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(hermes_module("tools.file_operations").LINTERS_INPROC[extension](content)[1])
    return ""


def _parse_python(content: str) -> None:
    if "\\" not in content:
        ast.parse(content)
        return
    with _filters, warnings.catch_warnings():  # escapes are what the parser warns about
        warnings.simplefilter("ignore")
        ast.parse(content)


def _parse_yaml(content: str) -> None:
    import yaml  # noqa: PLC0415 - only for files that are YAML

    for _ in yaml.parse(content):
        pass


_PARSERS: dict[str, Callable[[str], object]] = {
    ".py": _parse_python,
    ".json": json.loads,
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".toml": tomllib.loads,
}

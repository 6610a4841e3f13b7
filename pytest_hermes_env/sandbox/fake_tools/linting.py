"""The syntax checks that hermes runs in its own process after a write, and before one for structured formats.

Source: hermes-agent 0.19, tools/file_operations.py (LINTERS_INPROC, _check_lint_delta). External linters never run.
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

__all__ = ["lint", "lint_change", "refusal"]

_PROGRAMS = {".js": "node", ".ts": "npx", ".go": "go", ".rs": "rustfmt"}
_filters = threading.Lock()
"""Held while a check changes the process's warning filters, which all threads share."""


def lint(path: str, content: str) -> dict[str, Any]:
    """Return hermes' verdict on a file's content: ``status`` ok, error or skipped."""
    extension = posixpath.splitext(path)[1].lower()
    if extension in _PROGRAMS:
        return {"status": "skipped", "message": f"{_PROGRAMS[extension]} not available"}
    check = _CHECKS.get(extension)
    if check is None:
        return {"status": "skipped", "message": f"No linter for {extension} files"}
    error = check(content)
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
    error = _CHECKS[extension](content) if extension in _CHECKS and extension != ".py" else ""
    if not error:
        return None
    return (
        f"Refusing to write '{path}': candidate content fails {extension} syntax validation ({error}). The file was NOT created or "
        "modified. Fix the content and retry."
    )


def _check_python(content: str) -> str:
    try:
        if "\\" in content:  # escapes are what the parser warns about
            with _filters, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(content)
        else:
            ast.parse(content)
    except SyntaxError as error:
        place = f" (line {error.lineno}, column {error.offset})" if error.lineno else ""
        return f"{type(error).__name__}: {error.msg}{place}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _check_json(content: str) -> str:
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        return f"JSONDecodeError: {error.msg} (line {error.lineno}, column {error.colno})"
    except RecursionError as error:
        return f"RecursionError: {error}"
    return ""


def _check_yaml(content: str) -> str:
    import yaml  # noqa: PLC0415 - only for files that are YAML

    try:
        for _ in yaml.parse(content):
            pass
    except yaml.YAMLError as error:
        return f"YAMLError: {error}"
    return ""


def _check_toml(content: str) -> str:
    try:
        tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


_CHECKS: dict[str, Callable[[str], str]] = {
    ".py": _check_python,
    ".json": _check_json,
    ".yaml": _check_yaml,
    ".yml": _check_yaml,
    ".toml": _check_toml,
}

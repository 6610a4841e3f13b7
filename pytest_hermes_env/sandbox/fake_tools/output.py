"""Values of tool calls: arguments as a model writes them, and output in the form that hermes gives to the model.

Source: hermes-agent 0.19, tools/environments/base.py, tools/ansi_strip.py and tools/terminal_tool.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["SHELL", "cut_off", "integer", "numbered", "shown", "without_escapes"]

SHELL = "/usr/bin/bash: line 3"
"""The prefix of bash's messages in hermes' terminal."""
MOST_CHARACTERS = 50_000
"""Most characters of output that a call returns."""
LONGEST_LINE = 2000
"""Characters of a file's line that are shown."""
_MAY_BE_ESCAPE = re.compile(r"[\x1b\x80-\x9f]")


def shown(output: str) -> str:
    """Return output in hermes' form: stripped, without escape sequences, and cut in the middle if it is long."""
    if len(output) > MOST_CHARACTERS:
        collected = hermes_module("tools.environments.base")._BoundedOutputCollector(MOST_CHARACTERS)  # noqa: SLF001
        collected.append(output)
        output = collected.render()
    return without_escapes(output).strip()


def without_escapes(output: str) -> str:
    """Return output without terminal escape sequences."""
    return str(hermes_module("tools.ansi_strip").strip_ansi(output)) if _MAY_BE_ESCAPE.search(output) else output


def numbered(text: str, first: int = 1) -> str:
    """Return a file's text with hermes' line numbers, ``12|text``, long lines cut."""
    lines = (line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}... [truncated]" for line in text.split("\n"))
    return "\n".join(f"{number}|{line}" for number, line in enumerate(lines, first))


def cut_off(result: Mapping[str, Any]) -> str:
    """Return the first half of a result's JSON text."""
    text = json.dumps(result, ensure_ascii=False)
    return text[: len(text) // 2]


def integer(value: object, default: int) -> int:
    """Return a model's argument as an integer, or ``default`` if it is not one."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]  # whatever a model sent
    except (TypeError, ValueError):
        return default

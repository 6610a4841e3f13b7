"""What hermes refuses, adds or cuts because of how a command, a path, a value or an output looks: pure rules, without any machine.

Source: hermes-agent 0.19, tools/terminal_tool.py, tools/file_tools.py, tools/binary_extensions.py, tools/environments/base.py,
tools/ansi_strip.py.
"""

from __future__ import annotations

import functools
import re

from pytest_hermes_env.sandbox.answers import LONGEST_COMMAND
from pytest_hermes_env.sandbox.hermes_modules import hermes_name

SHELL = "/usr/bin/bash: line 3"
"""The prefix of bash's messages in hermes' terminal."""
MOST_CHARACTERS = 50_000
"""Most characters of output that a call returns."""
LONGEST_LINE = 2000
"""Characters of a file's line that are shown."""
_MAY_BE_ESCAPE = re.compile(r"[\x1b\x80-\x9f]")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|`[^`]*`""")
_MAY_WAIT = re.compile(
    r"\b(?:nohup|disown|setsid|nodemon|uvicorn|gunicorn|vite|next\s+dev|compose\s+up|http\.server)\b|\s&(?![&>])"
    r"|\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:dev|start|serve|watch)\b",
    re.IGNORECASE,
)
"""What a command has that hermes wants in the background: only such a command is worth loading hermes for."""
_MAY_BE_BLOCKED = re.compile(
    r"\brm\s+(?:-\S+\s+)*(?:/[./*]*(?:[\s)`;|&]|$)|/(?:home|root|etc|usr|var|s?bin|boot|lib)\b|~|\$)|\bmkfs|\bdd\b.*of=/dev/"
    r"|>\s*/dev/(?!null|std|zero|tty|fd)|:\(\)|\bkill\s+(?:-\S+\s+)*-1\b|\b(?:shutdown|reboot|halt|poweroff|telinit)\b"
    r"|\binit\s+[06]|\bsystemctl\b|\bsudo\b",
    re.IGNORECASE | re.DOTALL,
)
"""What a command on hermes' unconditional blocklist has, once its quotes are gone."""
_MAY_MEAN = re.compile(r"\b(?:[efr]?grep|rg|ag|ack|(?:color)?diff|test|find|curl|git)\b|\[")
"""A command with an exit code that hermes explains."""
_QUOTES = re.compile(r"[\\'\"]")


def background_guidance(command: str) -> str | None:
    """Return why hermes does not run a command in the foreground, or None when it does; hermes itself decides."""
    if not _MAY_WAIT.search(_QUOTED.sub("", command)):
        return None
    guidance = hermes_name("tools.terminal_tool", "_foreground_background_guidance")(command)
    return None if guidance is None else str(guidance)


def blocked_error(command: str) -> str | None:
    """Return why hermes never runs a command, whoever asks for it, or None; hermes itself decides."""
    if len(command) <= LONGEST_COMMAND and not _MAY_BE_BLOCKED.search(_QUOTES.sub("", command)):
        return None
    approval = functools.partial(hermes_name, "tools.approval")
    is_blocked, what = approval("detect_hardline_command")(command)
    if is_blocked:
        return str(approval("_hardline_block_result")(what)["message"])
    is_blocked, what = approval("_check_sudo_stdin_guard")(command)
    return str(approval("_sudo_stdin_block_result")(what)["message"]) if is_blocked else None


def exit_code_meaning(command: str, exit_code: int) -> str | None:
    """Return hermes' note on an exit code that is not an error, or None."""
    if exit_code == 0 or not _MAY_MEAN.search(command):
        return None
    meaning = hermes_name("tools.terminal_tool", "_interpret_exit_code")(command, exit_code)
    return None if meaning is None else str(meaning)


def workdir_error(workdir: str) -> str | None:
    """Return why hermes does not take a working directory, or None."""
    error = hermes_name("tools.terminal_tool", "_validate_workdir")(workdir)
    return None if error is None else str(error)


def shown(output: str) -> str:
    """Return output in hermes' form: stripped, without escape sequences, and cut in the middle if it is long."""
    if len(output) > MOST_CHARACTERS:
        collected = hermes_name("tools.environments.base", "_BoundedOutputCollector")(MOST_CHARACTERS)
        collected.append(output)
        output = collected.render()
    return without_escapes(output).strip()


def without_escapes(output: str) -> str:
    """Return output without terminal escape sequences."""
    return str(hermes_name("tools.ansi_strip", "strip_ansi")(output)) if _MAY_BE_ESCAPE.search(output) else output


def numbered(text: str, first: int = 1) -> str:
    """Return a file's text with hermes' line numbers, ``12|text``, long lines cut."""
    lines = (line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}... [truncated]" for line in text.split("\n"))
    return "\n".join(f"{number}|{line}" for number, line in enumerate(lines, first))


def integer(value: object, default: int) -> int:
    """Return a model's argument as an integer, or ``default`` if it is not one."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]  # whatever a model sent
    except (TypeError, ValueError):
        return default

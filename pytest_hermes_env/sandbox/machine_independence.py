"""What keeps hermes from using, starting or installing programs of the machine beside the local sandbox.

hermes' file tools use a linter or ripgrep where the machine has one, and a guard, a package or a browser that is absent may be
installed. In a sandbox they answer as on a machine that has none of these: the same call gets the same answer everywhere.

Place in the flow: `LocalSandbox` sets `VARIABLES` while it is active; `sessions.keep_inside` replaces the two functions.

Source: hermes-agent 0.19, tools/file_operations.py (LINTERS, _search_content), tools/terminal_tool.py (_sudo_nopasswd_works),
tools/tirith_security.py, tools/lazy_deps.py, tools/approval.py.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

__all__ = ["OPTIONAL_PROGRAMS", "VARIABLES", "has_command", "no_sudo"]

OPTIONAL_PROGRAMS = frozenset({"go", "node", "npx", "rg", "rustfmt"})
"""Programs that hermes' file tools use where they are installed: ``npx tsc`` even downloads a compiler."""

VARIABLES = MappingProxyType({
    "HERMES_DISABLE_LAZY_INSTALLS": "1",  # packages and browsers
    "TIRITH_ENABLED": "0",  # a guard that hermes downloads
    "HERMES_INTERACTIVE": None,  # each of these four makes hermes ask a person for approval
    "HERMES_GATEWAY_SESSION": None,
    "HERMES_EXEC_ASK": None,
    "HERMES_CRON_SESSION": None,
    "SUDO_PASSWORD": None,  # hermes would type it into a command that says sudo
})  # fmt: skip
"""Variables of the test process and their values while a sandbox is active; None unsets one."""


def has_command(real: Callable[..., bool], operations: Any, command: str) -> bool:
    """Answer hermes' ``ShellFileOperations._has_command`` as on a machine without `OPTIONAL_PROGRAMS`."""
    return command not in OPTIONAL_PROGRAMS and real(operations, command)


def no_sudo(_real: Callable[[], bool]) -> bool:
    """Answer as hermes does where sudo asks for a password, without starting sudo on the host."""
    return False

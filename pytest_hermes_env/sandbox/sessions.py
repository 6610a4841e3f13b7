"""hermes' sessions on the local backend, for the local sandbox: each in its own directory, and all confined.

These functions are called when a tool is about to run, so hermes is loaded anyway.

hermes' file tools use a linter or ripgrep where the machine has one, and a guard, a package or a browser that is absent may be
installed. In a sandbox they answer as on a machine that has none of these: the same call gets the same answer everywhere.

Source: hermes-agent 0.19, tools/terminal_tool.py, tools/environments/local.py, tools/file_operations.py (LINTERS, _search_content),
tools/tirith_security.py, tools/lazy_deps.py, tools/approval.py, agent/lsp.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hermes_env_shared.processes import forget_background_processes, kill_processes
from pytest_hermes_env.errors import EnvironmentSetupError
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.sandbox.hermes_modules import hermes_module, hermes_name

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

_terminal = functools.partial(hermes_name, "tools.terminal_tool")


@contextlib.contextmanager
def keep_inside(shell: Path) -> Iterator[None]:
    """Prevent hermes from doing anything for a session outside of ``shell`` while the context lasts.

    Language servers are switched off: they would run outside of the sandbox, and some of them execute a project's code. The
    start-up files of the user's shell are not sourced: people export keys in them. File tools use no optional programs, and
    sudo is not started.
    Raises: hermes does not start its commands with ``shell`` → EnvironmentSetupError.
    """
    hermes_module("model_tools")
    for found in (hermes_name("tools.environments.local", name)() for name in ("_find_bash", "_find_shell")):
        if found != str(shell):
            raise EnvironmentSetupError(
                "hermes does not start its commands inside the local sandbox.\n"
                f"  expected  the shell {shell}\n"
                f"  seen      {found}\n"
                "  fix       leave PATH and SHELL as they are while a LocalSandbox is active"
            )

    def has_command(real: Callable[..., bool], operations: Any, command: str) -> bool:
        return command not in OPTIONAL_PROGRAMS and real(operations, command)

    with (
        intercept("agent.lsp.get_service", lambda _: None),
        intercept("tools.environments.local._read_terminal_shell_init_config", lambda _: ([], False)),
        intercept("tools.file_operations.ShellFileOperations._has_command", has_command),
        intercept("tools.terminal_tool._sudo_nopasswd_works", lambda _: False),  # as where sudo asks for a password
    ):
        yield


def open_session(task_id: str, make_directory: Callable[[], str]) -> str:
    """Register a session for ``task_id``, unless its layer did, and return its working directory.

    ``make_directory`` creates one if the session has none.
    """
    overrides = _terminal("_task_env_overrides")
    given = overrides.get(task_id, {})
    if not given.get("cwd") or _terminal("_resolve_container_task_id")(task_id) != task_id:
        own = {"env_type": "local", "cwd": given.get("cwd") or make_directory()}
        _terminal("register_task_env_overrides")(task_id, {**given, **own})
    return str(overrides[task_id]["cwd"])


def directories_in(root: Path) -> dict[str, str]:
    """Return the working directories of sessions that are below ``root``, by task id."""
    if "tools.terminal_tool" not in sys.modules:
        return {}
    places = {task_id: overrides.get("cwd") for task_id, overrides in list(_terminal("_task_env_overrides").items())}
    return {task_id: place for task_id, place in places.items() if place and Path(place).is_relative_to(root)}


def close_session(task_id: str, directory: str = "") -> None:
    """Kill the processes of a session and make hermes forget it, including ended processes.

    Detached processes are killed if they work in ``directory``, or were marked with it; the directory stays.
    """
    from tools.process_registry import process_registry  # noqa: PLC0415

    with contextlib.ExitStack() as steps:  # every step runs, even if others raise
        steps.callback(forget_background_processes, task_id)
        if directory:
            steps.callback(kill_processes, mark=directory, directory=directory)
        steps.callback(hermes_name("tools.file_tools", "reset_file_dedup"), task_id)
        steps.callback(_terminal("clear_task_env_overrides"), task_id)
        steps.callback(_terminal("cleanup_vm"), task_id, force_remove=True)
        steps.callback(process_registry.kill_all, task_id)
        if directory:  # first: hermes waits two seconds for each that ignores SIGTERM, one after the other
            steps.callback(kill_processes, mark=directory, directory=directory)

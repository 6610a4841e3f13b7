"""HERMES_HOME during a test run: made when hermes-agent is first needed, and restored with all other variables.

Importing hermes writes into HERMES_HOME, its commands read HOME, and four variables make it ask a person for approval. The
plugin enters the home for each test that uses it; an import hook enters it for the rest of the run before anything else imports
hermes, such as a test module or a conftest. A run that never imports hermes pays for neither a directory nor a variable.

hermes 0.19 reads HERMES_HOME at each use, and some of its modules keep what they read at import. So the directory is the same in the
whole run, and the variables also stand for tests that import hermes themselves.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes_env_shared.abandoned import claim, remove_tree

APPROVAL_VARIABLES = ("HERMES_INTERACTIVE", "HERMES_GATEWAY_SESSION", "HERMES_EXEC_ASK", "HERMES_CRON_SESSION")
KEEP = "keep"
ADVICE = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
"""Set so that transformers does not print, in the middle of a test report, that there is no torch."""
HOME_PREFIX = "pytest-hermes-home-"
"""How the name of a temporary HERMES_HOME begins."""

OWNED = ("HERMES_HOME", "TERMINAL_HOME_MODE", ADVICE, *APPROVAL_VARIABLES)
TOUCHED_PREFIXES = ("HERMES_", "TERMINAL_")
"""Variables that building an environment or importing hermes may set."""
FIRST_IMPORTS = frozenset(
    {
        "hermes_bootstrap",
        "hermes_cli",
        "hermes_constants",
        "hermes_logging",
        "hermes_state",
        "model_tools",
        "run_agent",
        "tools.registry",
        "tools.terminal_tool",
        "toolsets",
    }
)
"""Modules of hermes-agent, one of which is imported before any of its code reads HERMES_HOME. A project's own ``tools`` does not count."""


class HermesHome:
    """HERMES_HOME of one test run. `enter` makes it; `leave` restores the variables and removes what was made."""

    def __init__(self, chosen: str | None) -> None:
        """Remember the variables. ``chosen`` is a directory, ``keep``, or None for a temporary directory."""
        self._chosen = chosen
        self._original = {name: os.environ.get(name) for name in OWNED}
        self._values: dict[str, str | None] = {}
        self._before: dict[str, str | None] = {}
        self.is_entered = False
        self._at_first_use: frozenset[str] = frozenset()
        self._temporary = ""
        self._release: Callable[[], None] = lambda: None
        self._hook = _ImportHook(self)
        sys.meta_path.insert(0, self._hook)

    @property
    def was_entered(self) -> bool:
        """Whether something has used it."""
        return bool(self._values)

    def describe(self) -> str:
        """Return the directory for the report header; a temporary one has no name before its first use."""
        if self._chosen == KEEP:
            return self._original["HERMES_HOME"] or "not set"
        return _absolute(self._chosen) if self._chosen else "temporary"

    def enter(self) -> None:
        """Set the variables, if they are not set. A variable that a running test has changed keeps its value until `restore`."""
        if self.is_entered:
            return
        self.is_entered = True
        self._before = {name: os.environ.get(name) for name in OWNED}
        changed = {name for name in OWNED if os.environ.get(name) not in {None, self._original[name]}}
        self._at_first_use = frozenset(touched_variables())
        self._values = {ADVICE: self._original[ADVICE] or "1", **dict.fromkeys(APPROVAL_VARIABLES)}
        if self._chosen != KEEP:
            if not self._chosen and not self._temporary:
                self._temporary = tempfile.mkdtemp(prefix=HOME_PREFIX)
                self._release = claim(self._temporary, self._temporary)
            path = _absolute(self._chosen or self._temporary)
            Path(path, "home").mkdir(parents=True, exist_ok=True)
            self._values |= {"HERMES_HOME": path, "TERMINAL_HOME_MODE": "profile"}
        for name in self._values.keys() - changed:
            _set(name, self._values[name])

    def restore(self, before: Mapping[str, str] | None) -> None:
        """Undo what a test did to the variables that hermes touches.

        ``before`` has their values at its start; None where the test itself was the first to use hermes: then what was added is
        removed.
        """
        if before is not None:
            restore_environment(before, only=touched_variables().keys() | before.keys())
            return
        for name in touched_variables().keys() - self._at_first_use:
            del os.environ[name]
        for name, value in self._values.items():
            _set(name, value)

    def step_out(self) -> None:
        """Restore the variables until the next `enter`; the directory stays."""
        for name in self._values:
            _set(name, self._before[name])
        self.is_entered = False

    def leave(self) -> None:
        """Restore the variables that were set and remove the temporary directory."""
        if self._hook in sys.meta_path:
            sys.meta_path.remove(self._hook)
        for name in (ADVICE, *self._values):
            _set(name, self._original[name])
        self._values = {}
        self.is_entered = False
        if self._temporary:
            remove_tree(self._temporary, then=self._release)


class _ImportHook:
    """A finder that finds nothing: it enters a home before hermes is imported, and silences transformers."""

    def __init__(self, home: HermesHome) -> None:
        self._home = home

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "transformers":
            os.environ.setdefault(ADVICE, "1")
        elif name in FIRST_IMPORTS:
            self._home.enter()


def restore_environment(before: Mapping[str, str], *, only: set[str] | None = None) -> None:
    """Restore ``os.environ`` to what it was: all of it, or the names in ``only``."""
    for name in os.environ.keys() | before.keys() if only is None else only:
        if os.environ.get(name) != before.get(name):
            _set(name, before.get(name))


def touched_variables() -> dict[str, str]:
    """Return the variables of hermes that are set."""
    return {name: value for name, value in os.environ.items() if name.startswith(TOUCHED_PREFIXES)}


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())

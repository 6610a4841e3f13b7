"""A temporary home for hermes-agent during a test run, and variables that are restored at its end.

Importing hermes writes into HERMES_HOME, the commands that it starts read HOME, and four variables make it ask a person for
approval. So a test run gets a temporary HERMES_HOME, which contains HOME for started commands, before hermes is imported.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["APPROVAL_VARIABLES", "HermesHome", "restore_environment"]

APPROVAL_VARIABLES = ("HERMES_INTERACTIVE", "HERMES_GATEWAY_SESSION", "HERMES_EXEC_ASK", "HERMES_CRON_SESSION")
KEEP = "keep"
ADVICE = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
"""Stops transformers from printing that there is no torch in the middle of a test report."""
TOUCHED_PREFIXES = ("HERMES_", "TERMINAL_")
"""Variables that building an environment or importing hermes may set."""


class HermesHome:
    """HERMES_HOME for one test run; `leave` restores the variables and removes the directory."""

    def __init__(self, chosen: str | None) -> None:
        """Set the variables. ``chosen`` is a directory, ``keep``, or None for a temporary directory."""
        self._before = dict(os.environ)
        self._temporary = ""
        if chosen == KEEP:
            self.path = os.environ.get("HERMES_HOME", "")
        else:
            if chosen is None:
                self._temporary = tempfile.mkdtemp(prefix="pytest-hermes-home-")
            self.path = str(Path(chosen or self._temporary).expanduser().absolute())
            Path(self.path, "home").mkdir(parents=True, exist_ok=True)
            os.environ["HERMES_HOME"] = self.path
            os.environ["TERMINAL_HOME_MODE"] = "profile"
        os.environ.setdefault(ADVICE, "1")
        for name in APPROVAL_VARIABLES:
            os.environ.pop(name, None)

    def leave(self) -> None:
        """Restore the variables and remove the temporary directory."""
        restore_environment(self._before, only=("HERMES_HOME", "TERMINAL_HOME_MODE", ADVICE, *APPROVAL_VARIABLES))
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)


def restore_environment(before: Mapping[str, str], *, only: tuple[str, ...] | None = None) -> None:
    """Restore ``os.environ``: all of it, or only the names in ``only``."""
    names = set(os.environ) | set(before) if only is None else set(only)
    for name in names:
        if name in before:
            if os.environ.get(name) != before[name]:
                os.environ[name] = before[name]
        else:
            os.environ.pop(name, None)


def touched_names(before: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that an environment may have set or changed since ``before``."""
    names = set(os.environ) | set(before)
    return tuple(name for name in names if name.startswith(TOUCHED_PREFIXES))

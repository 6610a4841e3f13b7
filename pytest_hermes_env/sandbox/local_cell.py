"""The cell of a local sandbox, and the shell that enters it.

The cell has the sandbox's directory at the machine's path. hermes' local backend starts every command, in the foreground or not, with the ``bash`` that comes first on PATH or with SHELL. While the sandbox
is active, that is a shell which drops variables, enters the cell, and runs bash.

Source: hermes-agent 0.19, tools/environments/local.py (``_find_bash``, ``_find_shell``).
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.sandbox.cell import Cell, CellError, CellPlan, Limits
from pytest_hermes_env.sandbox.view import local_view

ORDINARY_USER = 1000
"""The user id of root in the cell of a local sandbox."""
PASSED_VARIABLES = (
    "COLUMNS",
    "HERMES_UI_SESSION_ID",  # by which a rollout's processes are found
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "LOGNAME",
    "PYTHONUNBUFFERED",
    "TERM",
    "TZ",
    "USER",
)
"""Variables of the test run that commands get, in addition to PATH: no key has such a name.

hermes itself drops the keys of the providers that it knows; HF_TOKEN, WANDB_API_KEY and AWS_* would remain.
"""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SHELL_SCRIPT = """\
#!/bin/sh
# Runs bash for hermes: with few variables, and confined if this machine supports it.
own={directory}
path=":$PATH:"
case "$path" in *":$own:"*) path="${{path%%":$own:"*}}:${{path#*":$own:"}}" ;; esac
path="${{path#:}}"
exec /usr/bin/env -i PATH="${{path%:}}" {given} \\
  {passed} \\
  {command} "$@"
"""


def local_plan(base: Path, limits: Limits) -> CellPlan:
    """Create the directories of a cell in ``base`` and return its plan."""
    writable = base / "sandbox"
    for directory in (writable / "home", writable / "tmp"):
        directory.mkdir(parents=True, exist_ok=True)
    user = os.geteuid() or ORDINARY_USER
    steps = local_view(writable, limits.disk_bytes, user=user)
    return CellPlan(
        steps=steps, user=user, interpreter=os.path.realpath(sys.executable), limits=limits, directory=str(writable)
    )


class LocalCell:
    """The cell of a local sandbox, and the shell that enters it. Unconfined, there is only the shell. ``kind``: how it is confined.

    ``base`` holds the sandbox's directory, and things that commands cannot reach. Every command gets ``variables``. ``number`` counts
    the cells: one that cannot be entered any more is followed by another.
    """

    def __init__(
        self, kind: str, new_cell: Callable[[CellPlan], Cell | None], base: Path, limits: Limits, variables: Mapping[str, str]
    ) -> None:
        self._kind = kind
        self._new_cell = new_cell
        self._base = base
        self._variables = variables
        self._plan = local_plan(base, limits)
        self._cell: Cell | None = None
        self.number = 0
        self._bash = shutil.which("bash") or "/bin/bash"  # later, the first one on PATH is the shell
        self.shell = Path()

    def start(self) -> None:
        """Start the next cell. Raises: this machine cannot start it → UsageError."""
        self.number += 1
        enter_command: list[str] = []
        if (cell := self._new_cell(self._plan)) is not None:
            try:
                cell.start()
            except CellError as error:
                raise UsageError(
                    f"{self._kind} cannot confine the local sandbox.\n"
                    "  expected  a confined cell for its commands\n"
                    f"  seen      {error}\n"
                    "  fix       leave out `confinement` to use the best one that works here"
                ) from error
            enter_command = cell.enter_command(str(self._note_of(self.number)))
        self._cell = cell
        self.shell = write_shell(self._base / "bin", bash=self._bash, enter_command=enter_command, variables=self._variables)

    def stop(self) -> None:
        """Kill every process in it."""
        if self._cell is not None:
            self._cell.stop()

    def renew(self) -> None:
        """Start the next cell in place of this one, with everything in it. No rollout may be open."""
        if self._cell is not None:
            self.stop()
            self.start()

    def hits(self) -> int:
        """Return how often a limit was hit that ends all commands."""
        if self._cell is not None:
            with contextlib.suppress(EOFError, OSError):  # it ended: the next command says so
                return int(self._cell.ask({"do": "hits"}, [])[0]["hits"])
        return 0

    def loss_of(self, number: int) -> str:
        """Return why the cell of this number could not be entered, empty if it could. The next one is started if there is none yet."""
        try:
            reason = self._note_of(number).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        if number == self.number:
            self.stop()
            self.start()
        return shorten(reason.strip()) or "the cell of this sandbox cannot be joined"

    def _note_of(self, number: int) -> Path:
        """Return the file in which the shell writes why it could not enter a cell."""
        return self._base / "bin" / f"lost-{number}"


def check_variables(variables: Mapping[str, str]) -> None:
    """Raises: a name that no shell accepts, or a value that is not text → UsageError."""
    for name, value in variables.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(value, str) or "\0" in value:
            raise UsageError(
                f"LocalSandbox cannot give commands the variable {shorten(name)} = {shorten(repr(value))}.\n"
                "  expected  a name of letters, digits and _, and text as the value\n"
                '  fix       for example LocalSandbox(variables={"DATABASE": "sqlite:///data.db"})'
            )


def write_shell(directory: Path, *, bash: str, enter_command: Sequence[str], variables: Mapping[str, str]) -> Path:
    """Write the shell into ``directory``, which commands must not be able to write, and return its path.

    ``bash`` is the real one. ``enter_command`` are the words that enter the cell, empty without one. Every command gets
    ``variables``, and `PASSED_VARIABLES` as hermes sets them.
    """
    directory.mkdir(exist_ok=True)
    words = [*map(shlex.quote, enter_command), *(['"$PWD"'] if enter_command else []), shlex.quote(bash)]
    given = {**variables, "SHELL": bash}
    text = _SHELL_SCRIPT.format(
        directory=shlex.quote(str(directory)),
        given=" ".join(shlex.quote(f"{name}={value}") for name, value in given.items()),
        passed=" ".join(f'${{{name}+"{name}=${name}"}}' for name in PASSED_VARIABLES if name not in given),
        command=" ".join(words),
    )
    shell, partial = directory / "bash", directory / "partial"
    partial.write_text(text, encoding="utf-8")
    partial.chmod(0o700)
    partial.replace(shell)  # commands may be starting
    return shell

"""Finds out by trying how this machine can confine the commands of the local sandbox.

Confined commands have a private loopback and no other network, see no files but the machine's programs and those of the sandbox,
and no processes but its own. bubblewrap is used if it works; otherwise the same namespaces come from the kernel directly (as ``unshare`` does). If
neither works, the result has a reason for each. For root it is the other way round: bubblewrap shows the machine's devices so that their owner could
change their modes, and in a cell root is the owner of ``/dev/null``.

Place in the flow: the header of a test run shows `Confinement.describe`; `LocalSandbox` starts its `cell.Cell` accordingly.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_hermes_env.sandbox.cell import Cell, CellError, CellPlan, Limits
from pytest_hermes_env.sandbox.local_cell import local_plan

APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
MAXIMUM = Path("/proc/sys/user/max_user_namespaces")


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """How commands are confined. ``reason``: why nothing better works; empty for the best."""

    kind: Literal["bubblewrap", "unshare", "none"]
    reason: str = ""

    @property
    def is_in_force(self) -> bool:
        """Whether commands are confined at all."""
        return self.kind != "none"

    def describe(self) -> str:
        """Return the line for the header of a test run."""
        if self.is_in_force:
            return f"local sandbox: confined by {self.kind} (no network, no files of this machine but its programs)"
        return f"local sandbox: NOT CONFINED: commands have your files, your processes and your network ({self.reason})"

    def cell(self, plan: CellPlan) -> Cell | None:
        """Return a cell for ``plan``, not yet started, or None without confinement."""
        if self.kind == "none":
            return None
        return Cell(plan, bwrap=(shutil.which("bwrap") or "bwrap") if self.kind == "bubblewrap" else "")


ADVICE = "`hermes-env doctor` says how this machine could"
UNCONFINED_HERE = "--hermes-confine=off runs commands with your files, processes and network"

UNCONFINED = Confinement(kind="none", reason="not asked for")
"""Commands run in a private directory with few variables, but with network and write access."""


@functools.cache
def available() -> Confinement:
    """Return the best confinement that works here. Runs a command in it, once per process: about 0.1 s."""
    return probe()


def probe() -> Confinement:
    """Try bubblewrap, then unshare, and return the first that works; root begins with unshare."""
    if sys.platform != "linux":
        return Confinement(kind="none", reason=f"bwrap and unshare: need Linux, this is {sys.platform}")
    if os.geteuid() == 0 and not _problem_of(Confinement(kind="unshare")):
        return Confinement(kind="unshare")
    bubblewrap = Confinement(kind="bubblewrap")
    problem = _problem_of(bubblewrap) if shutil.which("bwrap") else "not installed"
    if not problem:
        return bubblewrap
    reason = f"bwrap: {problem}"
    problem = _problem_of(Confinement(kind="unshare"))
    if not problem:
        return Confinement(kind="unshare", reason=reason)
    named = problem if problem.startswith("unshare: ") else f"unshare: {problem}"
    setting = ""
    if _read(APPARMOR) == "1":
        setting = "; AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=1"
    elif _read(MAXIMUM) == "0":
        setting = "; user namespaces are switched off: sysctl user.max_user_namespaces=0"
    return Confinement(kind="none", reason=f"{reason}; {named}{setting}")


def _problem_of(confinement: Confinement) -> str:
    """Run commands in a cell and return why it does not confine them, or an empty text if it does."""
    with tempfile.TemporaryDirectory(prefix="pytest-hermes-probe-") as directory:
        base = Path(os.path.realpath(directory))
        cell = confinement.cell(local_plan(base, Limits()))
        if cell is None:
            return "nothing to try"
        outside_file = base / "given"
        outside_file.touch()
        try:
            cell.start()
            inside = _succeeds([*cell.enter_command(), "/", "/bin/sh", "-c", ': > "$0"', str(base / "sandbox" / "probe")])
            outside = _succeeds([*cell.enter_command(), "/", "/bin/sh", "-c", 'test -e "$0"', str(outside_file)])
        except CellError as error:
            return str(error)
        finally:
            cell.stop()
    if outside:
        return "files outside of the sandbox can be seen"
    return "" if inside else "a command cannot be run in it"


def _succeeds(words: list[str]) -> bool:
    return subprocess.run(words, check=False, capture_output=True, env={}).returncode == 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""

"""Says how this machine can confine the commands of the local sandbox, having tried it.

Confined: no network but a loopback of the sandbox's own, every file read-only but the sandbox's, no processes of others in
sight. bubblewrap is taken where it works; elsewhere the same namespaces are asked from the kernel (as ``unshare`` does); where
neither works, there is a reason for each.

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

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.sandbox.cell import Cell, CellError, CellLayout, hidden_paths

__all__ = ["UNCONFINED", "Confinement", "available", "probe", "require_confinement"]

APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
MAXIMUM = Path("/proc/sys/user/max_user_namespaces")


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """How commands are confined. ``reason`` says why nothing better is in force; it is empty where bubblewrap works."""

    kind: Literal["bubblewrap", "unshare", "none"]
    reason: str = ""

    @property
    def is_in_force(self) -> bool:
        """Whether commands are confined at all."""
        return self.kind != "none"

    def describe(self) -> str:
        """Return the line for the header of a test run."""
        if self.is_in_force:
            return f"local sandbox: confined by {self.kind} (no network, file system read-only but the sandbox)"
        return f"local sandbox: NOT confined ({self.reason})"

    def cell(self, layout: CellLayout) -> Cell | None:
        """Return a world on ``layout``, not yet started, or None where nothing confines."""
        if self.kind == "none":
            return None
        bwrap = (shutil.which("bwrap") or "bwrap") if self.kind == "bubblewrap" else ""
        return Cell(layout, bwrap=bwrap, hidden=hidden_paths(os.environ, Path.cwd(), layout.writable))


UNCONFINED = Confinement(kind="none", reason="not asked for")
"""Commands run as hermes runs them, in a private directory and with few variables, but with network and write access."""


@functools.cache
def available() -> Confinement:
    """Return the best confinement that works here. Tries it by running a command in it: once per process, about 0.1 s."""
    return probe()


def probe() -> Confinement:
    """Try bubblewrap, then unshare, and return the first that works."""
    if sys.platform != "linux":
        return Confinement(kind="none", reason=f"bwrap and unshare: need Linux, this is {sys.platform}")
    bubblewrap = Confinement(kind="bubblewrap")
    problem = _problem_of(bubblewrap) if shutil.which("bwrap") else "not installed"
    if not problem:
        return bubblewrap
    reason = f"bwrap: {problem}"
    problem = _problem_of(Confinement(kind="unshare"))
    if not problem:
        return Confinement(kind="unshare", reason=reason)
    named = problem if problem.startswith("unshare: ") else f"unshare: {problem}"
    return Confinement(kind="none", reason=f"{reason}; {named}{_kernel_setting()}")


def require_confinement(allow_unconfined: bool) -> None:
    """Refuse to let a live model work where nothing confines its commands.

    Raises: nothing confines and ``allow_unconfined`` is false → UsageError with the reasons and what to do.
    """
    confinement = available()
    if not confinement.is_in_force and not allow_unconfined:
        raise UsageError(
            "a live model would run unconfined commands on this machine.\n"
            "  expected  the local sandbox confined by bubblewrap or unshare\n"
            f"  seen      {confinement.reason}\n"
            "  fix       install bubblewrap (Debian, Ubuntu: apt install bubblewrap) or allow user namespaces; in Docker, run the\n"
            "            container with --privileged or a seccomp profile that allows unshare; or accept with\n"
            "            --hermes-allow-unconfined that the model can write files and use the network"
        )


def _problem_of(confinement: Confinement) -> str:
    """Run commands in a confined world and return why it is of no use, or nothing when it is."""
    with tempfile.TemporaryDirectory(prefix="pytest-hermes-probe-") as directory:
        base = Path(os.path.realpath(directory))
        cell = confinement.cell(CellLayout.prepare(base))
        if cell is None:
            return "nothing to try"
        try:
            cell.start()
            inside = _succeeds([*cell.enter_command(), "/bin/sh", "-c", ': > "$0"', str(base / "world" / "probe")])
            outside = _succeeds([*cell.enter_command(), "/bin/sh", "-c", ': > "$0"', str(base / "probe")])
        except CellError as error:
            return str(error)
        finally:
            cell.stop()
    if outside:
        return "files outside of the sandbox can be written"
    return "" if inside else "a command cannot be run in it"


def _succeeds(words: list[str]) -> bool:
    return subprocess.run(words, check=False, capture_output=True, env={}).returncode == 0


def _kernel_setting() -> str:
    """Return which setting of the kernel probably is in the way, for the end of a reason."""
    if _read(APPARMOR) == "1":
        return "; AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=1"
    if _read(MAXIMUM) == "0":
        return "; user namespaces are switched off: sysctl user.max_user_namespaces=0"
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""

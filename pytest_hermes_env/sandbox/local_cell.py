"""The cell of a local sandbox: its directory at the machine's path, and on request a copy of the project without its keys."""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
import sys
from pathlib import Path

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.sandbox.cell import CellPlan
from pytest_hermes_env.sandbox.limits import Limits
from pytest_hermes_env.sandbox.view import Step, local_view, python_directories

__all__ = ["KEYS", "copy_project", "local_plan"]

ORDINARY_USER = 1000
"""The user id of root in the cell of a local sandbox."""
MOST_BYTES = 256 << 20
"""Most bytes of a project that commands may read."""
KEY_SIZE = 64 << 10
"""Largest file that is searched for a private key."""
KEY_MARKS = (b"PRIVATE KEY-----", b"PuTTY-User-Key-File", b"aws_secret_access_key")
KEYS = (
    ".aws",
    ".azure",
    ".docker",
    ".env",
    ".env.*",
    ".envrc",
    ".git-credentials",
    ".gnupg",
    ".htpasswd",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".secrets*",
    ".ssh",
    ".vault-token",
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pem",
    "*.pfx",
    "*.ppk",
    "*.tfstate*",
    "*credentials*",
    "*service[-_]account*.json",
    "auth.json",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "id_rsa*",
    "secret.*",
    "secrets.*",
    "*token*.json",
    "token",
)
"""Names of files and directories of a project that look like keys. ``.git/config`` is left out, too: its addresses may have a password."""
SAMPLES = (".env.example", ".env.sample", ".env.template", "*.py", "*.md")
"""Names that never are keys, although they look like some."""


def local_plan(base: Path, limits: Limits, project: Path | None = None) -> CellPlan:
    """Create the directories of a cell in ``base`` and return its plan.

    Raises: ``project`` is no directory, or too large → UsageError.
    """
    writable = base / "world"
    for directory in (writable / "home", writable / "tmp"):
        directory.mkdir(parents=True, exist_ok=True)
    shown = copy_project(Path(os.path.realpath(project)), base / "project") if project else None
    user = os.geteuid() or ORDINARY_USER
    steps = local_view(writable, limits, user=user, project=shown)
    return CellPlan(
        steps=steps, user=user, interpreter=os.path.realpath(sys.executable), limits=limits, directory=str(writable)
    )


def copy_project(project: Path, copy: Path) -> Step:
    """Copy the regular files, directories and links of a project that do not look like keys, and return how a cell shows them.

    Raises: it is no directory, or has more than `MOST_BYTES` → UsageError.
    """
    if not project.is_dir():
        raise UsageError(_no_project(project, "no directory"))
    left = MOST_BYTES
    for directory, names, files in os.walk(project):
        names[:] = [name for name in names if not _is_left_out(Path(directory, name))]
        target = copy / Path(directory).relative_to(project)
        target.mkdir(parents=True, exist_ok=True)
        for name in files:
            path = Path(directory, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(path), target / name)
            elif stat.S_ISREG(status.st_mode) and not _is_left_out(path):
                left -= status.st_size
                if left < 0:
                    raise UsageError(_no_project(project, f"more than {MOST_BYTES} bytes"))
                shutil.copy2(path, target / name)
    for shown in map(Path, python_directories()):  # the interpreter of the tests may be in the project: it is shown itself
        if shown.is_relative_to(project):
            place = copy / shown.relative_to(project)
            (place if shown.is_dir() else place.parent).mkdir(parents=True, exist_ok=True)
            if not shown.is_dir():
                place.touch()
    return Step(kind="bind", path=str(project), source=str(copy))


def _is_left_out(path: Path) -> bool:
    """Return whether a path of a project is not shown: it looks like a key, is a virtual environment, or cannot be read."""
    name = path.name
    if any(fnmatch.fnmatch(name, sample) for sample in SAMPLES):
        return False
    if any(fnmatch.fnmatch(name.lower(), key) for key in KEYS) or path.parts[-2:] == (".git", "config"):
        return True
    if path.is_symlink():
        return False
    if path.is_dir():
        return (path / "pyvenv.cfg").exists()
    try:
        return path.stat().st_size <= KEY_SIZE and any(mark in path.read_bytes() for mark in KEY_MARKS)
    except OSError:
        return True


def _no_project(project: Path, seen: str) -> str:
    return (
        f"LocalSandbox cannot show the project {project}.\n"
        f"  expected  a directory of at most {MOST_BYTES} bytes\n"
        f"  seen      {seen}\n"
        "  fix       give the directory of the files that commands need: LocalSandbox(project=...)"
    )

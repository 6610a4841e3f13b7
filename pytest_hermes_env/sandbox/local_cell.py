"""The cell of a local sandbox, and the shell that enters it.

The cell has the sandbox's directory at the machine's path, and on request a copy of the project without its keys. hermes' local
backend starts every command, in the foreground or not, with the ``bash`` that comes first on PATH or with SHELL. While the sandbox
is active, that is a shell which drops variables, enters the cell, and runs bash.

Source: hermes-agent 0.19, tools/environments/local.py (``_find_bash``, ``_find_shell``).
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.sandbox.cell import CellPlan, Limits
from pytest_hermes_env.sandbox.view import Step, local_view, python_directories

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


def local_plan(base: Path, limits: Limits, project: Path | None = None) -> CellPlan:
    """Create the directories of a cell in ``base`` and return its plan.

    Raises: ``project`` is not a directory, or too large → UsageError.
    """
    writable = base / "sandbox"
    for directory in (writable / "home", writable / "tmp"):
        directory.mkdir(parents=True, exist_ok=True)
    shown = copy_project(Path(os.path.realpath(project)), base / "project") if project else None
    user = os.geteuid() or ORDINARY_USER
    steps = local_view(writable, limits.disk_bytes, user=user, project=shown)
    return CellPlan(
        steps=steps, user=user, interpreter=os.path.realpath(sys.executable), limits=limits, directory=str(writable)
    )


def copy_project(project: Path, copy: Path) -> Step:
    """Copy the regular files, directories and links of a project that do not look like keys, and return how a cell shows them.

    Raises: it is not a directory, or has more than `MOST_BYTES` → UsageError.
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
    directory.mkdir()
    words = [*map(shlex.quote, enter_command), *(['"$PWD"'] if enter_command else []), shlex.quote(bash)]
    given = {**variables, "SHELL": bash}
    text = _SHELL_SCRIPT.format(
        directory=shlex.quote(str(directory)),
        given=" ".join(shlex.quote(f"{name}={value}") for name, value in given.items()),
        passed=" ".join(f'${{{name}+"{name}=${name}"}}' for name in PASSED_VARIABLES if name not in given),
        command=" ".join(words),
    )
    shell = directory / "bash"
    shell.write_text(text, encoding="utf-8")
    shell.chmod(0o700)
    return shell

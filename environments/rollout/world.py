"""Keeps the files of a rollout's sandbox as its reward finds them, so that the reward can be computed again.

Contents are stored by their SHA-256, each once. What is not stored is named: a file that is too large, holds a secret or cannot be read.

Place in the flow: `recorder` looks at the directory before the agent starts, and keeps it when the agent has ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from environments.sandbox.isolation import is_open, sandbox_directory, session_of
from hermes_env_shared.rollout_record import Unkept, World, WorldFile, blob_path

LARGEST_FILE = 4 << 20
"""Bytes of one file that is kept."""
MOST_FILES = 5_000

_EXPORTED = re.compile(r'^declare -x (\w+)="((?:[^"\\]|\\.)*)"$', re.MULTILINE | re.DOTALL)
_SOURCED = re.compile(r"(?:^|[;&|(\n])\s*(?:source|\.|eval)\s", re.MULTILINE)
"""What may set any variable."""
_OF_THE_SHELL = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})
State = dict[str, tuple[int, int, int]]
"""Change time, size and inode by path."""


def state_of(task_id: str) -> State:
    """Return what is in the sandbox's directory now, to tell later who changed it."""
    directory = sandbox_directory(task_id)
    return {} if directory is None else {path: _facts(status) for path, status in _walk(directory, [])}


def kept_world(
    task_id: str, before: State, store: Path, *, most_bytes: int, is_secret: Callable[[str], bool], commands: str = ""
) -> World:
    """Store the sandbox's files in ``store``, and return what is there.

    ``most_bytes``: of all files together. ``commands``: those of the agent.
    """
    directory = sandbox_directory(task_id)
    if directory is None:
        backend = os.environ.get("TERMINAL_ENV", "local")
        why = f"files of a sandbox on the backend {backend}, or in a directory of the environment's own, are not kept"
        return World(unkept=[Unkept(path="", why=why)] if is_open(task_id) else [])
    world, now, left = World(directory=directory), time.time(), most_bytes
    _keep_session(world, task_id, commands, is_secret)
    for path, status in _walk(directory, world.unkept):
        if len(world.files) == MOST_FILES:
            world.unkept.append(Unkept(path="", why=f"there are more than {MOST_FILES:,} files"))
            break
        entry = WorldFile(
            path=path,
            mode=stat.S_IMODE(status.st_mode),
            age_s=round(now - status.st_mtime, 6),
            by="environment" if before.get(path) == _facts(status) else "agent",
        )
        place = os.path.join(directory, path)
        try:
            if stat.S_ISDIR(status.st_mode):
                world.files.append(entry.model_copy(update={"kind": "directory"}))
            elif stat.S_ISLNK(status.st_mode):
                world.files.append(entry.model_copy(update={"kind": "link", "target": os.readlink(place)}))
            elif why := _not_kept(status, left):
                world.unkept.append(Unkept(path=path, why=why))
            else:
                data = _content(place)
                left -= len(data)
                if is_secret(data.decode(errors="replace")):
                    world.unkept.append(Unkept(path=path, why="it holds a secret"))
                else:
                    stored = {"sha256": _store(store, data), "size": len(data)}
                    world.files.append(entry.model_copy(update=stored))
        except OSError as error:
            world.unkept.append(Unkept(path=path, why=f"it cannot be read: {error.strerror}"))
    return world


def _keep_session(world: World, task_id: str, commands: str, is_secret: Callable[[str], bool]) -> None:
    """Keep where the next command begins and what it finds exported; processes that still run cannot be kept."""
    where, exported, has_processes = session_of(task_id)
    root, real = os.path.realpath(world.directory), os.path.realpath(where) if where else ""
    if real.startswith(f"{root}/"):  # the directory may be named by a link
        world.session_directory = os.path.join(world.directory, os.path.relpath(real, root))
    elif real != root:
        world.session_directory = where
    if has_processes:
        world.unkept.append(Unkept(path="", why="a process that the agent had started still ran"))
    for name, quoted in _EXPORTED.findall(exported) if commands else ():
        value = re.sub(r'\\(["\\$`])', r"\1", quoted)
        is_set = _SOURCED.search(commands) or re.search(rf"\b{name}\+?=|\b(?:read|export)\b[^\n;|&]*\b{name}\b", commands)
        if is_set and value != os.environ.get(name) and name not in _OF_THE_SHELL:
            if name == "PATH" or is_secret(value):
                what = "another PATH" if name == "PATH" else f"{name}, which holds a secret"
                world.unkept.append(Unkept(path="", why=f"the agent's shell exported {what}"))
            else:
                world.variables[name] = value


def _not_kept(status: os.stat_result, left: int) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_size > LARGEST_FILE:
        return f"it has {status.st_size:,} bytes, more than {LARGEST_FILE:,}"
    return "" if status.st_size <= left else "the files of this rollout are larger than world_max_bytes"


def _facts(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _walk(directory: str, unkept: list[Unkept]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is below a directory, its path relative to it; what cannot be listed is added to ``unkept``."""
    pending = [""]
    while pending:
        place = pending.pop()
        try:
            with os.scandir(os.path.join(directory, place)) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            unkept.append(Unkept(path=_text(place), why=f"it cannot be listed: {error.strerror}"))
            continue
        for name in names:
            path = os.path.join(place, name)
            try:
                path.encode()
                status = os.lstat(os.path.join(directory, path))
            except UnicodeEncodeError:
                unkept.append(Unkept(path=_text(path), why="its name is not text"))
                continue
            except OSError as error:
                unkept.append(Unkept(path=path, why=f"it cannot be read: {error.strerror}"))
                continue
            yield path, status
            if stat.S_ISDIR(status.st_mode):
                pending.append(path)


def _text(path: str) -> str:
    return os.fsencode(path).decode(errors="replace")


def _content(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(LARGEST_FILE + 1)


def _store(store: Path, data: bytes) -> str:
    """Write a content that is not there yet, in one step, and return its name."""
    sha256 = hashlib.sha256(data).hexdigest()
    path = blob_path(store, sha256)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    return sha256

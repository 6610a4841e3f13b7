"""What a cell shows: a list of steps that build its root directory out of nothing.

The system's programs and libraries, the interpreter that runs the tests with its packages, a few files of ``/etc``, five harmless
devices and a ``/proc`` of its own. Everything else of the machine does not exist in the cell.

Place in the flow: `cell.Cell` gives the steps to bubblewrap or to `inside.init`.
"""

from __future__ import annotations

import functools
import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hermes_env_shared import trees

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""The devices that a command sees: no disk, and no terminal but its own."""
DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
)
SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr", "/nix/store")
"""Where a machine has its programs and libraries."""
ETC = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
"""What of the machine's ``/etc`` is shown."""
HOST_NAME = "sandbox"
PYTHON = "/opt/python"
"""Where the in-memory machine's real shell has the interpreter of the tests: on the machine it may be below ``/root`` or ``/tmp``."""
PROGRAMS = "/usr/local/bin"
"""The directory in which the interpreter and the programs of its packages are found: the first one on ``PATH`` that machines have."""
WRITTEN = ("/root/", "/tmp/", "/workspace/")  # noqa: S108 - in the cell
"""Where rollouts write, so that the machine shows nothing of its own there."""
KIT = "/opt/kit"
"""Where a cell has the program that is its first process."""
SCRATCH = "/run"
"""A directory of the cell for the files of its first process."""
SMALL = 4 << 20
"""Most bytes of a directory that holds next to nothing."""
LARGEST_SCRIPT = 64 << 10
OWN_DISTRIBUTION = "pytest_hermes_env-"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step. ``source``: what is shown at ``path``, the target of a link, or the text of a file.

    ``bind`` shows a file or directory read-only, ``writable`` lets it be written, ``seal`` makes the file system at ``path`` read-only.
    """

    kind: Literal["bind", "writable", "device", "tmpfs", "directory", "link", "file", "proc", "seal"]
    path: str
    source: str = ""
    mode: int = 0o755
    size: int = 0


OWN_PROGRAMS = tuple(
    Step(kind="bind", path=f"{KIT}/{directory.name}", source=str(directory))
    for directory in (Path(__file__).with_name("inside"), Path(trees.__file__).parent)
)
PROGRAM_PATHS = (str(Path(__file__).parent), str(Path(trees.__file__).parents[1]))
"""The directories in which the machine has them."""


def real_view(disk_bytes: int) -> list[Step]:
    """Return the root directory of a real shell: a private file system in memory, all of it writable but the machine's programs."""
    return [
        Step(kind="tmpfs", path="/", size=disk_bytes),
        *_machine(user=0, name="root", home="/root"),
        *(Step(kind="directory", path=path, mode=mode) for path, mode in (("/root", 0o755), ("/tmp", 0o1777))),  # noqa: S108
        *_moved_python(),
        *OWN_PROGRAMS,
        Step(kind="seal", path=PROGRAMS),
        Step(kind="seal", path=PYTHON),
    ]


def local_view(writable: Path, disk_bytes: int, *, user: int) -> list[Step]:
    """Return the root directory of a local sandbox: only ``writable``, which has the machine's path, and ``/tmp`` can be written."""
    return [
        Step(kind="tmpfs", path="/", size=SMALL),
        *_machine(user=user, name="user", home=str(writable / "home")),
        Step(kind="tmpfs", path="/tmp", size=disk_bytes, mode=0o1777),  # noqa: S108
        *(Step(kind="bind", path=path, source=path) for path in python_directories()),
        *(Step(kind="tmpfs", path=path, size=4096) for path in _unusable_distributions(_packages())),
        *OWN_PROGRAMS,
        # no command can move or replace what is mounted
        *(Step(kind="writable", path=str(path), source=str(path)) for path in (writable, writable / "home", writable / "tmp")),
        Step(kind="seal", path="/"),
    ]


def boot(interpreter: str, paths: Sequence[str], module: str) -> list[str]:
    """Return the words that run ``main`` of a module in `inside`; it and what it imports is in ``paths``."""
    program = f"import sys; sys.path += {[*paths]!r}; from inside.{module} import main; main()"
    return [interpreter, "-I", "-S", "-c", program]


def _machine(*, user: int, name: str, home: str) -> Iterator[Step]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield Step(kind="link", path=path, source=os.readlink(path))
        elif os.path.isdir(path):
            yield Step(kind="bind", path=path, source=path)
    yield from _etc(user=user, name=name, home=home)
    yield Step(kind="proc", path="/proc")
    with os.scandir(
        "/proc"
    ) as entries:  # what only root may read there is about the whole machine, and a cell's root is root's
        for path in sorted(one.path for one in entries if one.is_file() and not one.stat().st_mode & 0o077):
            yield Step(kind="device", path=path, source="/dev/null")
    yield Step(kind="tmpfs", path="/dev", size=SMALL)
    for device in DEVICES:
        if os.path.exists(f"/dev/{device}"):
            yield Step(kind="device", path=f"/dev/{device}", source=f"/dev/{device}")
    for link, target in DEVICE_LINKS:
        yield Step(kind="link", path=f"/dev/{link}", source=target)
    yield Step(kind="directory", path="/dev/shm")  # noqa: S108 - its name
    yield Step(kind="seal", path="/dev")
    yield Step(kind="tmpfs", path="/dev/shm", size=64 << 20, mode=0o1777)  # noqa: S108
    yield Step(kind="tmpfs", path=SCRATCH, size=SMALL)


def _etc(*, user: int, name: str, home: str) -> Iterator[Step]:
    root = "" if user == 0 else "root:x:0:0:root:/root:/usr/sbin/nologin\n"
    nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    yield Step(
        kind="file", path="/etc/passwd", source=f"{root}{name}:x:{user}:{user}:{name}:{home}:/bin/bash\n{nobody}", mode=0o644
    )
    groups = f"{'' if user == 0 else 'root:x:0:' + chr(10)}{name}:x:{user}:\nnogroup:x:65534:\n"
    yield Step(kind="file", path="/etc/group", source=groups, mode=0o644)
    yield Step(kind="file", path="/etc/nsswitch.conf", source="passwd: files\ngroup: files\nhosts: files\n", mode=0o644)
    yield Step(kind="file", path="/etc/hosts", source=f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n", mode=0o644)
    for entry in ETC:
        path = f"/etc/{entry}"
        if os.path.islink(path) and not os.path.realpath(path).startswith("/etc/"):
            yield Step(kind="link", path=path, source=os.path.realpath(path))
        elif os.path.exists(path):
            yield Step(kind="bind", path=path, source=os.path.realpath(path))


def _moved_python() -> tuple[Step, ...]:
    """Return the steps of `_python_steps`, as long as the places that they were read from are as they were."""
    places = (PROGRAMS, sysconfig.get_path("scripts"), *_packages())
    ages = ((place, os.stat(place).st_mtime_ns if os.path.isdir(place) else 0) for place in places)
    return _cached_steps((sys.executable, sys.base_prefix, site.ENABLE_USER_SITE, *ages))


@functools.lru_cache(maxsize=4)
def _cached_steps(_: tuple[Any, ...]) -> tuple[Step, ...]:
    return tuple(_python_steps())


def _python_steps() -> Iterator[Step]:
    """Show the interpreter of the tests below `PYTHON`, as a virtual environment whose programs are in ``/usr/local/bin``."""
    base, version = inner_base(), f"{sys.version_info.major}.{sys.version_info.minor}"
    yield Step(kind="tmpfs", path=PYTHON, size=SMALL)
    if base != sys.base_prefix:
        yield Step(kind="bind", path=base, source=sys.base_prefix)
    yield Step(
        kind="file",
        path=f"{PYTHON}/pyvenv.cfg",
        source=f"home = {base}/bin\ninclude-system-site-packages = false\n",
        mode=0o644,
    )
    packages = [f"{PYTHON}/packages/{at}" for at, _ in enumerate(_packages())]
    for inner, outer in zip(packages, _packages(), strict=True):
        yield Step(kind="bind", path=inner, source=outer)
        for hidden in _unusable_distributions([outer]):
            yield Step(kind="tmpfs", path=f"{inner}/{os.path.basename(hidden)}", size=4096)
    added = "".join(f"import site; site.addsitedir({path!r})\n" for path in packages)
    yield Step(kind="file", path=f"{PYTHON}/lib/python{version}/site-packages/machine.pth", source=added, mode=0o644)
    interpreter, real = f"{PYTHON}/bin/python3", inner_interpreter()
    library = inner_library()
    if library:
        wrapper = f'#!/bin/bash\nLD_LIBRARY_PATH={library} exec -a {interpreter} {real} "$@"\n'
        yield Step(kind="file", path=interpreter, source=wrapper)
    else:
        yield Step(kind="link", path=interpreter, source=real)
    start = f'#!/bin/sh\nexec {interpreter} "$@"\n'
    programs = {name: f"#!{interpreter}\n{text}" for name, text in _scripts()}
    programs |= dict.fromkeys(("python3", "python", f"python{version}"), start)
    yield Step(kind="tmpfs", path=PROGRAMS, size=SMALL)
    for entry in sorted(os.scandir(PROGRAMS), key=lambda entry: entry.name):
        if entry.is_symlink() and entry.name not in programs:
            yield Step(kind="link", path=entry.path, source=os.readlink(entry.path))
        elif entry.is_file() and entry.name not in programs:
            yield Step(kind="bind", path=entry.path, source=entry.path)
    for name, text in programs.items():
        yield Step(kind="file", path=f"{PROGRAMS}/{name}", source=text)
    for path in _compiled():
        yield Step(kind="bind", path=f"{PROGRAMS}/{path.name}", source=str(path))
        yield Step(kind="link", path=f"{PYTHON}/bin/{path.name}", source=f"{PROGRAMS}/{path.name}")  # where its package looks
        programs[path.name] = ""
    own, name = os.path.split(sys.executable)
    if not _is_system(own) and not own.startswith(WRITTEN):  # `sys.executable` in a verifier's command
        yield Step(kind="tmpfs", path=own, size=SMALL)
        yield from (Step(kind="link", path=f"{own}/{one}", source=f"{PROGRAMS}/{one}") for one in {name: "", **programs})
        yield Step(kind="seal", path=own)


def inner_base() -> str:
    """Return where the base of the interpreter is in a real shell: below `PYTHON`, unless it is a part of the system."""
    return sys.base_prefix if _is_system(sys.base_prefix) else f"{PYTHON}/base"


def inner_interpreter() -> str:
    """Return the path of the interpreter in a real shell."""
    return os.path.join(inner_base(), os.path.relpath(os.path.realpath(sys.executable), sys.base_prefix))


def inner_library() -> str:
    """Return the directory of the interpreter's shared library, if it was moved: the program itself names the machine's."""
    moved = inner_base() != sys.base_prefix
    return f"{inner_base()}/lib" if moved and sysconfig.get_config_var("Py_ENABLE_SHARED") else ""


def _scripts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each program that the packages of the tests brought, without the line that names Python."""
    directory = Path(sysconfig.get_path("scripts"))
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_file() and not path.name.startswith("python") and path.stat().st_size < LARGEST_SCRIPT:
            lines = path.read_bytes().decode(errors="surrogateescape").splitlines(keepends=True)
            if lines and lines[0].startswith(f"#!{directory}/python"):
                yield path.name, "".join(lines[1:])
            elif (
                lines[1:] and lines[0] == "#!/bin/sh\n" and lines[1].startswith("'''exec' ")
            ):  # the path is too long for a first line
                yield path.name, "".join(lines[3:])


def _compiled() -> Iterator[Path]:
    """Yield the programs of packages that are no scripts, such as ruff."""
    directory = Path(sysconfig.get_path("scripts"))
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK) and not _is_system(str(path)):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF" and not path.name.startswith("python"):
                    yield path


def python_directories() -> list[str]:
    """Return what the interpreter of the tests needs, at its own paths."""
    parts = [f"{sys.prefix}/{name}" for name in ("bin", "include", "lib", "lib64", "pyvenv.cfg", "share")]
    whole = [sys.base_prefix, *(parts if sys.base_prefix != sys.prefix else [])]  # the directory itself may be a project's
    found = [path for path in (*whole, *_packages()) if os.path.exists(path) and not _is_system(path)]
    return [path for path in dict.fromkeys(found) if not any(path.startswith(f"{other}/") for other in found)]


def _packages() -> list[str]:
    """Return the directories of the packages of the tests."""
    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [path for path in dict.fromkeys(map(os.path.realpath, own + user)) if os.path.isdir(path)]


def _unusable_distributions(directories: Iterable[str]) -> list[str]:
    """Return the metadata of packages that a cell cannot import, or must not: pytest would try to load their plugins.

    That is this kit itself, and each package that is installed in place.
    """
    found = []
    for directory in directories:
        for name in os.listdir(directory):
            if name.endswith(".dist-info"):
                path = f"{directory}/{name}"
                if name.startswith(OWN_DISTRIBUTION) or _is_in_place(path):
                    found.append(path)
    return sorted(found)


def _is_in_place(metadata: str) -> bool:
    try:
        with open(f"{metadata}/direct_url.json", encoding="utf-8") as file:
            origin = json.load(file)
    except (OSError, ValueError):
        return False
    return bool(origin.get("dir_info", {}).get("editable"))


def _is_system(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in SYSTEM)

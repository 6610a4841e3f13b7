"""``hermes-env doctor``: what this machine has for the tests, what is wrong with it, and what to do. It changes nothing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from hermes_env_shared.abandoned import left_behind
from hermes_env_shared.hermes_names import installed_hermes
from pytest_hermes_env import stale_package
from pytest_hermes_env.redaction.shown_text import shown
from pytest_hermes_env.sandbox.confinement import APPARMOR, MAXIMUM, UNCONFINED_HERE, Confinement, available
from pytest_hermes_env.shadowing import hiding, installed_modules
from pytest_hermes_env.versions import installed_versions

SCARCE_BYTES = 1 << 30
"""Fewer free bytes are named as a problem."""


@dataclass(frozen=True)
class Row:
    """What was looked at, and what was seen; ``fix`` says what to do, empty if all is well."""

    name: str
    seen: str
    fix: str = ""

    def __str__(self) -> str:
        title, indent = f"{'!' if self.fix else ' '} {self.name:<14}", " " * 16
        wrap = textwrap.TextWrapper(100, title, indent, break_on_hyphens=False, break_long_words=False)
        lines = wrap.wrap(self.seen)
        wrap.initial_indent = f"{indent}-> "
        return "\n".join(lines + wrap.wrap(self.fix))


def examine() -> int:
    """Print a row for everything that is looked at. Return 1 if something needs a hand."""
    rows = [*_versions(), _confinement(available()), *_modules(), *_leftovers(), *_places()]
    print(shown("\n".join(map(str, rows))))
    return int(any(row.fix for row in rows))


def _versions() -> Iterator[Row]:
    yield Row("python", f"{platform.python_version()}, {platform.platform()}, {sys.executable}")
    versions = installed_versions() | {"pytest": metadata.version("pytest")}
    missing = [name for name, version in versions.items() if version == "not installed"]
    fix = f"pip install {' '.join(missing)}: without them, only the source of environments can be checked" if missing else ""
    yield Row("hermes", installed_hermes() or "not installed")
    yield Row("packages", ", ".join(f"{name} {version}" for name, version in versions.items()), fix)
    plugins = sorted(
        {f"{point.dist.name} {point.dist.version}" for point in metadata.entry_points(group="pytest11") if point.dist}
    )
    yield Row("plugins", ", ".join(plugins))


def _confinement(found: Confinement) -> Row:
    return Row(
        "confinement", found.describe(), "" if found.is_in_force else f"{way_to_confine(found.reason)}. Or {UNCONFINED_HERE}."
    )


def way_to_confine(reason: str) -> str:
    """Return what lets a machine like this one confine commands. The table of the docs' page of the local sandbox has the same."""
    if MAXIMUM.name in reason:
        return "Allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000"
    if sys.platform != "linux":
        return "Run the tests in a Linux container or virtual machine"
    if Path("/.dockerenv").exists():
        return (
            "Start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined: it stays unprivileged, and may make namespaces of its own"
        )
    if Path("/run/.containerenv").exists():
        return "Start the container with --security-opt seccomp=unconfined --security-opt unmask=ALL"
    if APPARMOR.name in reason:
        return (
            "Install bubblewrap and its AppArmor profile (bwrap-userns-restrict of apparmor-profiles), or on a CI runner: "
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        )
    return "Install bubblewrap"


def _modules() -> Iterator[Row]:
    """Look for files of the project that Python would import in the place of installed modules."""
    names = installed_modules()
    hidden = list(filter(None, map(hiding, names)))
    for place in hidden:
        is_stale = Path(place).parent.name == stale_package.PACKAGE
        fix = stale_package.FIX if is_stale else "Rename it, or keep its directory off sys.path."
        yield Row("modules", f"{os.path.relpath(place)} hides an installed module of that name", fix)
    if not hidden:
        yield Row("modules", f"nothing hides one of the {len(names)} that are installed with the packages")


def _leftovers() -> Iterator[Row]:
    abandoned, aside = left_behind()
    if abandoned:
        yield Row("leftovers", f"of killed processes: {', '.join(abandoned)}", "The next run that uses a sandbox removes them.")
    if aside:
        yield Row(
            "leftovers", f"could not be removed: {', '.join(aside)}", "Look why (lsattr, findmnt), and remove them by hand."
        )
    if not abandoned and not aside:
        yield Row("leftovers", "none")


def _places() -> Iterator[Row]:
    home = os.environ.get("HERMES_HOME") or "~/.hermes"
    for name, place in (("temporary", tempfile.gettempdir()), ("here", "."), ("HERMES_HOME", home)):
        path = Path(place).expanduser().absolute()
        there = next(directory for directory in (path, *path.parents) if directory.exists())
        free = shutil.disk_usage(there).free
        is_writable = os.access(there, os.W_OK | os.X_OK)
        fix = "" if is_writable else "Make it writable, or set TMPDIR or HERMES_HOME to another directory."
        if is_writable and free < SCARCE_BYTES:
            fix = "Make room: sandboxes, cassettes and evidence are written there."
        yield Row(name, f"{path}: {'writable' if is_writable else 'not writable'}, {free / 1e9:.1f} GB free", fix)

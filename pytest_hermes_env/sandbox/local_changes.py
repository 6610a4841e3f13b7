"""Changes that the local sandbox makes to variables and on disk, and how they are undone."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["changed_variables", "remove_tree"]


@contextlib.contextmanager
def changed_variables(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change variables of this process while the context lasts; None unsets one."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set(changes)
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def remove_tree(directory: Path) -> None:
    """Remove a directory with everything in it, including directories that commands made inaccessible."""
    for place, names, _ in os.walk(directory):
        for name in names:
            inner = os.path.join(place, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(directory, ignore_errors=True)

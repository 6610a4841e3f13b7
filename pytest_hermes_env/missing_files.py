"""Names the file that a wrong path may mean, for every command and option that takes one."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Iterator

NO_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
ALIKE = 0.75
MOST_FILES = 2000


def files_below(path: str) -> Iterator[str]:
    """Yield the files below a directory, hidden directories, virtual environments and build output left out."""
    for folder, folders, files in os.walk(path):
        folders[:] = [
            name
            for name in folders
            if name not in NO_SOURCE
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (os.path.normpath(os.path.join(folder, name)) for name in files)


def no_file(path: str) -> str:
    """Return that there is no file ``path``, with the one below its directory that is called so, or nearly so."""
    if os.path.isdir(path):
        return f"{path} is a directory, and a file is needed"
    folder, name = os.path.split(path)
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    seen = itertools.islice(files_below(folder if folder.strip("/") else os.curdir), MOST_FILES)
    named = {os.path.basename(file): file for file in seen}
    near = difflib.get_close_matches(name, named, n=1, cutoff=ALIKE)
    return f"there is no file {path}" + (f". Did you mean {named[near[0]]}?" if near else "")

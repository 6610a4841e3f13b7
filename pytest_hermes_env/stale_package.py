"""Names a stale ``environments/__init__.py`` as the cause, where an import of the environment layer fails.

Every folder of hermes-agent's former layer has such a file. It makes the folder a regular package, and Python then ignores every
other ``environments`` on its path, the installed layer too, which is a namespace package.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

PACKAGE = "environments"
INSTALLED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), PACKAGE, "")
"""The directory of the installed layer, which has packages of its own."""


WHY = "It makes its directory a regular package, which hides the installed one of that name."
FIX = (
    f"Delete the file: `{PACKAGE}` is a namespace package, so your modules and the installed ones are then found side by side."
)


@contextlib.contextmanager
def stale_package_explained() -> Iterator[None]:
    """Raise a ModuleNotFoundError that names the stale file where Python would only report a missing module."""
    finder = _LastFinder()
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _LastFinder:
    """A finder that finds nothing. Python asks it last, for modules that do not exist."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        package, _, _ = name.rpartition(".")
        if package.partition(".")[0] != PACKAGE:
            return
        init_file = getattr(sys.modules.get(package), "__file__", None)
        if init_file and not init_file.startswith(INSTALLED) and _is_elsewhere(name):
            # not with name=name: `from environments import X` would replace the error by its own
            raise ModuleNotFoundError(f"{name} cannot be imported because of {init_file}. {WHY} {FIX}", name=PACKAGE)


def _is_elsewhere(name: str) -> bool:
    """Return whether a directory on the path has the module."""
    places = (os.path.join(entry, *name.split(".")) for entry in sys.path)
    return any(os.path.isfile(f"{place}.py") or os.path.isdir(place) for place in places)

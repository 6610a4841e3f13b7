"""Detects project modules that shadow one of hermes-agent's top-level modules.

hermes-agent installs modules with common names (``utils``, ``tools``, ``cli``, ``agent``, ``cron``, ``gateway``, ``plugins``,
``providers``). A project file of the same name earlier on ``sys.path`` makes hermes' tool modules fail on import;
hermes swallows the error and offers fewer tools, or none. `shadowed_modules` finds the cause.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import logging
import sys
from pathlib import Path

logger = logging.getLogger(__name__)


def shadowed_modules() -> dict[str, str]:
    """Map each shadowed hermes-agent module to the file that shadows it; empty if there is none."""
    roots, names = _installed()
    found = {name: _origin(name) for name in names}
    return {name: file for name, file in found.items() if file and not any(map(Path(file).resolve().is_relative_to, roots))}


@functools.cache
def _installed() -> tuple[set[Path], tuple[str, ...]]:
    """Return the directories of hermes-agent, of which a checkout has another one, and the names of its top-level modules."""
    try:
        distribution = importlib.metadata.distribution("hermes-agent")
    except importlib.metadata.PackageNotFoundError:  # a checkout on PYTHONPATH, or a fork
        return set(), ()
    names = (distribution.read_text("top_level.txt") or "").split()
    is_checkout = '"editable": true' in (distribution.read_text("direct_url.json") or "")
    places = [str(distribution.locate_file("")), *([str(Path(_origin("model_tools")).parent)] if is_checkout else [])]
    return {Path(place).resolve() for place in places}, tuple(names)


def _origin(name: str) -> str:
    """Return the file from which ``name`` is, or would be, imported; empty when there is none."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None) or ""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    return (spec.origin or "") if spec else ""


def explain_shadowing() -> str:
    """Return one paragraph for an error message, or an empty string when no module is shadowed."""
    hidden = shadowed_modules()
    if not hidden:
        return ""
    rows = "; ".join(f"`{name}` comes from {path}" for name, path in sorted(hidden.items()))
    return (
        f"A module of your project shadows one of hermes-agent's own: {rows}. "
        "Rename it, or keep its directory off sys.path: hermes-agent imports these names at the top level."
    )


@functools.cache
def warn_of_stale_package() -> None:
    """Warn, once, of an ``environments/__init__.py`` on ``sys.path``: hermes-agent's former layer left one in every folder.

    This layer was imported before Python saw it. The modules of that folder cannot be imported now; in the next process it hides
    the layer.
    """
    for entry in sys.path:
        init_file = Path(entry or ".", "environments", "__init__.py")
        if init_file.is_file():
            logger.warning(
                "%s makes its directory a regular package, which hides the installed package `environments`, or is hidden by it. "
                "Delete the file: `environments` is a namespace package, so your modules and the installed ones are then found "
                "side by side",
                init_file.resolve(),
            )
            return

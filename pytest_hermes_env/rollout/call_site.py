"""Finds the line of the environment that a watched call came from, past the layer's and this package's own frames."""

from __future__ import annotations

import inspect
import linecache
import sys
from types import FrameType

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.rollout.journal import Place

__all__ = ["called_by_layer", "outside_place"]


def outside_place(layer: Layer) -> Place:
    """Return the nearest calling line that is neither this package's nor the layer's own: the environment's."""
    hidden = (_package_directory(__file__, 2), _package_directory(inspect.getfile(layer.base), 1))
    own_files = {inspect.getfile(layer.base), layer.agent_loop.__file__, layer.tool_context.__file__}
    frame: FrameType | None = sys._getframe(1)
    fallback = Place()
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith((hidden[0], "<")) or path in own_files or _is_library(path):
            frame = frame.f_back
            continue
        if not path.startswith(hidden[1]) or _is_environment_file(path, own_files):
            return Place(path=path, line=frame.f_lineno, function=frame.f_code.co_name)
        frame = frame.f_back
    return fallback


def called_by_layer(layer: Layer) -> bool:
    """Tell whether the watched call, two frames up, came from the layer's own files."""
    frame = sys._getframe(2)
    return frame.f_code.co_filename in {
        inspect.getfile(layer.base),
        layer.agent_loop.__file__,
        layer.tool_context.__file__,
    }


def _is_environment_file(path: str, own_files: set[str | None]) -> bool:
    """Tell an environment that lives in the layer's package from the layer's own plumbing."""
    return path not in own_files and any("compute_reward" in line for line in linecache.getlines(path))


def _package_directory(file: str, levels: int) -> str:
    parts = file.split("/")
    return "/".join(parts[:-levels]) + "/"


def _is_library(path: str) -> bool:
    return "/asyncio/" in path or "/concurrent/" in path or path.endswith(("/threading.py", "/contextlib.py"))

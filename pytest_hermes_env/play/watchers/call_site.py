"""Finds the line of the environment that a watched call, or an error, came from."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType

from pytest_hermes_env import patches
from pytest_hermes_env.layer import Layer
from pytest_hermes_env.play.class_record import file_of
from pytest_hermes_env.play.journal import Place

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
WRAPPERS = (patches.__file__, os.path.dirname(__file__) + os.sep)
"""Files whose frames lie between a watched call and its watcher."""


LIBRARIES = tuple(
    sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if sysconfig.get_path(name)
)
LAYER_FOLDERS = ("command_line", "loop", "rollout", "sandbox", "service", "tokens", "trainer")
"""The folders of our environment layer, without those of its examples."""

SITE_PACKAGES = f"{os.sep}site-packages{os.sep}"
_STEP_OF_A_TASK = asyncio.Handle._run.__code__

evaluating_at: ContextVar[Place] = ContextVar("hermes_env_evaluating_at", default=Place())  # noqa: B039 - frozen
"""The environment's line that called the layer's evaluate_items, whose tasks have no line of the environment on their stacks."""


_OF_ARGUMENTS = re.compile(
    r"(?:[\w<>]+\.)*(\w+)\(\) (?:takes .*positional|missing .*positional|got an unexpected keyword) argument"
)


class EnvironmentCode:
    """The files of an environment: those of its classes below the layer's base, and all files next to them."""

    def __init__(self, env_class: type, layer: Layer) -> None:
        files = {file_of(cls) for cls in env_class.__mro__[: env_class.__mro__.index(layer.base)]}
        self._layer, self._class = _layer_files(layer), env_class
        self._files = {file for file in files if file}
        of_the_layer = os.path.dirname(file_of(layer.base))
        self._of_the_layer = of_the_layer + os.sep
        directories = {os.path.dirname(file) for file in self._files} - {of_the_layer}
        self._directories = tuple(directory + os.sep for directory in directories)

    def place(self, frame: FrameType | None, *, behind: tuple[str, ...] = ()) -> Place | None:
        """Return the innermost line of the environment on a stack; None when the layer, an import or the kit is nearer.

        Frames of files that begin with ``behind`` are looked through.
        """
        while frame is not None:
            path = frame.f_code.co_filename
            if behind and path.startswith(behind):
                frame = frame.f_back
                continue
            if path in self._layer or path.startswith(("<frozen importlib", PACKAGE)):
                return None
            if self._is_own(path):
                return _place_of(frame)
            frame = frame.f_back
        return None

    def raised_at(self, error: BaseException) -> Place:
        """Return the deepest line of the environment in the traceback of an error, or of its cause; an empty place without one."""
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            if places := _places(cause, self._is_own):
                return places[0]
            cause = cause.__cause__ or cause.__context__
        return Place()

    def raised_by(self, error: BaseException) -> Place:
        """Return `raised_at`, but an empty place for an error that the layer raised itself, in a call of the environment's."""
        frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        own = max((number for number, path in enumerate(frames) if self._is_own(path)), default=len(frames))
        is_of_layer = error.__cause__ is None and any(path.startswith(self._of_the_layer) for path in frames[own + 1 :])
        found = Place() if is_of_layer else self.raised_at(error)
        return found if found.path or not isinstance(error, TypeError) else self._defined(str(error))

    def _defined(self, text: str) -> Place:
        """Return where the method is defined that was called with other arguments than it takes; an empty place without one."""
        method = getattr(self._class, called[1], None) if (called := _OF_ARGUMENTS.match(text)) else None
        code = getattr(inspect.unwrap(method), "__code__", None) if method is not None else None
        if code is None or not self._is_own(code.co_filename):
            return Place()
        return Place(path=code.co_filename, line=code.co_firstlineno, function=code.co_name)

    def is_beside(self, path: str) -> bool:
        """Whether a file of the host lies beside the environment's."""
        return os.path.abspath(path).startswith(self._directories) and os.path.exists(path)

    def _is_own(self, path: str) -> bool:
        if path in self._layer or path.startswith(("<", PACKAGE)):
            return False
        return path in self._files or (path.startswith(self._directories) and SITE_PACKAGES not in path)


def calling_frame() -> FrameType | None:
    """Return the frame of a watched call, for use in its watcher."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(WRAPPERS):
        frame = frame.f_back
    return frame


def called_by_layer(layer: Layer) -> bool:
    """Return whether the watched call came from the layer's own files."""
    frame = calling_frame()
    return frame is not None and frame.f_code.co_filename in _layer_files(layer)


def outside_place(layer: Layer) -> Place:
    """Return the nearest calling line outside of the kit, the layer and installed libraries.

    In a task it is a line of that task, because whoever runs the event loop did not make the call; without one it is that of
    `evaluating_at`.
    """
    own_files = _layer_files(layer)
    directory = os.path.dirname(inspect.getfile(layer.base))
    directories = {directory, *(os.path.join(directory, name) for name in LAYER_FOLDERS)}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _STEP_OF_A_TASK:
        path = frame.f_code.co_filename
        is_hidden = path.startswith((PACKAGE, "<")) or path in own_files
        is_plumbing = os.path.dirname(path) in directories or path.startswith(LIBRARIES) or SITE_PACKAGES in path
        if not is_hidden and (not is_plumbing or _defines_environment(frame, layer)):
            return _place_of(frame)
        frame = frame.f_back
    return evaluating_at.get()


def raised_in(path: str, error: BaseException) -> Place | None:
    """Return the deepest line of an error's traceback that lies in a file."""
    return next(iter(_places(error, path.__eq__)), None)


def _places(error: BaseException, is_own: Callable[[str], bool]) -> list[Place]:
    """Return the places of an error's traceback in some files, the deepest first."""
    return [
        Place(path=frame.f_code.co_filename, line=line, function=frame.f_code.co_name)
        for frame, line in reversed([*traceback.walk_tb(error.__traceback__)])
        if is_own(frame.f_code.co_filename)
    ]


def _place_of(frame: FrameType) -> Place:
    return Place(path=frame.f_code.co_filename, line=frame.f_lineno, function=frame.f_code.co_name)


def _layer_files(layer: Layer) -> set[str | None]:
    """Return the files of the layer that build contexts and loops for environments; a former layer has the first three."""
    base = file_of(layer.base)
    names = ("rollout/agent_rollout", "rollout/evaluation")
    helpers = {os.path.join(os.path.dirname(base), f"{name}.py") for name in names}
    return {base, layer.agent_loop.__file__, layer.tool_context.__file__, *helpers}


def _defines_environment(frame: FrameType, layer: Layer) -> bool:
    """Return whether the module of a frame defines an environment: such a module next to the layer's files is not their plumbing."""
    module = frame.f_globals.get("__name__")
    classes = [value for value in frame.f_globals.values() if isinstance(value, type)]
    return any(cls.__module__ == module and cls is not layer.base and issubclass(cls, layer.base) for cls in classes)

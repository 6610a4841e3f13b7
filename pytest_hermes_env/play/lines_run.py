"""Which lines of some files are run while a block of code is.

Place in the flow: the contract records those of the files with errors in the source, to tell which of them the rollouts reached.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Collection, Iterator
from types import CodeType, FrameType
from typing import Any

Line = tuple[str, int]
"""The real path of a file, and a line of it."""

TOOL_IDS = (3, 4)
"""The ids that `sys.monitoring` leaves to tools without one of their own."""


@contextlib.contextmanager
def recording_lines(files: Collection[str], lines: set[Line]) -> Iterator[None]:
    """Add the lines of ``files`` (real paths) that run to ``lines``.

    Before Python 3.12 nothing is recorded where a debugger or a coverage tool traces already: two cannot.
    """
    if not files:
        yield
        return
    real_path = functools.cache(os.path.realpath)

    def add(code: CodeType, line: int) -> bool:
        path = real_path(code.co_filename)
        if path in files:
            lines.add((path, line))
        return path in files

    with _monitoring(add) if sys.version_info >= (3, 12) else _tracing(add):
        yield


@contextlib.contextmanager
def _monitoring(add: Any) -> Iterator[None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # since Python 3.12
    tool = next((tool for tool in TOOL_IDS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        yield
        return

    def on_line(code: CodeType, line: int) -> Any:
        add(code, line)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, "pytest-hermes-env")
    try:
        monitoring.register_callback(tool, monitoring.events.LINE, on_line)
        monitoring.set_events(tool, monitoring.events.LINE)
        monitoring.restart_events()
        yield
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)


@contextlib.contextmanager
def _tracing(add: Any) -> Iterator[None]:
    if sys.gettrace() is not None:
        yield
        return

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        return on_line if add(frame.f_code, frame.f_lineno) else None

    def on_line(frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        add(frame.f_code, frame.f_lineno)
        return on_line

    before = threading.gettrace()
    threading.settrace(on_call)
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(before)

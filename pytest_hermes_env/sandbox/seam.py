"""The one place where tool calls can be watched or answered: hermes-agent's tool registry.

Every tool call, the agent's and the verifier's, passes ``tools.registry.registry.dispatch``. `watching_tools` stands there for
a while: it records each call, lets the real tool answer or answers itself, and puts everything back afterwards.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["ToolCall", "offering", "watching_tools"]


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call that passed the seam. ``seconds`` is how long its answer took; ``result`` is what the caller was given."""

    task_id: str
    name: str
    arguments: dict[str, Any]
    result: Any
    seconds: float


Answer = Callable[[str, dict[str, Any], str], "str | None"]
"""(tool name, arguments, task_id) -> the result as JSON text, or None to let the real tool answer."""


@contextlib.contextmanager
def watching_tools(record: Callable[[ToolCall], None], answer: Answer) -> Iterator[None]:
    """Pass every tool call through ``answer`` and ``record`` while the context lasts. Safe from threads and event loops."""
    from tools.registry import registry  # noqa: PLC0415 - hermes is heavy

    real = registry.dispatch

    def dispatch(name: str, args: dict[str, Any], **kwargs: Any) -> Any:
        started = time.monotonic()
        task_id = str(kwargs.get("task_id") or "")
        result: Any = answer(name, args, task_id)
        if result is None:
            result = real(name, args, **kwargs)
        seconds = time.monotonic() - started
        record(ToolCall(task_id=task_id, name=name, arguments=dict(args), result=result, seconds=seconds))
        return result

    registry.dispatch = dispatch
    try:
        yield
    finally:
        del registry.dispatch


@contextlib.contextmanager
def offering(tool_names: Iterable[str]) -> Iterator[None]:
    """Make hermes offer these tools although what they need (a key, a browser) is absent: a double answers for them."""
    import model_tools  # noqa: PLC0415 - hermes is heavy
    from tools.registry import invalidate_check_fn_cache, registry  # noqa: PLC0415

    entries = [entry for name in tool_names if (entry := registry.get_entry(name)) is not None and entry.check_fn]
    checks = [(entry, entry.check_fn) for entry in entries]
    for entry in entries:
        entry.check_fn = None
    model_tools._clear_tool_defs_cache()  # noqa: SLF001 - hermes has no public way to forget its memo
    try:
        yield
    finally:
        for entry, check in checks:
            entry.check_fn = check
        invalidate_check_fn_cache()
        model_tools._clear_tool_defs_cache()  # noqa: SLF001

"""Lets synchronous tool calls inside a coroutine wait without blocking the event loop.

A reward function is a coroutine, but `ToolContext` has plain methods: ``ctx.terminal("pytest -q")`` returns a dict, not an
awaitable. Called on the event loop's thread, such a call would block every other rollout until the command ends. Here the
coroutine runs in its own greenlet; a synchronous call inside it passes an awaitable to the surrounding task, which awaits
it, and the greenlet continues with the result. SQLAlchemy's asyncio layer works the same way.

Place in the flow: `hermes_base_env` wraps every ``compute_reward`` with `bridged`; `tool_context` calls `wait_for`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

import greenlet

T = TypeVar("T")

_YIELD, _AWAIT, _DONE, _RAISED = range(4)


class _Carrier(greenlet.greenlet):
    """The greenlet that runs one coroutine, with the context variables of the task that drives it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        driver = greenlet.getcurrent()
        super().__init__(self._step_to_the_end, driver)
        self.gr_context = driver.gr_context
        self._coroutine = coroutine

    def _step_to_the_end(self) -> tuple[int, Any]:
        coroutine = self._coroutine
        error: BaseException | None = None
        while True:
            try:
                yielded = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                return _DONE, stop.value
            except BaseException as raised:  # noqa: BLE001 - carried to the driver, which raises it in the task
                return _RAISED, raised
            try:
                self.parent.switch((_YIELD, yielded))
                error = None
            except BaseException as thrown:  # noqa: BLE001 - a cancellation: it belongs to the coroutine
                error = thrown

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Suspend the coroutine's synchronous frame until the driving task has awaited ``awaitable``."""
        return self.parent.switch((_AWAIT, awaitable))  # type: ignore[no-any-return]


class _Bridged:
    """An awaitable that drives a `_Carrier` from the task that awaits it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        carrier = _Carrier(self._coroutine)
        kind, value = carrier.switch()
        while True:
            if kind == _DONE:
                return value
            if kind == _RAISED:
                raise value
            try:
                if kind == _AWAIT:
                    answer = yield from value.__await__()
                else:
                    answer = yield value
            except BaseException as error:  # noqa: BLE001 - raised again inside the coroutine, where it happened
                kind, value = carrier.throw(error)
            else:
                kind, value = carrier.switch(answer)


def is_bridged() -> bool:
    """Return whether the current frame runs inside a bridged coroutine."""
    return isinstance(greenlet.getcurrent(), _Carrier)


def wait_for(awaitable: Awaitable[T]) -> T:
    """Await ``awaitable`` from a synchronous frame of a bridged coroutine, without blocking the event loop.

    Raises: RuntimeError when the current frame is not inside one; see `is_bridged`.
    """
    carrier = greenlet.getcurrent()
    if not isinstance(carrier, _Carrier):
        raise RuntimeError("wait_for() needs a bridged coroutine around it; see environments.sandbox.nonblocking_calls.bridged")  # noqa: TRY004 - wrong place of the call, not wrong type
    return carrier.wait(awaitable)


def bridged(function: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Return ``function`` wrapped so that synchronous tool calls in it do not block the event loop.

    A function that is not a coroutine function, or is already bridged, is returned unchanged.
    """
    if not inspect.iscoroutinefunction(function) or getattr(function, "__bridged__", False):
        return function

    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> T:
        coroutine = function(*args, **kwargs)
        if is_bridged():
            return await coroutine
        return await _Bridged(coroutine)  # type: ignore[no-any-return]

    run.__bridged__ = True  # type: ignore[attr-defined]
    return run

"""The only way in which the test kit replaces something that belongs to Python, a library or the code under test.

docs/reference/patches.md lists what is replaced, why and how long; the tests fail where a target has no row there.

Place in the flow: below every room. Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_lock = threading.RLock()


@contextlib.contextmanager
def intercept(target: str, handler: Callable[..., Any], *, owner: Any = None) -> Iterator[None]:
    """Call ``handler(real, *args, **kwargs)`` in place of a function or method while the context lasts.

    The first handler of a target installs one wrapper and later ones join it: the handler that was entered last is called
    first, and its ``real`` is the handler before it. They may leave in any order; the last one restores the original.
    """
    owner, name = _located(target, owner)
    with _lock:
        chain = _Chain.of(owner, name)
        chain.change([*chain.handlers, handler])
    try:
        yield
    finally:
        with _lock:
            newest_first = [*reversed(chain.handlers)]
            newest_first.remove(handler)
            chain.change(newest_first[::-1])


@contextlib.contextmanager
def replace(target: str, value: Any, *, owner: Any = None) -> Iterator[None]:
    """Give an attribute another value while the context lasts."""
    owner, name = _located(target, owner)
    before = _written(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def auditing(prefix: str, handler: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Call ``handler(event, args)`` at Python's audit events with that prefix while the context lasts; an error stops the event."""
    auditor = _Auditor(prefix, handler)
    with _lock:
        if not _auditors.hook_is_added:
            sys.addaudithook(_auditors)
            _auditors.hook_is_added = True
        _auditors.active = (*_auditors.active, auditor)
    try:
        yield
    finally:
        with _lock:
            _auditors.active = tuple(other for other in _auditors.active if other is not auditor)


def keep_auditing(prefix: str, handler: Callable[[str, tuple[Any, ...]], None], threads: frozenset[threading.Thread]) -> None:
    """Call ``handler`` at the audit events of these threads for as long as they live, also after its context."""
    with _lock:
        alive = tuple(
            other for other in _auditors.active if other.threads is None or any(map(threading.Thread.is_alive, other.threads))
        )
        _auditors.active = (*alive, _Auditor(prefix, handler, threads))


@dataclass(frozen=True, slots=True, eq=False)
class _Auditor:
    """Who handles audit events: those of all threads, or of some."""

    prefix: str
    handler: Callable[[str, tuple[Any, ...]], None]
    threads: frozenset[threading.Thread] | None = None


class _Auditors:
    """The one audit hook of this process: Python has no way to remove one."""

    def __init__(self) -> None:
        self._active: tuple[_Auditor, ...] = ()
        self._of_event: dict[str, list[_Auditor]] = {}
        self.hook_is_added = False

    @property
    def active(self) -> tuple[_Auditor, ...]:
        """Those that are asked, the newest last."""
        return self._active

    @active.setter
    def active(self, auditors: tuple[_Auditor, ...]) -> None:
        self._active, self._of_event = auditors, {}

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        known = self._of_event  # of the auditors of this moment
        asked = known.get(event)
        if asked is None:
            asked = known[event] = [auditor for auditor in reversed(self._active) if event.startswith(auditor.prefix)]
        if not asked:
            return
        for auditor in [one for one in asked if one.threads is None] or asked:  # what holds for a thread from before gives way
            if auditor.threads is None or threading.current_thread() in auditor.threads:
                auditor.handler(event, args)


_auditors = _Auditors()


def assign(target: str, value: Any, *, owner: Any = None, name: str = "") -> None:
    """Give an attribute another value for good. ``name`` is the attribute where the target ends in ``*``."""
    owner, last = _located(target, owner)
    setattr(owner, name if last == "*" else last, value)


def _located(target: str, owner: Any) -> tuple[Any, str]:
    """Return the object that holds a target, and the attribute's name."""
    holder, _, name = target.rpartition(".")
    if owner is None:
        owner = sys.modules.get(holder) or pkgutil.resolve_name(holder)
    return owner, name


def _written(owner: Any, name: str) -> Any:
    """Return an attribute as it must be put back: of a class a static method, or one of the class, is not the function in it."""
    return inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)


class _Chain:
    """The wrapper that stands in for one attribute, and the handlers that it calls: with what the function in a static method is called with."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        self._is_inherited = name not in vars(owner)
        self._written = _written(owner, name)
        is_bound_otherwise = isinstance(self._written, staticmethod | classmethod)
        self.real = self._written.__func__ if is_bound_otherwise else getattr(owner, name)
        self.handlers: tuple[Callable[..., Any], ...] = ()
        self._entry: Callable[..., Any] = self.real
        wrapper = self._new_wrapper()
        self.installed: Any = type(self._written)(wrapper) if is_bound_otherwise else wrapper

    @classmethod
    def of(cls, owner: Any, name: str) -> _Chain:
        """Return the chain that is installed, or a new one: also where a test replaced our wrapper by a method of its own."""
        installed = vars(owner).get(name)
        chain = getattr(getattr(installed, "__func__", installed), "_hermes_env_chain", None)
        return chain if isinstance(chain, cls) and chain.installed is installed else cls(owner, name)

    def change(self, handlers: list[Callable[..., Any]]) -> None:
        """Install, update or remove the wrapper."""
        was_installed, self.handlers = bool(self.handlers), tuple(handlers)
        self._entry = functools.reduce(lambda real, handler: functools.partial(handler, real), handlers, self.real)
        if handlers and not was_installed:
            setattr(self._owner, self._name, self.installed)
        elif not handlers and vars(self._owner).get(self._name) is self.installed:
            if self._is_inherited:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._written)

    def _new_wrapper(self) -> Callable[..., Any]:
        @functools.wraps(self.real)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            return await self._entry(*args, **kwargs)

        @functools.wraps(self.real)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            return self._entry(*args, **kwargs)

        wrapper: Callable[..., Any] = asynchronous if inspect.iscoroutinefunction(self.real) else synchronous
        vars(wrapper)["_hermes_env_chain"] = self
        return wrapper

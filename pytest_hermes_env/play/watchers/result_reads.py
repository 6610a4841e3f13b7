"""Replaces the AgentResult that compute_reward gets by an equal one that records reads of attributes which it does not have."""

from __future__ import annotations

import linecache
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.play.journal import UnknownRead, note
from pytest_hermes_env.play.watchers.call_site import outside_place


def with_recorded_reads(args: tuple[Any, ...], kwargs: dict[str, Any], layer: Layer) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with each AgentResult replaced by one that records reads of what it does not have."""
    result_class = layer.agent_loop.AgentResult

    def exchange(value: Any) -> Any:
        return _recording(value, layer) if isinstance(value, result_class) else value

    return tuple(exchange(value) for value in args), {name: exchange(value) for name, value in kwargs.items()}


def _recording(result: Any, layer: Layer) -> Any:
    base = type(result)
    if getattr(base, "_hermes_env_records_reads", False):
        return result

    class Recording(base):  # type: ignore[misc, valid-type]
        _hermes_env_records_reads = True

        def __getattr__(self, name: str) -> Any:
            _note(name, layer)
            raise AttributeError(f"{base.__name__!r} object has no attribute {name!r}")

        def __getitem__(self, key: object) -> Any:
            _note(f"[{key!r}]", layer)
            raise TypeError(f"{base.__name__!r} object is not subscriptable")

    Recording.__name__ = base.__name__
    Recording.__qualname__ = base.__qualname__
    recording = object.__new__(Recording)
    recording.__dict__.update(result.__dict__)
    return recording


def _note(name: str, layer: Layer) -> None:
    if not name.startswith("__"):
        place = outside_place(layer)
        line = linecache.getline(place.path, place.line)
        guarded = ("getattr(" in line or "hasattr(" in line) and f".{name}" not in line
        note(UnknownRead(name=name, guarded=guarded, place=place))

"""A stand-in for AgentResult that is equal in all it has, and tells when compute_reward asks it for more."""

from __future__ import annotations

import linecache
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.rollout.call_site import outside_place
from pytest_hermes_env.rollout.journal import Place, UnknownRead, current_journal

__all__ = ["with_witness"]


def with_witness(args: tuple[Any, ...], kwargs: dict[str, Any], layer: Layer) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Replace the AgentResult among the arguments by one that records reads of what it does not have."""
    result_class = layer.agent_loop.AgentResult

    def exchange(value: Any) -> Any:
        return _witness(value, layer) if isinstance(value, result_class) else value

    return tuple(exchange(value) for value in args), {name: exchange(value) for name, value in kwargs.items()}


def _witness(result: Any, layer: Layer) -> Any:
    """Return a result of a subclass that is equal in all it has, and tells when it is asked for more."""
    if getattr(type(result), "_hermes_env_witness", False):
        return result
    base = type(result)

    def note(name: str) -> None:
        journal = current_journal.get()
        place = outside_place(layer)
        if journal is not None and not name.startswith("__"):
            text = _line(place)
            guarded = ("getattr(" in text or "hasattr(" in text) and f".{name}" not in text
            journal.add(UnknownRead(name=name, guarded=guarded, place=place))

    class Witness(base):  # type: ignore[misc, valid-type]
        _hermes_env_witness = True

        def __getattr__(self, name: str) -> Any:
            note(name)
            raise AttributeError(f"{base.__name__!r} object has no attribute {name!r}")

        def __getitem__(self, key: object) -> Any:
            note(f"[{key!r}]")
            raise TypeError(f"{base.__name__!r} object is not subscriptable")

    Witness.__name__ = base.__name__
    Witness.__qualname__ = base.__qualname__
    witness = object.__new__(Witness)
    witness.__dict__.update(result.__dict__)
    return witness


def _line(place: Place) -> str:
    return linecache.getline(place.path, place.line)

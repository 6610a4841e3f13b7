"""Validates the arguments of strategies when they are called, not when a test draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from pytest_hermes_env.errors import StrategyError, shorten, with_type

T = TypeVar("T")


def check_range(strategy: str, least_name: str, least: object, most_name: str, most: object, *, floor: int = 0) -> None:
    """Raise unless both are integers from ``floor`` and in order."""
    for name, value in ((least_name, least), (most_name, most)):
        if not isinstance(value, int) or isinstance(value, bool) or value < floor:
            raise StrategyError(f"{strategy}({name}=...) takes an integer from {floor}; got {with_type(value)}.")
    if least > most:  # type: ignore[operator]  # both are ints by now
        raise StrategyError(
            f"{strategy}({least_name}={least}, {most_name}={most}) allows nothing: {least_name} is greater than {most_name}."
        )


def check_choices(strategy: str, name: str, chosen: object, known: Sequence[str]) -> None:
    """Raise unless ``chosen`` is a non-empty list or tuple of ``known`` values."""
    if not isinstance(chosen, list | tuple) or not chosen or any(value not in known for value in chosen):
        raise StrategyError(
            f"{strategy}({name}=...) takes a list of values from {', '.join(map(repr, known))}.\n  seen      {shorten(repr(chosen))}"
        )


def drawable(strategy: str, what: str, made: st.SearchStrategy[T], seen: Any) -> st.SearchStrategy[T]:
    """Return the strategy ``made``. Raises: it is invalid or empty → StrategyError."""
    try:
        made.validate()
        is_empty = made.is_empty
    except InvalidArgument as error:
        raise StrategyError(f"{strategy}() cannot draw {what}: {error}.\n  seen      {shorten(repr(seen))}") from error
    if is_empty:
        raise StrategyError(f"{strategy}() cannot draw {what}: no value is valid.\n  seen      {shorten(repr(seen))}")
    return made

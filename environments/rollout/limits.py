"""Checks of the settings that one call of ``agent_rollout`` or ``evaluate_items`` is given, before anything runs."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any


def check_count(name: str, value: object) -> None:
    """Check a limit. Raises: TypeError unless it is an integer, ValueError when it is less than 1."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {_shown(value)}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {_shown(value)}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {number}: nothing would run")


def check_prompt(prompt: Any) -> Any:
    """Return what format_prompt gave. Raises: TypeError where it must be awaited, since nobody does that."""
    if inspect.iscoroutine(prompt):
        prompt.close()
        raise TypeError("format_prompt must return the prompt, but it is async: write `def format_prompt(self, item)`")
    return prompt


def check_sampling(
    *,
    temperature: object = None,
    max_turns: object = None,
    max_tokens: object = None,
    extra_body: object = None,
    system_prompt: object = None,
) -> None:
    """Check the settings of a rollout; None is the value of the configuration. Raises: TypeError or ValueError, naming the setting."""
    for name, count in (("max_turns", max_turns), ("max_tokens", max_tokens)):
        if count is not None:
            check_count(name, count)
    if temperature is not None:
        check_number("temperature", temperature)
        if float(temperature) < 0:  # type: ignore[arg-type]
            raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if not isinstance(extra_body, (Mapping, type(None))):
        raise TypeError(f"extra_body must be a mapping of fields of the request, got {_shown(extra_body)}")
    if not isinstance(system_prompt, (str, type(None))):
        raise TypeError(f"system_prompt must be text, got {_shown(system_prompt)}")


def check_number(name: str, value: object) -> None:
    """Check a number. Raises: TypeError unless it is one, ValueError unless it is finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {_shown(value)}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}")


def _shown(value: object) -> str:
    return f"{type(value).__name__} {str(value)[:80]!r}"

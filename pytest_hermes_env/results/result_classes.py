"""The AgentResult and ToolError classes of an environment layer."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from pytest_hermes_env.errors import ResultError

DEFAULT_PACKAGE = "environments"
FIELDS = ("messages", "managed_state", "turns_used", "finished_naturally", "reasoning_per_turn", "tool_errors")
"""The fields of every AgentResult."""


@dataclass(frozen=True, kw_only=True)
class ResultLayer:
    """AgentResult and ToolError of one layer; a layer without errors of tools has plain objects in their place. ``environment``: the class whose layer it is; "" for the default.

    ``ends``: makes the value of the field ``end`` of its name; None for a layer whose AgentResult has no such field.
    """

    agent_result: type
    tool_error: type
    package: str
    environment: str = ""
    ends: Callable[[str], Any] | None = None

    def reads_calls_in(self, text: str) -> bool:
        """Return whether this layer's loop finds a tool call in the text of an answer."""
        if "<tool_call>" not in text:
            return False
        try:
            parsers = importlib.import_module(f"{self.package}.tool_call_parsers")
        except ModuleNotFoundError:
            return False
        _, calls = parsers.get_parser("hermes").parse(text)
        return bool(calls)


def default_layer() -> ResultLayer:
    """Return the layer of this distribution."""
    return _layer(importlib.import_module(f"{DEFAULT_PACKAGE}.agent_loop"), "")


def layer_from(target: Any) -> ResultLayer:
    """Return the layer of an environment (class or instance). Raises: not an environment → BadTarget."""
    cls = target if isinstance(target, type) else type(target)
    # by name: rooms above this one may build results, so that an import statement would close a circle
    find = importlib.import_module("pytest_hermes_env.layer").layer_of
    return _layer(find(cls).agent_loop, cls.__name__)


@functools.cache
def _layer(module: ModuleType, environment: str) -> ResultLayer:
    package = module.__name__.rpartition(".")[0]
    is_default = package == DEFAULT_PACKAGE
    agent_result = module.AgentResult
    known = [field.name for field in dataclasses.fields(agent_result)] if dataclasses.is_dataclass(agent_result) else []
    if missing := [name for name in FIELDS if name not in known]:
        raise ResultError(
            f"{module.__name__}.AgentResult cannot be built: it has no field {', '.join(missing)}.\n"
            f"  expected  a dataclass with {', '.join(FIELDS)}\n"
            f"  seen      {', '.join(known) or 'not a dataclass'}"
        )
    return ResultLayer(
        agent_result=agent_result,
        tool_error=getattr(module, "ToolError", SimpleNamespace),
        package=package,
        environment="" if is_default else environment,
        ends=_ends(package) if "end" in known else None,
    )


def _ends(package: str) -> Callable[[str], Any] | None:
    """Return the enumeration of ends of a layer, or None where it has none."""
    try:
        return getattr(importlib.import_module(f"{package}.loop.end"), "RolloutEnd", None)
    except ModuleNotFoundError:
        return None

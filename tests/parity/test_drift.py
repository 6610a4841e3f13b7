"""The doubles have the same names, parameters and tools as the real objects."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from .cases import CASES


def public_methods(cls: type) -> dict[str, inspect.Signature]:
    """Return the public methods of a class with their parameters and defaults."""
    methods = {name: value for name, value in vars(cls).items() if not name.startswith("_") and inspect.isfunction(value)}
    return {name: inspect.signature(method) for name, method in methods.items()}


def parameters(signature: inspect.Signature) -> list[tuple[str, Any, Any]]:
    """Return the parameters of a signature: names, kinds and defaults."""
    return [(one.name, one.kind, one.default) for one in signature.parameters.values()]


def test_the_fake_context_has_the_methods_of_the_real_one() -> None:
    """It has every public method of ToolContext, with the same parameters and defaults."""
    from environments.tool_context import ToolContext
    from pytest_hermes_env.sandbox.context import FakeToolContext

    fake = public_methods(FakeToolContext)

    missing = {name: parameters(real) for name, real in public_methods(ToolContext).items() if name not in fake}
    different = {
        name: (parameters(fake[name]), parameters(real))
        for name, real in public_methods(ToolContext).items()
        if name in fake and parameters(fake[name]) != parameters(real)
    }
    assert (missing, different) == ({}, {})


def test_every_method_is_in_the_parity_suite() -> None:
    """Each public method of ToolContext is called by some case; otherwise it would not be compared."""
    from environments.tool_context import ToolContext

    called = {step.method for case in CASES for step in case.steps}

    assert set(public_methods(ToolContext)) - called == set()


def test_every_tool_is_in_the_parity_suite() -> None:
    """Each tool of the terminal and file toolsets is called by some case; otherwise it would not be compared."""
    import toolsets

    called = {step.args[0] for case in CASES for step in case.steps if step.method == "call_tool"}

    tools = {tool for name in ("terminal", "file") for tool in toolsets.resolve_toolset(name)}
    assert tools - called == set()


@pytest.mark.parametrize("toolset", ["terminal", "file"])
def test_every_parameter_is_in_the_parity_suite(toolset: str) -> None:
    """A parameter that hermes' schema offers to the model is used by some case, or listed here as one that needs no machine."""
    import model_tools

    elsewhere = {"pty", "notify_on_complete", "watch_patterns", "cross_profile", "data"}
    schemas = model_tools.get_tool_definitions(enabled_toolsets=[toolset], quiet_mode=True)
    used = {(step.args[0], key) for case in CASES for step in case.steps if step.method == "call_tool" for key in step.args[1]}

    offered = {
        (schema["function"]["name"], key)
        for schema in schemas
        for key in schema["function"]["parameters"]["properties"]
        if key not in elsewhere
    }
    assert offered - used == set()

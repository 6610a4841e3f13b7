"""Arguments of a call through a FakeToolContext are converted as hermes converts them."""

from __future__ import annotations

import model_tools
import pytest
from tools.registry import registry

from pytest_hermes_env.sandbox.context import NOT_TEXT, FakeToolContext, coerced
from pytest_hermes_env.sandbox.fake import FakeSandbox

VALUES = ["10", "2.5", "x", "nan", " true ", "False", "null", 5, None, ["a"], "[1]", '["a"]', "https://a.example"]


@pytest.mark.parametrize("tool", NOT_TEXT)
def test_types_are_those_of_hermes(tool):
    """Every argument that is not text is listed."""
    properties = registry.get_schema(tool)["parameters"]["properties"]

    assert NOT_TEXT[tool] == {name for name, kind in properties.items() if kind.get("type") != "string"}


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, names in NOT_TEXT.items() for name in sorted(names)])
def test_value_is_converted_as_hermes_does(tool, name, value):
    """Numbers and booleans in text, one value for a list; nonsense stays."""
    expected = model_tools.coerce_tool_args(tool, {name: value})[name]

    seen = coerced(tool, {name: value})[name]

    assert (type(seen), seen) == (type(expected), expected)


def test_call_of_a_tool_is_converted():
    """A text that says false is not true."""
    sandbox = FakeSandbox()

    answer = FakeToolContext(sandbox).call_tool("terminal", {"command": "echo hi", "background": "false", "timeout": "10"})

    assert answer == '{"output": "hi", "exit_code": 0, "error": null}'

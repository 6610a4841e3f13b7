"""What a rollout on a sandbox is offered follows from its configuration."""

from __future__ import annotations

from types import SimpleNamespace

from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.seam import RealTools, tool_offer


def test_a_sandbox_offers_all_tools_of_the_named_toolsets():
    """The terminal and the files are always there, and a toolset that hermes does not know adds nothing."""
    offered, withheld = tool_offer(SimpleNamespace(enabled_toolsets=["web", "no-such-toolset"]), FakeSandbox())

    assert {"terminal", "write_file", "web_search"} <= offered
    assert "browser_navigate" in withheld
    assert not offered & withheld


def test_hermes_own_tools_are_offered_by_hermes():
    """It offers the terminal itself."""
    offered, withheld = tool_offer(SimpleNamespace(enabled_toolsets=["terminal"]), RealTools())

    assert "terminal" not in offered
    assert withheld == frozenset()

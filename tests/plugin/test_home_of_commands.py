"""Commands that hermes starts during a test run see the run's home, not the user's."""

from __future__ import annotations

import os

from environments.tool_context import ToolContext


def test_a_command_has_the_home_of_the_run() -> None:
    """HOME of a command is the directory in HERMES_HOME that the plugin made."""
    ctx = ToolContext("home-of-commands")
    try:
        home = ctx.terminal("echo $HOME")["output"]
    finally:
        ctx.cleanup()

    assert home == os.path.join(os.environ["HERMES_HOME"], "home")

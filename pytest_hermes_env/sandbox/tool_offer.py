"""Which of hermes' tools a rollout on a sandbox is offered: a matter of its configuration, never of the machine.

hermes leaves out a tool whose requirement is absent: an API key, a browser, a service. A sandbox answers such a tool itself, so
the requirement does not matter: without a key the tool would be missing, with one a contract run would see other tools.

Place in the flow: `EnvironmentBuilder` passes the result to `seam.offering`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.sandbox.seam import RealTools

__all__ = ["ToolOffer", "tool_offer"]

DESKTOP_ONLY = frozenset({"read_terminal", "close_terminal"})
"""Tools of the toolset ``terminal`` that hermes offers only in its desktop application; no rollout has them."""

NEED_NOTHING = frozenset({
    "clarify", "delegate_task", "execute_code", "memory", "patch", "process", "project_create", "project_list", "project_switch",
    "read_file", "search_files", "session_search", "skill_manage", "skill_view", "skills_list", "terminal", "todo", "write_file",
})  # fmt: skip
"""Tools that hermes offers on a machine that has nothing."""


@dataclass(frozen=True, kw_only=True)
class ToolOffer:
    """The tools that hermes offers whatever the machine has, and those that it does not offer whatever the machine has."""

    offered: frozenset[str]
    withheld: frozenset[str] = frozenset()


def tool_offer(config: Any, world: Any) -> ToolOffer:
    """Return what ``world`` offers to an environment with this configuration, before its disabled toolsets are taken away.

    A sandbox offers every tool of the toolsets that ``enabled_toolsets`` or ``distribution`` names, and otherwise only tools
    that need nothing. A cassette offers the recorded tools. With `RealTools`, hermes decides by what the machine has; only
    toolsets of which it would offer no tool at all are offered whole, so that the environment can be built.
    """
    import toolsets  # noqa: PLC0415 - hermes is heavy

    named = _toolsets_of(config)
    if isinstance(world, RealTools):
        return ToolOffer(offered=_tools_of(_unavailable(named)))
    everything = _tools_of(toolsets.TOOLSETS)
    recorded = getattr(world, "offered", None)
    offered = _tools_of(named) | NEED_NOTHING if recorded is None else frozenset(recorded)
    return ToolOffer(offered=offered, withheld=everything - offered)


def _toolsets_of(config: Any) -> list[str]:
    """Return the valid toolsets that a configuration names; those of a distribution are the ones that it may sample."""
    import toolset_distributions  # noqa: PLC0415 - hermes is heavy
    import toolsets  # noqa: PLC0415

    distribution = getattr(config, "distribution", None)
    if distribution is None:
        named = getattr(config, "enabled_toolsets", None) or ()
    else:
        named = (toolset_distributions.get_distribution(distribution) or {}).get("toolsets", ())
    return [name for name in named if toolsets.validate_toolset(name)]


def _tools_of(names: Any) -> frozenset[str]:
    import toolsets  # noqa: PLC0415 - hermes is heavy

    return frozenset(tool for name in names for tool in toolsets.resolve_toolset(name)) - DESKTOP_ONLY


def _unavailable(names: list[str]) -> list[str]:
    """Return the toolsets of which hermes offers no tool on this machine."""
    import model_tools  # noqa: PLC0415 - hermes is heavy

    return [name for name in names if not model_tools.get_tool_definitions(enabled_toolsets=[name], quiet_mode=True)]

"""Resolves the tools of a group of rollouts: from toolsets or a distribution to hermes' schemas."""

from __future__ import annotations

import functools
import logging
from typing import Any

from environments.hermes_modules import explain_shadowing
from hermes_env_shared.hermes_names import hermes_name, undeferred

import model_tools  # isort: skip
import toolset_distributions
import toolsets

logger = logging.getLogger(__name__)

Tools = tuple[list[dict[str, Any]], set[str]]
"""(tool schemas in OpenAI's format, names of the tools that may run)."""


def offered_tools(enabled: list[str] | None, disabled: list[str] | None, distribution: str | None) -> Tools:
    """Return the tools of the enabled toolsets, or of those sampled from the distribution, without the disabled ones.

    Raises: ValueError when a toolset is unknown or no tool is left, naming the known ones.
    """
    if distribution is not None:
        if not toolset_distributions.validate_distribution(distribution):
            known = sorted(toolset_distributions.list_distributions())
            raise ValueError(f"Unknown distribution {distribution!r}. Known distributions: {known}")
        enabled = toolset_distributions.sample_toolsets_from_distribution(distribution)
    if enabled is None:
        logger.warning("enabled_toolsets is not set: the model is offered every tool, messaging included")
    _check_toolsets([*(enabled or ()), *(disabled or ())])
    listed = model_tools.get_tool_definitions
    schemas = listed(enabled_toolsets=enabled, disabled_toolsets=disabled, quiet_mode=True, **undeferred(listed))
    if not schemas:
        raise ValueError(
            _with_shadowing(
                f"No tool is available with enabled_toolsets={enabled} and disabled_toolsets={disabled}: hermes leaves out tools "
                f"whose requirements are not met (an API key, a browser, Docker). Known toolsets: {toolsets.get_toolset_names()}"
            )
        )
    names = {schema["function"]["name"] for schema in schemas}
    _warn_of_hidden_tools(enabled or [], disabled or [], names)
    return schemas, names


# hermes warns that the tools of its desktop app are missing, which are in no environment
logging.getLogger("tools.registry").addFilter(
    lambda record: not any(name in record.getMessage() for name in ("close_terminal", "read_terminal"))
)


def _check_toolsets(names: list[str]) -> None:
    legacy = hermes_name("model_tools", "_LEGACY_TOOLSET_MAP")
    unknown = [name for name in names if not toolsets.validate_toolset(name) and name not in legacy]
    if unknown:
        raise ValueError(_with_shadowing(f"Unknown toolsets {unknown}. Known toolsets: {toolsets.get_toolset_names()}"))


def _warn_of_hidden_tools(enabled: list[str], disabled: list[str], offered: set[str]) -> None:
    """Warn, once, when requested tools are missing and a project module shadows one of hermes' modules, the likely cause."""
    wanted = {tool for name in enabled if toolsets.validate_toolset(name) for tool in toolsets.resolve_toolset(name)}
    unwanted = {tool for name in disabled if toolsets.validate_toolset(name) for tool in toolsets.resolve_toolset(name)}
    if missing := wanted - unwanted - offered:
        _warn_of_missing(frozenset(missing))


@functools.cache
def _warn_of_missing(missing: frozenset[str]) -> None:
    if reason := explain_shadowing():
        logger.warning("hermes does not offer %s. %s", sorted(missing), reason)


def _with_shadowing(message: str) -> str:
    return f"{message}\n{reason}" if (reason := explain_shadowing()) else message

"""The private names of hermes-agent that this project uses, in one table, and how each is found in the hermes that is installed.

Later versions move names from a module into parts of it, which begin with its name (``tools.terminal_tool_result``), and rename tools
(``process`` to ``process_manage``). What cannot be found is one error, which names the version.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import warnings
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

SEEN = ">=0.19,<0.23"
"""0.19.0 was run; forks of 0.20.1 and 0.22.2 have the names, some of them in parts of the modules."""
NAMES: dict[tuple[str, str], str] = {
    ("model_tools", "_AGENT_LOOP_TOOLS"): SEEN,
    ("model_tools", "_LEGACY_TOOLSET_MAP"): SEEN,
    ("model_tools", "_clear_tool_defs_cache"): SEEN,
    ("model_tools", "coerce_tool_args"): SEEN,
    ("tools.ansi_strip", "strip_ansi"): SEEN,
    ("tools.approval", "_check_sudo_stdin_guard"): SEEN,
    ("tools.approval", "_hardline_block_result"): SEEN,
    ("tools.approval", "_sudo_stdin_block_result"): SEEN,
    ("tools.approval", "detect_hardline_command"): SEEN,
    ("tools.browser_tool", "_active_sessions"): SEEN,
    ("tools.browser_tool", "cleanup_browser"): SEEN,
    ("tools.environments.base", "_BoundedOutputCollector"): SEEN,
    ("tools.environments.local", "_find_bash"): SEEN,
    ("tools.environments.local", "_find_shell"): SEEN,
    ("tools.file_tools", "_read_tracker"): SEEN,
    ("tools.file_tools", "notify_other_tool_call"): SEEN,
    ("tools.file_tools", "reset_file_dedup"): SEEN,
    ("tools.terminal_tool", "FOREGROUND_MAX_TIMEOUT"): SEEN,
    ("tools.terminal_tool", "_foreground_background_guidance"): SEEN,
    ("tools.terminal_tool", "_interpret_exit_code"): SEEN,
    ("tools.terminal_tool", "_resolve_container_task_id"): SEEN,
    ("tools.terminal_tool", "_task_env_overrides"): SEEN,
    ("tools.terminal_tool", "_validate_workdir"): SEEN,
    ("tools.terminal_tool", "cleanup_vm"): SEEN,
    ("tools.terminal_tool", "clear_task_env_overrides"): SEEN,
    ("tools.terminal_tool", "get_active_env"): SEEN,
    ("tools.terminal_tool", "get_session_cwd"): SEEN,
    ("tools.terminal_tool", "register_task_env_overrides"): SEEN,
    ("tools.web_tools", "convert_base64_images_to_links"): SEEN,
}
"""(module, name): the versions in which it was seen."""


RENAMED = frozenset({"cronjob", "process", "todo"})
"""Tools whose names in 0.19 got an ending later. Which one is the registry's to say."""


class HermesNameMissing(ImportError):
    """The installed hermes-agent has no name that this project needs."""


def hermes_name(module: str, name: str) -> Any:
    """Return a name of a module of hermes, or of a part of that module. Raises: HermesNameMissing; KeyError for one not in `NAMES`."""
    return getattr(_home(module, name, NAMES[module, name]), name)


@functools.cache
def parts_of(module: str) -> list[ModuleType]:
    """Return a module of hermes, and then those that were split off it."""
    package, _, stem = module.rpartition(".")
    with warnings.catch_warnings():  # hermes opens databases at import and does not close them; Python 3.13 warns of that
        warnings.simplefilter("ignore", ResourceWarning)
        whole = importlib.import_module(module)
        beside = pkgutil.iter_modules(sys.modules[package].__path__) if package else ()
        return [whole, *(importlib.import_module(f"{package}.{one.name}") for one in beside if one.name.startswith(f"{stem}_"))]


@functools.cache
def _home(module: str, name: str, seen: str) -> ModuleType:
    whole = importlib.import_module(module)
    if hasattr(whole, name):
        return whole
    for part in parts_of(module):
        if hasattr(part, name):
            return part
    raise HermesNameMissing(
        f"{installed_hermes()} has no {name} in {module} or a part of it. It was seen in hermes-agent {seen}: install one of these, "
        "or update pytest-hermes-env"
    )


def tool_name(former: str) -> str:
    """Return the name under which hermes registers a tool of 0.19: for ``process`` that, or ``process_manage``."""
    from tools.registry import registry  # noqa: PLC0415 - hermes is heavy

    if registry.get_entry(former):
        return former
    later = [name for name in registry.get_all_tool_names() if name.startswith(f"{former}_")]
    return later[0] if len(later) == 1 else former


def former_name(name: str) -> str:
    """Return the name that a tool had in 0.19: ``process`` for that, and for ``process_manage`` where hermes calls it so."""
    head = name.partition("_")[0]
    return head if head in RENAMED and (name == head or tool_name(head) == name) else name


def undeferred(get_tool_definitions: Any) -> dict[str, bool]:
    """Return the argument with which hermes lists every tool, and none is behind ``tool_search``: a rollout offers what was chosen."""
    option = "skip_tool_search_assembly"
    return {option: True} if option in inspect.signature(get_tool_definitions).parameters else {}


def installed_hermes() -> str:
    """Return name, version and place of the hermes that is found, without importing it; empty if there is none."""
    spec = importlib.util.find_spec("model_tools")
    if spec is None or spec.origin is None:
        return ""
    found = (one for one in metadata.distributions() if (one.metadata["Name"] or "").startswith("hermes-agent"))  # or a fork
    described = next((f"{one.metadata['Name']} {one.version}" for one in found), "hermes-agent without a version")
    return f"{described} in {Path(spec.origin).parent}"

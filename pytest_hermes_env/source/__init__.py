"""Static analysis: environment classes are read from their files, without importing them.

``read_classes(path)`` finds the classes. A `ClassSource` has bases, methods and a place in its file. ``data_flow(source)``
interprets its methods and records what they do with the values that matter to the contract.

From the bottom up:

- ``layer_names``, ``installed``: names of the layer, and of the installed hermes-agent and Atropos
- ``syntax``, ``modules``, ``functions``: files and functions as they are written
- ``classes``: classes with their resolved bases; what a name means
- ``values``, ``frames``: what an expression may hold; records of what happens in a function
- ``lookup``, ``calls``, ``evaluator``, ``interpreter``, ``flow``: the abstract interpreter that fills the frames
- ``trace``, ``constants``, ``configs``, ``local_names``, ``taint``, ``shell_commands``, ``unresolved``: queries on top of both
- ``discovery``, ``finding``: where the contract begins and ends
"""

from __future__ import annotations

from pytest_hermes_env.source.calls import MUTATORS
from pytest_hermes_env.source.classes import ClassKind, ClassSource, External, class_of, resolve
from pytest_hermes_env.source.configs import (
    ConfigField,
    config_calls,
    config_class,
    config_fields,
    is_handed_on,
    is_layer_config,
)
from pytest_hermes_env.source.constants import UNKNOWN, FromEnvironment, constant_value
from pytest_hermes_env.source.discovery import (
    ABSTRACT_BASE,
    FileReading,
    Skipped,
    read_class,
    read_classes,
    without_abstract_bases,
)
from pytest_hermes_env.source.finding import finding_at, sorted_findings
from pytest_hermes_env.source.flow import data_flow
from pytest_hermes_env.source.frames import Access, Call, Change, Frame, calls_in, calls_layer, constructs
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.installed import (
    base_names,
    installed_config_fields,
    installed_distributions,
    installed_tools,
    installed_toolsets,
)
from pytest_hermes_env.source.layer_names import (
    LAYER_AGENT_ROLLOUT,
    LAYER_CONTEXT,
    LAYER_ENV,
    LAYER_EVALUATION,
    LAYER_FILES,
    LAYER_LOOP,
    LAYER_ROLLOUTS,
    LAYER_RUNS,
    REQUIRED_METHODS,
    RESULT_FIELDS,
)
from pytest_hermes_env.source.modules import FileProblem, Module, SourceTree, import_bindings
from pytest_hermes_env.source.shell_commands import terminal_commands
from pytest_hermes_env.source.syntax import argument, flat_statements, keyword, last_name
from pytest_hermes_env.source.trace import argument_origins, bindings, may_be_unpacked, origins
from pytest_hermes_env.source.unresolved import unresolved_calls
from pytest_hermes_env.source.values import DICTS, Kind, Value, Values, may_be, may_name_a_tool, must_be

__all__ = [
    "ABSTRACT_BASE",
    "DICTS",
    "LAYER_AGENT_ROLLOUT",
    "LAYER_CONTEXT",
    "LAYER_ENV",
    "LAYER_EVALUATION",
    "LAYER_FILES",
    "LAYER_LOOP",
    "LAYER_ROLLOUTS",
    "LAYER_RUNS",
    "MUTATORS",
    "REQUIRED_METHODS",
    "RESULT_FIELDS",
    "UNKNOWN",
    "Access",
    "Call",
    "Change",
    "ClassKind",
    "ClassSource",
    "ConfigField",
    "External",
    "FileProblem",
    "FileReading",
    "Frame",
    "FromEnvironment",
    "Function",
    "Kind",
    "Module",
    "Skipped",
    "SourceTree",
    "Value",
    "Values",
    "argument",
    "argument_origins",
    "base_names",
    "bindings",
    "calls_in",
    "calls_layer",
    "class_of",
    "config_calls",
    "config_class",
    "config_fields",
    "constant_value",
    "constructs",
    "data_flow",
    "finding_at",
    "flat_statements",
    "import_bindings",
    "installed_config_fields",
    "installed_distributions",
    "installed_tools",
    "installed_toolsets",
    "is_handed_on",
    "is_layer_config",
    "keyword",
    "last_name",
    "may_be",
    "may_be_unpacked",
    "may_name_a_tool",
    "must_be",
    "origins",
    "read_class",
    "read_classes",
    "resolve",
    "sorted_findings",
    "terminal_commands",
    "unresolved_calls",
    "without_abstract_bases",
]

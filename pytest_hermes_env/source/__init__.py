"""Environment classes read from their files, without importing them. Rules and commands start here.

``read_classes(path)`` finds the classes; a `ClassSource` knows its bases, its methods and its place; ``source.flow``
knows what its methods do with the values that matter to the contract.
"""

from __future__ import annotations

from pytest_hermes_env.source.calls import MUTATORS, hung_on_self
from pytest_hermes_env.source.classes import ClassSource, External, Standing, resolve
from pytest_hermes_env.source.configs import (
    ConfigField,
    config_calls,
    config_class,
    fields_of,
    is_config,
    keyword,
)
from pytest_hermes_env.source.constants import UNKNOWN, FromEnvironment, literal
from pytest_hermes_env.source.discovery import FileReading, Skipped, read_class, read_classes, without_helpers
from pytest_hermes_env.source.expressions import names_a_tool
from pytest_hermes_env.source.findings import breach, doubts, in_order
from pytest_hermes_env.source.flow import (
    Access,
    Call,
    Change,
    Comparison,
    Flow,
    Frame,
    calls_in,
    calls_layer,
    constructs,
    instances,
)
from pytest_hermes_env.source.functions import Function, FunctionNode, annotation_text, function_of, last_name
from pytest_hermes_env.source.installed import known_distributions, known_fields, known_tools, known_toolsets
from pytest_hermes_env.source.layer_names import (
    BASE_METHODS,
    LAYER_AGENT_ROLLOUT,
    LAYER_CONTEXT,
    LAYER_ENV,
    LAYER_EVALUATION,
    LAYER_LOOP,
    LAYER_RESULT,
    LAYER_ROLLOUTS,
    LAYER_RUNS,
    REQUIRED_METHODS,
    RESULT_FIELDS,
)
from pytest_hermes_env.source.modules import FileProblem, Module, SourceTree, flat_statements
from pytest_hermes_env.source.shell_commands import Command, commands_of
from pytest_hermes_env.source.trace import Origin, argument, bindings, given_to, is_hidden, origins, parameters
from pytest_hermes_env.source.values import (
    ANYTHING,
    DICTS,
    NOTHING,
    Kind,
    Value,
    Values,
    has,
    joined,
    members,
    only,
)

__all__ = [
    "ANYTHING",
    "BASE_METHODS",
    "DICTS",
    "LAYER_AGENT_ROLLOUT",
    "LAYER_CONTEXT",
    "LAYER_ENV",
    "LAYER_EVALUATION",
    "LAYER_LOOP",
    "LAYER_RESULT",
    "LAYER_ROLLOUTS",
    "LAYER_RUNS",
    "MUTATORS",
    "NOTHING",
    "REQUIRED_METHODS",
    "RESULT_FIELDS",
    "UNKNOWN",
    "Access",
    "Call",
    "Change",
    "ClassSource",
    "Command",
    "Comparison",
    "ConfigField",
    "External",
    "FileProblem",
    "FileReading",
    "Flow",
    "Frame",
    "FromEnvironment",
    "Function",
    "FunctionNode",
    "Kind",
    "Module",
    "Origin",
    "Skipped",
    "SourceTree",
    "Standing",
    "Value",
    "Values",
    "annotation_text",
    "argument",
    "bindings",
    "breach",
    "calls_in",
    "calls_layer",
    "commands_of",
    "config_calls",
    "config_class",
    "constructs",
    "doubts",
    "fields_of",
    "flat_statements",
    "function_of",
    "given_to",
    "has",
    "hung_on_self",
    "in_order",
    "instances",
    "is_config",
    "is_hidden",
    "joined",
    "keyword",
    "known_distributions",
    "known_fields",
    "known_tools",
    "known_toolsets",
    "last_name",
    "literal",
    "members",
    "names_a_tool",
    "only",
    "origins",
    "parameters",
    "read_class",
    "read_classes",
    "resolve",
    "without_helpers",
]

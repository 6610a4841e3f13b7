"""Static analysis: environment classes are read from their files, without importing them.

``read_classes(path)`` finds the classes. A `ClassSource` has bases, methods and a place in its file. ``data_flow(source)``
interprets its methods and records what they do with the values that matter to the contract.

From the bottom up:

- ``layer_names``, ``installed``: names of the layer, and of the installed hermes-agent and Atropos
- ``syntax``, ``modules``, ``functions``: files and functions as they are written
- ``classes``: classes with their resolved bases; what a name means
- ``values``, ``frames``: what an expression may hold; records of what happens in a function
- ``lookup``, ``calls``, ``evaluator``, ``interpreter``, ``flow``: the abstract interpreter that fills the frames
- ``trace``, ``constants``, ``configs``, ``taint``, ``shell_commands``, ``unresolved_calls``: queries on top of both
- ``discovery``, ``finding``: where the contract begins and ends
"""

from __future__ import annotations

from pytest_hermes_env.source.calls import MUTATORS
from pytest_hermes_env.source.classes import ClassSource, External, Standing, class_of, resolve
from pytest_hermes_env.source.configs import ConfigField, config_calls, config_class, fields_of, is_config
from pytest_hermes_env.source.constants import UNKNOWN, FromEnvironment, literal
from pytest_hermes_env.source.discovery import FileReading, Skipped, read_class, read_classes, without_helpers
from pytest_hermes_env.source.finding import Finding, Severity, breach, in_order
from pytest_hermes_env.source.flow import DataFlow, data_flow
from pytest_hermes_env.source.frames import (
    Access,
    Call,
    Change,
    Comparison,
    Frame,
    calls_in,
    calls_layer,
    constructs,
    instances,
)
from pytest_hermes_env.source.functions import Function, function_of
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
from pytest_hermes_env.source.modules import FileProblem, Module, SourceTree
from pytest_hermes_env.source.shell_commands import Command, commands_of
from pytest_hermes_env.source.syntax import (
    FunctionNode,
    annotation_text,
    argument,
    flat_statements,
    keyword,
    last_name,
    parameters,
)
from pytest_hermes_env.source.trace import Origin, bindings, given_to, is_hidden, origins
from pytest_hermes_env.source.unresolved_calls import doubts
from pytest_hermes_env.source.values import (
    ANYTHING,
    DICTS,
    NOTHING,
    Kind,
    Value,
    Values,
    has,
    hung_on_self,
    joined,
    members,
    names_a_tool,
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
    "DataFlow",
    "External",
    "FileProblem",
    "FileReading",
    "Finding",
    "Frame",
    "FromEnvironment",
    "Function",
    "FunctionNode",
    "Kind",
    "Module",
    "Origin",
    "Severity",
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
    "class_of",
    "commands_of",
    "config_calls",
    "config_class",
    "constructs",
    "data_flow",
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

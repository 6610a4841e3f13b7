"""What the code says: environment classes are read from their files by a linter's reader, without importing them.

It knows names, classes across files, and values a call or two deep; what it cannot read it names. From the bottom up:

- ``layer_names``, ``installed``: names of the layer, and of the installed hermes-agent and Atropos
- ``syntax``, ``modules``, ``functions``: files and functions as they are written
- ``classes``, ``constants``: classes with their resolved bases; what a name means, and what it holds
- ``reach``, ``measures``: what methods lead to, and the calls in it; what they measure by what earlier calls left
- ``configs``, ``stale_packages``: configuration classes; files that hide the layer
- ``discovery``, ``finding``: where the contract begins and ends
"""

from __future__ import annotations

from pytest_hermes_env.source.classes import ClassKind, ClassSource, External, resolve
from pytest_hermes_env.source.constants import UNKNOWN, constant_value
from pytest_hermes_env.source.discovery import (
    ABSTRACT_BASE,
    FileReading,
    Skipped,
    read_class,
    read_classes,
    without_abstract_bases,
)
from pytest_hermes_env.source.finding import finding_at, sorted_findings
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.layer_names import (
    LAYER_AGENT_ROLLOUT,
    LAYER_CONTEXT,
    LAYER_ENV,
    LAYER_EVALUATION,
    LAYER_FILES,
    LAYER_LOOP,
    LAYER_RESULT,
    LAYER_ROLLOUTS,
    LAYER_RUNS,
    REQUIRED_METHODS,
    RESULT_FIELDS,
)
from pytest_hermes_env.source.measures import measures_in
from pytest_hermes_env.source.modules import FileProblem, Module, SourceTree, import_bindings
from pytest_hermes_env.source.reach import Call, imported_modules, reach_of
from pytest_hermes_env.source.syntax import argument, flat_statements, keyword, last_name

__all__ = [
    "ABSTRACT_BASE",
    "LAYER_AGENT_ROLLOUT",
    "LAYER_CONTEXT",
    "LAYER_ENV",
    "LAYER_EVALUATION",
    "LAYER_FILES",
    "LAYER_LOOP",
    "LAYER_RESULT",
    "LAYER_ROLLOUTS",
    "LAYER_RUNS",
    "REQUIRED_METHODS",
    "RESULT_FIELDS",
    "UNKNOWN",
    "Call",
    "ClassKind",
    "ClassSource",
    "External",
    "FileProblem",
    "FileReading",
    "Function",
    "Module",
    "Skipped",
    "SourceTree",
    "argument",
    "constant_value",
    "finding_at",
    "flat_statements",
    "import_bindings",
    "imported_modules",
    "keyword",
    "last_name",
    "measures_in",
    "reach_of",
    "read_class",
    "read_classes",
    "resolve",
    "sorted_findings",
    "without_abstract_bases",
]

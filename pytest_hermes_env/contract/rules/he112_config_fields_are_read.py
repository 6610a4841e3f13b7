"""HE112 config-fields-are-read
Every setting that an environment adds to its configuration is read somewhere.

What: The name of each added field is read, as an attribute, with `getattr`, or as a key of a dumped configuration, in
the class, in its bases, or in a file of the same tree that they import.

Why: A setting that no code reads misleads: `--env.correctness_weight 0.9` is accepted, logged to wandb, and changes
nothing. People have compared runs that differed in such a setting alone.

Fix: Read the setting, or remove it.

Source: atroposlib 0.4.0, `envs/base.py`, `cli()`: every field of `env_config_cls` becomes a flag; pydantic keeps fields
that are never read.
"""

from __future__ import annotations

import ast

from pytest_hermes_env.contract.judge import Rule, Severity, Verdict
from pytest_hermes_env.source import (
    LAYER_ENV,
    Call,
    ClassSource,
    Function,
    finding_at,
    imported_modules,
    reach_of,
    sorted_findings,
)
from pytest_hermes_env.source.configs import config_class, config_fields
from pytest_hermes_env.source.installed import installed_config_fields

_CONFIGS = frozenset({"config", "cfg", "env_config", "settings", "_config"})
_DUMPS = frozenset({"dict", "model_dump", "model_dump_json", "vars", "asdict"})
_HARMLESS = frozenset({"isinstance", "print", "type", "repr", "str", "hasattr", "deepcopy", "copy", "id"})


def static(source: ClassSource) -> Verdict:
    """Look for each own field's name in the class's files and in those that they import."""
    config = config_class(source)
    if config is None and source.unreadable:
        return Verdict.undecided(f"env_config_cls may come from {source.unreadable[0]}, which cannot be read")
    if not isinstance(config, ClassSource):
        return Verdict.not_applicable("the environment has no settings of its own")
    fields = [field for field in config_fields(config) if field.is_own]
    if not fields:
        return Verdict.not_applicable("the environment adds no settings")
    unread, modules = fields, imported_modules(*source.modules, *(item.module for item in config.readable))
    while unread and (module := next(modules, None)) is not None:
        unread = [field for field in unread if field.name not in module.words_read]
    if not unread:
        return Verdict.passed(f"{len(fields)} settings of its own, each read")
    names = ", ".join(field.name for field in unread)
    if not installed_config_fields():
        return Verdict.undecided(f"Atropos is not installed here, so it is unknown whether these are own settings: {names}")
    if reason := _handed_over(source):
        return Verdict.undecided(f"{names} may be read by what the configuration is passed to: {reason}")
    return Verdict.failed(
        sorted_findings(finding_at(field.owner, field.node, f"nothing reads the setting {field.name}") for field in unread)
    )


def _handed_over(source: ClassSource) -> str:
    """Return who is given the whole configuration and may read any field, or an empty string."""
    reach = reach_of(source)
    for call in (call for function in reach.every_function() for call in reach.calls_in(function)):
        if isinstance(call.target, Function) or call.dotted.startswith(f"{LAYER_ENV}."):
            continue
        name = call.name
        if name == "getattr" and len(call.node.args) > 1 and _is_config(call.node.args[0]):
            if not isinstance(call.node.args[1], ast.Constant):
                return "getattr with a name computed at run time"
            continue
        if name in _DUMPS and (not call.node.args or _is_config(call.node.args[0])):
            func = call.node.func
            if isinstance(func, ast.Name) or (isinstance(func, ast.Attribute) and _is_config(func.value)):
                return f"{name}()"
        if name in _HARMLESS:
            continue
        if any(
            _is_config(item) and not _is_built(item, call)
            for item in (*call.node.args, *(word.value for word in call.node.keywords))
        ):
            return f"{name}()"
    return ""


def _is_built(node: ast.expr, call: Call) -> bool:
    """Whether a name is that of a dict which the calling function writes out."""
    name = node.id if isinstance(node, ast.Name) else ""
    return any(
        isinstance(item, (ast.Assign, ast.AnnAssign))
        and isinstance(item.value, ast.Dict)
        and any(
            isinstance(part, ast.Name) and part.id == name for part in getattr(item, "targets", [getattr(item, "target", None)])
        )
        for item in call.function.own_nodes()
    )


def _is_config(node: ast.expr) -> bool:
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr in _CONFIGS
    return isinstance(node, ast.Name) and node.id in _CONFIGS


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, holds_for_base_env=True)

"""HE104 config-class
The settings of an environment are a subclass of `HermesAgentEnvConfig` that `env_config_cls` names, and each has a
description.

What: `env_config_cls`, if set, is `HermesAgentEnvConfig` or a subclass of it. `config_init` returns an instance of that
class. Each field that the environment adds has a description. An environment without additional settings needs no
class.

Why: Atropos builds the command line from `env_config_cls`. A field of another class cannot be set by `--env.field` and
is lost when a flag is given, and a class that is not derived from `HermesAgentEnvConfig` has no toolsets. The
description is all that `--help` shows about a field.

Fix: Write `class MyConfig(HermesAgentEnvConfig)` with `Field(default=..., description="...")`, and set `env_config_cls
= MyConfig`.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.env_config_cls` and `cli()`; `environments.hermes_base_env`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    ClassSource,
    ConfigField,
    External,
    Kind,
    config_class,
    config_fields,
    data_flow,
    finding_at,
    installed_config_fields,
    is_layer_config,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYER_CONFIG = "HermesAgentEnvConfig"


def static(source: ClassSource) -> Verdict:
    """Look at env_config_cls, at what config_init makes, and at the fields."""
    given = source.attribute("env_config_cls")
    named = config_class(source)
    if given is None and source.has("env_config_cls"):
        return Verdict.undecided("env_config_cls is computed at run time")
    findings: list[Finding] = []
    doubt = ""
    if given is not None:
        answer = is_layer_config(named)
        if answer is False:
            name = named.name if isinstance(named, ClassSource) else getattr(named, "last", "this")
            findings.append(
                finding_at(given[0], given[1], f"env_config_cls is {name}, which is not a subclass of {LAYER_CONFIG}")
            )
        elif answer is None:
            doubt = "env_config_cls has a base class that cannot be read"
    elif source.unreadable:
        doubt = f"env_config_cls may come from {source.unreadable[0]}, which cannot be read"
    made = {item.target: item.node for item in _made(source) if isinstance(item.target, ClassSource)}
    configs = [named] if isinstance(named, ClassSource) else []
    for target in made:
        assert isinstance(target, ClassSource)
        configs.append(target)
        fault = _fault_of_made(source, target, named, is_given=given is not None)
        if fault and not doubt and not findings:
            findings.append(fault)
    fields = {(field.owner, field.name): field for config in configs for field in config_fields(config) if field.is_own}
    findings += _undescribed(fields.values())
    note = (
        f"{len(fields)} settings of its own, each with a description"
        if fields
        else f"the environment adds no settings to {LAYER_CONFIG}"
    )
    return Verdict.of_source(findings, note, doubt=doubt)


def _made(source: ClassSource) -> Iterator[Any]:
    """Yield the configurations that config_init returns."""
    frame = data_flow(source).method("config_init")
    for _, values in frame.returned if frame else ():
        for value in values:
            if value.kind is Kind.TUPLE and value.items:
                yield from (item for item in value.items[0] if item.kind is Kind.INSTANCE)


def _fault_of_made(source: ClassSource, made: ClassSource, named: object, *, is_given: bool) -> Finding | None:
    if not is_layer_config(made):
        return None
    if isinstance(named, ClassSource) and (named is made or (named in made.readable[1:] and not _adds(made, named))):
        return None
    if isinstance(named, ClassSource) and made in named.readable:
        return None
    if not _adds(made, named if isinstance(named, ClassSource) else None):
        return None
    if is_given and not isinstance(named, (ClassSource, External)):
        return None
    function = source.methods["config_init"]
    name = named.name if isinstance(named, ClassSource) else LAYER_CONFIG
    return finding_at(
        function,
        function.node,
        f"config_init returns a {made.name}, but env_config_cls is {name}: its own fields cannot be set by command-line flags",
    )


def _adds(made: ClassSource, named: ClassSource | None) -> bool:
    """Whether a configuration has fields that the named one has not."""
    known = {field.name for field in config_fields(named)} if named is not None else set()
    return any(field.is_own and field.name not in known for field in config_fields(made))


def _undescribed(fields: Any) -> Iterator[Finding]:
    if not installed_config_fields():
        return  # without Atropos' sources an own field cannot be told from one that was given another default
    field: ConfigField
    for field in fields:
        if not field.is_described:
            yield finding_at(field.owner, field.node, f"the setting {field.name} has no description")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the class that env_config_cls names, at its fields, and at what config_init returned."""
    named, base = evidence.cls.config, evidence.cls.base_config
    if named != base and LAYER_CONFIG not in named.bases:
        message = f"env_config_cls is {named.name}, which is not a subclass of {LAYER_CONFIG}"
        return Verdict.failed([evidence.finding(message)])
    own = {word: is_described for word, is_described in named.fields.items() if word not in base.fields}
    bare = [word for word, is_described in own.items() if not is_described]
    places = _places(evidence)
    findings = []
    for word in bare:
        at, number = places.get(word) or evidence.at_class()
        findings.append(Finding(message=f"the setting {word} has no description", path=at, line=number))
    made = evidence.config_init.config
    if extra := ", ".join(sorted(set(made.fields) - set(named.fields))):
        message = f"config_init returned a {made.name}, but env_config_cls is {named.name}: {extra} cannot be set by command-line flags"
        findings.append(evidence.finding(message, "config_init"))
    return Verdict.of(findings, f"{named.name} adds {len(own)} settings, each with a description")


def _places(evidence: Evidence) -> dict[str, tuple[str, int]]:
    """Return path and line of each setting, where the source of the configuration can be read."""
    config = config_class(evidence.source) if evidence.source is not None else None
    fields = config_fields(config) if isinstance(config, ClassSource) else ()
    return {field.name: (field.owner.path, field.node.lineno) for field in fields}


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic)

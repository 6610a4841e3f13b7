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

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.source import ClassSource
from pytest_hermes_env.source.configs import config_class, config_fields

LAYER_CONFIG = "HermesAgentEnvConfig"


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


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic)

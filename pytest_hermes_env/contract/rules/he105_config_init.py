"""HE105 config-init
`config_init` is a classmethod that returns a config and a list of server configs.

What: The class, or a base that can be read, has a classmethod `config_init`. Each of its returns has two values, and
the second is a list of `APIServerConfig`.

Why: A single `APIServerConfig` is not an error in Atropos. It takes anything but a list as "find my servers yourself"
and connects to http://localhost:9004 to 9007. The model that you named is never called: the run hangs, or retries until
it gives up, while the rented machines are idle. A class without its own `config_init` gets the same default.

Fix: Return `(env_config, [APIServerConfig(...)])`, with the brackets, from a method under `@classmethod`.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.config_init`; `envs/server_handling/server_manager.py`,
`ServerManager.__init__`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    ClassSource,
    Function,
    Kind,
    Value,
    Values,
    data_flow,
    finding_at,
    may_be,
    must_be,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAIR = 2
_FALLS_BACK = "Atropos ignores anything but a list here and falls back to localhost:9004-9007"
_NONE = "no config_init: the class inherits Atropos' default, which names no server and falls back to localhost:9004-9007"


def static(source: ClassSource) -> Verdict:
    """Look at what each return of config_init gives."""
    function = source.methods.get("config_init")
    if function is None:
        if source.unreadable or source.has("config_init"):
            return Verdict.undecided(f"config_init may come from {', '.join(source.unreadable) or 'a class-level value'}")
        return Verdict.failed([finding_at(source, source.node, _NONE)])
    findings = list(_signature(function))
    open_questions: list[int] = []
    frame = data_flow(source).entry(function)
    if not frame.returned and not frame.is_generator:
        findings.append(
            finding_at(function, function.node, "config_init must return (config, [APIServerConfig(...)]), but returns nothing")
        )
    for node, values in frame.returned:
        fault = _fault(node, values)
        if fault:
            findings.append(finding_at(function, node, fault))
        elif not _is_pair_with_list(values):
            open_questions.append(node.lineno)
    doubt = f"the value that config_init returns on line {open_questions[0]} is computed at run time" if open_questions else ""
    return Verdict.of_source(findings, "config_init is a classmethod that returns a config and a list", doubt=doubt)


def _signature(function: Function) -> Iterator[Finding]:
    if not function.is_classmethod and "staticmethod" not in function.decorators:
        yield finding_at(function, function.node, "config_init is not a classmethod; Atropos calls it on the class")
    if function.is_async:
        yield finding_at(function, function.node, "config_init is async; Atropos does not await it")


def _fault(node: ast.Return, values: Values) -> str:
    """Return what is certainly wrong with one return, or an empty string."""
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return "config_init must return (config, [APIServerConfig(...)]), but returns None"
    for value in values:
        if value.kind is Kind.INSTANCE:
            return f"config_init returns one value, a {value.name}; the list of server configs is missing"
        if value.kind is Kind.TUPLE and len(value.items) != _PAIR:
            count = len(value.items)
            return f"config_init returns {count} values, but must return two: the config and the list of server configs"
        if value.kind is Kind.TUPLE:
            fault = _fault_of_servers(value.items[1])
            if fault:
                return fault
    return ""


def _fault_of_servers(values: Values) -> str:
    for value in values:
        if value.kind is Kind.INSTANCE and value.name == "ServerBaseline":
            return "config_init returns a ServerBaseline, which names no server and falls back to localhost:9004-9007"
        if value.kind is Kind.INSTANCE:
            return f"config_init returns a single {value.name} instead of a list; {_FALLS_BACK}"
        if value.kind is Kind.TUPLE:
            return f"config_init returns the server configs as a tuple instead of a list; {_FALLS_BACK}"
        if value.kind is Kind.EMPTY and len(values) == 1:
            return "config_init returns an empty list of server configs; Atropos reads the first one"
    return ""


def _is_pair_with_list(values: Values) -> bool:
    return must_be(values, Kind.TUPLE) and all(_is_list(value) for value in values)


def _is_list(pair: Value) -> bool:
    return may_be(pair.items[1], Kind.MANY) and all(value.kind in {Kind.MANY, Kind.EMPTY} for value in pair.items[1])


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what config_init() really returned."""
    fault = _fault_seen(evidence)
    if not fault:
        given = evidence.config_init
        return Verdict.passed(
            f"config_init() returned {given.config.name} and {len(given.servers or ())} server configuration(s)"
        )
    return Verdict.failed([evidence.finding(fault, "config_init")])


def _fault_seen(evidence: Evidence) -> str:
    given = evidence.config_init
    if given.error:
        return f"config_init() raised {given.error}"
    if not given.is_pair:
        return f"config_init() returned {given.shape.partition(' ')[0]}, not (config, [APIServerConfig, ...])"
    if "BaseEnvConfig" not in given.config.bases:
        return f"the first value of config_init() is {given.config.name}, not a BaseEnvConfig"
    if given.servers is None:
        return (
            f"the second value of config_init() is {given.servers_type}, not a list: Atropos ignores it and waits for "
            "model servers on localhost:9004 to 9007"
        )
    strangers = [server.bases[0] for server in given.servers if "APIServerConfig" not in server.bases]
    if strangers or not given.servers:
        return f"the second value of config_init() must contain only APIServerConfig, but contains {strangers or 'nothing'}"
    return ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, holds_for_base_env=True)

"""HE113 config-fields-exist
Every field that `config_init` sets is one that the configuration class declares.

What: Each keyword of a configuration that `config_init` makes is a field of its class: one of Atropos, of the layer, or
of the class's own.

Why: The models of Atropos ignore what they do not know. `groupsize=4` raises nothing, is logged nowhere, and the run
trains with the default.

Fix: Write the name of the field as the class declares it, or declare the field.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnvConfig`, whose pydantic settings are the default `extra="ignore"`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.source import Call, ClassSource, finding_at
from pytest_hermes_env.source.configs import config_calls, names_taken
from pytest_hermes_env.source.installed import installed_config_fields


def static(source: ClassSource) -> Verdict:
    """Compare the keywords of each configuration with the fields of its class."""
    calls = list(config_calls(source))
    if not calls:
        return Verdict.undecided("config_init makes no configuration that can be seen")
    if not installed_config_fields():
        return Verdict.undecided("Atropos is not installed here: its fields are not known")
    findings, doubts = [], []
    for call, config in calls:
        known = names_taken(config, call.function.module)
        if known is None:
            doubts.append(f"line {call.node.lineno}: the fields of the configuration's class cannot all be read")
            continue
        for name, value in _given(call):
            if name is None:
                doubts.append(f"line {call.node.lineno}: fields are computed")
            elif name not in known:
                findings.append(finding_at(call.function, value, _ignored(name, known)))
    return Verdict.of_source(findings, "every field that config_init sets is declared", doubt=next(iter(doubts), ""))


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the names that config_init really gave to its configuration, however it made them."""
    given = evidence.config_init
    if given.error or not given.values:
        return Verdict.not_exercised(f"config_init returned no configuration {given.error}".rstrip(), "HE105")
    if given.dropped is None:
        return Verdict.not_exercised(
            "config_init did not make its configuration while it ran: its fields were not seen", "HE104"
        )
    findings = [evidence.finding(_ignored(name, given.values), "config_init") for name in given.dropped]
    return Verdict.of(findings, "the configuration took every field that config_init gave it")


def _ignored(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"the configuration has no field {name!r}: it is silently ignored" + (f"; did you mean {near[0]!r}?" if near else "")


def _given(call: Call) -> Iterator[tuple[str | None, ast.expr]]:
    """Yield the fields that a call sets, those of a dict that is unpacked where it is written included; None for a computed name."""
    for word in call.node.keywords:
        if word.arg is None and isinstance(word.value, ast.Dict):
            for key, value in zip(word.value.keys, word.value.values, strict=True):
                yield (str(key.value) if isinstance(key, ast.Constant) else None), value
        else:
            yield word.arg, word.value


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, holds_for_base_env=True)

"""The contract of one class outside of a contract run: it is played when the first rule asks, in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any

from pytest_hermes_env import errors
from pytest_hermes_env.contract.engine import ClassContract
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.contract.subject import subject_of, subjects_of
from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.evidence_file import read_evidence
from pytest_hermes_env.play.player import play_all
from pytest_hermes_env.play.scenario import Collection
from pytest_hermes_env.source import ClassSource


def contract_of(env_class: type | str, rules: Iterable[Rule] = ALL_RULES, **job: Any) -> ClassContract:
    """Return the contract of a class, or of the one that a target names, for these rules; ``job`` are fields of `Job`.

    Raises: no environment → BadTarget.
    """
    if isinstance(env_class, type):
        layer_of(env_class)
        subject = subject_of(env_class)
    else:
        (subject,) = subjects_of(env_class)
    chosen = tuple(rules)

    def play() -> Collection:
        wanted = Job(
            target=subject.target,
            about=subject.about,
            env_class=subject.env_class,
            scenarios=scenarios_for(chosen, subject.source),
            lines_of=tuple(sorted(contract.files_with_errors(chosen))),
            **job,
        )
        with tempfile.TemporaryDirectory(prefix="hermes-env-evidence-") as directory:
            (played,) = read_evidence(*play_all([wanted], directory))
        if played.refusal is not None:
            raise refused(*played.refusal)
        return played.collection

    contract = ClassContract(subject, play)
    return contract


def scenarios_for(rules: Iterable[Rule], source: ClassSource | None) -> tuple[str, ...]:
    """Return the scenarios that rules read of a class, once each."""
    names: dict[str, None] = {}
    for rule in rules:
        names |= dict.fromkeys(rule.scenarios)
        if rule.more_scenarios is not None and source is not None:
            names |= dict.fromkeys(rule.more_scenarios(source))
    return tuple(names)


def refused(kind: str, text: str) -> HermesEnvError:
    """Return the error with which a player refused to play."""
    cls = getattr(errors, kind, HermesEnvError)
    return cls(text) if isinstance(cls, type) and issubclass(cls, HermesEnvError) else HermesEnvError(text)

"""``@env_contract(MyEnv)``: the contract as parametrized tests in a user's own test file."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from pytest_hermes_env.contract.judge.subject import subject_of
from pytest_hermes_env.contract.rules import select_rules
from pytest_hermes_env.contract.run.session import RuleCheck, settings_of
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.cases.declaration import as_cases
from pytest_hermes_env.play.cases.yaml_file import cases_beside

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

FIXTURE = "hermes_rule"


def env_contract(env_class: type, *, cases: Any = None) -> Callable[[Decorated], Decorated]:
    """Judge ``env_class`` by the contract, one test per rule.

    On a function, its one parameter is the check to call, ``def test_contract(check): check()``; a function without parameters
    needs no body. On a class, a method ``test_contract`` is added. ``cases`` are transcripts of known quality, made by
    `item_cases`; without them, those in a file next to the class's hold.

    Raises: BadTarget, BadSettings, BadCases, all when the module is imported.
    """
    __tracebackhide__ = True
    layer_of(env_class)
    settings = settings_of(subject_of(env_class).path, os.getcwd())
    rules = select_rules(settings.select, settings.ignore)
    declared = as_cases(cases) if cases is not None else None
    if declared is None:
        cases_beside(env_class)  # what is wrong with them shows once, when the module is imported
    checks = [RuleCheck(env_class, rule, declared) for rule in rules]
    parametrize = pytest.mark.parametrize(FIXTURE, checks, ids=[rule.label for rule in rules], indirect=True)

    def decorate(target: Decorated) -> Decorated:
        if inspect.isclass(target):
            target.test_contract = parametrize(_method)  # type: ignore[attr-defined]
            return target
        return parametrize(_test(target))  # type: ignore[no-any-return]

    return decorate


def _method(self: object, hermes_rule: Callable[[], None]) -> None:
    """One law of the contract."""
    del self
    hermes_rule()


def _test(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a test that gives ``function`` the check, or runs the check itself when there is no parameter for it."""
    takes_check = bool(inspect.signature(function).parameters)

    @functools.wraps(function)
    def test(hermes_rule: Callable[[], None]) -> None:
        if takes_check:
            function(hermes_rule)
        else:
            hermes_rule()
            function()

    test.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(FIXTURE, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    )
    del test.__wrapped__
    return test

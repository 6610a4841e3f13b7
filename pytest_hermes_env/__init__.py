"""pytest-hermes-env: tests, contract checks and doubles for Hermes Agent RL environments.

Everything public is here, and loaded on first use: importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_hermes_env.atropos.train_steps import train_steps as train_steps
    from pytest_hermes_env.contract.run.decorator import env_contract as env_contract
    from pytest_hermes_env.contract.run.single_rule import check_rule as check_rule
    from pytest_hermes_env.faults.plan import FaultPlan as FaultPlan
    from pytest_hermes_env.inference import MockServer as MockServer
    from pytest_hermes_env.inference import Script as Script
    from pytest_hermes_env.inference import call as call
    from pytest_hermes_env.inference import call_raw as call_raw
    from pytest_hermes_env.inference import empty_choices as empty_choices
    from pytest_hermes_env.inference import fail as fail
    from pytest_hermes_env.inference import garbage as garbage
    from pytest_hermes_env.inference import hang as hang
    from pytest_hermes_env.inference import sampled as sampled
    from pytest_hermes_env.inference import say as say
    from pytest_hermes_env.inference import think as think
    from pytest_hermes_env.inference import turn as turn
    from pytest_hermes_env.inference import unoffered as unoffered
    from pytest_hermes_env.pages.token_view import token_view as token_view
    from pytest_hermes_env.play.cases.declaration import case as case
    from pytest_hermes_env.play.cases.declaration import cases as cases
    from pytest_hermes_env.play.cases.declaration import item_cases as item_cases
    from pytest_hermes_env.results import agent_result as agent_result
    from pytest_hermes_env.sandbox.answers import Answer as Answer
    from pytest_hermes_env.sandbox.context import FakeToolContext as FakeToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox as FakeSandbox
    from pytest_hermes_env.sandbox.local import LocalSandbox as LocalSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam as ToolSeam
    from pytest_hermes_env.strategies import check_reward as check_reward

_HOMES = {
    **dict.fromkeys(
        "MockServer Script call call_raw empty_choices fail garbage hang sampled say think turn unoffered".split(),  # noqa: SIM905 - thirteen lines otherwise
        "pytest_hermes_env.inference",
    ),
    "Answer": "pytest_hermes_env.sandbox.answers",
    "FakeSandbox": "pytest_hermes_env.sandbox.fake",
    "FakeToolContext": "pytest_hermes_env.sandbox.context",
    "FaultPlan": "pytest_hermes_env.faults.plan",
    "LocalSandbox": "pytest_hermes_env.sandbox.local",
    "ToolSeam": "pytest_hermes_env.sandbox.seam",
    "agent_result": "pytest_hermes_env.results",
    "case": "pytest_hermes_env.play.cases.declaration",
    "cases": "pytest_hermes_env.play.cases.declaration",
    "check_reward": "pytest_hermes_env.strategies",
    "check_rule": "pytest_hermes_env.contract.run.single_rule",
    "env_contract": "pytest_hermes_env.contract.run.decorator",
    "item_cases": "pytest_hermes_env.play.cases.declaration",
    "token_view": "pytest_hermes_env.pages.token_view",
    "train_steps": "pytest_hermes_env.atropos.train_steps",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

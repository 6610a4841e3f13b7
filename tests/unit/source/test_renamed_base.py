"""The base of a fork is recognised by what it does, or by the name that the user gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.source import ClassKind, read_class, read_classes

BASE = """\
from atroposlib.envs.base import BaseEnv


class AcmeEnv(BaseEnv):
    async def _resolve_tools_for_group(self): ...
    async def collect_trajectory(self, item): ...
"""
ENV = """\
from acme_base import AcmeEnv


class MyEnv(AcmeEnv):
    async def compute_reward(self, item, result, ctx):
        return 1.0
"""
OTHER = """\
from atroposlib.envs.base import BaseEnv


class MathEnv(BaseEnv):
    async def collect_trajectory(self, item): ...


class HardMathEnv(MathEnv):
    pass
"""


def kind(directory: Path, name: str, **files: str) -> ClassKind:
    """Return the kind of a class in the last of some files."""
    for file, text in files.items():
        (directory / f"{file}.py").write_text(text, encoding="utf-8")
    source = read_class(str(directory / f"{[*files][-1]}.py"), name)
    assert source is not None
    return source.class_kind


def test_a_base_that_collects_rollouts_with_tools_is_the_layers(tmp_path: Path) -> None:
    """The class above it is judged, and it is not."""
    assert kind(tmp_path, "MyEnv", acme_base=BASE, env=ENV) is ClassKind.HERMES
    reading = read_classes(str(tmp_path / "acme_base.py"))
    assert ([*reading.classes], [item.reason for item in reading.skipped]) == ([], ["the base class of the layer itself"])


def test_an_environment_of_atropos_alone_is_none(tmp_path: Path) -> None:
    """It collects rollouts, and has no tools."""
    assert kind(tmp_path, "HardMathEnv", env=OTHER) is ClassKind.ATROPOS


@pytest.mark.parametrize("named", ["AcmeEnv", "acme_base.AcmeEnv", "acme_base:AcmeEnv"])
def test_a_base_that_cannot_be_read_is_known_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """By the name alone, or with its module."""
    before = kind(tmp_path, "MyEnv", env=ENV)
    monkeypatch.setenv("HERMES_ENV_BASE", named)

    assert (before, kind(tmp_path, "MyEnv", env=ENV)) == (ClassKind.UNKNOWN, ClassKind.HERMES)


def test_the_layer_of_a_class_is_found_the_same_way() -> None:
    """The base by what it does; its loop and context from its own module, or those of this distribution."""
    base = type("AcmeEnv", (type("BaseEnv", (), {}),), {"_resolve_tools_for_group": 1, "collect_trajectory": 1})
    layer = layer_of(type("MyEnv", (base,), {"collect_trajectory": 2}))

    assert layer.base is base
    assert (hasattr(layer.agent_loop, "HermesAgentLoop"), hasattr(layer.tool_context, "ToolContext")) == (True, True)

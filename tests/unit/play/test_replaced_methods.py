"""Methods of the layer that an environment's file replaces are found, unless the original is called."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.tool_context import ToolContext
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.class_record import replaced_methods

FILE = """
import functools

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.tool_context import ToolContext

real = ToolContext.terminal


class Env(HermesAgentBaseEnv):
    name = "patched"


def stub(self, command, timeout=180):
    return {"exit_code": 0, "output": ""}


def named(self, command, timeout=180):
    return real(self, command, timeout)


def held(original):
    def terminal(self, *arguments):
        return original(self, *arguments)

    return terminal


@functools.wraps(real)
def wrapped(self, *arguments):
    return wrapped.__wrapped__(self, *arguments)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    path = tmp_path / "patching_env.py"
    path.write_text(FILE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, found)
    spec.loader.exec_module(found)
    return found


def test_a_stub_in_the_place_of_a_method_is_found(module, monkeypatch):
    monkeypatch.setattr(ToolContext, "terminal", module.stub)
    monkeypatch.setattr(HermesAgentLoop, "run", module.stub)
    monkeypatch.setattr(HermesAgentBaseEnv, "get_eval_items", staticmethod(module.stub))

    line = FILE.splitlines().index("def stub(self, command, timeout=180):") + 1
    assert [(name, place.path, place.line) for name, place in replaced_methods(module.Env, layer_of(module.Env))] == [
        (name, module.__file__, line)
        for name in ("HermesAgentBaseEnv.get_eval_items", "HermesAgentLoop.run", "ToolContext.terminal")
    ]


@pytest.mark.parametrize(
    "make", [lambda module: module.named, lambda module: module.held(module.real), lambda module: module.wrapped]
)
def test_a_replacement_that_calls_the_original_is_none(module, monkeypatch, make):
    monkeypatch.setattr(ToolContext, "terminal", make(module))

    assert list(replaced_methods(module.Env, layer_of(module.Env))) == []


def test_methods_that_are_added_are_no_replacement(module, monkeypatch):
    monkeypatch.setattr(ToolContext, "run_quietly", module.stub, raising=False)

    assert list(replaced_methods(module.Env, layer_of(module.Env))) == []

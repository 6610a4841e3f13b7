"""The source of a class is found whatever a factory named it."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from pytest_hermes_env.contract.judge.subject import subject_of

FACTORY = """
import functools

def keep(function):
    @functools.wraps(function)
    def kept(*args):
        return function(*args)
    return kept

def make(label):
    class Env:
        @keep
        def compute_reward(self):
            return 1.0
    Env.__name__ = Env.__qualname__ = label
    return Env

Made = make("AnotherName")
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "factory_of_classes.py"
    path.write_text(FACTORY, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_class_that_a_factory_renamed_has_a_source(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module.__name__, module)

    source = subject_of(module.Made).source

    assert source is not None
    assert (source.name, sorted(source.methods)) == ("Env", ["compute_reward"])

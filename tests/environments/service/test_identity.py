"""The identity of an environment: the same wherever its files are, and another one when a file that it imports changes."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from environments.service.identity import identity_of
from environments.service.lazy_tokenizer import LazyTokenizer
from environments.terminal_test_env import terminal_test_env
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch):
    """``identity(directory, rewards)`` is that of a class whose rewards are in a module beside it."""

    def of(directory: Path, rewards: str):
        directory.mkdir()
        (directory / "its_rewards.py").write_text(rewards)
        (directory / "its_env.py").write_text("import its_rewards\n\n\nclass Env:\n    pass\n")
        monkeypatch.syspath_prepend(str(directory))
        for name in ("its_env", "its_rewards"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return identity_of(__import__("its_env").Env)

    return of


def test_it_is_the_same_in_another_directory_and_changes_with_a_module_that_is_imported(identity, tmp_path):
    here, there, later = (
        identity(tmp_path / name, rewards) for name, rewards in [("a", "X = 1\n"), ("b", "X = 1\n"), ("c", "X = 2\n")]
    )

    assert here == there
    assert here["source"] != later["source"]
    assert (here["environment"], here["package"]) == ("Env", "")


def test_an_installed_environment_has_its_package(monkeypatch):
    monkeypatch.setattr(metadata, "packages_distributions", lambda: {"environments": ["pytest-hermes-env"]})
    monkeypatch.setitem(sys.modules, terminal_test_env.__name__, terminal_test_env)  # other tests import another one

    found = identity_of(TerminalTestEnv)

    assert found["environment"] == "TerminalTestEnv"
    assert found["package"] == f"pytest-hermes-env {metadata.version('pytest-hermes-env')}"


def test_a_tokenizer_that_nobody_uses_is_not_loaded_and_one_that_cannot_be_is_named(tmp_path):
    tokenizer = LazyTokenizer.from_pretrained(str(tmp_path / "nowhere"))

    assert tokenizer.of_placeholders.encode("ab") == [97, 98]
    with pytest.raises(RuntimeError, match=r"the environment uses its tokenizer, and .*nowhere cannot be loaded"):
        tokenizer.encode("text")


def test_a_lazy_tokenizer_is_the_tokenizer(hermes_tokenizer):
    tokenizer = LazyTokenizer.from_pretrained(hermes_tokenizer)

    assert tokenizer.decode(tokenizer.encode("text", add_special_tokens=False)) == "text"
    assert tokenizer("text")["input_ids"] == tokenizer.encode("text")
    assert len(tokenizer) > 0

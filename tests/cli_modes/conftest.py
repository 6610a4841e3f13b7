"""Runs an environment's command line as a user does, against a mock model."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

KEY = "sk-fake-0123456789abcdefghij"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty working directory that is also HOME and HERMES_HOME's parent."""
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def environ(home: Path, hermes_tokenizer: str) -> dict[str, str]:
    """The environment variables of the process, including a key."""
    import environments.hermes_base_env as layer

    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "HERMES_HOME": str(home / "hermes"),
        "WANDB_MODE": "disabled",
        "HF_HUB_OFFLINE": "1",
        "OPENROUTER_API_KEY": KEY,
        "PYTHONPATH": str(Path(layer.__file__).parents[1]),
        "COLUMNS": "10000",
    }


@pytest.fixture
def program() -> list[str]:
    """What Python starts: the file of TerminalTestEnv."""
    from environments.terminal_test_env import terminal_test_env

    return [str(terminal_test_env.__file__)]


@pytest.fixture
def command(hermes_tokenizer: str, program: list[str]) -> Callable[..., list[str]]:
    """``command(mode, *flags, server=None)``: the command that starts the environment of ``program``."""

    def words(mode: str, *flags: str, server: Any = None) -> list[str]:
        settings = {"--env.tokenizer_name": hermes_tokenizer, "--env.use_wandb": "false"}
        if server is not None:
            settings |= {
                "--openai.base_url": server.base_url,
                "--openai.model_name": "mock-model",
                "--openai.health_check": "false",
            }
        return [sys.executable, *program, mode, *(word for pair in settings.items() for word in pair), *flags]

    return words


@pytest.fixture(scope="session")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home directory of the process that has imported the layer."""
    return tmp_path_factory.mktemp("warm")


@pytest.fixture(scope="session")
def python_with_layer(start_warm_python: Callable[..., str], warm_home: Path) -> str:
    """A Python that begins with the layer imported."""
    return start_warm_python("environments.hermes_base_env", HOME=str(warm_home), HERMES_HOME=str(warm_home / "hermes"))


@pytest.fixture
def run_words(
    python_with_layer: str, warm_home: Path, environ: dict[str, str], home: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python command to its end; neither the output nor any written file contains the key."""

    def start(words: list[str], **extra: str) -> subprocess.CompletedProcess[str]:
        words = [python_with_layer, *words[1:]]
        finished = subprocess.run(words, cwd=home, env=environ | extra, capture_output=True, text=True, check=False)
        told = [finished.stdout, finished.stderr, *written(home).values(), *written(warm_home).values()]
        assert [text for text in told if KEY in text or KEY[:12] in text] == []
        return finished

    return start


@pytest.fixture
def run(command: Any, run_words: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``run(mode, *flags, server=None, **variables)``: run the environment's command to its end."""

    def start(*words: str, server: Any = None, **extra: str) -> subprocess.CompletedProcess[str]:
        return run_words(command(*words, server=server), **extra)

    return start


@pytest.fixture
def run_here(
    environ: dict[str, str], home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[list[str]], subprocess.CompletedProcess[str]]:
    """Run in this process, which has already imported everything, a command that ends before its event loop starts."""

    def start(words: list[str]) -> subprocess.CompletedProcess[str]:
        code: Any = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", words[1:])
            patch.chdir(home)
            for name, value in environ.items():
                patch.setenv(name, value)
            try:
                runpy.run_path(words[1], run_name="__main__")
            except SystemExit as end:
                code = end.code
        printed = capfd.readouterr()
        return subprocess.CompletedProcess(words, code, printed.out, printed.err)

    return start


def written(directory: Path) -> dict[str, str]:
    """Every file below ``directory``, as text."""
    return {
        str(path.relative_to(directory)): path.read_text(errors="replace") for path in directory.rglob("*") if path.is_file()
    }


@pytest.fixture
def key() -> str:
    """The fake API key."""
    return KEY


@pytest.fixture
def solving_server() -> Iterator[Any]:
    """A mock model that solves TerminalTestEnv's tasks."""
    from environments.terminal_test_env.terminal_test_env import TASKS
    from pytest_hermes_env.inference import MockServer, call, say

    def solve(conversation: Any) -> Any:
        if conversation.turn:
            return say("done")
        task = next(task for task in TASKS if f"file {task['path']} " in conversation.first_user)
        return call("write_file", path=task["path"], content=task["content"])

    with MockServer(solve) as server:
        yield server
    server.verify()

"""``hermes-env serve-rollouts`` as a process: it starts, drains on SIGTERM, and refuses wrong settings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_hermes_env.inference import MockServer, call, say

pytestmark = pytest.mark.usefixtures("warm_python")

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
ITEM = {"path": "greeting.txt", "content": "Hello from Hermes Agent"}
TOKEN = "the-token-of-this-process"


@pytest.fixture
def command(tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """The command without options, as the page has it, and the environment variables of its process: no tokenizer is on this machine."""
    import environments.hermes_base_env as layer

    (tmp_path / "sandboxes").mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environ = kept | {
        "HOME": str(tmp_path),
        "HERMES_HOME": str(tmp_path / "hermes"),
        "HF_HUB_OFFLINE": "1",
        "TMPDIR": str(tmp_path / "sandboxes"),
        "PYTHONPATH": str(Path(layer.__file__).parents[1]),
        "HERMES_ENV_TOKEN": TOKEN,
    }
    program = [sys.executable, "-m", "pytest_hermes_env.cli", "serve-rollouts", TARGET, "--port", "0"]
    return program, environ


@pytest.fixture
def start(command: Any, tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """``start(*options, **environ)`` starts the service and returns (process, its first line)."""
    words, environ = command
    started: list[subprocess.Popen[str]] = []

    def run(*options: str, **more: str) -> tuple[subprocess.Popen[str], str]:
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(
                [*words, *options], env=environ | more, stdout=subprocess.PIPE, stderr=log, text=True, cwd=tmp_path
            )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (tmp_path / "log").read_text()
        return process, line

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def client_of(line: str, token: str = TOKEN) -> httpx.Client:
    url = next(word for word in line.split() if word.startswith("http")).rstrip(",")
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)


def test_on_sigterm_it_admits_nothing_finishes_what_runs_and_leaves_nothing(start, tmp_path):
    asked, go = threading.Event(), threading.Event()

    def policy(conversation: Any) -> Any:
        if conversation.turn == 0:
            return call("write_file", **ITEM)
        asked.set()
        go.wait(60)
        return say("Done.")

    with MockServer(policy) as server, ThreadPoolExecutor(1) as pool:
        process, line = start()
        with client_of(line) as client:
            body = {"item": ITEM, "endpoint": server.base_url, "model": "m", "api_key": "sk-engine-0123456789"}
            running = pool.submit(client.post, "/rollout", json=body)
            assert asked.wait(60)
            sandboxes = list((tmp_path / "sandboxes").iterdir())
            process.send_signal(signal.SIGTERM)
            while client.get("/health").json()["status"] != "draining":
                pass
            refused = client.post("/rollout", json=body)
            go.set()
            result = running.result(60)

        code = process.wait(60)

    assert line.startswith("rollouts of TerminalTestEnv on http://127.0.0.1:")
    assert TOKEN not in line
    assert (refused.status_code, result.status_code, result.json()["reward"]) == (503, 200, 1.0)
    assert (code, bool(sandboxes)) == (0, True)
    assert not [path for path in (tmp_path / "sandboxes").iterdir() if path in sandboxes and path.name.startswith("hermes-")]
    log = (tmp_path / "log").read_text()
    assert "shutting down: 1 rollouts may finish" in log
    assert "sk-engine-0123456789" not in log
    assert TOKEN not in log


def test_a_second_signal_cancels_what_runs(start):
    asked, go = threading.Event(), threading.Event()

    def policy(_conversation: Any) -> Any:
        asked.set()
        go.wait(60)
        return say("Done.")

    with MockServer(policy, allow_leftovers=True) as server, ThreadPoolExecutor(1) as pool:
        process, line = start()
        with client_of(line) as client:
            running = pool.submit(client.post, "/rollout", json={"item": ITEM, "endpoint": server.base_url, "model": "m"})
            assert asked.wait(60)
            process.send_signal(signal.SIGTERM)
            while client.get("/health").json()["status"] != "draining":
                pass
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
            go.set()
            answer = running.result(60)

    assert (code, answer.status_code, answer.json()["error"]["code"]) == (0, 503, "cancelled")


def test_without_a_token_a_new_one_is_made_and_printed(start):
    _, first = start(HERMES_ENV_TOKEN="")
    token = first.split("token ")[1].strip()

    with client_of(first, token) as client:
        assert client.get("/tasks", params={"split": "eval"}).status_code == 200
    with client_of(first, "other") as client:
        assert client.get("/tasks", params={"split": "eval"}).status_code == 401
    assert len(token) >= 32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--env.max_agent_turn", "3"], "There is no setting --env.max_agent_turn. Did you mean --env.max_agent_turns"),
        (["--openai.base_url", "http://x/v1"], "--openai.* has no meaning here"),
        (["--concurrency", "0"], "must be at least 1"),
        (["--rollout-timeout", "soon"], "must be a number of seconds above 0, not 'soon'"),
        (["--rollout-timeout", "nan"], "must be a number of seconds above 0, not 'nan'"),
        (["--queue", "-1"], "must be at least 0"),
        (["--port", "99999"], "the service cannot listen on 127.0.0.1:99999: "),
        (
            ["--env.tokenizer_name", "no-such-directory/tokenizer"],
            "The tokenizer could not be loaded: no-such-directory/tokenizer",
        ),
    ],
)
def test_wrong_settings_are_refused(command, options, message, tmp_path):
    words, environ = command

    done = subprocess.run(
        [*words, *options], env=environ, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120
    )

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr

"""``serve``: registers with the real ``run-api`` of Atropos, and sends groups."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

TRAINER = {
    "wandb_group": "g",
    "wandb_project": "p",
    "batch_size": 4,
    "max_token_len": 4096,
    "checkpoint_dir": "",
    "save_checkpoint_interval": -1,
    "starting_step": 0,
    "num_steps": 100,
}

SECOND = {"max_token_length": 1, "desired_name": "terminal-test", "weight": 1.0, "group_size": 1}
"""A second environment with this name has the number 1, because the first has 0."""


def ask(url: str, data: dict[str, Any] | None = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def ask_until(url: str, is_it: Any, *, seconds: float = 240.0) -> Any:
    """Poll until the answer is as expected; a starting service has no event to wait for."""
    end, answer = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            answer = ask(url)
        except OSError:
            answer = None
        if answer is not None and is_it(answer):
            return answer
        time.sleep(0.1)
    raise AssertionError(f"{url} answered {answer} for {seconds} s")


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    """End a process by its own id; return its exit code and output."""
    process.terminate()
    try:
        output, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    return process.returncode, output


@pytest.fixture
def api(home: Any, environ: dict[str, str]) -> Iterator[str]:
    """A run-api on a free loopback port, with a trainer registered."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "atroposlib.cli.run_api", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(words, cwd=home, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        ask_until(f"{url}/", lambda _answer: True)
        ask(f"{url}/register", TRAINER)
        ask(f"{url}/batch")
        yield url
    finally:
        process.terminate()
        process.wait(20)


def test_environment_registers_serves_and_ends(command, python_with_layer, api, home, environ, solving_server, key):
    """Without --env.wandb_name it registers under its class's name, sends whole groups, and leaks nothing on SIGTERM."""
    temporary = home / "tmp"
    temporary.mkdir()
    flags = f"--env.rollout_server_url {api} --env.group_size 2 --env.ensure_scores_are_not_same false --openai.api_key {key}"
    process = subprocess.Popen(
        [python_with_layer, *command("serve", *flags.split(), server=solving_server)[1:]],
        cwd=home,
        env=environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        ask_until(f"{api}/status", lambda answer: answer["queue_size"] > 0)
        group = ask(f"{api}/latest_example")
        second = ask(f"{api}/register-env", SECOND)
    finally:
        code, output = end(process)

    assert (code, second["wandb_name"]) == (128 + signal.SIGTERM, "terminal-test_1"), output
    assert group["scores"] == [1.0, 1.0]
    assert [len(tokens) for tokens in group["tokens"]] == [len(mask) for mask in group["masks"]]
    assert [path.name for path in temporary.iterdir() if path.name.startswith("hermes-")] == []
    assert key not in output
    assert "KeyboardInterrupt" not in output

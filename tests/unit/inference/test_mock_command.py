"""`hermes-env mock`, as a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAIN = """
import argparse, sys
from pytest_hermes_env.inference.mock_command import add_arguments, run
parser = argparse.ArgumentParser()
add_arguments(parser)
sys.exit(run(parser.parse_args()))
"""
SCRIPT = "turns: [{call: terminal, with: {command: ls}}, done]\n"
USER = {"role": "user", "content": "x"}
BODY: dict[str, object] = {
    "messages": [USER],
    "tools": [{"type": "function", "function": {"name": "terminal"}}],
}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script of two turns."""
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


@contextmanager
def command(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The running command; killed when a test fails in between."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", MAIN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the line that says where the command listens, and the base URL in it."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    found = re.search(r"http://\S+", line)
    assert found is not None, line
    return line, found.group()


def test_the_command_serves_until_it_is_interrupted(script: Path) -> None:
    """It says where it listens, prints a line per request, and ends with 0 on Ctrl-C."""
    with command("--script", str(script), "--port", "0") as process:
        line, url = first_line(process)
        answer = httpx.post(f"{url}/chat/completions", json=BODY).json()["choices"][0]["message"]
        rest = [answer, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "a"}]
        httpx.post(f"{url}/chat/completions", json={**BODY, "messages": [USER, *rest]})
        httpx.get(f"{url}/models")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)

    place = re.search(r"of ([0-9a-f]{6})", output)
    assert place is not None
    assert (line, output.splitlines(), errors, process.returncode) == (
        f"mock model listening on {url} (script {script}, 2 turns) - Ctrl-C to stop",
        [
            f"turn 1 of {place[1]}: 200 call terminal(command='ls')",
            f"turn 2 of {place[1]}: 200 say 'done'",
            "/v1/models: 200 (models)",
            "stopped after 3 requests, 0 of them unexpected",
        ],
        "",
        0,
    )


def test_the_command_speaks_tokens(script: Path) -> None:
    """With a template it answers at /generate, too."""
    with command("--script", str(script), "--port", "0", "--template", "qwen3") as process:
        line, url = first_line(process)
        tools = '<|im_start|>system\n# Tools\n{"name": "terminal", "parameters": {}}<|im_end|>\n'
        answer = httpx.post(
            f"{url}/generate", json={"prompt": f"{tools}<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"}
        )
        httpx.post(f"{url}/generate", json={"prompt": "x", "prompt_logprobs": 0, "max_tokens": 1})
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=120)

    place = re.search(r"of ([0-9a-f]{6})", output)
    assert place is not None
    assert (line, answer.json()["text"], output.splitlines()[:3], errors, process.returncode) == (
        f"mock model listening on {url} (script {script}, 2 turns, tokens of qwen3) - Ctrl-C to stop",
        ['<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>'],
        [
            f"turn 1 of {place[1]}: 200 call terminal(command='ls')",
            "/v1/generate: 200 (score)",
            "stopped after 2 requests, 0 of them unexpected",
        ],
        "",
        0,
    )


def test_an_unexpected_request_makes_the_command_fail(script: Path) -> None:
    """It goes on serving, and its end shows what was unexpected, from which leftovers follow, with exit code 1."""
    with command("--script", str(script), "--port", "0") as process:
        _, url = first_line(process)
        httpx.get(f"{url}/nope")
        httpx.post(f"{url}/chat/completions", json=BODY)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=120)

    lines = output.splitlines()
    assert (lines[0], lines[2:4], errors, process.returncode) == (
        "/v1/nope: 404 UnexpectedRequest: the mock model has no endpoint GET /v1/nope.",
        [
            "stopped after 2 requests, 1 of them unexpected",
            "UnexpectedRequest: the mock model has no endpoint GET /v1/nope.",
        ],
        "",
        1,
    )


def test_a_wrong_script_is_a_usage_error(script: Path) -> None:
    """The command ends with 2, and names file and line."""
    script.write_text("turns: 3\n")
    with command("--script", str(script), "--port", "0") as process:
        output, errors = process.communicate(timeout=120)

    assert (output, errors, process.returncode) == (
        "",
        f"hermes-env mock: ScriptError: {script}:1: 'turns' must be a list; got int 3.\n",
        2,
    )

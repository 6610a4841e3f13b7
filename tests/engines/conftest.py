"""Tests of foreign engines, each in a virtual environment of its own; ``tox run -e engines`` makes it and sets the variable."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_hermes_env.inference import build_tokenizer, call, say
from pytest_hermes_env.inference.server_thread import ServerThread

VERIFIERS_PYTHON = os.environ.get("HERMES_VERIFIERS_PYTHON", "")
collect_ignore_glob = [] if VERIFIERS_PYTHON else ["test_*.py"]

TOKEN = "the-token-of-these-tests"


PATIENCE_S = 600


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """``until(condition)`` waits for a condition of another process."""

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.05)

    return wait


@pytest.fixture
def gold() -> Callable[[Any], Any]:
    """A policy that writes the file which the prompt asks for."""

    def policy(conversation: Any) -> Any:
        if conversation.turn:
            return say("Done.")
        path = conversation.first_user.split("Create the file ")[1].split(" in your")[0]
        return call("write_file", path=path, content=conversation.first_user.split("at the end:\n")[1])

    return policy


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Any]:
    """A `Sampler`, and what ``episodes`` needs to play with verifiers' training client on it."""
    tokenizer = build_tokenizer(tmp_path / "policy", template="qwen3")
    sampler = runpy.run_path(str(Path(__file__).with_name("sampler.py")))["Sampler"](tokenizer)
    server = ServerThread(sampler.app(), "127.0.0.1", 0)
    server.start()
    try:
        plan = {"endpoint": f"http://127.0.0.1:{server.port}/v1", "tokenizer": str(tokenizer), "renderer": "qwen3"}
        yield sampler, plan
    finally:
        server.stop()


HELD = """
from pathlib import Path
import asyncio

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv


class Held(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        while not Path("go").exists():
            await asyncio.sleep(0.05)
        return await super().compute_reward(item, result, ctx)
"""


@pytest.fixture
def held(tmp_path: Path) -> str:
    """An environment whose rewards wait for the file ``go``."""
    (tmp_path / "held.py").write_text(HELD)
    return f"{tmp_path / 'held.py'}:Held"


@dataclass(frozen=True, kw_only=True)
class Service:
    """A rollout service in a process of its own."""

    process: subprocess.Popen[str]
    url: str
    sandboxes: Path
    log: Path

    def counts(self) -> dict[str, int]:
        """Return the number of rollouts by end."""
        return dict(httpx.get(f"{self.url}/health", timeout=60, trust_env=False).json()["rollouts"])

    def load(self) -> int:
        """Return how many rollouts run."""
        return int(httpx.get(f"{self.url}/health", timeout=60, trust_env=False).json()["running"])

    def tasks(self, count: int, split: str = "train") -> list[dict[str, Any]]:
        """Return the first tasks."""
        headers, query = {"Authorization": f"Bearer {TOKEN}"}, {"split": split, "n": count}
        answer = httpx.get(f"{self.url}/tasks", params=query, headers=headers, timeout=60, trust_env=False)
        return list(answer.raise_for_status().json()["tasks"])

    def open_sandboxes(self) -> list[str]:
        """Return the directories of rollouts."""
        return [path.name for path in self.sandboxes.iterdir() if path.name.startswith("hermes-")]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The variables of every process: nothing of the user's, and no network."""
    import environments.hermes_base_env as layer

    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return (
        kept
        | {
            "HOME": str(tmp_path),
            "HERMES_HOME": str(tmp_path / "hermes"),
            "HF_HUB_OFFLINE": "1",
            "WANDB_MODE": "disabled",
            "HERMES_ENV_TOKEN": TOKEN,
            "POLICY_KEY": "sk-policy-0123456789",
            "NO_COLOR": "1",
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
            "no_proxy": "127.0.0.1,localhost",
        }
        | ({} if os.environ.get("HERMES_ENV_INSTALLED") else {"PYTHONPATH": str(Path(layer.__file__).parents[1])})
    )


@pytest.fixture
def start(environ: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """``start(target, *options, port=0)`` starts a rollout service, with no tokenizer: none is on this machine."""
    started: list[Service] = []

    def run(target: str, *options: str, port: int = 0) -> Service:
        sandboxes, log = tmp_path / f"sandboxes{len(started)}", tmp_path / f"service{len(started)}.log"
        sandboxes.mkdir()
        words = [sys.executable, "-m", "pytest_hermes_env.cli", "serve-rollouts", target, "--port", str(port)]
        with log.open("w") as file:
            process = subprocess.Popen(
                [*words, *options],
                env=environ | {"TMPDIR": str(sandboxes)},
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                cwd=tmp_path,
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        started.append(Service(process=process, url=line.split()[-1], sandboxes=sandboxes, log=log))
        return started[-1]

    yield run
    for service in started:
        service.process.send_signal(signal.SIGINT)
        service.process.send_signal(signal.SIGINT)
        try:
            service.process.wait(30)
        finally:
            service.process.kill()
            service.process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture
def verifiers(environ: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """``verifiers(*words, services=...)`` starts the engine's Python with these arguments; a service may be an address."""

    def run(*words: str, services: list[Any]) -> subprocess.Popen[str]:
        more = {"HERMES_ENV_SERVICES": ",".join(getattr(service, "url", service) for service in services)}
        return subprocess.Popen(
            [VERIFIERS_PYTHON, *words],
            env={name: value for name, value in environ.items() if name != "PYTHONPATH"} | more,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
        )

    return run


@pytest.fixture
def episodes(verifiers: Any) -> Callable[..., Any]:
    """``episodes(services, **plan)`` starts episodes.py and returns its process."""

    def run(services: Any, **plan: Any) -> Any:
        process = verifiers(str(Path(__file__).with_name("episodes.py")), services=services)
        process.stdin.write(json.dumps(plan) + "\n")
        process.stdin.flush()
        return process

    return run


@pytest.fixture
def results_of() -> Callable[[Any], list[dict[str, Any]]]:
    """``results_of(process)`` waits for episodes.py and returns what it printed."""

    def read(process: Any) -> list[dict[str, Any]]:
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, out[-5000:]
        return [json.loads(line) for line in out.splitlines() if line.startswith('{"reward"')]

    return read


@pytest.fixture
def vf_eval(verifiers: Any, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """``vf_eval(service, endpoint, *options)`` evaluates the environment and returns the traces, by task."""

    def run(service: Service, endpoint: str, *options: str) -> list[dict[str, Any]]:
        words = ["-c", "from verifiers.v1.cli.eval.main import main; main()", "hermes-env", "-m", "mock-model"]
        client = ["--client.base-url", endpoint, "--client.api-key-var", "POLICY_KEY"]
        process = verifiers(*words, *client, "--no-push", "--no-rich", "--run.name", "run", *options, services=[service])
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, out[-5000:]
        lines = (tmp_path / "outputs" / "run" / "traces.jsonl").read_text().splitlines()
        traces = [trace for line in lines for trace in json.loads(line).get("traces", [json.loads(line)])]
        return sorted(traces, key=lambda trace: trace["task"]["data"]["idx"])

    return run

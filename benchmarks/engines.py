"""What rollouts for an engine cost, and whether one is lost when a service is killed: vf-eval, rollout services, and a mock model.

``HERMES_VERIFIERS_PYTHON=PYTHON python -m benchmarks engines [ROLLOUTS] [--at-once N] [--services N] [--local] [--train]
[--kill S]``. PYTHON is that of a virtual environment with ``engines/hermes-verifiers``. ``--local`` takes hermes' terminal instead of
tools in memory, ``--train`` verifiers' training client. ``--kill S`` kills a service when half of the rollouts have ended, and starts
another in its place after S seconds; without S never. The peer is the least there is: two bare openai requests to the same model for
each rollout, as many at once, in the same run. Ends with exit code 1 if a rollout has no reward.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GROUP = 10
TOKEN = "the-token-of-this-benchmark"
ENVIRONMENT = """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import FakeSandbox, ToolSeam


class Many(TerminalTestEnv):
    async def setup(self):
        await super().setup()
        self.train_items = [{"path": f"file{number}.txt", "content": f"line {number}"} for number in range(10_000)]


class InMemory(Many):
    async def setup(self):
        await super().setup()
        self.seam = ToolSeam(FakeSandbox(allow_leftovers=True))
        self.seam.__enter__()
"""
BARE = """
import asyncio, json, resource, sys, openai

async def main(url, count, at_once, request):
    places = asyncio.Semaphore(at_once)
    async with openai.AsyncOpenAI(base_url=url, api_key="x") as client:
        async def two():
            async with places:
                for _ in range(2):
                    await client.chat.completions.create(model="m", **request)
        await client.chat.completions.create(model="m", **request)
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.gather(*(two() for _ in range(count)))
        after = resource.getrusage(resource.RUSAGE_SELF)
    print((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.load(sys.stdin)))
"""
MAIN = "from verifiers.v1.cli.eval.main import main; main()"


class Service:
    """A rollout service in a process of its own."""

    def __init__(self, folder: Path, options: argparse.Namespace, port: int = 0) -> None:
        places = -(-options.at_once // options.services)
        target = f"{folder / 'many.py'}:{'Many' if options.local else 'InMemory'}"
        words = ["serve-rollouts", target, "--port", str(port), "--concurrency", str(places), "--env.terminal_backend", "local"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest_hermes_env.cli", *words],
            stdout=subprocess.PIPE,
            stderr=(folder / "service.log").open("a"),
            text=True,
            env={**os.environ, "HERMES_ENV_TOKEN": TOKEN},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        self._idle_cpu, self.idle_mb = self._cpu(), self._megabytes("VmRSS")

    def _cpu(self) -> float:
        """Return its CPU seconds, with those of its children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def _megabytes(self, name: str) -> float:
        (line,) = (
            line for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines() if line.startswith(f"{name}:")
        )
        return int(line.split()[1]) / 1024

    def spent(self) -> tuple[float, float]:
        """Return CPU seconds since it was idle, and the most megabytes beyond those of an idle one."""
        return self._cpu() - self._idle_cpu, self._megabytes("VmHWM") - self.idle_mb

    def ended(self) -> int:
        """Return how many rollouts have ended."""
        with urllib.request.urlopen(f"{self.url}/health", timeout=60) as answer:
            return sum(json.load(answer)["rollouts"].values())

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def gold(conversation: Any) -> Any:
    """Write the file that the prompt asks for."""
    from pytest_hermes_env import call, say

    if conversation.turn:
        return say("Done.")
    path, content = conversation.first_user.split("Create the file ")[1].split(" in your")[0], conversation.first_user
    return call("write_file", path=path, content=content.split("at the end:\n")[1])


@contextlib.contextmanager
def training_model(folder: Path) -> Iterator[str]:
    """Yield the address of a model server of token ids, that of the tests."""
    from pytest_hermes_env.inference import build_tokenizer
    from pytest_hermes_env.inference.server_thread import ServerThread

    sampler = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "engines" / "sampler.py"))["Sampler"]
    server = ServerThread(sampler(build_tokenizer(folder / "policy", template="qwen3")).app(), "127.0.0.1", 0)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/v1"
    finally:
        server.stop()


def evaluate(
    options: argparse.Namespace, folder: Path, services: list[Service], endpoint: str
) -> tuple[list[Any], float, float]:
    """Run vf-eval, and kill a service meanwhile where that is asked. Returns its episodes, CPU seconds, and most megabytes."""
    flags = ["-m", "mock-model", "-n", str(options.rollouts // GROUP), "-r", str(GROUP), "-c", str(options.at_once)]
    flags += ["--env.taskset.num-tasks", str(options.rollouts // GROUP), "--no-push", "--no-rich", "--run.name", "run"]
    flags += ["--client.base-url", endpoint, "--client.api-key-var", "POLICY_KEY"]
    if options.train:
        flags += ["--client.type", "train", "--client.renderer-model-name", str(folder / "policy")]
        flags += ["--client.renderer.name", "qwen3", "--client.renderer.enable-thinking", "false"]
    more = {
        "HERMES_ENV_SERVICES": ",".join(service.url for service in services),
        "HERMES_ENV_TOKEN": TOKEN,
        "POLICY_KEY": "none",
    }
    traces = folder / "outputs" / "run" / "traces.jsonl"
    with (folder / "engine.log").open("w") as log:
        engine = subprocess.Popen(
            [os.environ["HERMES_VERIFIERS_PYTHON"], "-c", MAIN, "hermes-env", *flags],
            cwd=folder,
            stdout=log,
            stderr=log,
            env=os.environ | more,
        )
        if options.kill is not None:
            threading.Thread(target=kill_one, args=(options, folder, services), daemon=True).start()
        _, status, used = os.wait4(engine.pid, 0)
    if status:
        sys.exit((folder / "engine.log").read_text()[-5000:])
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    return episodes, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def kill_one(options: argparse.Namespace, folder: Path, services: list[Service]) -> None:
    """Kill the first service when half of the rollouts have ended, and start it again later where that is asked."""
    while sum(service.ended() for service in services) < options.rollouts // 2:
        time.sleep(0.5)
    services[0].end()
    if options.kill >= 0:
        time.sleep(options.kill)
        services[0] = Service(folder, options, int(services[0].url.rpartition(":")[2]))


def told(options: argparse.Namespace, episodes: list[Any], wall: float) -> tuple[list[str], int]:
    """Return what became of the rollouts, and how many are lost."""
    traces = [episode["traces"][-1] for episode in episodes]
    lost = options.rollouts - sum((trace["rewards"].get("reward") or {}).get("score") == 1.0 for trace in traces)
    errors = [error for trace in traces for error in trace["errors"]]
    groups: dict[int, list[float]] = {}
    for trace in traces:
        groups.setdefault(trace["task"]["data"]["idx"], []).append(trace["timing"]["scoring"]["end"])
    spreads = sorted(max(ends) - min(ends) for ends in groups.values())
    lines = [
        f"{len(traces)} rollouts, {options.at_once} at once, {options.services} services, "
        f"{'hermes terminal' if options.local else 'in memory'}, {'training' if options.train else 'evaluation'} client",
        f"lost: {lost}; errors, of which a rollout began again: {len(errors)}",
        *sorted({f"  {error['type']}: {error['message'][:100]}" for error in errors})[:5],
        f"from the first to the last of a group of {GROUP}: median {spreads[len(spreads) // 2]:.1f} s, most {spreads[-1]:.1f} s of {wall:.0f} s",
    ]
    return lines, lost


def bare(endpoint: str, options: argparse.Namespace) -> float:
    """Return CPU seconds of two bare openai requests, with the tools of the environment."""
    import model_tools

    tools = model_tools.get_tool_definitions(enabled_toolsets=["terminal", "file"], quiet_mode=True)
    prompt = "Create the file a.txt in your working directory, without a newline at the end:\na"
    request = {"messages": [{"role": "user", "content": prompt}], "tools": tools}
    words = [sys.executable, "-c", BARE, endpoint, str(min(200, options.rollouts)), str(options.at_once)]
    return float(subprocess.run(words, input=json.dumps(request), check=True, capture_output=True, text=True).stdout)


def main(words: list[str]) -> int:
    """Play, and print figures in CPU time beside the peer's."""
    from pytest_hermes_env import MockServer

    parser = argparse.ArgumentParser(prog="python -m benchmarks engines", description=__doc__)
    parser.add_argument("rollouts", nargs="?", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=100, metavar="N")
    parser.add_argument("--services", type=int, default=2, metavar="N")
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--kill", nargs="?", type=float, const=-1.0, metavar="S")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="hermes-env-engines-") as name, MockServer(gold, allow_leftovers=True) as model:
        folder = Path(name)
        (folder / "many.py").write_text(ENVIRONMENT)
        peer = bare(model.base_url, options)
        services = [Service(folder, options) for _ in range(options.services)]
        try:
            before, started = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
            with training_model(folder) if options.train else contextlib.nullcontext(model.base_url) as endpoint:
                episodes, engine, engine_mb = evaluate(options, folder, services, endpoint)
            wall = time.monotonic() - started
            alive = [service for service in services if service.process.poll() is None]
            spent = [service.spent() for service in alive]
        finally:
            for service in services:
                service.end()
        after = resource.getrusage(resource.RUSAGE_SELF)
    lines, lost = told(options, episodes, wall)
    cpu = sum(one for one, _ in spent)
    print("\n".join(lines))
    print(
        f"services: {cpu:.1f} s CPU, idle {services[0].idle_mb:.0f} MB, most beyond it {', '.join(f'{mb:.0f}' for _, mb in spent)} MB"
    )
    if options.kill is None:
        each = cpu / options.rollouts
        print(
            f"a rollout in a service: {each * 1000:.1f} ms CPU; two bare requests: {peer * 1000:.1f}; ratio {each / peer:.2f}"
        )
    print(
        f"engine: {engine:.1f} s CPU with its start, most {engine_mb:.0f} MB; {engine / options.rollouts * 1000:.1f} ms for each rollout"
    )
    model_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"mock model and benchmark: {model_cpu:.1f} s CPU; load {os.getloadavg()[0]:.0f}, {os.cpu_count()} processors",
        flush=True,
    )
    return int(lost > 0)

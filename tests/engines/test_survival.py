"""Rollout services that die, restart, lose their network, are slow, or are not the same: no rollout is lost, and none counts twice."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_hermes_env.inference import MockServer

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"


def test_a_service_that_is_killed_loses_no_rollout_and_none_counts_twice(
    start, episodes, results_of, gold, held, until, tmp_path
):
    """A lost rollout begins again in a trace of its own, whose only branch is that of the second attempt."""
    services = [start(held), start(held)]

    with MockServer(gold) as server:
        process = episodes(services, endpoint=server.base_url, tasks=5, episodes=8)
        until(lambda: server.request_count == 16)
        loads = [service.load() for service in services]
        services[0].process.kill()
        services[0].process.wait()
        (tmp_path / "go").touch()
        results = results_of(process)

    again = [result for result in results if result["errors"]]
    assert loads == [4, 4]
    assert [(result["reward"], result["ok"], len(result["branches"])) for result in results] == [(1.0, True, 1)] * 8
    assert len(again) == 4
    assert all("ServiceLost: " in text and services[0].url in text for result in again for _, text in result["errors"])
    assert services[1].counts() == {"finished": 8}


def test_the_only_service_is_killed_and_waited_for(start, episodes, results_of, gold, held, until, tmp_path):
    service = start(held)

    with MockServer(gold) as server:
        process = episodes([service], endpoint=server.base_url, tasks=3, episodes=6)
        until(lambda: server.request_count == 12)
        service.process.kill()
        service.process.wait()
        (tmp_path / "go").touch()
        restarted = start(held, port=int(service.url.rsplit(":", 1)[1]))
        results = results_of(process)

    assert [(result["reward"], result["ok"]) for result in results] == [(1.0, True)] * 6
    assert restarted.counts() == {"finished": 6}


def test_the_training_client_has_the_tokens_of_the_second_attempt_alone(
    start, episodes, results_of, training, held, until, tmp_path
):
    service = start(held)
    sampler, plan = training

    process = episodes([service], tasks=3, episodes=3, **plan)
    until(lambda: len(sampler.turns) == 6)
    service.process.kill()
    service.process.wait()
    (tmp_path / "go").touch()
    restarted = start(held, port=int(service.url.rsplit(":", 1)[1]))
    results = results_of(process)

    last_turns = {tuple(prompt + tokens) for prompt, tokens, _ in sampler.turns[6:]}
    assert [(result["reward"], result["ok"], len(result["branches"])) for result in results] == [(1.0, True, 1)] * 3
    assert {tuple(result["branches"][0]["token_ids"]) for result in results} <= last_turns
    assert len(sampler.turns) == 12
    assert restarted.counts() == {"finished": 3}


def test_a_full_service_is_waited_for_and_groups_finish_first_where_that_is_asked(start, episodes, results_of, gold):
    """Rollouts arrive item by item in turn; two places finish one item after the other."""
    service = start(TARGET, "--concurrency", "2", "--queue", "0")

    with MockServer(gold) as server:
        plan = {"endpoint": server.base_url, "tasks": 4, "episodes": 16, "harness": {"groups": "finish"}}
        results = results_of(episodes([service], **plan))

    order = [result["task"] for result in results]
    ends = [len(order) - order[::-1].index(task) for task in dict.fromkeys(order)]
    assert [result["reward"] for result in results] == [1.0] * 16
    assert ends[0] <= 9, order  # two groups of four at most had begun
    assert service.counts() == {"finished": 16}


# ---------------------------------------------------------------------- the network between


class Wire:
    """A port that leads to a service, until it is cut."""

    def __init__(self, url: str) -> None:
        self._target = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.requests: list[int] = []
        """Of each connection."""
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._ends += [near, far]
            self.requests.append(0)
            for one, other, place in ((near, far, len(self.requests) - 1), (far, near, None)):
                threading.Thread(target=self._pass, args=(one, other, place), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, place: int | None) -> None:
        try:
            while data := one.recv(65536):
                if place is not None:
                    self.requests[place] += data.count(b" HTTP/1.1\r\n")
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            end.close()

    def cut(self) -> None:
        """Break every connection that is open now."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Refuse new connections, too."""
        self._listener.close()
        self.cut()


@pytest.fixture
def wire() -> Iterator[Any]:
    """``wire(service)`` is a `Wire` to it."""
    made: list[Wire] = []

    def connect(service: Any) -> Wire:
        made.append(Wire(service.url))
        return made[-1]

    yield connect
    for one in made:
        one.close()


def test_connections_that_break_are_asked_again_and_the_error_has_a_text(
    start, episodes, results_of, gold, held, until, tmp_path, wire
):
    service = start(held)
    between = wire(service)

    with MockServer(gold) as server:
        process = episodes([between], endpoint=server.base_url, tasks=2, episodes=4)
        until(lambda: server.request_count == 8)
        between.cut()
        (tmp_path / "go").touch()
        results = results_of(process)

    assert [(result["reward"], result["ok"]) for result in results] == [(1.0, True)] * 4
    errors = [text for result in results for _, text in result["errors"]]
    assert len(errors) == 4
    assert set(between.requests) == {1}  # one that is kept may be closed under the next request: httpcore 1.0
    assert all(re.search(rf"ServiceLost: {between.url}: \S.* \(\w+\)", text) for text in errors), errors


def test_a_service_that_is_stuck_keeps_its_rollouts(start, episodes, results_of, gold, held, until, tmp_path):
    """One that does not answer for seconds is busy, and not dead."""
    service = start(held)

    with MockServer(gold) as server:
        plan = {"endpoint": server.base_url, "tasks": 2, "episodes": 4, "harness": {"health_timeout": 0.5}}
        process = episodes([service], **plan)
        until(lambda: server.request_count == 8)
        service.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(httpx.ReadTimeout):  # for longer than the health's timeout
                httpx.get(f"{service.url}/health", timeout=3, trust_env=False)
        finally:
            service.process.send_signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        results = results_of(process)

    assert [(result["reward"], result["errors"]) for result in results] == [(1.0, [])] * 4
    assert service.counts() == {"finished": 4}


# ---------------------------------------------------------------------- which services


MAIN = "from verifiers.v1.cli.eval.main import main; main()"
EVAL = ["-c", MAIN, "hermes-env", "-m", "mock-model", "--no-push", "--no-rich", "--run.name", "run", "-n", "2", "-r", "4"]


def test_services_of_two_versions_are_refused_by_name(start, verifiers, tmp_path, held):
    other = tmp_path / "later"
    other.mkdir()
    (other / "held.py").write_text((tmp_path / "held.py").read_text() + "\n# a later version\n")
    services = [start(held), start(f"{other / 'held.py'}:Held")]

    process = verifiers(*EVAL, "--client.base-url", "http://127.0.0.1:9/v1", services=services)
    out, _ = process.communicate(timeout=120)

    assert process.returncode == 1
    assert "Traceback" not in out
    assert "hermes-env has no tasks: the rollout services are not of one environment: " in out
    assert all(service.url in out for service in services)
    assert "it serves Held " in out


def test_nobody_listens_is_two_lines(verifiers):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

    process = verifiers(*EVAL, "--env.taskset.wait", "1", services=[url])
    out, _ = process.communicate(timeout=120)

    last = out.rstrip().splitlines()[-2:]
    assert process.returncode == 1
    assert "Traceback" not in out
    assert last[0].startswith(
        f"hermes-env has no tasks: no rollout service takes rollouts for 1 seconds: {url}: nobody listens"
    )
    assert last[1].startswith("Start a service with `hermes-env serve-rollouts TARGET`")


def test_an_evaluation_that_was_killed_is_resumed_with_what_is_missing(start, verifiers, held, gold, until, tmp_path):
    """Rollouts that have ended are kept, and each is there once."""
    service = start(held, "--concurrency", "3")
    traces = tmp_path / "outputs" / "run" / "traces.jsonl"

    with MockServer(gold) as server:
        more = ["--client.base-url", server.base_url, "--client.api-key-var", "POLICY_KEY"]
        process = verifiers(*EVAL, *more, services=[service])
        until(lambda: service.load() == 3)
        (tmp_path / "go").touch()
        until(lambda: traces.exists() and traces.read_text().count("\n") >= 3)
        (tmp_path / "go").unlink()
        process.kill()
        process.communicate()
        kept = {json.loads(line)["id"] for line in traces.read_text().splitlines()}
        until(lambda: service.load() == 0)
        (tmp_path / "go").touch()
        resumed = verifiers(*EVAL, *more, "--resume", services=[service])
        out, _ = resumed.communicate(timeout=300)

    assert resumed.returncode == 0, out[-3000:]
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    assert len(episodes) == 8
    assert kept <= {episode["id"] for episode in episodes}
    assert [episode["traces"][0]["rewards"]["reward"]["score"] for episode in episodes] == [1.0] * 8


def test_the_protocol_of_the_package_is_that_of_the_service():
    """The two are installed apart, and the number is written in both."""
    from environments.service.identity import PROTOCOL

    text = (Path(__file__).parents[2] / "engines/hermes-verifiers/hermes_env/protocol.py").read_text(encoding="utf-8")

    assert f"\nPROTOCOL = {PROTOCOL}\n" in text

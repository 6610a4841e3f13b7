"""The trainer double against run-api's endpoints, answered by a few lines of our own."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from pytest_hermes_env.atropos.trainer import Trainer, main
from pytest_hermes_env.errors import BadBatch, NoBatch

STATUS = {"current_step": 0, "queue_size": 1}
GROUP = {
    "tokens": [[1, 2, 3]],
    "masks": [[-100, 2, 3]],
    "scores": [0.5],
    "inference_logprobs": [[1.0, -0.5, -0.25]],
    "overrides": None,
}


class Api:
    """Answers ``GET /batch`` with the given batches, then with none; ``asked`` has all requests."""

    def __init__(self, batches: list[Any], *, broken: bool = False) -> None:
        self.asked: list[tuple[str, Any]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                api.asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.answer({"uuid": 1})

            def do_GET(self) -> None:
                api.asked.append((self.path, None))
                self.answer(STATUS if self.path == "/status" else {"batch": batches.pop(0) if batches else None})

            def answer(self, body: Any) -> None:
                self.send_response(500 if broken else 200)
                self.end_headers()
                self.wfile.write(b"out of order" if broken else json.dumps(body).encode())

            def log_message(self, *args: Any) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def api_with() -> Iterator[Callable[..., Api]]:
    """``api_with(batches)``: an API that is stopped after the test."""
    started: list[Api] = []

    def start(*batches: Any, broken: bool = False) -> Api:
        started.append(Api(list(batches), broken=broken))
        return started[-1]

    yield start
    for api in started:
        api.stop()


def test_trainer_registers_before_it_asks(api_with):
    """It registers with its sizes, asks once, which lets environments in, and then pulls one batch per step."""
    api = api_with(None, None, [GROUP], [GROUP])

    steps = list(Trainer(f"{api.url}/", steps=2, batch_size=1, max_token_len=4).train())

    registration = {
        "wandb_group": "trainer-double",
        "wandb_project": "trainer-double",
        "batch_size": 1,
        "max_token_len": 4,
        "checkpoint_dir": "",
        "save_checkpoint_interval": -1,
        "starting_step": 0,
        "num_steps": 2,
    }
    assert api.asked == [("/register", registration), *[("/batch", None)] * 4]
    assert [(step.number, step.batch, step.rows[0].tokens) for step in steps] == [(n, [GROUP], (1, 2, 3)) for n in (1, 2)]


def test_bad_batch_names_its_step(api_with):
    """The steps before it were given; the message says which step it was."""
    api = api_with(None, [GROUP], [{**GROUP, "masks": [[2, 3, -100]]}])
    steps = Trainer(api.url, steps=2, batch_size=1).train()

    assert next(steps).number == 1
    with pytest.raises(BadBatch) as caught:
        next(steps)
    assert str(caught.value) == (
        "step 2 of 2: a batch cannot be trained on: 2 faults.\n"
        "  group 0, sequence 0: the label at 0 is 2; expected -100 or the token id 1\n"
        "  group 0, sequence 0: the logprob at 0 is 1.0 although the token is trained; expected at most 0"
    )


def test_waiting_for_a_batch_ends(api_with):
    """The message says what was waited for, what run-api has, and where to look."""
    api = api_with()

    with pytest.raises(NoBatch) as caught:
        list(Trainer(api.url, steps=3, batch_size=8, max_token_len=100, timeout_s=0).train())
    assert str(caught.value) == (
        f"no batch came within 0 s, for step 1 of 3 at {api.url}.\n"
        "  expected  groups of an environment that add up to 8 sequences\n"
        '  seen      {"current_step": 0, "queue_size": 1}\n'
        "  fix       read what `serve` printed: it drops groups whose scores are all the same "
        "(--env.ensure_scores_are_not_same false), and groups with a sequence of 100 tokens or more"
    )


def test_run_api_that_is_not_there_is_named():
    """Nothing answers: the message has the command that starts it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with pytest.raises(NoBatch) as caught:
        Trainer(f"http://127.0.0.1:{port}", steps=1, batch_size=1, timeout_s=0).register()
    assert str(caught.value) == (
        f"no run-api answers at http://127.0.0.1:{port}: Connection refused, for 0 s.\n"
        f"  fix       start it: run-api --host 127.0.0.1 --port {port}"
    )


def test_error_of_run_api_is_told(api_with):
    """An answer that is an error ends the run with its text."""
    api = api_with(broken=True)

    with pytest.raises(NoBatch) as caught:
        Trainer(api.url, steps=1, batch_size=1).register()
    assert str(caught.value) == (
        f"POST {api.url}/register was answered with 500: out of order\n"
        "  expected  JSON of run-api, with status 200\n"
        "  fix       look at what listens there, and at what run-api printed"
    )


def test_command_prints_a_line_per_step_and_saves_batches(api_with, tmp_path, capsys):
    """The lines say what a person looks at; the file holds what came."""
    chat = {**GROUP, "inference_logprobs": None, "overrides": [{"placeholder_tokens": True}], "scores": [1]}
    api = api_with(None, [GROUP, chat])
    saved = tmp_path / "batches.jsonl"

    code = main(f"--url {api.url} --steps 1 --batch-size 2 --placeholders --save {saved}".split())

    assert (code, capsys.readouterr().out) == (
        0,
        "step 1 of 1: 2 sequences in 2 groups, 6 tokens, 4 of them trained (placeholders), scores 0.5 to 1\n",
    )
    assert [json.loads(line) for line in saved.read_text().splitlines()] == [[GROUP, chat]]


def test_command_ends_with_1_on_a_bad_batch(api_with, capsys):
    """No traceback: the error's class and text."""
    api = api_with(None, [GROUP])

    code = main(f"--url {api.url} --steps 1 --batch-size 2".split())

    assert (code, capsys.readouterr().err) == (
        1,
        "BadBatch: step 1 of 1: a batch cannot be trained on: 1 fault.\n"
        "  the batch: 1 sequences, but the trainer registered for 2\n",
    )

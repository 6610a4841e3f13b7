"""Three training steps as real processes: run-api, ``serve`` of TerminalTestEnv, and a trainer that checks every batch.

The mock model runs in the test, because its journal has the tokens that it returned, and their logprobs.
"""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from environments.terminal_test_env.terminal_test_env import TASKS
from pytest_hermes_env.atropos.batch import Row, check_batch
from pytest_hermes_env.atropos.run_api import RunApiThread
from pytest_hermes_env.atropos.trainer import Trainer
from pytest_hermes_env.inference import MockServer, call, say, think, turn

STEPS, BATCH, GROUP = 3, 4, 2
ROLLOUTS = (STEPS + 1) * BATCH
"""`serve` ends when one batch more than the trainer's steps is waiting."""

SIZES = {"steps": STEPS, "batch_size": BATCH, "max_token_len": 16384}
SECOND = {"max_token_length": 1, "desired_name": "terminal-test", "weight": 1.0, "group_size": 1}
"""A second environment under the name of the class: it gets the number 1, because the first has 0."""

TURNS = 3
MESSAGES = ("--env.trainer_reads", "messages")
WAITS = "Waiting to register the env"
OTHER_KEY = "hf_fakeABCDEFGHIJKLMNOPQRST"

SERVE = (
    f"--env.group_size {GROUP} --env.total_steps -1 --env.max_num_workers 1 "  # one group at a time, to keep their order
    "--env.max_token_length 1024 --openai.timeout 30"
)


def policy() -> Callable[[Any], Any]:
    """Three turns with the rollout's number: even rollouts solve the task, odd ones do not."""
    rollouts = itertools.count()

    def speak(conversation: Any) -> Any:
        if conversation.turn == 0:
            number = next(rollouts)
            echo = call("terminal", command=f"echo rollout {number}")
            return turn(think(f"I am rollout {number}."), echo, call("terminal", command="pwd"))
        number = number_in(json.dumps(conversation.messages))
        if conversation.turn == 2:
            return turn(think(f"That was rollout {number}."), say("Done."))
        task = next(task for task in TASKS if f"file {task['path']} " in conversation.first_user)
        content = "none of it" if number % 2 else task["content"]
        return turn(think(f"Now rollout {number} writes."), call("write_file", path=task["path"], content=content))

    return speak


def number_in(text: str) -> int:
    found = re.search(r"rollout (\d+)", text)
    assert found is not None, text
    return int(found[1])


def said(server: MockServer) -> dict[int, list[Any]]:
    """The turns that the mock returned, in order, by the number of their rollout."""
    turns: dict[int, list[Any]] = {}
    for exchange in server.journal:
        if exchange.conversation is not None:
            turns.setdefault(number_in(exchange.said), []).append(exchange)
    return turns


def expected_row(number: int, turns: list[Any]) -> tuple[Any, ...]:
    """Tokens, masks, logprobs and score of a rollout, computed from the traffic of the mock."""
    spans = [span_of(exchange) for exchange in turns]
    prompt, ids, _ = spans[-1]
    tokens = [*prompt, *ids]
    masks, logprobs = [-100] * len(tokens), [1.0] * len(tokens)
    for prompt, ids, given in spans:
        masks[len(prompt) : len(prompt) + len(ids)] = ids
        logprobs[len(prompt) : len(prompt) + len(ids)] = given
    return tuple(tokens), tuple(masks), tuple(logprobs), float(number % 2 == 0)


def span_of(exchange: Any) -> tuple[list[int], list[int], list[float]]:
    """The prompt's ids, and the ids and logprobs that were sampled after it."""
    request, response = exchange.request, exchange.response
    if "input_ids" in request:
        triples = response["meta_info"]["output_token_logprobs"]
        return request["input_ids"], response["output_ids"], [logprob for logprob, _, _ in triples]
    logprobs = [next(iter(place[0].values())) for place in response["logprobs"][0]]
    return request["prompt"]["prompt_token_ids"], response["token_ids"][0], logprobs


def seen_row(row: Row) -> tuple[Any, ...]:
    return row.tokens, row.masks, row.logprobs, row.score


@pytest.fixture
def environ(environ: dict[str, str], home: Path) -> dict[str, str]:
    """The variables that libraries read contain keys; openai and Atropos log at the highest level; temporary files are visible."""
    (home / "tmp").mkdir()
    key = environ["OPENROUTER_API_KEY"]
    keys = {"OPENAI_API_KEY": key, "WANDB_API_KEY": key, "HF_TOKEN": OTHER_KEY}
    return environ | keys | {"OPENAI_LOG": "debug", "TMPDIR": str(home / "tmp")}


@pytest.fixture
def start(home: Path, environ: dict[str, str], python_with_layer: str) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """``start(name, words)``: a process whose output is the file ``name`` in home; ended after the test if it still runs."""
    processes = []

    def begin(name: str, words: list[str]) -> subprocess.Popen[bytes]:
        with (home / name).open("wb") as output:
            words = [python_with_layer, *words[1:]]
            process = subprocess.Popen(words, cwd=home, env=environ, stdout=output, stderr=subprocess.STDOUT)
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def train(start: Any, command: Any, home: Path, environ: dict[str, str], key: str) -> Callable[..., list[Any]]:
    """``train(mock, *flags, placeholders=False)``: all batches of a run in which every process ended by itself, with 0."""

    def run(mock: MockServer, *flags: str, placeholders: bool = False) -> list[Any]:
        with RunApiThread() as api:
            sizes = [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items()]
            sizes += ["--placeholders"] if placeholders else []
            trainer = start(
                "trainer.txt",
                [
                    sys.executable,
                    "-m",
                    "pytest_hermes_env.atropos.trainer",
                    "--url",
                    api.url,
                    "--save",
                    "batches.jsonl",
                    *sizes,
                ],
            )
            words = ["--env.rollout_server_url", api.url, *SERVE.split(), "--openai.api_key", key, *flags]
            serve = start("serve.txt", command("serve", *words, server=mock))
            codes = {"trainer": trainer.wait(240)}
            codes["serve"] = serve.wait(60) if codes["trainer"] == 0 else None
            output = "\n".join((home / name).read_text() for name in ("trainer.txt", "serve.txt"))
            assert codes == {"trainer": 0, "serve": 0}, output
            left = Trainer(api.url, **SIZES).pull(STEPS + 1)
            assert httpx.post(f"{api.url}/register-env", json=SECOND).json()["wandb_name"] == "terminal-test_1"
        assert [word for word in ("Traceback (most", "never retrieved", "Unclosed", "was destroyed") if word in output] == []
        assert list((home / "tmp").iterdir()) == []
        return [*map(json.loads, (home / "batches.jsonl").read_text().splitlines()), left]

    return run


def told(home: Path) -> dict[str, str]:
    """Everything that the processes printed or wrote."""
    return {str(path.relative_to(home)): path.read_text(errors="replace") for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
def test_three_steps_train_every_token_that_was_sampled(server_type, train, home, key, hermes_tokenizer):
    """Each turn of each rollout arrives once, with the ids and logprobs that the server returned; no key is leaked."""
    flags = ["--openai.server_type", server_type, "--openai.tokenizer_name", hermes_tokenizer]
    with MockServer(policy(), template="chatml") as mock:
        batches = train(mock, *flags)

    rows = [row for batch in batches for row in check_batch(batch, batch_size=BATCH, max_token_len=16384)]
    turns = said(mock)
    assert sorted(map(seen_row, rows)) == sorted(expected_row(number, turns[number]) for number in range(ROLLOUTS))
    assert {number: len(turns[number]) for number in range(ROLLOUTS)} == dict.fromkeys(range(ROLLOUTS), TURNS)
    assert [name for name, text in told(home).items() if key[:12] in text or OTHER_KEY in text] == []
    mock.verify()


def test_three_steps_in_chat_mode(train, home, key):
    """Whole conversations arrive with their scores; their tokens are marked as placeholders; no key is leaked."""
    with MockServer(policy()) as mock:
        batches = train(mock, *MESSAGES, placeholders=True)

    sizes = {"batch_size": BATCH, "max_token_len": 16384}
    rows = [row for batch in batches for row in check_batch(batch, **sizes, allow_placeholders=True)]
    conversations = [messages for batch in batches for group in batch for messages in group["messages"]]
    seen = sorted(
        (number_in(json.dumps(messages)), [message["role"] for message in messages], row.score)
        for messages, row in zip(conversations, rows, strict=True)
    )
    roles = ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert seen == [(number, roles, float(number % 2 == 0)) for number in range(ROLLOUTS)]
    assert [row.has_placeholders for row in rows] == [True] * ROLLOUTS
    assert [name for name, text in told(home).items() if key[:12] in text or OTHER_KEY in text] == []
    mock.verify()


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """Restore Ctrl-C: a process that a shell started in the background ignores it, and so would its children."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("heeded_interrupts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_serve_that_waits_for_a_trainer_can_be_stopped(number, start, command, home, environ):
    """It ends immediately, with the code of the signal and without a traceback."""
    with MockServer(policy()) as mock, RunApiThread() as api:
        serve = start("serve.txt", command("serve", "--env.rollout_server_url", api.url, *MESSAGES, server=mock))
        end = time.monotonic() + 240
        while WAITS not in (home / "serve.txt").read_text() and serve.poll() is None and time.monotonic() < end:
            time.sleep(0.05)  # another process's start has no event to wait for
        serve.send_signal(number)
        code = serve.wait(30)

    output = (home / "serve.txt").read_text()
    assert (code, "Traceback (most" in output) == (128 + number, False), output


def test_serve_that_is_at_work_can_be_stopped(start, command, home):
    """It ends with the code of the signal, and leaves no sandbox's directory behind."""
    with MockServer(policy()) as mock, RunApiThread() as api:
        trainer = Trainer(api.url, **SIZES, allow_placeholders=True)
        trainer.register()
        flags = SERVE.replace("--env.total_steps -1 ", "").split()
        serve = start("serve.txt", command("serve", "--env.rollout_server_url", api.url, *MESSAGES, *flags, server=mock))
        trainer.pull()
        serve.terminate()
        code = serve.wait(60)

    output = (home / "serve.txt").read_text()
    assert (code, "KeyboardInterrupt" in output, list((home / "tmp").iterdir())) == (128 + signal.SIGTERM, False, []), output

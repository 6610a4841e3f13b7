"""``serve`` on model servers that answer, that cannot serve, and that go: what it says, and with which code it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.atropos.run_api import RunApiThread
from pytest_hermes_env.atropos.trainer import Trainer
from pytest_hermes_env.inference import MockServer, fail
from tests.reference.servers import MODEL, Reference, serving

PLAN = [
    '<tool_call>\n{"name": "terminal", "arguments": {"command": "pwd"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "terminal", "arguments": {"command": "echo two"}}\n</tool_call>',
    "Done.",
]


@pytest.fixture
def served(hermes_tokenizer: str) -> Callable[..., Reference]:
    """A reference server of a shape, with the tokenizer of the command."""
    return lambda shape, **settings: Reference(shape=shape, tokenizer_dir=hermes_tokenizer, plan=PLAN, **settings)


def flags_of(url: str, tokenizer: str, server_type: str = "vllm", model: str = MODEL) -> list[str]:
    return [
        *("--openai.server_type", server_type, "--openai.base_url", url, "--openai.model_name", model),
        *("--openai.tokenizer_name", tokenizer, "--openai.api_key", "sk-wrong-0123456789"),
    ]


def test_chat_mode_is_refused(run_here, command, hermes_tokenizer):
    """With all ways out, at once: no server is asked."""
    with MockServer() as mock:
        ended = run_here(command("serve", server=mock))

    assert (ended.returncode, mock.request_count) == (2, 0)
    assert ended.stderr.endswith(
        "serve would send placeholder tokens, on which nobody can train: the model server is asked for chat completions.\n"
        "  expected  a server that returns the ids and logprobs of the tokens that it samples\n"
        f"  seen      --openai.server_type openai, at {mock.base_url}\n"
        "  fix       --openai.server_type vllm (`vllm serve` as it is) or sglang, with --env.tokenizer_name of the served model\n"
        "            or --env.trainer_reads messages, if the trainer encodes the messages itself\n"
        "            or `process`, which writes groups to a file, or `evaluate`: neither sends tokens\n"
    )


@pytest.mark.parametrize(
    ("settings", "more", "seen"),
    [
        ({"key": "the right key"}, [], "401 Unauthorized"),
        ({}, ["--openai.model_name", "other"], f"with a model that it serves: {MODEL}"),
        ({"gives_ids": False}, [], "without its token_ids"),
        ({"logprobs": "raw"}, ["--env.agent_temperature", "0.7"], "start it with --logprobs-mode processed_logprobs"),
    ],
    ids=["key", "model", "no ids", "raw"],
)
def test_server_that_cannot_serve_ends_it(run, served, hermes_tokenizer, settings, more, seen):
    """Before it waits for a trainer: one, the cause and the fix, without a traceback and without the key."""
    with serving(served("vllm", **settings)) as url:
        ended = run("serve", *flags_of(url, hermes_tokenizer), *more)

    text = ended.stdout + ended.stderr
    assert (ended.returncode, seen in text, "Traceback" in text, "sk-wrong" in text) == (1, True, False, False), text


def test_evaluate_goes_on(run, served, hermes_tokenizer):
    """Nothing is trained: raw logprobs are a warning."""
    with serving(served("vllm", logprobs="raw")) as url:
        ended = run(
            "evaluate", *flags_of(url, hermes_tokenizer), "--env.agent_temperature", "0.7", "--env.rollout_retries", "0"
        )

    assert "this mode trains nothing" in ended.stdout + ended.stderr
    assert "No rollout" not in ended.stderr


def test_model_that_never_answers_ends_it(run_words, command, home, hermes_tokenizer):
    """Chat servers are not asked before: the first group shows the cause."""
    with MockServer([fail(401, "Incorrect API key provided")]) as mock, RunApiThread() as api:
        Trainer(api.url, steps=1, batch_size=2, max_token_len=16384).register()
        ended = run_words(
            command(
                "serve",
                *("--env.rollout_server_url", api.url, "--env.trainer_reads", "messages", "--env.group_size", "2"),
                *("--env.rollout_retries", "0"),
                server=mock,
            )
        )

    _, told, after = ended.stderr.partition(" failed without one reply of the model")
    assert (ended.returncode, bool(told), "Traceback" in after) == (1, True, False), ended.stderr
    assert "Incorrect API key provided" in ended.stderr


@pytest.mark.parametrize("shape", ["vllm", "sglang"])
def test_three_steps_on_a_server_that_is_restarted(run_words, command, served, hermes_tokenizer, shape, home: Path):
    """The trainer checks every batch; what was asked while the server was down is asked again."""
    reference = served(shape)
    batches: list[Any] = []

    with RunApiThread() as api:
        trainer = Trainer(api.url, steps=3, batch_size=4, max_token_len=16384)

        def train() -> None:
            with serving(reference) as url:
                address.append(url)
                is_up.set()
                trainer.register()
                batches.append(trainer.pull(1))
            with serving(reference, int(url.split(":")[2].split("/")[0])):
                batches.extend(trainer.pull(step) for step in (2, 3))
                trainer.pull(4)
                ended.wait(60)

        address: list[str] = []
        is_up, ended = threading.Event(), threading.Event()
        thread = threading.Thread(target=train, daemon=True)
        thread.start()
        is_up.wait(60)
        words = command(
            "serve",
            *flags_of(address[0], hermes_tokenizer, server_type=shape),
            *("--env.rollout_server_url", api.url, "--env.group_size", "2", "--env.total_steps", "-1"),
            *("--env.max_num_workers", "2", "--env.ensure_scores_are_not_same", "false", "--env.agent_temperature", "0.7"),
        )
        finished = run_words(words)
        ended.set()
        thread.join(60)

    assert (finished.returncode, len(batches)) == (0, 3), finished.stdout + finished.stderr

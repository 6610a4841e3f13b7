"""verifiers' env server over TCP with rollout services behind it: load, exact tokens, cancellation."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tokenizers import Tokenizer

from pytest_hermes_env.inference import MockServer, build_tokenizer
from pytest_hermes_env.inference.server_thread import ServerThread

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"


def test_twenty_episodes_use_both_services(start, episodes, results_of, gold):
    services = [start(TARGET, "--concurrency", "4"), start(TARGET, "--concurrency", "4")]

    with MockServer(gold) as server:
        results = results_of(episodes(services, endpoint=server.base_url, tasks=5, episodes=20))

    counts = [service.counts() for service in services]
    assert [(result["reward"], result["errors"]) for result in results] == [(1.0, [])] * 20
    assert sum(count["finished"] for count in counts) == 20
    assert all(count["finished"] >= 8 for count in counts), counts
    assert [service.open_sandboxes() for service in services] == [[], []]


# ---------------------------------------------------------------------- tokens


class Sampler:
    """vLLM's ``/inference/v1/generate``: samples a byte at a time, so that no tokenizer would return the same tokens."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
        self._end = self._tokenizer.token_to_id("<|im_end|>")
        self._numbers = itertools.count(1)
        self.turns: list[tuple[list[int], list[int], list[float]]] = []
        """(prompt, sampled, logprobs) of each request."""

    def generate(self, prompt: list[int]) -> tuple[list[int], list[float]]:
        """Return the sampled tokens and their logprobs."""
        text = self._tokenizer.decode(prompt, skip_special_tokens=False)
        path = text.split("Create the file ")[1].split(" in your")[0]
        content = text.split("at the end:\n")[1].split("<|im_end|>")[0]
        if "<tool_response>" in text:
            said = self.bytes_of("The file  is there.")
        else:
            arguments = json.dumps({"name": "write_file", "arguments": {"path": path, "content": content}})
            opened, closed = (self._tokenizer.token_to_id(name) for name in ("<tool_call>", "</tool_call>"))
            said = [opened, *self.bytes_of(f"\n{arguments}\n"), closed]
        tokens = [*said, self._end]
        logprobs = [-next(self._numbers) / 1000 for _ in tokens]
        self.turns.append((prompt, tokens, logprobs))
        return tokens, logprobs

    def bytes_of(self, text: str) -> list[int]:
        """Return the text as one token for each character."""
        return [token for character in text for token in self._tokenizer.encode(character, add_special_tokens=False).ids]

    def app(self) -> Starlette:
        """Return the server."""

        async def generate(request: Request) -> JSONResponse:
            tokens, logprobs = self.generate((await request.json())["token_ids"])
            content = [{"token": f"token_id:{token}", "logprob": value} for token, value in zip(tokens, logprobs, strict=True)]
            choice = {"index": 0, "token_ids": tokens, "logprobs": {"content": content}, "finish_reason": "stop"}
            return JSONResponse({"request_id": "r", "choices": [choice]})

        return Starlette(routes=[Route("/inference/v1/generate", generate, methods=["POST"])])


def test_the_training_client_gets_exactly_the_sampled_tokens(start, episodes, results_of, tmp_path):
    tokenizer = build_tokenizer(tmp_path / "policy", template="qwen3")
    sampler = Sampler(tokenizer)
    server = ServerThread(sampler.app(), "127.0.0.1", 0)
    server.start()
    try:
        plan = {"endpoint": f"http://127.0.0.1:{server.port}/v1", "tokenizer": str(tokenizer), "renderer": "qwen3"}
        results = results_of(episodes([start(TARGET)], tasks=4, episodes=8, **plan))
    finally:
        server.stop()

    assert [(result["reward"], result["errors"]) for result in results] == [(1.0, [])] * 8
    last_turns = {tuple(prompt + tokens) for prompt, tokens, _ in sampler.turns}
    sampled = {tuple(logprobs): tokens for _, tokens, logprobs in sampler.turns}
    seen: list[tuple[float, ...]] = []
    for result in results:
        (branch,) = result["branches"]
        assert tuple(branch["token_ids"]) in last_turns
        trained = [
            (token, value)
            for token, is_own, value in zip(branch["token_ids"], branch["sampled_mask"], branch["logprobs"], strict=True)
            if is_own
        ]
        place = 0
        for logprobs, tokens in sampled.items():
            if trained[place : place + len(tokens)] == list(zip(tokens, logprobs, strict=True)):
                seen.append(logprobs)
                place += len(tokens)
        assert place == len(trained)
    assert sorted(seen) == sorted(sampled)


# ---------------------------------------------------------------------- episodes that do not end


def test_cancelled_episodes_leave_no_sandbox(start, episodes, results_of, gold, held, until):
    service = start(held)

    with MockServer(gold) as server:
        process = episodes([service], endpoint=server.base_url, tasks=3, episodes=3, cancels=True)
        until(lambda: server.request_count == 6)
        opened = service.open_sandboxes()
        process.stdin.write("cancel\n")
        process.stdin.flush()
        until(lambda: service.load() == 0)
        assert results_of(process) == []

    assert len(opened) >= 3
    assert service.counts() == {"cancelled": 3}
    assert service.open_sandboxes() == []

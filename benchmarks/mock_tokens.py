"""What token mode costs on the mock model: requests per second at ``/generate`` beside chat completions.

Prompts hold the schemas of hermes' terminal and file tools. Prints figures and ratios; run it with nothing else on the machine:
``python benchmarks/mock_tokens.py``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

REQUESTS, CLIENTS, REPEATS = 400, 8, 3
START = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Create greeting.txt"}]
CALL = {"id": "a", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
SECOND = [
    *START,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": '{"output": "a.txt", "exit_code": 0}'},
]


def bodies() -> tuple[dict[str, list[bytes]], int, int]:
    """Return two turns as requests to each endpoint, and the tokens and bytes of the first prompt."""
    import model_tools
    from transformers import AutoTokenizer

    from pytest_hermes_env.rollout.builder import shared_tokenizer

    tokenizer = AutoTokenizer.from_pretrained(shared_tokenizer())
    tools = model_tools.get_tool_definitions(enabled_toolsets=["terminal", "file"], quiet_mode=True)
    ids = [
        tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=False)
        for messages in (START, SECOND)
    ]
    made: dict[str, list[Any]] = {
        "chat": [{"messages": messages, "tools": tools} for messages in (START, SECOND)],
        "vllm": [{"prompt": {"prompt_token_ids": one}, "logprobs": 0, "max_tokens": 4096} for one in ids],
        "sglang": [{"input_ids": one, "sampling_params": {"max_new_tokens": 4096}, "return_logprob": True} for one in ids],
    }
    encoded = {name: [json.dumps(body).encode() for body in several] for name, several in made.items()}
    return encoded, len(ids[0]), len(tokenizer.decode(ids[0]).encode())


async def requests_per_second(url: str, turns: list[bytes]) -> float:
    """Return how many requests a few clients get answered each second, both turns in alternation."""
    import aiohttp

    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession() as session:

        async def client() -> None:
            for number in range(REQUESTS // CLIENTS):
                async with session.post(url, data=turns[number % 2], headers=headers) as response:
                    response.raise_for_status()
                    await response.json()

        started = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        return REQUESTS / (time.perf_counter() - started)


def main() -> None:
    """Print the figures."""
    from pytest_hermes_env.inference import MockServer, call, say

    logging.disable(logging.CRITICAL)
    requests, tokens, size = bodies()
    print(f"prompt with the terminal and file tools  {tokens} tokens, {size} bytes, {size / tokens:.2f} bytes per token")
    with MockServer([call("terminal", command="ls"), say("There is one file.")], template="chatml") as server:
        urls = {
            "chat": f"{server.base_url}/chat/completions",
            "vllm": f"{server.url}/generate",
            "sglang": f"{server.url}/generate",
        }
        best = {
            name: max(asyncio.run(requests_per_second(urls[name], turns)) for _ in range(REPEATS))
            for name, turns in requests.items()
        }
    for name, rate in best.items():
        print(f"{name:6} {rate:7.0f} requests/s   {best['chat'] / rate:.2f} times the cost of chat")


if __name__ == "__main__":
    main()

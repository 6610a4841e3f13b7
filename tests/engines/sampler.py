"""A model server of vLLM's `/inference/v1/generate`, which verifiers' training client calls: it writes the file that a prompt asks for."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tokenizers import Tokenizer


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

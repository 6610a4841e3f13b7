"""Model servers in the shape of `vllm serve`, SGLang and Atropos' vllm_api_server, with a `LanguageModel` behind them.

Written from the servers' documentation, apart from the mock model: neither shares a line with it, nor with the layer's readers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from tests.reference.language_model import LanguageModel

ASSISTANT, END = "<|im_start|>assistant\n", "<|im_end|>"
MODEL = "reference-model"


@dataclass
class Reference:
    """A server's settings. ``plan``: what the model says in its first, second, ... turn of every conversation."""

    shape: str
    tokenizer_dir: str
    plan: list[str]
    logprobs: str = "processed"
    """raw, processed; log2, log10: processed to another base; argmax: those of the likeliest token; unpenalised."""
    key: str = ""
    gives_ids: bool = True
    max_logprobs: int = 20
    context: int = 32768
    requests: list[tuple[str, Any]] = field(default_factory=list)
    refuses_with: int = 0
    spread: float = 2.5
    judge: str = ""
    """The answer to a chat completion."""

    def __post_init__(self) -> None:
        self.tokenizer = Tokenizer.from_file(f"{self.tokenizer_dir}/tokenizer.json")
        self.end = self.tokenizer.token_to_id(END)
        self.model = LanguageModel(self.tokenizer.get_vocab_size(), self.spread)
        self.chance = np.random.default_rng(1)

    # ------------------------------------------------------------------ the engine

    def sample(self, prompt: list[int], *, temperature: float, limit: int, presence: float = 0.0) -> tuple[list[int], str]:
        """Return sampled ids with the id that ends a reply, and the finish reason."""
        turn = self.tokenizer.decode(prompt, skip_special_tokens=False).count(ASSISTANT) - 1
        if turn < 0:  # no conversation: chance decides
            ids: list[int] = []
            while len(ids) < limit:
                chances = np.exp(self.model.logprobs(prompt + ids, temperature or 1.0, dict.fromkeys(ids, presence)))
                ids.append(int(self.chance.choice(self.model.size, p=chances / chances.sum())))
            return ids, "length"
        planned = [*self.tokenizer.encode(self.plan[turn], add_special_tokens=False).ids, self.end]
        return (planned, "stop") if len(planned) <= limit else (planned[:limit], "length")

    def scored(
        self, prompt: list[int], ids: list[int], temperature: float, presence: float, top: int
    ) -> list[dict[int, float]]:
        """Return for each sampled id the logprobs to tell: its own first, then the likeliest ones."""
        rows = []
        for place, token in enumerate(ids):
            before = [] if self.logprobs == "unpenalised" else ids[:place]
            raw = self.logprobs == "raw"
            own = self.model.logprobs(
                prompt + ids[:place], 1.0 if raw else temperature or 1.0, {} if raw else dict.fromkeys(before, presence)
            )
            own = own / np.log({"log2": 2, "log10": 10}.get(self.logprobs, np.e))
            likeliest = [int(one) for one in np.argsort(-own)[: max(top, 1)]]
            told = own.max() if self.logprobs == "argmax" else own[token]
            rows.append({token: float(told), **{one: float(own[one]) for one in likeliest[:top] if one != token}})
        return rows

    def likeliest(self, prompt: list[int], top: int) -> list[dict[int, float]]:
        """Return for each token of a prompt but the first its own logprob, then the likeliest ones, of the model at temperature 1."""
        return [self.scored(prompt[:place], [prompt[place]], 1.0, 0.0, top)[0] for place in range(1, len(prompt))]

    # ------------------------------------------------------------------ HTTP

    def answer(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        """Return status and body."""
        self.requests.append((path, body))
        if path == "/health":
            return 200, {}
        if self.refuses_with:
            return self.refuses_with, {"error": {"message": "the engine is out of order"}}
        if self.key and key != f"Bearer {self.key}":
            return 401, {"error": "Unauthorized"}
        match self.shape, method, path:
            case "vllm" | "sglang", "GET", "/v1/models":
                return 200, {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": self.context}]}
            case "vllm", "GET", "/version":
                return 200, {"version": "0.33.0"}
            case "vllm", "POST", "/v1/completions":
                return self._vllm(body)
            case "vllm" | "sglang", "POST", "/v1/chat/completions":
                message = {"role": "assistant", "content": self.judge}
                choices = [{"index": one, "message": message, "finish_reason": "stop"} for one in range(body.get("n", 1))]
                return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": choices}
            case "sglang", "GET", "/model_info":
                return 200, {"model_path": MODEL, "is_generation": True}
            case "sglang", "POST", "/generate":
                return self._sglang(body)
            case "atropos", "POST", "/generate":
                return self._atropos(body)
        return 404, {"detail": "Not Found"}

    def _vllm(self, body: Any) -> tuple[int, Any]:
        def bad(text: str, status: int = 400, kind: str = "BadRequestError") -> tuple[int, Any]:
            return status, {"error": {"message": text, "type": kind, "param": None, "code": status}}

        if body.get("model") != MODEL:
            return bad(f"The model `{body.get('model')}` does not exist.", 404, "NotFoundError")
        prompt, top, limit = body["prompt"], body.get("logprobs"), body.get("max_tokens", 16)
        if top is not None and top > self.max_logprobs:
            return bad(f"Requested sample logprobs of {top}, which is greater than max allowed: {self.max_logprobs}")
        scoring = body.get("prompt_logprobs")
        if scoring is not None and scoring > self.max_logprobs:
            return bad(f"Requested prompt logprobs of {scoring}, which is greater than max allowed: {self.max_logprobs}")
        if len(prompt) + limit > self.context:
            return bad(
                f"This model's maximum context length is {self.context} tokens. However, you requested {len(prompt) + limit}."
            )
        choices = []
        for index in range(body.get("n", 1)):
            ids, finish, rows = self._drawn(prompt, body, limit, top or 0)
            name = (lambda one: f"token_id:{one}") if body.get("return_tokens_as_token_ids") else self.tokenizer.id_to_token
            logged = (
                None
                if top is None
                else {
                    "text_offset": [0] * len(ids),
                    "tokens": [name(token) for token in ids],
                    "token_logprobs": [row[token] for row, token in zip(rows, ids, strict=True)],
                    "top_logprobs": [{name(one): own for one, own in row.items()} for row in rows],
                }
            )
            ids_told = {"prompt_token_ids": prompt, "token_ids": ids} if body.get("return_token_ids") and self.gives_ids else {}
            if scoring is not None:
                rows = [
                    {str(one): {"logprob": own, "rank": 1} for one, own in row.items()}
                    for row in self.likeliest(prompt, scoring)
                ]
                ids_told["prompt_logprobs"] = [None, *rows]
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            choices.append(
                {"index": index, "text": text, "logprobs": logged, "finish_reason": finish, "stop_reason": None, **ids_told}
            )
        return 200, {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL, "choices": choices, "usage": {}}

    def _sglang(self, body: Any) -> tuple[int, Any]:
        if "input_ids" not in body:
            return 400, {"error": {"message": "Either text, input_ids or input_embeds should be provided."}}
        prompt, sampling, top = body["input_ids"], body["sampling_params"], body.get("top_logprobs_num", 0)
        known = {
            "max_new_tokens",
            "temperature",
            "n",
            "stop",
            "top_p",
            "top_k",
            "min_p",
            "presence_penalty",
            "frequency_penalty",
            "repetition_penalty",
        }
        if unknown := set(sampling) - known:
            return 400, {"error": {"message": f"Unexpected keyword argument {sorted(unknown)}"}}
        answers = []
        for index in range(sampling.get("n", 1)):
            limit = sampling.get("max_new_tokens", 128)
            ids, finish, rows = self._drawn(prompt, sampling, limit, top) if limit else ([], "length", [])
            reason = {"type": "stop", "matched": self.end} if finish == "stop" else {"type": "length", "length": len(ids)}
            told = [[row[token], token, None] for row, token in zip(rows, ids, strict=True)]
            meta = {
                "id": f"{index}",
                "finish_reason": reason,
                "prompt_tokens": len(prompt),
                "completion_tokens": len(ids),
                "cached_tokens": 0,
            }
            if body.get("return_logprob"):
                meta["output_token_logprobs"] = told
                if body.get("logprob_start_len") == 0:
                    scored = self.likeliest(prompt, top)
                    own = [[row[token], token, None] for row, token in zip(scored, prompt[1:], strict=True)]
                    meta["input_token_logprobs"] = [[None, prompt[0], None], *own]
                    tops = [sorted(([own, one, None] for one, own in row.items()), reverse=True)[:top] for row in scored]
                    meta["input_top_logprobs"] = [None, *tops]
                if top:
                    meta["output_top_logprobs"] = [[[own, one, None] for one, own in row.items()][-top:] for row in rows]
            answers.append({"text": self.tokenizer.decode(ids), "output_ids": ids, "meta_info": meta})
        return 200, answers[0] if len(answers) == 1 else answers

    def _atropos(self, body: Any) -> tuple[int, Any]:
        if "prompt" not in body:
            return 500, {"detail": "Internal Server Error"}
        prompt, top = body["prompt"]["prompt_token_ids"], body.get("logprobs")
        drawn = [self._drawn(prompt, body, body.get("max_tokens", 16), top or 0) for _ in range(body.get("n", 1))]
        answer = {
            "text": [self.tokenizer.decode(ids) for ids, _, _ in drawn],
            "prompt": self.tokenizer.decode(prompt),
            "finish_reasons": [finish for _, finish, _ in drawn],
        }
        if top is not None:
            answer["logprobs"] = [[[{str(one): own for one, own in row.items()}] for row in rows] for _, _, rows in drawn]
            answer |= {"prompt_token_ids": prompt, "token_ids": [ids for ids, _, _ in drawn]}
        return 200, answer

    def _drawn(self, prompt: list[int], sampling: Any, limit: int, top: int) -> tuple[list[int], str, list[dict[int, float]]]:
        temperature, presence = sampling.get("temperature", 1.0), sampling.get("presence_penalty", 0.0)
        ids, finish = self.sample(prompt, temperature=temperature, limit=limit, presence=presence)
        return ids, finish, self.scored(prompt, ids, temperature, presence, top)


@contextmanager
def serving(reference: Reference, port: int = 0) -> Iterator[str]:
    """Serve on loopback; yields the address that ends in /v1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply("GET", None)

        def do_POST(self) -> None:
            self._reply("POST", json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _reply(self, method: str, body: Any) -> None:
            status, answer = reference.answer(method, self.path, body, self.headers.get("authorization", ""))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

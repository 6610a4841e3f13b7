"""The mock model without HTTP: takes the bytes of a request, returns the bytes of its answer, and logs both."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import HermesEnvError, UnexpectedRequest, shorten
from pytest_hermes_env.failures import Problem, combined_error
from pytest_hermes_env.inference.conversation import JOURNAL_LIMIT, Conversation, ConversationIndex, Exchange, Kind, RequestLog
from pytest_hermes_env.inference.generate import joined, read_requests
from pytest_hermes_env.inference.openai_requests import is_health_check, parsed, prompts
from pytest_hermes_env.inference.refusals import (
    chat_refusal,
    check_calls,
    completion_refusal,
    constrained,
    offered_tools,
    openai_refusal,
)
from pytest_hermes_env.inference.steps import Garbage, Say, Turn
from pytest_hermes_env.inference.token_engines import (
    DEFAULT_MODES,
    VLLM_VERSION,
    WITH_IDS,
    Engine,
    LogprobsMode,
    endpoint_answer,
    numbers_of,
    vllm_refusal,
)
from pytest_hermes_env.inference.vllm_answers import add_tokens
from pytest_hermes_env.inference.wire import (
    chat_chunks,
    chat_completion,
    error_body,
    model_entry,
    model_list,
    server_sent_events,
    text_chunks,
    text_completion,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_hermes_env.inference.generate import Request
    from pytest_hermes_env.inference.refusals import Refusal
    from pytest_hermes_env.inference.script import ScriptChoice
    from pytest_hermes_env.inference.token_mode import TokenMode
    from pytest_hermes_env.types import JsonObject, JsonValue

ENDPOINTS = (
    "POST /v1/chat/completions, POST /v1/completions, POST /generate, POST /inference/v1/generate, GET /v1/models, GET /health"
)
OK, BAD_REQUEST, NOT_FOUND, METHOD_NOT_ALLOWED = 200, 400, 404, 405
JSON, EVENTS, PLAIN = "application/json", "text/event-stream", "text/plain; charset=utf-8"
NAMED = {"vllm": "vLLM", "sglang": "SGLang"}
"""Engines that read no body of another content type."""
SECRET_FIELDS = frozenset({"api_key", "apikey", "api-key", "authorization", "x-api-key"})
NOT_SAMPLING = frozenset({"messages", "prompt", "tools", "model", *SECRET_FIELDS})
HEALTHY = Turn(steps=(Say(text="hi"),))


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The answer to one request, sent after ``delay_s`` seconds."""

    status: int
    content: bytes
    media_type: str
    delay_s: float
    exchange: Exchange
    entry: list[Exchange]
    """The entry of the log, which is no longer the model's after `MockModel.reset`."""


@dataclass(frozen=True, kw_only=True)
class _Question:
    """What a request asks for: a turn of each conversation; without one, a fixed answer.

    ``complete`` makes the body of the answer from the turns, ``chunks`` its parts if the request streams.
    """

    kind: Kind
    conversations: Sequence[Conversation] = ()
    complete: Callable[[Sequence[Turn]], JsonObject | list[JsonValue]]
    chunks: Callable[..., list[JsonObject]] | None = None


class MockModel:
    """Answers requests from scripts. ``on_exchange`` is called, in the server's thread, with each answered exchange.

    ``tokens`` answers with token ids; None for a model without a tokenizer. ``engine`` is the server that it is like.
    """

    def __init__(
        self,
        scripts: ScriptChoice,
        *,
        name: str = "mock-model",
        on_exchange: Callable[[Exchange], None] | None = None,
        journal_limit: int | None = JOURNAL_LIMIT,
        engine: Engine = "any",
        logprobs_mode: LogprobsMode | None = None,
        version: str = VLLM_VERSION,
    ) -> None:
        self.name = name
        self.version = version
        self.engine = engine
        self._is_processed = (logprobs_mode or DEFAULT_MODES[engine]) == "processed_logprobs"
        self.log = RequestLog(journal_limit)
        self.scripts = scripts
        self.tokens: TokenMode | None = None
        self._on_exchange = on_exchange
        self._index = ConversationIndex()
        self._problems: Counter[Problem] = Counter()
        self._asked: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def respond(self, method: str, path: str, data: bytes, headers: Mapping[str, str]) -> Reply:
        """Return the answer to one HTTP request; paths work with and without ``/v1``.

        A client counts its retries of one request in ``headers``. An unknown endpoint is answered with 404 and recorded as a
        problem.
        """
        retries = headers.get("x-stainless-retry-count", "")
        attempt = int(retries) if retries.isdecimal() else None
        if (fixed := endpoint_answer(self.engine, path.removeprefix("/v1"), self.name, self.version)) is not None:
            return self._reply(_incoming(path, "health"), fixed[1], status=fixed[0])
        match method, path.removeprefix("/v1"):
            case "POST", "/chat/completions":
                return self._answer(self._chat, self._refusal_of(chat_refusal, headers), path, data, attempt)
            case "POST", "/completions":
                return self._answer(self._completion, self._refusal_of(completion_refusal, headers), path, data, attempt)
            case "POST", "/generate" | "/inference/v1/generate":
                return self._answer(self._generate, self._generate_refusal, path, data, attempt)
            case (("GET" | "HEAD"), "/models"):
                return self._reply(_incoming(path, "models"), model_list(self.name))
            case (("GET" | "HEAD"), name) if name == f"/models/{self.name}":
                return self._reply(_incoming(path, "models"), model_entry(self.name))
            case (("GET" | "HEAD"), ("/health" | "/health_generate")):
                return self._reply(_incoming(path, "health"), {"status": "ok"})
            case (("GET" | "HEAD"), "/generate") if self.tokens is not None:  # a probe whether the endpoint exists
                return self._reply(_incoming(path, "health"), {"detail": "Method Not Allowed"}, status=METHOD_NOT_ALLOWED)
        fix = "point the client at the server's base_url, which ends in /v1"
        if path.startswith("/v1/models/"):
            fix = f"ask for the one model that it has, {self.name!r}; MockServer(model=...) names it otherwise"
        elif path.startswith("/v1/"):
            fix = "use one of these; no other endpoint of a model server is played"
        problem = UnexpectedRequest(
            f"the mock model has no endpoint {method} {path}.\n  expected  {ENDPOINTS}\n  fix       {fix}"
        )
        is_known = f"POST /v1{path.removeprefix('/v1')}" in ENDPOINTS.split(", ")
        return self._refuse(_incoming(path, "unexpected"), problem, status=METHOD_NOT_ALLOWED if is_known else NOT_FOUND)

    def described(self, path: str, body: bytes) -> tuple[str, str]:
        """Return the place in a fault plan, and the body as text that a plan can match: with the text of its token ids."""
        text = body.decode(errors="replace")
        if self.tokens is None or not (path.endswith("/generate") or '"return_token_ids"' in text):
            return "model", text
        try:
            given = [request.prompt for request in read_requests(path, json.loads(body))]
        except (ValueError, HermesEnvError):  # the model refuses it
            return "model", text
        told = [prompt if isinstance(prompt, str) else self.tokens.sampler.decode(prompt) for prompt in given]
        return "model", "\n".join([text, *told])

    def delivered(self, reply: Reply) -> None:
        """Log a reply that is on its way to the client."""
        exchange = reply.entry[0] = replace(reply.exchange, ended_s=time.monotonic())
        if self._on_exchange is not None:
            self._on_exchange(exchange)

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each request that no script covered; equal ones follow one another."""
        with self._lock:
            return tuple(self._problems.elements())

    def verify(self, *, allow_leftovers: bool) -> None:
        """Check that a script covered every request and that every turn was requested.

        Raises: one error that lists all problems, of the class of the first.
        """
        problems = list(self.problems())
        if not allow_leftovers:
            problems += self.scripts.leftovers()
        error = combined_error(problems, who="the mock model")
        if error is not None:
            raise error

    def reset(self) -> None:
        """Forget conversations, problems and the log; keep the scripts."""
        with self._lock:
            self._problems.clear()
            self._asked.clear()
            self._index = ConversationIndex()
            self.log = self.log.emptied()
        self.scripts.reset()
        if self.tokens is not None:
            self.tokens.reset()

    def _answer(
        self,
        read_question: Callable[[str, dict[str, Any]], _Question],
        refusal_of: Callable[[Mapping[str, object]], Refusal | None],
        path: str,
        data: bytes,
        attempt: int | None,
    ) -> Reply:
        exchange = _incoming(path, "unexpected")
        try:
            body = parsed(path, data)
            body = {name: "[redacted]" if name.lower() in SECRET_FIELDS else value for name, value in body.items()}
            exchange = replace(exchange, request=body)
            if self.engine == "vllm" and numbers_of(self.version) < WITH_IDS:
                body.pop("return_token_ids", None)  # an unknown field
            if self.engine == "vllm" and (missing := vllm_refusal(body, self.name)) is not None:
                return self._reply(exchange, missing[1], status=missing[0])
            if (refused := refusal_of(body)) is not None:
                return self._refuse(exchange, refused.error(path), status=refused.status, answer=refused.body)
            question = read_question(path, body)
            if not question.conversations:
                answer = HEALTHY if question.kind == "health" else None
                return self._reply_with(replace(exchange, kind=question.kind, answer=answer), question, [HEALTHY], attempt)
            exchange = replace(exchange, conversation=question.conversations[0])
            chosen = [self.scripts.choose(conversation) for conversation in question.conversations]
            turns = [one.turn for one in chosen]
            kind = question.kind
            if kind != "completion":  # the tool calls of a text completion are text
                for one, conversation in zip(chosen, question.conversations, strict=True):
                    check_calls(one.turn, conversation.tools, origin=one.origin)
            if kind == "chat":
                turns = [constrained(one.turn, body, origin=one.origin) for one in chosen]
            kind = "judge" if kind != "completion" and chosen[0].is_judge else kind
            answered = replace(exchange, kind=kind, script=chosen[0].script, answer=turns[0])
            return self._reply_with(answered, question, turns, attempt)
        except HermesEnvError as exc:
            return self._refuse(exchange, exc)

    def _chat(self, _: str, body: dict[str, Any]) -> _Question:
        if self.engine == "sglang" and body.get("stream") is True and body.get("return_token_ids") is True:
            raise UnexpectedRequest(
                "the chat request asks to stream token ids, which SGLang refuses.\n  fix       ask without stream"
            )
        conversation, prompt_bytes = self._locate(tuple(body["messages"]), body)
        choice = body.get("tool_choice")

        def complete(turns: Sequence[Turn]) -> JsonObject:
            key = f"{conversation.id}:{conversation.turn}"
            completion = chat_completion(
                turn=turns[0],
                key=key,
                model=conversation.model,
                n=body.get("n") or 1,
                prompt_bytes=prompt_bytes,
                is_forced=isinstance(choice, dict) and choice["type"] != "allowed_tools",
            )
            if (tokens := self.tokens) is not None and (body.get("logprobs") or body.get("return_token_ids")):
                generation = tokens.chat(body, turns[0], conversation, is_processed=self._is_processed)
                add_tokens(completion, body, generation, engine=self.engine, sampler=tokens.sampler)
            return completion

        if is_health_check(body):
            return _Question(kind="health", complete=complete)
        return _Question(kind="chat", conversations=[conversation], complete=complete, chunks=chat_chunks)

    def _completion(self, path: str, body: dict[str, Any]) -> _Question:
        asks = body.get("return_token_ids") is True or self._scores(body) or body.get("logprobs") is not None
        is_cut = self.engine == "vllm" and body.get("max_tokens") is not None
        if self.tokens is not None and (asks or is_cut) and not is_health_check(body):
            if body.get("echo"):
                raise UnexpectedRequest(
                    f"the request to {path} asks for 'echo' beside token ids, logprobs or a limit, which the mock model does not play.\n"
                    "  fix       leave out 'echo', and put the prompt before the answer yourself"
                )
            return self._generate(path, body)
        asked = prompts(path, body, None if self.tokens is None else self.tokens.sampler.decode)
        echoed = asked if body.get("echo") else ()
        located = [self._locate(({"role": "user", "content": prompt},), body) for prompt in asked]
        conversations = [conversation for conversation, _ in located]
        prompt_bytes = sum(size for _, size in located)

        def complete(turns: Sequence[Turn]) -> JsonObject:
            key = ":".join(conversation.id for conversation in conversations)
            count = body.get("n") or 1
            told = text_completion(turns=turns, key=key, model=conversations[0].model, n=count, prompt_bytes=prompt_bytes)
            choices: Any = told["choices"]
            for choice, prompt in zip(choices, (one for one in echoed for _ in range(count)), strict=False):
                choice["text"] = prompt + choice["text"]
            return told

        if is_health_check(body):
            return _Question(kind="health", complete=complete, chunks=text_chunks)
        return _Question(kind="completion", conversations=conversations, complete=complete, chunks=text_chunks)

    def _scores(self, body: Mapping[str, object]) -> bool:
        return body.get("prompt_logprobs") is not None and self.engine != "sglang"  # where the field is unknown

    def _refusal_of(
        self, of_types: Callable[..., Refusal | None], headers: Mapping[str, str]
    ) -> Callable[[Mapping[str, object]], Refusal | None]:
        """Return what refuses a request to an endpoint of OpenAI: by its content type, its fields, and vLLM's limits."""
        sent = {name.lower(): value for name, value in headers.items()}.get("content-type", "")

        def refusal(body: Mapping[str, object]) -> Refusal | None:
            if self.engine in NAMED and sent.partition(";")[0].strip().lower() != JSON:
                form = openai_refusal("content-type", f"must be {JSON}, got {sent!r}: a client's json= sets it")
                return replace(form, server=NAMED[self.engine])
            if (found := of_types(body, engine=self.engine)) is not None or self.engine != "vllm":
                return found
            from pytest_hermes_env.inference.generate_refusals import sampling_refusal  # noqa: PLC0415 -- pydantic takes 100 ms

            return sampling_refusal(body)

        return refusal

    def _generate_refusal(self, body: Mapping[str, object]) -> Refusal | None:
        if self.tokens is None:  # `_generate` says so to every request
            return None
        from pytest_hermes_env.inference.generate_refusals import generate_refusal  # noqa: PLC0415 -- pydantic takes 100 ms

        return generate_refusal(body)

    def _generate(self, path: str, body: dict[str, Any]) -> _Question:
        if self.tokens is None:
            raise UnexpectedRequest(
                f"the model was asked for tokens at {path}, but it has no tokenizer.\n"
                f"  request   {shorten(repr(body))}\n"
                "  fix       pass a chat template, MockServer(script, template='chatml'), or a tokenizer: tokenizer=path"
            )
        requests = read_requests(path, body)
        parts = [self._part(path, request, self.tokens) for request in requests]

        def complete(turns: Sequence[Turn]) -> Any:
            waiting = iter(turns)
            answers = [part.complete([next(waiting)] if part.conversations else []) for part in parts]
            return joined(answers) if requests[0].is_in_list else answers[0]

        conversations = [one for part in parts for one in part.conversations]
        chunks = text_chunks if conversations and requests[0].shape == "completions" else None
        return replace(parts[0], conversations=conversations, complete=complete, chunks=chunks)

    def _part(self, path: str, request: Request, tokens: TokenMode) -> _Question:
        """Return what is asked with one prompt."""
        prompt = tokens.read(path, request.prompt)
        how: Any = {"is_processed": self._is_processed, "model": self.name, "engine": self.engine, "version": self.version}
        if request.is_check:
            checked = tokens.check(prompt, request.max_tokens)
            return _Question(kind="health", complete=lambda _: tokens.answer(request, checked, **how))
        position = self._index.locate(prompt.identity, remember=not request.is_scoring)
        if request.is_scoring:
            scored = tokens.score(prompt, position.root, request.max_tokens)
            return _Question(kind="score", complete=lambda _: tokens.answer(request, scored, **how))
        messages = tokens.restore(prompt.messages, position.root)
        conversation = position.conversation(messages, tools=prompt.tools, model=self.name, sampling=request.sampling)

        def complete(turns: Sequence[Turn]) -> JsonObject | list[JsonValue]:
            return tokens.answer(request, tokens.generate(turns[0], prompt, conversation, request.max_tokens), **how)

        return _Question(kind="generate", conversations=[conversation], complete=complete)

    def _locate(self, messages: tuple[Mapping[str, object], ...], body: dict[str, Any]) -> tuple[Conversation, int]:
        position = self._index.locate(messages)
        model = str(body.get("model") or self.name)
        sampling = {name: value for name, value in body.items() if name not in NOT_SAMPLING}
        conversation = position.conversation(messages, tools=offered_tools(body), model=model, sampling=sampling)
        return conversation, position.prompt_bytes

    def _reply_with(self, exchange: Exchange, question: _Question, turns: Sequence[Turn], attempt: int | None) -> Reply:
        """Return the scripted failure of the first turn, its scripted body, or the completion of all turns."""
        told = next((number for number, one in enumerate(turns) if one.failure is not None or one.every(Garbage)), 0)
        turn = turns[told]
        delay_s, failure = turn.delay_s, turn.failure
        if failure is not None and attempt is None:
            attempt = self._count_failure(question.conversations[told])
        if failure is not None and (failure.times is None or (attempt or 0) < failure.times):
            status, _, body = failure.answer()
            return self._reply(exchange, body, status=status, delay_s=delay_s)
        if (garbage := turn.only(Garbage)) is not None:
            return self._reply(exchange, garbage.body, delay_s=delay_s, wire=garbage.body)
        completion, request = question.complete(turns), exchange.request or {}
        if question.chunks is None or request.get("stream") is not True:
            return self._reply(exchange, completion, delay_s=delay_s)
        options = request.get("stream_options")
        include_usage = isinstance(options, dict) and options.get("include_usage") is True
        events = server_sent_events(question.chunks(completion, include_usage=include_usage))
        return self._reply(exchange, completion, delay_s=delay_s, wire=events, media_type=EVENTS)

    def _count_failure(self, conversation: Conversation) -> int:
        """Return how often a client that counts no attempts has asked for this turn, and count this time."""
        key = (conversation.id, conversation.turn)
        with self._lock:
            self._asked[key] += 1
            return self._asked[key] - 1

    def _refuse(
        self, exchange: Exchange, error: HermesEnvError, *, status: int = BAD_REQUEST, answer: JsonObject | str | None = None
    ) -> Reply:
        """Record the error, and return ``answer``, or the error itself in OpenAI's format."""
        problem = Problem(error=type(error), text=str(error))
        with self._lock:
            self._problems[problem] += 1
        refused = replace(exchange, kind="unexpected", problem=str(problem))
        if isinstance(answer, str):
            return self._reply(refused, answer, status=status, wire=answer, media_type=PLAIN)
        body = answer or error_body(str(problem), kind="invalid_request_error", code=problem.error.__name__)
        return self._reply(refused, body, status=status)

    def _reply(
        self,
        exchange: Exchange,
        body: JsonObject | list[JsonValue] | str,
        *,
        status: int = OK,
        delay_s: float = 0.0,
        wire: str | None = None,
        media_type: str = JSON,
    ) -> Reply:
        return Reply(
            status=status,
            content=(json.dumps(body) if wire is None else wire).encode("utf-8", "surrogatepass"),
            media_type=media_type,
            delay_s=delay_s,
            exchange=replace(exchange, status=status, response=body),
            entry=self.log.add(exchange),
        )


def _incoming(path: str, kind: Kind) -> Exchange:
    return Exchange(path=path, kind=kind, started_s=time.monotonic())

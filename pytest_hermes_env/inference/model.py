"""The mock model without HTTP: bytes of a request in, bytes of an answer out, everything kept in a journal."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import HermesEnvError, UnexpectedRequest, shorten
from pytest_hermes_env.inference import request as read
from pytest_hermes_env.inference.conversation import Conversation, ConversationIndex
from pytest_hermes_env.inference.generate import read_request
from pytest_hermes_env.inference.offered_tools import check_calls, offered_tools
from pytest_hermes_env.inference.request_log import Exchange, Journal, Kind
from pytest_hermes_env.inference.script_errors import Problem, as_error
from pytest_hermes_env.inference.steps import Fail, Garbage, Hang, Say, Turn
from pytest_hermes_env.inference.stream import chat_chunks, server_sent_events, text_chunks
from pytest_hermes_env.inference.wire import chat_completion, error_body, model_list, text_completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_hermes_env.inference.script_choice import Speaker, Spoken
    from pytest_hermes_env.inference.token_mode import Prompt, TokenMode
    from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["ENDPOINTS", "MockModel", "Reply"]

ENDPOINTS = "POST /v1/chat/completions, POST /v1/completions, POST /generate, GET /v1/models, GET /health"
OK, BAD_REQUEST, NOT_FOUND, METHOD_NOT_ALLOWED = 200, 400, 404, 405
JSON, EVENTS = "application/json", "text/event-stream"
NOT_SAMPLING = frozenset({"messages", "prompt", "tools", "model", *read.SECRET_FIELDS})
HEALTHY = Turn(steps=(Say(text="hi"),))


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What goes back over the wire, after ``delay_s`` seconds."""

    status: int
    content: bytes
    media_type: str
    delay_s: float
    exchange: Exchange
    number: int
    journal: Journal


class MockModel:
    """Answers requests from scripts. ``on_exchange`` is called, in the server's thread, with each answered exchange.

    ``tokens`` speaks them at ``/generate``; None, as at first, for a model that has no tokenizer.
    """

    def __init__(
        self,
        speaker: Speaker,
        *,
        name: str = "mock-model",
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.name = name
        self.journal = Journal()
        self.speaker = speaker
        self.tokens: TokenMode | None = None
        self._on_exchange = on_exchange
        self._index = ConversationIndex()
        self._problems: list[Problem] = []
        self._lock = threading.Lock()

    def respond(self, method: str, path: str, data: bytes, *, attempt: int = 0) -> Reply:
        """Return the answer to one HTTP request; endpoints are known with and without ``/v1``.

        ``attempt`` counts a client's retries of one request from 0. What is no endpoint is answered with 404, and remembered.
        """
        match method, path.removeprefix("/v1"):
            case "POST", "/chat/completions":
                return self._answer(self._chat, path, data, attempt)
            case "POST", "/completions":
                return self._answer(self._completion, path, data, attempt)
            case "POST", "/generate":
                return self._answer(self._generate, path, data, attempt)
            case (("GET" | "HEAD"), "/models"):
                return self._reply(_incoming(path, "models"), model_list(self.name))
            case (("GET" | "HEAD"), ("/health" | "/health_generate")):
                return self._reply(_incoming(path, "health"), {"status": "ok"})
            case (("GET" | "HEAD"), "/generate") if self.tokens is not None:  # asks whether there is such a path
                return self._reply(_incoming(path, "health"), {"detail": "Method Not Allowed"}, status=METHOD_NOT_ALLOWED)
        problem = UnexpectedRequest(
            f"{method} {path} is no endpoint of the mock model.\n"
            f"  expected  {ENDPOINTS}\n"
            "  fix       point the client at the server's base_url, which ends in /v1"
        )
        return self._refuse(_incoming(path, "unexpected"), problem, status=NOT_FOUND)

    def delivered(self, reply: Reply) -> None:
        """Close the journal entry of a reply that is on its way to the client."""
        exchange = replace(reply.exchange, ended_s=time.monotonic())
        reply.journal.close(reply.number, exchange)
        if self._on_exchange is not None:
            self._on_exchange(exchange)

    def problems(self) -> tuple[Problem, ...]:
        """Return the requests that no script covered, in order."""
        with self._lock:
            return tuple(self._problems)

    def verify(self, *, allow_leftovers: bool) -> None:
        """Return when every request was scripted and every turn was asked for.

        Raises: one error that lists all problems, of the class of the first.
        """
        problems = list(self.problems())
        if not allow_leftovers:
            problems += self.speaker.unspoken()
        error = as_error(problems)
        if error is not None:
            raise error

    def forget(self) -> None:
        """Forget conversations, problems and the journal; keep the scripts."""
        with self._lock:
            self._problems.clear()
            self._index = ConversationIndex()
            self.journal = Journal()
        self.speaker.forget()
        if self.tokens is not None:
            self.tokens.forget()

    def _answer(
        self,
        answer: Callable[[Exchange, dict[str, object], int], Reply],
        path: str,
        data: bytes,
        attempt: int,
    ) -> Reply:
        exchange = _incoming(path, "unexpected")
        try:
            body = read.parse_body(path, data)
        except UnexpectedRequest as exc:
            return self._refuse(exchange, exc)
        exchange = replace(exchange, request=read.redact(body))
        try:
            return answer(exchange, body, attempt)
        except HermesEnvError as exc:
            return self._refuse(exchange, exc)

    def _chat(self, exchange: Exchange, body: dict[str, object], attempt: int) -> Reply:
        messages = read.chat_messages(exchange.path, body)
        n = read.choice_count(exchange.path, body)
        conversation, prompt_bytes = self._conversation(messages, body)

        def complete(turn: Turn) -> JsonObject:
            key = f"{conversation.id}:{conversation.turn}"
            return chat_completion(turn=turn, key=key, model=conversation.model, n=n, prompt_bytes=prompt_bytes)

        if read.is_health_check(body):
            return self._reply(replace(exchange, kind="health", said=str(HEALTHY)), complete(HEALTHY))
        exchange = replace(exchange, conversation=conversation)
        try:
            spoken = self.speaker.speak(conversation)
            check_calls(spoken.turn, conversation.tools, said_by=spoken.said_by)
        except HermesEnvError as exc:
            return self._refuse(exchange, exc)
        exchange = _said(exchange, spoken, "judge" if spoken.is_judge else "chat")
        chunks = chat_chunks if body.get("stream") is True else None
        return self._say(exchange, spoken.turn, attempt, complete, chunks)

    def _completion(self, exchange: Exchange, body: dict[str, object], attempt: int) -> Reply:
        prompts = read.prompts(exchange.path, body)
        n = read.choice_count(exchange.path, body)
        located = [self._conversation(({"role": "user", "content": prompt},), body) for prompt in prompts]
        conversation = located[0][0]
        prompt_bytes = sum(size for _, size in located)
        if read.is_health_check(body):
            turns = [HEALTHY]
            exchange = replace(exchange, kind="health", said=str(HEALTHY))
        else:
            exchange = replace(exchange, conversation=conversation)
            try:
                every = [self.speaker.speak(one) for one, _ in located]
            except HermesEnvError as exc:
                return self._refuse(exchange, exc)
            turns = [spoken.turn for spoken in every]
            exchange = _said(exchange, every[0], "completion")

        def complete(_: Turn) -> JsonObject:
            key = ":".join(one.id for one, _ in located)
            return text_completion(turns=turns, key=key, model=conversation.model, n=n, prompt_bytes=prompt_bytes)

        chunks = text_chunks if body.get("stream") is True else None
        return self._say(exchange, turns[0], attempt, complete, chunks)

    def _generate(self, exchange: Exchange, body: dict[str, object], attempt: int) -> Reply:
        body = read.redact(body)  # errors show it
        if self.tokens is None:
            raise UnexpectedRequest(
                f"the model was asked for tokens at {exchange.path}, but it has no tokenizer.\n"
                f"  request   {shorten(repr(body))}\n"
                "  fix       name its chat template, MockServer(script, template='chatml'), or its tokenizer: tokenizer=path"
            )
        tokens, request = self.tokens, read_request(exchange.path, body)
        prompts = [tokens.read(exchange.path, prompt) for prompt in request.prompts]
        if request.is_scoring:
            roots = [self._index.locate(prompt.identity, remember=False).root for prompt in prompts]
            scored = [tokens.score(prompt, root, request.max_tokens) for prompt, root in zip(prompts, roots, strict=True)]
            return self._reply(replace(exchange, kind="score"), tokens.answer(request, scored))
        located = [self._read_conversation(tokens, prompt, request.sampling) for prompt in prompts]
        exchange = replace(exchange, conversation=located[0])
        try:
            every = [self.speaker.speak(conversation) for conversation in located]
            for spoken, conversation in zip(every, located, strict=True):
                check_calls(spoken.turn, conversation.tools, said_by=spoken.said_by)
            said = [
                tokens.speak(spoken.turn, prompt, conversation, request.max_tokens)
                for spoken, prompt, conversation in zip(every, prompts, located, strict=True)
            ]
        except HermesEnvError as exc:
            return self._refuse(exchange, exc)
        exchange = _said(exchange, every[0], "judge" if every[0].is_judge else "generate")
        return self._say(exchange, every[0].turn, attempt, lambda _: tokens.answer(request, said), None)

    def _read_conversation(self, tokens: TokenMode, prompt: Prompt, sampling: Mapping[str, object]) -> Conversation:
        place = self._index.locate(prompt.identity)
        return Conversation(
            id=place.root,
            turn=place.turn,
            messages=tokens.recall(prompt.messages, place.root),
            root_length=place.root_length,
            tools=prompt.tools,
            model=self.name,
            sampling=sampling,
        )

    def _conversation(self, messages: tuple[Mapping[str, object], ...], body: dict[str, object]) -> tuple[Conversation, int]:
        place = self._index.locate(messages)
        conversation = Conversation(
            id=place.root,
            turn=place.turn,
            messages=messages,
            root_length=place.root_length,
            tools=offered_tools(body),
            model=str(body.get("model") or self.name),
            sampling={name: value for name, value in body.items() if name not in NOT_SAMPLING},
        )
        return conversation, place.prompt_bytes

    def _say(
        self,
        exchange: Exchange,
        turn: Turn,
        attempt: int,
        complete: Callable[[Turn], JsonObject | list[JsonValue]],
        chunks: Callable[..., list[JsonObject]] | None,
    ) -> Reply:
        delay_s = sum(step.seconds for step in turn.every(Hang))
        failure = turn.only(Fail)
        if failure is not None and (failure.times is None or attempt < failure.times):
            body = error_body(failure.message, kind="scripted_failure", code=str(failure.status))
            return self._reply(exchange, body, status=failure.status, delay_s=delay_s)
        if (garbage := turn.only(Garbage)) is not None:
            return self._reply(exchange, garbage.body, delay_s=delay_s, wire=garbage.body)
        completion = complete(turn)
        if chunks is None:
            return self._reply(exchange, completion, delay_s=delay_s)
        events = server_sent_events(chunks(completion, include_usage=read.wants_usage(exchange.request or {})))
        return self._reply(exchange, completion, delay_s=delay_s, wire=events, media_type=EVENTS)

    def _refuse(self, exchange: Exchange, error: HermesEnvError, *, status: int = BAD_REQUEST) -> Reply:
        problem = Problem(error=type(error), text=str(error))
        with self._lock:
            self._problems.append(problem)
        body = error_body(str(problem), kind="invalid_request_error", code=problem.error.__name__)
        return self._reply(replace(exchange, kind="unexpected", problem=str(problem)), body, status=status)

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
        journal = self.journal
        number = journal.open(exchange)
        return Reply(
            status=status,
            content=(json.dumps(body) if wire is None else wire).encode("utf-8", "surrogatepass"),
            media_type=media_type,
            delay_s=delay_s,
            exchange=replace(exchange, status=status, response=body),
            number=number,
            journal=journal,
        )


def _incoming(path: str, kind: Kind) -> Exchange:
    return Exchange(path=path, kind=kind, started_s=time.monotonic())


def _said(exchange: Exchange, spoken: Spoken, kind: Kind) -> Exchange:
    return replace(exchange, kind=kind, script=spoken.script, said=str(spoken.turn))

"""Reads the sampled tokens of an inference server, and checks that each has an id and a logprob.

Place in the flow: `HermesAgentBaseEnv` uses `ExactVLLMServer` and `ExactSGLangServer` instead of atroposlib's classes, which
take the ids from the list of logprobs: a missing logprob silently removes its token, and `ManagedServer` fills the gap with
1.0. `answer_checks` has the checks that need more than the answer's format; `server_check` finds out which kind of server it is.

Source: atroposlib 0.4.0, ``envs/server_handling/vllm_server.py`` and ``sglang_server.py``, whose servers are asked as there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from environments.tokens.answer_checks import (
    SampledIds,
    TokenModeError,
    check_prompt,
    check_prompt_length,
    described,
    without_credentials,
)
from hermes_env_shared.logprob_check import NEUTRAL, of_another_token
from hermes_env_shared.prompt_logprobs import prompt_logprobs_body, read_prompt_logprobs
from hermes_env_shared.token_servers import ADVICE, ATROPOS, SGLANG, VLLM, BadAnswer, Completion, Wire, message_of, root_of

__all__ = ["ExactSGLangServer", "ExactVLLMServer", "ModelServerGone", "TokenModeError", "exact_server_class"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
Completions = tuple[list[int], list[list[int]], list[list[float]], list[Any]]
"""(prompt tokens, and per completion: tokens, logprobs, finish reason)."""
PAUSE_S = 1.0
"""Between two looks whether a server is back."""
LOOK_S = 10.0
SHOWN = 120
"""Bytes of an answer in a message."""
SHORTEST_KEY = 8
"""Characters. A shorter key is a placeholder, which may be a part of any word."""


KEEP_S = 2.0
"""Seconds for which an idle connection is kept: fewer than model servers keep theirs, so that none is closed under a request."""

_kept: ContextVar[tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None] = ContextVar("kept_connections", default=None)


@contextlib.asynccontextmanager
async def kept_connections() -> AsyncIterator[None]:
    """Let the requests of this block, those of a rollout, share connections."""
    connector, jar = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S), aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
        token = _kept.set((asyncio.get_running_loop(), session))
        try:
            yield
        finally:
            with contextlib.suppress(ValueError):  # a block that another task ends, such as that of a fixture
                _kept.reset(token)


@contextlib.asynccontextmanager
async def _session() -> AsyncIterator[aiohttp.ClientSession]:
    """Give the session of the block; one of its own to a task that outlives the block, and to a thread with another loop."""
    loop, kept = _kept.get() or (None, None)
    if kept is not None and not kept.closed and loop is asyncio.get_running_loop():
        yield kept
    else:
        async with aiohttp.ClientSession() as session:
            yield session


class ModelServerGone(TokenModeError):
    """A model server answered before, and has not come back in ``model_server_timeout`` seconds."""


def exact_server_class(server_type: str) -> type[APIServer] | None:
    """Return the class for a server of that type; None means atroposlib's own."""
    return {"vllm": ExactVLLMServer, "sglang": ExactSGLangServer}.get(server_type)


class ExactServer(APIServer):
    """A server that returns every sampled token, even without a logprob.

    ``wire`` is its kind: the first of ``wires`` until `server_check`, or a 404, says more. A server that has answered once is waited
    for, ``patience_s`` seconds, when it is restarted.
    """

    wires: Sequence[Wire] = ()
    wire: Wire | None = None
    patience_s = 600.0
    is_known = False
    """Whether it has answered once."""
    is_waited_for = False
    """Whether a run waits for it while it answers with 503, as vLLM does while its weights are replaced."""
    was_away = False
    check_again: Callable[[], Awaitable[None]] | None = None
    """What a run asks a server that was away and is back. Raises: what ends the run."""
    _is_told = False

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> Completions:
        prompt = _take_prompt(self.tokenizer, kwargs)
        read = await self._sampled(prompt, kwargs)
        for one in read:
            if isinstance(one.prompt, int):
                check_prompt_length(self, prompt, one.prompt)
            elif one.prompt is not None:
                check_prompt(self, prompt, one.prompt)
            if problem := of_another_token(one):
                raise TokenModeError(f"{described(self)} returned logprobs that {problem}. {ADVICE}")
        tokens: list[list[int]] = [SampledIds(one.tokens, one.text) for one in read]
        return prompt, tokens, [one.logprobs for one in read], [one.finish_reason for one in read]

    async def _get_logprobs_wrapper(self, **kwargs: Any) -> dict[str, Any]:
        """Return the ``top_k`` likeliest tokens at each position of ``input_ids``, and the position's own. Raises: as `ask`."""
        top = max(1, int(kwargs.get("top_k", kwargs.get("top_logprobs", 1))))
        ids = kwargs.get("input_ids")
        prompt = _take_prompt(self.tokenizer, kwargs) if ids is None else list(ids)
        rows = await self._found(
            lambda wire: self.ask(
                wire,
                prompt_logprobs_body(wire, self.config.model_name, prompt, top),
                lambda answer: read_prompt_logprobs(wire, answer, prompt),
            )
        )
        return {
            "prompt_tokens": prompt,
            "prompt_topk_token_ids": [[*row] for row in rows],
            "prompt_topk_logprobs": [[*row.values()] for row in rows],
        }

    async def _sampled(self, prompt: list[int], sampling: Mapping[str, Any]) -> list[Completion]:
        how = {**NEUTRAL, **sampling}
        return await self._found(lambda wire: self.ask(wire, wire.body(self.config.model_name, prompt, how, 0), wire.read))

    async def _found(self, ask: Callable[[Wire], Awaitable[T]]) -> T:
        """Return what the server answers as the kind that it is. Raises: as `ask`; TokenModeError if it is of no kind."""
        known = getattr(self.config, "token_path", "")  # which live mode has found out
        tried = [self.wire] if self.wire is not None else [wire for wire in self.wires if known in {"", wire.path}]
        for wire in tried:
            try:
                read = await ask(wire)
            except aiohttp.ClientResponseError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                said = error.message
            else:
                self.wire = wire
                return read
        paths = " and no ".join(wire.path for wire in tried)
        raise TokenModeError(
            f"{described(self)} has no {paths} for the model {self.config.model_name!r} (404 {said}). Token mode needs `vllm serve`, "
            "SGLang's server or Atropos' vllm_api_server. Use server_type \"openai\" (chat mode) for one that returns no token ids."
        )

    async def ask(self, wire: Wire, body: Mapping[str, Any], read: Callable[[Any], T]) -> T:
        """Return what ``read`` finds in the answer. Raises: aiohttp.ClientError; TokenModeError for an answer that cannot be read."""
        answer = await self._answer(wire.url(self.config.base_url), body)
        try:
            found = read(json.loads(answer))
        except BadAnswer as error:
            raise TokenModeError(f"{described(self)} {error}") from None
        except (LookupError, TypeError, AttributeError, ValueError, StopIteration) as error:
            shown = repr(self.without_key(answer[:SHOWN].decode(errors="replace")))
            began = f" It begins {shown}." if isinstance(error, json.JSONDecodeError) else ""
            raise TokenModeError(
                f"{described(self)} answered in a format that cannot be read: {type(error).__name__}: {error}.{began} {ADVICE}"
            ) from error
        self.is_known = True
        return found

    async def _answer(self, url: str, body: Mapping[str, Any]) -> bytes:
        """Return the answer to a request; it is repeated when a server that was well is back."""
        end = time.monotonic() + self.patience_s
        while True:
            pause = 0.0
            if self.was_away and self.check_again is not None and await self.is_up():
                await self.check_again()
            try:
                response, answer = await self._send("POST", url, body, self.config.timeout)
            except aiohttp.ClientConnectionError as error:
                if not self.is_known or await self.is_up():
                    raise
                seen, self.was_away = str(error) or type(error).__name__, True
            else:
                if response.status < HTTPStatus.BAD_REQUEST:
                    self._is_told = False
                    return answer
                seen = f"status {response.status}"
                is_down = response.status == HTTPStatus.SERVICE_UNAVAILABLE and self.is_known and not await self.is_up()
                self.was_away = self.was_away or is_down
                if is_paused := response.status == HTTPStatus.SERVICE_UNAVAILABLE and self.is_waited_for and self.is_known:
                    after = response.headers.get("Retry-After", "")
                    pause = max(PAUSE_S, min(float(after) if after.isdecimal() else 0.0, LOOK_S))
                if not is_down and (not is_paused or time.monotonic() + pause > end):
                    said = self.without_key(message_of(_json_of(answer))[:400] or str(response.reason))
                    raise aiohttp.ClientResponseError(response.request_info, (), status=response.status, message=said)
            if not self._is_told:
                self._is_told = True
                told = "%s does not answer any more (%s); it is waited for, at most %g s (model_server_timeout)"
                logger.warning(told, described(self), self.without_key(seen), self.patience_s)
            await asyncio.sleep(pause)
            await self._until_up()

    async def request(self, method: str, url: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON of an answer, None where it has no JSON. Raises: aiohttp.ClientError, OSError, TimeoutError."""
        response, answer = await self._send(
            method, url, body, min(LOOK_S, self.config.timeout) if body is None else self.config.timeout
        )
        return response.status, _json_of(answer)

    async def _send(self, method: str, url: str, body: Any, timeout_s: float) -> tuple[aiohttp.ClientResponse, bytes]:
        """Return an answer, and its body."""
        headers = {"Authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with (
            _session() as session,
            session.request(method, url, json=body, headers=headers, timeout=timeout) as response,
        ):
            return response, await response.read()

    def without_key(self, text: str) -> str:
        """Return a text of the server without our key."""
        key = self.config.api_key or ""
        return without_credentials(text.replace(key, "***") if len(key) >= SHORTEST_KEY else text)

    # ------------------------------------------------------------------ a server that is restarted

    async def is_up(self) -> bool:
        """Return whether the server answers, and does not call itself unfit."""
        try:
            status, _ = await self.request("GET", f"{root_of(self.config.base_url)}/health")
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False
        return status < HTTPStatus.INTERNAL_SERVER_ERROR

    async def _until_up(self) -> None:
        end = time.monotonic() + self.patience_s
        while not await self.is_up():
            if time.monotonic() > end:
                self.patience_s = 0.0  # further requests need not wait as long
                raise ModelServerGone(f"{described(self)} answered before, and has not come back (model_server_timeout)")
            await asyncio.sleep(PAUSE_S)

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Look every second whether the server is well; atroposlib's own looks wait for it forever, and SGLang's sample tokens."""
        seen = time.monotonic()
        while True:
            is_up = await self.is_up()
            seen = time.monotonic() if is_up else seen
            self.server_healthy = is_up or time.monotonic() - seen > self.patience_s
            await asyncio.sleep(PAUSE_S)


class ExactVLLMServer(ExactServer, VLLMServer):
    """A VLLMServer that returns every sampled token, of `vllm serve` as well."""

    wires = (ATROPOS, VLLM)


class ExactSGLangServer(ExactServer, SGLangServer):
    """An SGLangServer that returns every sampled token."""

    wires = (SGLANG, VLLM)


def _take_prompt(tokenizer: Any, kwargs: dict[str, Any]) -> list[int]:
    """Remove the prompt from ``kwargs`` and return its ids, without a second start token if template and tokenizer both add one."""
    kwargs.pop("model", None)
    text, ids = kwargs.pop("prompt", None), kwargs.pop("input_ids", None)
    prompt = list(tokenizer.encode(text) if ids is None else ids)
    is_doubled = len(prompt) > 1 and prompt[0] == prompt[1] == tokenizer.bos_token_id
    return prompt[1:] if is_doubled else prompt


def _json_of(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        return None

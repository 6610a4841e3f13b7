"""Before a run: which kind of model server this is, and which logprobs it returns. Ends a run that could only fail.

Place in the flow: the command line calls `check_servers` before ``serve``, ``process`` and ``evaluate``. `hermes_env_shared.server_questions`
has the questions. During ``serve``, `ModelWatch` ends a run whose model has never answered.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
import openai

from environments.loop.log_once import cause_of
from environments.tokens.answer_checks import TokenModeError, without_credentials
from environments.tokens.exact_tokens import PAUSE_S, SHORTEST_KEY, ExactServer, ModelServerGone
from hermes_env_shared.server_questions import Identity, Unusable, questions
from hermes_env_shared.token_servers import root_of

logger = logging.getLogger(__name__)

START_S = 60.0
"""Seconds for which a server is waited for that has never answered."""
MANY_GROUPS = 3
"""Groups without a reply of the model after which a run ends, whatever the error is."""
PASSING = frozenset({408, 409, 425, 429})
"""Client errors that may not come again."""
NOT_READY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
NEUTRAL: Mapping[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "top_k": (-1, 0),
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
"""Values with which raw and processed logprobs are the same."""


class ModelServerError(RuntimeError):
    """No rollout can succeed on the model server, or nobody could train on what it returns."""


class _NoAnswerError(ModelServerError):
    """A server did not answer a question."""


# ---------------------------------------------------------------------- before a run


async def check_servers(
    servers: list[Any], sampling: Mapping[str, Any], *, is_training: bool, allow_raw: bool, patience_s: float
) -> str:
    """Find out what each server of token mode is; return what their logprobs are, "" if no server could be asked.

    ``sampling`` are the parameters of training rollouts. Prints a line for each server.

    Raises: ModelServerError for a server that does not answer, that returns no exact tokens, or whose logprobs are not those of
    ``sampling``, unless ``allow_raw``; where nothing is trained, these are warnings.
    """
    modes = set()
    for server in servers:
        if not isinstance(server, ExactServer):
            continue
        server.patience_s, server.is_waited_for = patience_s, True
        try:
            modes.add(await _checked(server, sampling, allow_raw=allow_raw))
            server.check_again = _Again(server, sampling, allow_raw=allow_raw) if is_training else None
        except ModelServerError as error:
            if is_training:
                raise
            logger.warning("%s\n  (serve would end here; this mode trains nothing)", error)
    return modes.pop() if len(modes) == 1 else ("unknown" if modes else "")


async def _checked(server: ExactServer, sampling: Mapping[str, Any], *, allow_raw: bool) -> str:
    name = f"model server {without_credentials(str(server.config.base_url))}"
    found = await _identified(server)
    print(f"{name}: {found}", flush=True)  # noqa: T201 - what the user waits for
    if problem := _problem(found, sampling, name=name, allow_raw=allow_raw):
        raise ModelServerError(problem)
    return found.finding.mode


class _Again:
    """Asks a server that was away and is back once more: it may have been started with other settings."""

    def __init__(self, server: ExactServer, sampling: Mapping[str, Any], *, allow_raw: bool) -> None:
        self._server, self._sampling, self._allow_raw = server, sampling, allow_raw
        self._lock = asyncio.Lock()
        self._problem = ""

    async def __call__(self) -> None:
        """Ask it, once for all requests: those that waited, and their repetitions. Raises: ModelServerError when no rollout can succeed any more."""
        async with self._lock:
            if self._server.was_away and not self._problem:
                try:
                    await _checked(self._server, self._sampling, allow_raw=self._allow_raw)
                    self._server.was_away = False
                except _NoAnswerError:  # away again: the next request waits for it
                    return
                except ModelServerError as error:
                    self._problem = str(error)
            if self._problem:
                raise ModelServerError(self._problem)


async def _identified(server: ExactServer) -> Identity:
    """Return what a server is; the server's ``wire`` is set. Raises: ModelServerError when it returns no exact tokens."""
    await _answering(server)
    url, model = server.config.base_url, server.config.model_name
    asking, answer = questions(url, server.config.server_type, model), None
    try:
        while True:
            method, address, body = asking.send(answer) if answer else next(asking)
            answer = await server.request(method, address, body)
    except StopIteration as end:
        found: Identity | Unusable = end.value
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        said = server.without_key(str(error) or type(error).__name__)
        raise _NoAnswerError(f"The model server {without_credentials(url)} did not answer a question: {said}") from None
    if isinstance(found, Identity):
        server.wire, server.is_known = found.wire, True
        return found
    fix = (
        "correct --openai.base_url, or start `vllm serve` (0.10.2 or later), SGLang's server or Atropos' vllm_api_server there"
    )
    if found.refuses_key:
        fix = "set the server's key: --openai.api_key"
    elif found.models and model not in found.models:
        fix = f"--openai.model_name with a model that it serves: {', '.join(found.models)}"
    seen = "\n            ".join(server.without_key(line) for line in found.seen)
    raise ModelServerError(
        "No rollout can succeed on the model server: it does not return the tokens that it samples.\n"
        f"  expected  token ids and logprobs of the model {model!r} at {without_credentials(url)}\n"
        f"  seen      {seen}\n"
        f"  fix       {fix}"
    )


async def _answering(server: ExactServer) -> None:
    """Wait for a server's first answer. Raises: ModelServerError when there is none, in `START_S` seconds."""
    end = time.monotonic() + START_S
    url = without_credentials(str(server.config.base_url))
    is_told = False
    while True:
        try:
            status, _ = await server.request("GET", f"{root_of(server.config.base_url)}/version")
            if status not in NOT_READY:
                return
            seen = f"status {status}"
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            seen = server.without_key(str(error) or type(error).__name__)
        if time.monotonic() > end:
            raise ModelServerError(
                f"The model server does not answer.\n  expected  a server at {url}\n  seen      {seen}, for {START_S:g} s\n"
                "  fix       start it, or correct --openai.base_url"
            )
        if not is_told:
            is_told = True
            print(f"model server {url}: waiting for it, {seen}", flush=True)  # noqa: T201
        await asyncio.sleep(PAUSE_S)


async def check_chat_servers(servers: list[Any]) -> None:
    """Ask each server of chat mode once what atroposlib asks every second, as it waits forever for one that refuses that.

    Raises: ModelServerError when each of them refuses the question, or does not answer in `START_S` seconds.
    """
    asked = [server for server in servers if getattr(server, "openai", None) and server.config.health_check]
    refusals = [text for text in await asyncio.gather(*map(_refusal_of, asked)) if text]
    if refusals and len(refusals) == len(servers):
        raise ModelServerError(refusals[0])
    for text in refusals:
        logger.warning(text)


async def _refusal_of(server: Any) -> str:
    """Return why a server answers no chat completion, or ""."""
    config, end, is_told = server.config, time.monotonic() + START_S, False
    url, client = without_credentials(str(config.base_url)), server.openai.with_options(max_retries=0, timeout=START_S)
    while True:
        try:
            await client.chat.completions.create(
                model=config.model_name, messages=[{"role": "user", "content": "hi"}], max_tokens=1
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, atroposlib would ask again without a word
            key = config.api_key or ""
            said = str(error).replace(key, "***") if len(key) >= SHORTEST_KEY else str(error)
            seen = without_credentials(f"{type(error).__name__}: {said}")[:600]
            if is_lasting(error) or time.monotonic() > end:
                return (
                    f"The model server does not answer a chat completion.\n  expected  an answer of {config.model_name!r} at {url}\n"
                    f"  seen      {seen}\n"
                    "  fix       correct --openai.base_url, --openai.model_name or --openai.api_key; --openai.health_check false leaves "
                    "this question out"
                )
        else:
            return ""
        if not is_told:
            is_told = True
            print(f"model server {url}: waiting for it, {seen}", flush=True)  # noqa: T201
        await asyncio.sleep(PAUSE_S)


def _problem(found: Identity, sampling: Mapping[str, Any], *, name: str, allow_raw: bool) -> str:
    """Return why nobody could train on the logprobs, or ""."""
    finding = found.finding
    changed = {
        parameter: value
        for parameter, value in sampling.items()
        if value not in (neutral if isinstance(neutral := NEUTRAL.get(parameter, value), tuple) else (neutral,))
    }
    if allow_raw or (not finding.problem and (finding.mode != "raw" or not changed)):
        return ""
    allowed = "--env.allow_raw_logprobs true, if the trainer computes its own logprobs, or corrects these"
    if finding.problem:
        return f"The {name} returns {finding}.\n  expected  natural logarithms of the sampled tokens' probabilities\n  fix       {allowed}"
    how = ", ".join(f"{parameter} {value}" for parameter, value in changed.items())
    return (
        f"The {name} returns {finding}.\n"
        f"  expected  the logprobs of the distribution that rollouts are sampled from: {how}\n"
        f"  seen      those of the model itself; the importance ratio of every token would be wrong\n"
        f"  fix       {found.wire.processed}\n"
        f"            or --env.agent_temperature 1.0, and no penalties in extra_body\n"
        f"            or {allowed}"
    )


# ---------------------------------------------------------------------- during a run


class ModelWatch:
    """Whether the model answers, and why not."""

    def __init__(self) -> None:
        self.has_answered = False
        self.cause: Exception | None = None
        self._groups, self._since = 0, math.inf

    def failed(self, error: BaseException | None) -> None:
        """Remember why the model did not answer in a rollout."""
        cause = cause_of(error) if error is not None else None
        self.cause = cause if isinstance(cause, Exception) else self.cause
        self._since = min(self._since, time.monotonic())

    def answered(self) -> None:
        """Note an answer: what failed before was not for good."""
        self.has_answered, self.cause, self._groups, self._since = True, None, 0, math.inf

    def group_ended(self) -> None:
        """Count a group that ended since the model answered last."""
        self._groups += self.cause is not None

    def check(self) -> None:
        """Raise ModelServerError when no further rollout can succeed."""
        error = self.cause
        if isinstance(error, ModelServerGone | ModelServerError):
            raise ModelServerError(str(error))
        if error is None or not self._groups or (self._groups < MANY_GROUPS and (self.has_answered or not is_lasting(error))):
            return
        if self.has_answered and (not is_lasting(error) or time.monotonic() - self._since < START_S):
            return  # it is restarted, perhaps behind a proxy
        groups = (
            "The first group"
            if self._groups == 1
            else f"Each of the {'last' if self.has_answered else 'first'} {self._groups} groups"
        )
        raise ModelServerError(
            f"{groups} failed without one reply of the model; no further rollout is started.\n"
            f"  seen      {type(error).__name__}: {without_credentials(str(error))[:600]}\n"
            "  fix       correct --openai.base_url, --openai.model_name or --openai.api_key, or the server's settings"
        )


def is_lasting(error: Exception) -> bool:
    """Return whether a server will refuse further requests as well."""
    if isinstance(error, aiohttp.ClientResponseError):
        status = error.status
    elif isinstance(error, openai.APIStatusError):
        status = error.status_code
    else:
        return isinstance(error, TokenModeError)
    return HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in PASSING

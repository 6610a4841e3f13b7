"""The model servers of a rollout: the engine's endpoint as the policy, and a judge that was not configured."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServer, APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManager

from environments.loop.end import current_record
from environments.service.waiting_line import Refused


class JudgeMissing(RuntimeError):
    """`compute_reward` asked a model, and the service has no judge."""


def check_endpoint(url: str, *, client: str | None, allowed: Collection[str]) -> None:
    """Check that ``url`` is an endpoint that a rollout may call: a chat API on the client's own machine, or a host that is allowed.

    ``client`` is the address that the request came from, None if others may stand behind it. ``allowed`` are ``HOST`` and
    ``HOST:PORT``, ``*`` is every host; a host that is among them is called as they say, also on the client's machine.
    Raises: Refused.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError as error:
        raise Refused(422, "bad_endpoint", f"endpoint must be a URL: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise Refused(422, "bad_endpoint", "endpoint must be an http or https URL, such as http://127.0.0.1:8000/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise Refused(422, "bad_endpoint", "endpoint must have no user, password, query or fragment; send the key as api_key")
    ports = {allowed_port for name, allowed_port in map(_host_and_port, allowed) if name in {"*", _address(host)}}
    is_own = client is not None and (_address(host) == _address(client) or (_is_loopback(host) and _is_loopback(client)))
    is_chat = parts.path.rstrip("/").endswith("/v1") and "%" not in parts.path and not {".", ".."} & {*parts.path.split("/")}
    if not (ports & {None, port} if ports else is_own and is_chat):
        raise Refused(
            422,
            "bad_endpoint",
            f"endpoint is {host}:{port}{parts.path}, and the client on {client or 'a machine behind a proxy'}. A rollout calls what "
            f"--endpoint-host allows ({', '.join(sorted(allowed)) or 'nothing'}), and of the client's own machine plain paths that end in /v1",
        )


def _host_and_port(text: str) -> tuple[object, int | None]:
    """Return host and port of ``HOST``, ``HOST:PORT`` or ``[ADDRESS]:PORT``; the port is None where there is none."""
    host, _, port = text.rpartition(":")
    if host and port.isdecimal() and (":" not in host or host.endswith("]")):
        return _address(host.strip("[]")), int(port)
    return _address(text.strip("[]")), None


def _address(host: str) -> object:
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    return getattr(address, "ipv4_mapped", None) or address


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or bool(getattr(address, "is_loopback", False))


class CappedTransport(httpx.AsyncHTTPTransport):
    """Answers with 413 instead of an engine's reply, or to a conversation, of more than so many bytes; no client asks again then."""

    def __init__(self, *, max_reply: int, max_conversation: int) -> None:
        super().__init__(limits=httpx.Limits(max_connections=None))
        self._max_reply, self._max_conversation = max_reply, max_conversation

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and return the whole response."""
        if len(request.content) > self._max_conversation:
            return _too_large("the conversation", self._max_conversation)
        request.headers["Accept-Encoding"] = "identity"  # a small reply could be a large one, compressed
        request.headers["Connection"] = "close"  # httpcore 1.0 may close one that it keeps under the next turn
        response = await super().handle_async_request(request)
        body = bytearray()
        try:
            if response.headers.get("Content-Encoding", "identity") != "identity":
                return _too_large("the engine's reply is compressed, which was not asked for; it", self._max_reply)
            async for part in response.aiter_raw():
                body += part
                if len(body) > self._max_reply:
                    return _too_large("the engine's reply", self._max_reply)
        finally:
            await response.aclose()
        return httpx.Response(response.status_code, headers=response.headers, content=bytes(body))


def _too_large(what: str, limit: int) -> httpx.Response:
    return httpx.Response(413, json={"error": {"message": f"{what} has more than {limit} bytes"}})


class PolicyServer(OpenAIServer):
    """The engine's endpoint. Its sampling parameters replace those of the environment.

    Requests are repeated by the openai client alone, whose header tells the engine so: each further attempt of atroposlib would be
    a new turn to it.
    """

    def __init__(
        self,
        config: APIServerConfig,
        reasoning_config: Any = None,
        *,
        http: httpx.AsyncClient,
        sampling: Mapping[str, Any],
    ) -> None:
        # not OpenAIServer's, which opens a connection pool that nobody closes
        APIServer.__init__(self, config, reasoning_config=reasoning_config)
        self.openai = openai.AsyncOpenAI(
            api_key=config.api_key, base_url=config.base_url, timeout=config.timeout, http_client=http
        )
        self.sampling = {name: value for name, value in sampling.items() if value is not None}
        self.failure: Exception | None = None
        """The error of the last request; None if it was answered."""

    async def chat_completion(self, **request: Any) -> Any:
        """Return the model's next message."""
        return await self._answer(self._chat_completion_wrapper, self._inject_reasoning_kwargs(request))

    async def completion(self, **request: Any) -> Any:
        """Return a completion of plain text."""
        return await self._answer(self._completion_wrapper, request)

    async def _answer(self, ask: Any, request: dict[str, Any]) -> Any:
        request.pop("split", None)
        request["model"] = self.config.model_name
        if "max_completion_tokens" in self.sampling:
            request.pop("max_tokens", None)
        request["extra_body"] = {**(request.get("extra_body") or {}), **self.sampling}
        try:
            answer = await ask(**request)
        except Exception as error:
            self.failure = error
            raise
        self.failure = None
        return answer


def policy_manager(
    config: APIServerConfig, *, http: httpx.AsyncClient, sampling: Mapping[str, Any], reasoning: Any = None
) -> ServerManager:
    """Return the engine's endpoint as the ServerManager that environments expect."""
    server_class = functools.partial(PolicyServer, http=http, sampling=sampling)
    return ServerManager([config], server_class=server_class, reasoning_config=reasoning)


class MissingJudge:
    """Stands for the judge of a service that has none: asking it makes the reward fail, even if the environment catches the error."""

    servers: tuple[Any, ...] = ()

    async def chat_completion(self, **_request: Any) -> Any:
        """Raise JudgeMissing."""
        error = JudgeMissing(
            "compute_reward asked a model, and this service has no judge: start it with --judge-base-url and --judge-model. The "
            "policy's endpoint is not used for it, because the engine would train on the judge's replies"
        )
        current_record().reward_error = error
        raise error

    completion = chat_completion

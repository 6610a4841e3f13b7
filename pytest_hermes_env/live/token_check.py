"""Whether a real server returns the tokens that it samples, and which logprobs: two short questions, as `serve` asks them.

Place in the flow: `preflight` checks servers of token mode before any test; the fixture check_tokens gives what was found.
"""

from __future__ import annotations

import httpx

from hermes_env_shared.server_questions import Identity, Unusable, questions
from pytest_hermes_env.errors import LiveModeError
from pytest_hermes_env.live.providers import LiveServer

PATIENCE_S = 60.0


def check_tokens(base_url: str, *, model: str, server_type: str = "vllm", key: str = "") -> Identity:
    """Return what the server is. ``server_type`` ("vllm", "sglang") decides only where the server does not say.

    Raises: it does not answer, or returns no exact tokens → LiveModeError.
    """
    server = LiveServer(provider=server_type, base_url=base_url, model=model, server_type=server_type, key=key, key_name="key")
    with httpx.Client(timeout=PATIENCE_S, headers={"authorization": f"Bearer {key}"} if key else {}) as client:
        return identified(client, server)


def identified(client: httpx.Client, server: LiveServer) -> Identity:
    """Return what the server of a client is. Raises: see `check_tokens`."""
    asking = questions(server.base_url, server.server_type, server.model)
    answer: tuple[int, object] | None = None
    try:
        while True:
            method, url, body = next(asking) if answer is None else asking.send(answer)
            response = client.request(method, url, json=body)
            answer = response.status_code, _json_of(response)
    except StopIteration as end:
        found: Identity | Unusable = end.value
    except httpx.HTTPError as error:
        found = Unusable(seen=[f"{type(error).__name__}: {error}"], refuses_key=False, models=[])
    if isinstance(found, Identity):
        return found
    seen = "\n            ".join(server.without_key(line) for line in found.seen)
    raise LiveModeError(
        f"the model server {server.base_url} does not return the tokens that it samples.\n"
        f"  expected  token ids and logprobs of {server.model}, which a server of type {server.server_type} returns\n  seen      {seen}\n"
        "  fix       serve the model with `vllm serve` (0.10.2 or later), SGLang or Atropos' vllm_api_server; or use the chat API: "
        f"--provider custom --hermes-base-url {server.base_url} --hermes-model {server.model}"
    )


def _json_of(response: httpx.Response) -> object:
    try:
        return response.json()
    except ValueError:
        return None

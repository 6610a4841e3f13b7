"""Checks before any test that the real server answers, accepts the key and has the model. It calls no model that costs anything.

Special cases: OpenRouter lists its models without a key, and only ``/key`` checks the key. ``transformers serve`` does not list a
model that is a directory, and answers ``/models`` with 500 on a machine without a cache of the hub. A server of one's own that
returns tokens is asked two questions for them.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from hermes_env_shared.token_servers import SGLANG
from hermes_env_shared.token_servers import message_of as shape_of_message
from pytest_hermes_env.errors import LiveModeError, UsageError, shorten
from pytest_hermes_env.live.providers import LiveServer
from pytest_hermes_env.live.token_check import identified

PATIENCE_S = 10.0
SHOWN_MODELS = 8
REFUSALS = frozenset({401, 403})
NOT_FOUND, SERVER_FAILURE = 404, 500


def preflight(server: LiveServer, *, accepts_unlisted: bool = False) -> tuple[LiveServer, str]:
    """Return the server with the name of its model, and a remark on a check that was not possible, or "".

    ``accepts_unlisted`` accepts a model that the server does not list.

    Raises: not reachable, key refused, wrong URL, no such model, no exact tokens → LiveModeError. No model was given and the
    server does not have exactly one → UsageError.
    """
    headers = {"authorization": f"Bearer {server.key}"} if server.key else {}
    with httpx.Client(timeout=PATIENCE_S, headers=headers, follow_redirects=True) as client:
        if server.is_checked:
            _expect_success(server, _get(client, server, f"{server.root}/health"))
        if server.provider == "openrouter":
            _expect_success(server, _get(client, server, f"{server.base_url}/key"))
        models, remark = _models(server, _get(client, server, f"{server.base_url}/models"))
        server = _with_model(server, models, accepts_unlisted=accepts_unlisted)
        if server.server_type != "openai":
            found = identified(client, server)
            kind = "sglang" if found.wire is SGLANG else "vllm"
            server = replace(server, server_type=kind, token_path=found.wire.path, tokenizer=_tokenizer_of(server))
            remark = "; ".join(filter(None, (remark, f"it is {found}")))
    return server, remark


def _tokenizer_of(server: LiveServer) -> str:
    """Return the directory of the model's tokenizer, which token mode requires: tests do not download it.

    Raises: it is not on this machine → LiveModeError.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - takes 100 ms
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    name = server.tokenizer or server.model
    directory = Path(name).expanduser()
    if directory.is_dir():
        return str(directory)
    try:
        return str(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        raise LiveModeError(
            f"the tokenizer of {server.model} is not on this machine, and requests to a server of type {server.server_type} contain token ids.\n"
            f"  expected  a directory, or a name in the hub's cache\n  seen      {name}\n"
            f"  fix       hf download {name} --include '*token*' '*.json' '*.jinja', or --hermes-tokenizer DIR"
        ) from None


def _get(client: httpx.Client, server: LiveServer, url: str) -> httpx.Response:
    try:
        return client.get(url)
    except httpx.HTTPError as error:
        raise LiveModeError(
            f"the server of --hermes-live is not reachable: GET {url} got no answer.\n"
            f"  expected  {server.describe()}\n"
            f"  seen      {type(error).__name__}: {shorten(server.without_key(str(error)))}\n"
            "  fix       start the server, or correct --hermes-base-url"
        ) from None


def _expect_success(server: LiveServer, response: httpx.Response) -> None:
    url, status = response.url, response.status_code
    if response.is_success:
        return
    said = f"{status} {response.reason_phrase}: {shorten(server.without_key(message_of(response)))}"
    if status in REFUSALS:
        named = f"the key in {server.key_name}" if server.key_name else "a request without a key"
        fix = (
            f"put a valid key into {server.key_name}"
            if server.key_name
            else "name the variable that holds the key: --hermes-api-key-env NAME"
        )
        raise LiveModeError(
            f"the server of --hermes-live refused {named}.\n"
            f"  expected  GET {url} to succeed\n  seen      {said}\n  fix       {fix}"
        )
    fix = f"check the base URL {server.base_url}: it usually ends in /v1" if status == NOT_FOUND else "check the server's log"
    raise LiveModeError(
        f"the server of --hermes-live answers, but not like {server.provider}.\n"
        f"  expected  GET {url} to succeed\n  seen      {said}\n  fix       {fix}"
    )


def _models(server: LiveServer, response: httpx.Response) -> tuple[list[str], str]:
    """Return the listed models, and a remark when there is no list."""
    if response.status_code >= SERVER_FAILURE and server.model:
        return [], f"its list of models could not be read: {response.status_code} {response.reason_phrase}"
    if response.status_code == NOT_FOUND and server.server_type != "openai":
        return [], "it does not list its models"
    _expect_success(server, response)
    try:
        rows: Any = response.json()
    except ValueError:
        rows = None
    data = rows.get("data") if isinstance(rows, dict) else rows
    if not isinstance(data, list):
        raise LiveModeError(
            f"the server of --hermes-live returns no list of models at {response.url}.\n"
            f"  expected  JSON of the form {{'data': [{{'id': ...}}]}}\n"
            f"  seen      {shorten(server.without_key(response.text))}\n"
            f"  fix       check the base URL {server.base_url}: it usually ends in /v1"
        )
    models = [str(row["id"]) for row in data if isinstance(row, dict) and "id" in row]
    return models, "" if models else "its list of models is empty"


def _with_model(server: LiveServer, models: list[str], *, accepts_unlisted: bool) -> LiveServer:
    if not server.model:
        if len(models) == 1:
            return replace(server, model=models[0])
        raise UsageError(
            f"--hermes-live: --hermes-model is missing, and {server.base_url} lists {len(models) or 'no'} models.\n"
            f"  seen      {_shown(models) or 'no models'}\n  fix       --hermes-model M"
        )
    if not models or server.model in models or accepts_unlisted:
        return server
    nearest = difflib.get_close_matches(server.model, models, n=3, cutoff=0.6)
    raise LiveModeError(
        f"the server of --hermes-live has no model {server.model}.\n"
        f"  expected  one of the {len(models)} that {server.base_url}/models lists\n"
        f"  seen      {'nearest: ' + ', '.join(nearest) if nearest else _shown(models)}\n"
        "  fix       --hermes-model with a name from the list, or --hermes-unlisted-model if the list is incomplete"
    )


def _shown(models: list[str]) -> str:
    more = f", and {len(models) - SHOWN_MODELS} more" if len(models) > SHOWN_MODELS else ""
    return ", ".join(models[:SHOWN_MODELS]) + more


def message_of(response: Any) -> str:
    """Return the message of an error answer of any common shape, or its text."""
    try:
        return shape_of_message(response.json()) or str(response.text)
    except ValueError:
        return str(response.text)

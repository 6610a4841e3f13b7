"""Which real server the settings mean, and whether it is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import httpx
import pytest
import respx

from pytest_hermes_env.errors import LiveModeError, UsageError
from pytest_hermes_env.inference import MockServer
from pytest_hermes_env.live.preflight import preflight
from pytest_hermes_env.live.providers import SETUPS, LiveServer, choose_server

KEY = "sk-or-v1-0123456789abcdef"
LOCAL = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        (
            {"provider": "openrouter", "model": "a/b"},
            {"OPENROUTER_API_KEY": KEY},
            LiveServer(
                provider="openrouter",
                base_url="https://openrouter.ai/api/v1",
                model="a/b",
                key_name="OPENROUTER_API_KEY",
                may_tell_cost=True,
            ),
        ),
        (
            {"provider": "openai", "model": "m"},
            {"OPENAI_API_KEY": KEY},
            LiveServer(provider="openai", base_url="https://api.openai.com/v1", model="m", key_name="OPENAI_API_KEY"),
        ),
        (
            {"provider": "vllm"},
            {},
            LiveServer(provider="vllm", base_url=LOCAL, model="", server_type="vllm", is_checked=True, lists_its_model=True),
        ),
        (
            {"provider": "sglang", "model": "m", "base_url": "http://gpu:30000/v1/"},
            {},
            LiveServer(
                provider="sglang",
                base_url="http://gpu:30000/v1",
                model="m",
                server_type="sglang",
                is_checked=True,
                lists_its_model=True,
            ),
        ),
        ({"provider": "atropos"}, {}, LiveServer(provider="atropos", base_url=LOCAL, model="", lists_its_model=True)),
        (
            {"provider": "custom", "model": "m", "base_url": "https://h/v1/chat/completions", "key_name": "MINE"},
            {"MINE": KEY},
            LiveServer(provider="custom", base_url="https://h/v1", model="m", key_name="MINE", may_tell_cost=True),
        ),
    ],
    ids=lambda value: value.get("provider") if isinstance(value, dict) else None,
)
def test_the_presets(given: dict[str, str], environ: dict[str, str], expected: LiveServer) -> None:
    """Each provider's type, URL and key variable are the guide's; the key is taken from the environment."""
    server = choose_server(**given, environ=environ)

    assert server == expected
    assert server.key == next(iter(environ.values()), "")


def test_the_configuration_for_atroposlib() -> None:
    """No health check of atroposlib's, the type of the preset, and a repr without the key."""
    config = choose_server(provider="openrouter", model="a/b", environ={"OPENROUTER_API_KEY": KEY}).config()

    assert (config.server_type, config.health_check, config.model_name, config.base_url, config.api_key) == (
        "openai",
        False,
        "a/b",
        "https://openrouter.ai/api/v1",
        KEY,
    )
    assert KEY not in f"{config!r} {config}"


INCOMPLETE = f"""\
--hermes-live: {{happened}}.
  expected  {{expected}}; there is no default, since calls cost money
  fix       use one of these setups:

{SETUPS}

            The ini values hermes_live_provider, hermes_live_model, ... and the variables HERMES_ENV_PROVIDER,
            HERMES_ENV_MODEL, ... do the same; flags win, then variables."""


@pytest.mark.parametrize(
    ("given", "happened", "expected"),
    [
        ({}, "no provider was chosen", "--provider and what it needs"),
        (
            {"provider": "openruter"},
            "there is no provider 'openruter'. Nearest: openrouter",
            "one of openrouter, openai, vllm, sglang, atropos, custom",
        ),
        ({"provider": "openrouter"}, "provider openrouter requires a model", "--hermes-model M"),
        ({"provider": "custom", "model": "m"}, "provider custom requires a base URL", "--hermes-base-url URL"),
        ({"provider": "custom", "base_url": LOCAL}, "provider custom requires a model", "--hermes-model M"),
    ],
)
def test_nothing_is_assumed(given: dict[str, str], happened: str, expected: str) -> None:
    """What is missing is named, with all set-ups and their flags."""
    with pytest.raises(UsageError) as error:
        choose_server(**given, environ={})

    assert str(error.value) == INCOMPLETE.format(happened=happened, expected=expected)


@pytest.mark.parametrize(("environ", "state"), [({}, "not set"), ({"OPENROUTER_API_KEY": " "}, "empty")])
def test_a_missing_key_names_its_variable(environ: dict[str, str], state: str) -> None:
    """The variable is named, and whether it is there at all."""
    with pytest.raises(LiveModeError) as error:
        choose_server(provider="openrouter", model="m", environ=environ)

    assert str(error.value) == (
        f"the key for openrouter is missing: the environment variable OPENROUTER_API_KEY is {state}.\n"
        "  expected  a key for https://openrouter.ai/api/v1\n"
        "  fix       export OPENROUTER_API_KEY=..., or name the variable that holds it: --hermes-api-key-env NAME"
    )


@pytest.mark.parametrize("given", ["sk-or-v1-planted0123456789", "gsk_planted0123456789abc"])
def test_a_key_in_the_place_of_its_name_is_not_repeated(given: str) -> None:
    """Who types the key itself is told so, without it."""
    with pytest.raises(UsageError) as error:
        choose_server(provider="custom", model="m", base_url="http://h/v1", key_name=given, environ={})

    assert str(error.value) == (
        f"--hermes-api-key-env must be the name of an environment variable, not a value of {len(given)} characters.\n"
        "  expected  letters, digits and _, such as OPENROUTER_API_KEY; never the key itself, which reports would show\n"
        "  fix       export MY_KEY=..., and --hermes-api-key-env MY_KEY; a key typed here is in the shell's history"
    )


@pytest.mark.parametrize(
    ("url", "text"),
    [
        (
            "localhost:8000/v1",
            "--hermes-live: 'localhost:8000/v1' is not a base URL.\n"
            "  expected  http:// or https://, a host, and the path that contains /chat/completions, usually /v1",
        ),
        (
            f"https://me:{KEY}@h:81/v1",
            "--hermes-live: the base URL of h contains a user, a password or a query, which reports would show.\n"
            "  expected  https://h:81/v1\n"
            "  fix       put the key into an environment variable and name the variable: --hermes-api-key-env NAME",
        ),
    ],
)
def test_a_wrong_base_url_is_a_usage_error(url: str, text: str) -> None:
    """What is no URL, and what carries a secret; the secret is not repeated."""
    with pytest.raises(UsageError) as error:
        choose_server(provider="custom", model="m", base_url=url, environ={})

    assert str(error.value) == text


CUSTOM = LiveServer(provider="custom", base_url="http://api.test/v1", model="m1", key_name="MINE", key=KEY)
VLLM = LiveServer(
    provider="vllm", base_url="http://api.test/v1", model="", server_type="vllm", is_checked=True, lists_its_model=True
)


def models(*names: str) -> httpx.Response:
    """Return a list of models."""
    return httpx.Response(200, json={"object": "list", "data": [{"id": name} for name in names]})


def test_a_server_that_is_there_passes() -> None:
    """One request with the key, and the model is in the list."""
    with respx.mock(base_url="http://api.test") as api:
        route = api.get("/v1/models").mock(models("m0", "m1"))
        found = preflight(CUSTOM)

    assert found == (CUSTOM, "")
    assert [call.request.headers["authorization"] for call in route.calls] == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("engine", "asked", "said"),
    [
        (
            "vllm",
            ["/v1/completions"] * 2,
            "it is vllm serve 0.33.0, /v1/completions; raw logprobs, before temperature and penalties",
        ),
        ("sglang", ["/generate"] * 2, "it is SGLang, /generate; processed logprobs, after temperature"),
    ],
)
def test_a_vllm_server_is_asked_for_its_health_and_its_model(
    engine: Literal["vllm", "sglang"], asked: list[str], said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """/health once, the one model that it serves, and two questions for tokens and logprobs."""
    directory = str(tmp_path_factory.mktemp("tokenizer"))
    with MockServer(template="chatml", engine=engine, model="Qwen/Qwen3-8B") as mock:
        found, remark = preflight(replace(VLLM, base_url=mock.base_url, tokenizer=directory))

        paths = [exchange.path for exchange in mock.journal]
        assert paths == ["/health", "/v1/models", "/version", "/model_info", *asked]
    assert (found.model, found.tokenizer, found.server_type) == ("Qwen/Qwen3-8B", directory, engine)
    assert remark == said


def test_a_list_that_cannot_be_read_is_a_remark() -> None:
    """A server whose list is broken, or empty, may have the model all the same: `transformers serve` does both."""
    with respx.mock(base_url="http://api.test") as api:
        api.get("/v1/models").mock(httpx.Response(500, text="Internal Server Error"))
        broken = preflight(CUSTOM)[1]
        api.get("/v1/models").mock(models())
        empty = preflight(CUSTOM)[1]

    assert (broken, empty) == ("its list of models could not be read: 500 Internal Server Error", "its list of models is empty")


def refuse(request: httpx.Request) -> httpx.Response:
    """Refuse a connection."""
    raise httpx.ConnectError(f"[Errno 111] Connection refused {KEY}", request=request)


@pytest.mark.parametrize(
    ("server", "answers", "text"),
    [
        (
            CUSTOM,
            {"/v1/models": refuse},
            "the server of --hermes-live is not reachable: GET http://api.test/v1/models got no answer.\n"
            "  expected  m1 at http://api.test/v1 (custom)\n"
            "  seen      ConnectError: [Errno 111] Connection refused [redacted:MINE:1]\n"
            "  fix       start the server, or correct --hermes-base-url",
        ),
        (
            CUSTOM,
            {"/v1/models": httpx.Response(401, json={"error": {"message": f"Incorrect API key provided: {KEY}"}})},
            "the server of --hermes-live refused the key in MINE.\n"
            "  expected  GET http://api.test/v1/models to succeed\n"
            "  seen      401 Unauthorized: Incorrect API key provided: [redacted:MINE:1]\n"
            "  fix       put a valid key into MINE",
        ),
        (
            replace(CUSTOM, key="", key_name=""),
            {"/v1/models": httpx.Response(403, json={"detail": "no"})},
            "the server of --hermes-live refused a request without a key.\n"
            "  expected  GET http://api.test/v1/models to succeed\n"
            "  seen      403 Forbidden: no\n"
            "  fix       name the variable that holds the key: --hermes-api-key-env NAME",
        ),
        (
            CUSTOM,
            {"/v1/models": httpx.Response(404, json={"detail": "Not Found"})},
            "the server of --hermes-live answers, but not like custom.\n"
            "  expected  GET http://api.test/v1/models to succeed\n"
            "  seen      404 Not Found: Not Found\n"
            "  fix       check the base URL http://api.test/v1: it usually ends in /v1",
        ),
        (
            CUSTOM,
            {"/v1/models": httpx.Response(200, text="<html>hello</html>")},
            "the server of --hermes-live returns no list of models at http://api.test/v1/models.\n"
            "  expected  JSON of the form {'data': [{'id': ...}]}\n"
            "  seen      <html>hello</html>\n"
            "  fix       check the base URL http://api.test/v1: it usually ends in /v1",
        ),
        (
            CUSTOM,
            {"/v1/models": models("m10", "other")},
            "the server of --hermes-live has no model m1.\n"
            "  expected  one of the 2 that http://api.test/v1/models lists\n"
            "  seen      nearest: m10\n"
            "  fix       --hermes-model with a name from the list, or --hermes-unlisted-model if the list is incomplete",
        ),
        (
            VLLM,
            {"/health": httpx.Response(503, text="loading")},
            "the server of --hermes-live answers, but not like vllm.\n"
            "  expected  GET http://api.test/health to succeed\n"
            "  seen      503 Service Unavailable: loading\n"
            "  fix       check the server's log",
        ),
        (
            VLLM,
            {"/health": httpx.Response(200), "/v1/models": models("a", "b")},
            "--hermes-live: --hermes-model is missing, and http://api.test/v1 lists 2 models.\n"
            "  seen      a, b\n"
            "  fix       --hermes-model M",
        ),
        (
            VLLM,
            {"/health": httpx.Response(200), "/v1/models": httpx.Response(404)},
            "--hermes-live: --hermes-model is missing, and http://api.test/v1 lists no models.\n"
            "  seen      no models\n"
            "  fix       --hermes-model M",
        ),
        (
            VLLM,
            {"/health": httpx.Response(200), "/v1/models": models("a")},
            "the model server http://api.test/v1 does not return the tokens that it samples.\n"
            "  expected  token ids and logprobs of a, which a server of type vllm returns\n"
            "  seen      POST /generate as of Atropos' vllm_api_server: 404 Not Found\n"
            "            POST /v1/completions as of vllm serve: 404 Not Found\n"
            "            POST /generate as of SGLang: 404 Not Found\n"
            "  fix       serve the model with `vllm serve` (0.10.2 or later), SGLang or Atropos' vllm_api_server; or use the chat API: "
            "--provider custom --hermes-base-url http://api.test/v1 --hermes-model a",
        ),
    ],
    ids=["refused", "401", "403", "404", "html", "model", "health", "two-models", "no-list", "generate"],
)
def test_a_server_that_cannot_be_asked_is_one_clear_error(
    server: LiveServer, answers: dict[str, httpx.Response | Callable[[httpx.Request], httpx.Response]], text: str
) -> None:
    """What was asked, what came back, without the key, and what to do."""
    with respx.mock(base_url="http://api.test", assert_all_called=False) as api:
        for path, answer in answers.items():
            api.get(path).mock(answer) if isinstance(answer, httpx.Response) else api.get(path).mock(side_effect=answer)
        for path in ("/version", "/model_info", "/generate", "/v1/completions"):
            api.route(path=path).mock(httpx.Response(404))
        with pytest.raises((LiveModeError, UsageError)) as error:
            preflight(server)

    assert str(error.value) == text


def test_openrouter_is_asked_about_the_key() -> None:
    """Its list of models is public, so that only /key tells."""
    server = choose_server(provider="openrouter", model="a/b", environ={"OPENROUTER_API_KEY": KEY})
    with respx.mock(base_url="https://openrouter.ai/api/v1") as api:
        api.get("/key").mock(httpx.Response(401, json={"error": {"message": "No auth credentials found", "code": 401}}))
        with pytest.raises(LiveModeError) as error:
            preflight(server)

    assert str(error.value).splitlines()[0] == "the server of --hermes-live refused the key in OPENROUTER_API_KEY."


def test_a_tokenizer_that_is_not_here_is_asked_for() -> None:
    """Tests do not download it."""
    with MockServer(template="chatml", engine="atropos") as mock, pytest.raises(LiveModeError) as error:
        preflight(replace(VLLM, base_url=mock.base_url, model="no/such-tokenizer"))

    assert str(error.value) == (
        "the tokenizer of no/such-tokenizer is not on this machine, and requests to a server of type vllm contain token ids.\n"
        "  expected  a directory, or a name in the hub's cache\n"
        "  seen      no/such-tokenizer\n"
        "  fix       hf download no/such-tokenizer --include '*token*' '*.json' '*.jinja', or --hermes-tokenizer DIR"
    )

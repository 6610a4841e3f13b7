"""``--hermes-live``: marked tests on a real server, replaced here by a mock server on a socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_hermes_env import MockServer, call, say
from pytest_hermes_env.inference.server_thread import ServerThread
from pytest_hermes_env.inference.token_engines import Engine

SUITE = """
import asyncio, os, pytest
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import call, say

GREETING = [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")]

async def collect(env):
    await env.setup()
    return (await env.collect_trajectories(await env.get_next_item()))[0]
"""


@pytest.fixture
def provider() -> Iterator[MockServer]:
    """A mock server in place of a provider."""
    with MockServer(
        [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")], model="m1"
    ) as server:
        yield server


def run(pytester: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    """Run a suite with warnings as errors."""
    pytester.makepyfile(SUITE + body)
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", "-rs", *args)


def custom(server: MockServer, *args: str) -> tuple[str, ...]:
    """Return the flags that choose that server."""
    return ("--hermes-live", "--provider", "custom", "--hermes-base-url", server.base_url, "--hermes-model", "m1", *args)


def calls_of(server: MockServer) -> int:
    """Return the number of model calls; the check before the tests only requests the list of models."""
    return len([exchange for exchange in server.journal if exchange.path.endswith("/chat/completions")])


BOTH = """
@pytest.mark.hermes_live(or_mock=True)
def test_either(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, script=GREETING)
    assert asyncio.run(collect(env))["scores"] == [1.0, 1.0]

@pytest.mark.hermes_live
def test_live(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv)
    assert asyncio.run(collect(env))["scores"] == [1.0, 1.0]

def test_mock(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, script=GREETING)
    assert asyncio.run(collect(env))["scores"] == [1.0, 1.0]
"""


def test_marked_tests_run_on_the_server_and_others_on_the_mock(pytester: pytest.Pytester, provider: MockServer) -> None:
    """Only the two marked tests call the server: two tests of two rollouts of two turns."""
    result = run(pytester, BOTH, *custom(provider))

    result.assert_outcomes(passed=3)
    assert calls_of(provider) == 8


def test_marked_tests_are_skipped_without_the_flag(pytester: pytest.Pytester) -> None:
    """The reason names the flag; a test that is marked or_mock runs on its script."""
    result = run(pytester, BOTH)

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*needs a real inference server: run with --hermes-live --provider ..."])


KEY = "sk-planted-0123456789abcdef"
Said = tuple[int, Any, Mapping[str, str]]


class HandMade:
    """A provider whose every answer to chat completions is `answers(number of the request)`; it stores the bodies."""

    def __init__(self, answers: Callable[[int], Said]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._answers = answers
        routes = [Route("/v1/models", self._models), Route("/v1/chat/completions", self._chat, methods=["POST"])]
        self._thread = ServerThread(Starlette(routes=routes), "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._thread.port}/v1"

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"data": [{"id": "m1"}]})

    async def _chat(self, request: Request) -> Response:
        self.bodies.append(json.loads(await request.body()))
        status, body, headers = self._answers(len(self.bodies))
        return JSONResponse(body, status_code=status, headers=dict(headers))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.stop()


def answered(usage: object = None) -> Said:
    """Return an answer without calls, from a server that omits empty fields."""
    body: dict[str, Any] = {
        "id": "0bd57983",
        "object": "chat.completion",
        "created": 1,
        "model": "m1@main",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
    }
    return 200, body | ({"usage": usage} if usage is not None else {}), {}


ONE = """
@pytest.mark.hermes_live
def test_one(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, group_size=1)
    assert len(asyncio.run(collect(env))["scores"]) == 1
"""


def chosen(base_url: str, *args: str) -> tuple[str, ...]:
    """Return the flags that choose a server at that URL."""
    return ("--hermes-live", "--provider", "custom", "--hermes-base-url", base_url, "--hermes-model", "m1", *args)


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (
            ("--hermes-live",),
            ["ERROR: UsageError: --hermes-live: no provider was chosen.", "*OpenRouter *", "*vLLM *", "*Atropos *"],
        ),
        (
            ("--hermes-live", "--provider", "openrouter", "--hermes-model", "m"),
            [
                "ERROR: LiveModeError: the key for openrouter is missing: the environment variable OPENROUTER_API_KEY is not set."
            ],
        ),
        (
            chosen("http://127.0.0.1:1/v1"),
            [
                "ERROR: LiveModeError: the server of --hermes-live is not reachable: GET http://127.0.0.1:1/v1/models got no answer."
            ],
        ),
        (
            (
                "--hermes-live",
                "--provider",
                "openai",
                "--hermes-model",
                "m",
                "--hermes-api-key-env",
                "K",
                "--hermes-max-usd",
                "1",
            ),
            ["ERROR: UsageError: --hermes-max-usd: the cost of a call to openai is unknown."],
        ),
        (
            chosen("http://127.0.0.1:1/v1", "--hermes-max-calls", "few"),
            ["ERROR: --hermes-max-calls: *must be a number of at least 0, not 'few'"],
        ),
        (
            chosen("http://127.0.0.1:9/v1", "--hermes-call-timeout", "0"),
            ["ERROR: --hermes-call-timeout: must be more than 0 seconds"],
        ),
    ],
    ids=["provider", "key", "unreachable", "usd", "calls", "timeout"],
)
def test_what_is_missing_is_one_error_before_any_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], lines: list[str]
) -> None:
    """No test runs, pytest's exit code is that of a usage error, and there is no traceback."""
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.setenv("K", KEY)
    result = run(pytester, ONE, *args)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(lines)
    result.stdout.no_fnmatch_line("*collected*")
    result.stderr.no_fnmatch_line("*Traceback*")


def test_settings_come_from_ini_and_variables(
    pytester: pytest.Pytester, provider: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable overrides the ini file, and with both no flag is required."""
    pytester.makeini(
        f"[pytest]\nhermes_live_provider = custom\nhermes_live_model = wrong\nhermes_live_base_url = {provider.base_url}\n"
        "hermes_live_max_calls = 0"
    )
    monkeypatch.setenv("HERMES_ENV_MODEL", "m1")
    monkeypatch.setenv("HERMES_ENV_MAX_CALLS", "1")
    result = run(pytester, ONE, "--hermes-live")

    result.stdout.fnmatch_lines([f"live: m1 at {provider.base_url} (custom)", "*all (limit: 1 calls)"])
    assert calls_of(provider) == 1


@pytest.mark.usefixtures("warm_python")
def test_a_provider_option_of_another_plugin_is_left_to_it(pytester: pytest.Pytester) -> None:
    """--provider then belongs to the other plugin, and --hermes-provider to this one."""
    pytester.makepyfile(other="def pytest_addoption(parser): parser.addoption('--provider', default='theirs')")
    pytester.syspathinsert()
    result = pytester.runpytest_subprocess("-p", "other", "--hermes-live", "--hermes-provider", "custom", "--provider", "x")

    result.stderr.fnmatch_lines(["ERROR: UsageError: --hermes-live: provider custom requires a base URL."])


def test_a_limit_fails_the_test_that_would_go_over(pytester: pytest.Pytester, provider: MockServer) -> None:
    """The call is not made, the swallowed refusal fails the test at its end, and the report shows the usage."""
    result = run(pytester, ONE, *custom(provider, "--hermes-max-calls", "1", "-v"))

    result.assert_outcomes(passed=1, errors=1)
    assert calls_of(provider) == 1
    result.stdout.fnmatch_lines(
        [
            "  live: rollout 1, turn 1: *tokens, * s (run: 1 call, *)",
            "*test_one PASSED*",
            "  live: 1 call, * tokens, cost unknown in this test",
            "BudgetSpent: a call was not made because --hermes-max-calls 1 is reached.",
            "  spent     1 call, *",
            "  fix       raise --hermes-max-calls, or run fewer tests",
            "  refused   2 calls of this test",
            "*= live inference =*",
            "    1 *test_one",
            "    1 *all (limit: 1 calls)",
        ]
    )


def test_a_misspelt_marker_is_refused(pytester: pytest.Pytester) -> None:
    """A test without its marker would pass on the mock model. A marker that the project registers is its own."""
    pytester.makepyfile("import pytest\n\n@pytest.mark.hermes_casette\ndef test_one(mock_server): pass\n")

    refused = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    accepted = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-o", "markers=hermes_casette: ours")

    refused.stderr.fnmatch_lines(["ERROR: there is no marker hermes_casette, at *::test_one. Did you mean hermes_cassette?"])
    accepted.assert_outcomes(passed=1)


def test_a_limit_is_the_cause_of_a_failed_test(pytester: pytest.Pytester, provider: MockServer) -> None:
    """One failure that begins with the refusal: no error at teardown."""
    failing = ONE.replace('len(asyncio.run(collect(env))["scores"]) == 1', 'asyncio.run(collect(env))["scores"] == [1.0]')
    result = run(pytester, failing, *custom(provider, "--hermes-max-calls", "1"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "BudgetSpent: a call was not made because --hermes-max-calls 1 is reached.",
            "  refused   2 calls of this test",
        ]
    )


def test_the_cost_is_the_providers_or_the_tables(pytester: pytest.Pytester) -> None:
    """usage.cost counts if the answer has it, otherwise the price table; a dollar limit works with both."""
    pytester.path.joinpath("prices.toml").write_text("[m1]\ninput = 1000.0\noutput = 0\n")
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    with HandMade(lambda number: answered(usage | ({"cost": 0.25} if number == 1 else {}))) as server:
        result = run(
            pytester, ONE + ONE.replace("test_one", "test_two"), *chosen(server.base_url, "--hermes-prices", "prices.toml")
        )

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "    1     100      10  $0.2500 *test_one",
            "    1     100      10  $0.1000 *test_two",
            "    2     200      20  $0.3500 *all",
        ]
    )


def test_a_silent_server_meets_the_limit_of_a_call(pytester: pytest.Pytester) -> None:
    """No call is answered, so the test fails and says why; without the option it would wait for the client's 20 minutes."""
    ended = threading.Event()

    def silent(_: int) -> Said:
        ended.wait()
        return answered()

    with HandMade(silent) as server:
        result = run(pytester, ONE, *chosen(server.base_url, "--hermes-call-timeout", "0.05"))
        ended.set()

    result.stdout.fnmatch_lines(
        ["*LiveModeError: the real server answered no call*", "  seen * failed calls: CallTimedOut (*)"]
    )


def test_a_temporary_failure_is_retried_and_counted(pytester: pytest.Pytester) -> None:
    """A 429 with retry-after is followed by the answer; both attempts count as calls."""
    busy: Said = (429, {"error": {"message": "slow down"}}, {"retry-after-ms": "1"})
    with HandMade(lambda number: busy if number == 1 else answered({"prompt_tokens": 1, "completion_tokens": 1})) as server:
        result = run(pytester, ONE, *chosen(server.base_url, "-v"))

    result.assert_outcomes(passed=1)
    assert len(server.bodies) == 2
    result.stdout.fnmatch_lines(
        ["  live: rollout 1, turn 1: failed (429), *", "  live: 2 calls, 2 tokens, *, 1 failed in this test"]
    )


def test_a_permanent_failure_costs_three_requests_per_attempt(pytester: pytest.Pytester) -> None:
    """Not twenty-seven, as with atroposlib's own retries; a test without any answer fails, unless its marker has may_fail.

    A rollout whose model failed is run again once.
    """
    gone: Said = (503, {"error": {"message": "gone"}}, {"retry-after-ms": "1"})
    two = ONE + ONE.replace("test_one", "test_two").replace("hermes_live", "hermes_live(may_fail=True)")
    with HandMade(lambda _: gone) as server:
        result = run(pytester, two, *chosen(server.base_url))

    result.assert_outcomes(passed=2, errors=1)
    assert len(server.bodies) == 12
    result.stdout.fnmatch_lines(
        [
            "LiveModeError: the real server answered no call of this test, so the test says nothing about a model.",
            "  seen      6 failed calls: 503 (6)",
            "failed calls: 12 - 503 (12)",
        ]
    )


def test_flags_of_live_mode_without_hermes_live_are_reported(pytester: pytest.Pytester) -> None:
    """A run without --hermes-live reports that no server was called."""
    result = run(pytester, "def test_it(): ...", "--provider", "openai", "--hermes-max-usd", "1")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["no model was called: without --hermes-live, --hermes-provider, --hermes-max-usd have no effect"]
    )


def test_a_judge_with_its_own_client_is_limited(pytester: pytest.Pytester, provider: MockServer) -> None:
    """This also applies if the environment swallows the refusal, and if no environment is built with make_env."""
    body = f"""
import contextlib, httpx
@pytest.mark.hermes_live
def test_judge():
    for _ in range(3):
        with contextlib.suppress(Exception):
            httpx.post("{provider.base_url}/chat/completions", json={{"model": "m1", "messages": [{{"role": "user", "content": "Hi"}}]}})
"""
    result = run(pytester, body, *custom(provider, "--hermes-max-calls", "2"))

    result.assert_outcomes(passed=1, errors=1)
    assert calls_of(provider) == 2
    result.stdout.fnmatch_lines(["BudgetSpent: a call was not made*", "  refused   1 call of this test", "    2 *test_judge"])


def test_the_key_is_nowhere(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not in tracebacks with local variables, captured output, properties, the JUnit report, or text that the provider echoes."""
    monkeypatch.setenv("MINE", KEY)
    body = """
import logging
@pytest.mark.hermes_live
def test_shows_all(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, group_size=1)
    config, key = env.server.servers[0].config, env.server.servers[0].openai.api_key
    print("printed", key)
    logging.warning("logged %s", key)
    asyncio.run(collect(env))
    assert [config, key] == []
"""
    with HandMade(lambda _: (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, {})) as server:
        args = chosen(server.base_url, "--hermes-api-key-env", "MINE", "--showlocals", "-vv", "--junitxml=junit.xml", "-rA")
        result = run(pytester, body, *args)

    result.assert_outcomes(failed=1)  # that none of its calls was answered is the cause
    result.stdout.fnmatch_lines(["printed [[]redacted:MINE:1[]]"])
    shown = result.stdout.str() + result.stderr.str() + pytester.path.joinpath("junit.xml").read_text()
    assert KEY not in shown


@pytest.mark.usefixtures("warm_python")
def test_spending_is_shown_when_the_run_is_aborted(pytester: pytest.Pytester, provider: MockServer) -> None:
    """The table is also printed after Ctrl-C in the middle of a test."""
    body = """
@pytest.mark.hermes_live
def test_aborted(make_env, fake_sandbox):
    asyncio.run(collect(make_env(TerminalTestEnv, group_size=1)))
    raise KeyboardInterrupt
"""
    pytester.makepyfile(SUITE + body)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *custom(provider))

    result.stdout.fnmatch_lines(["*= live inference =*", "    2 *test_aborted", "    2 *all", "*KeyboardInterrupt*"])


def test_workers_share_the_limits_and_the_summary_is_whole(
    pytester: pytest.Pytester, provider: MockServer, two_workers: tuple[str, ...]
) -> None:
    """Two workers make three calls together; the controller requests the list of models once."""
    body = "".join(ONE.replace("test_one", f"test_{number}") for number in range(4))
    pytester.makepyfile(SUITE + body)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", *two_workers, *custom(provider, "--hermes-max-calls", "3", "-v")
    )

    result.stdout.fnmatch_lines(["    3 *all (limit: 3 calls)"])
    assert calls_of(provider) == 3
    assert len(provider.journal) == 4


def test_the_network_is_closed_only_to_tests_of_this_plugin(pytester: pytest.Pytester) -> None:
    """Even swallowed, a connection fails a test with our fixtures; marker, flag and ini value allow it; other tests are free."""
    body = """
import contextlib, socket

def reach(host):
    with contextlib.suppress(OSError):
        socket.create_connection((host, 9), timeout=0.01)

def test_swallowed(agent_result):
    reach("192.0.2.1")

def test_unrelated():
    reach("192.0.2.2")

@pytest.mark.hermes_allow_hosts("192.0.2.3", "192.0.2.4")
def test_marked(agent_result):
    reach("192.0.2.3")
    reach("192.0.2.4")
    reach("192.0.2.5")
    reach("192.0.2.6")

@pytest.mark.hermes_allow_leftovers
def test_only_a_marker():
    with pytest.raises(OSError):
        socket.getaddrinfo("example.org", 80)
"""
    pytester.makeini("[pytest]\nhermes_allow_hosts = 192.0.2.5")
    result = run(pytester, body, "--hermes-allow-hosts", "192.0.2.6,192.0.2.7")

    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_swallowed*",
            "NetworkBlocked: this test reached for 192.0.2.1.",
            "  seen      connect to 192.0.2.1:9",
            "  test      *::test_swallowed",
            "*ERROR at teardown of test_only_a_marker*",
            "NetworkBlocked: this test reached for example.org.",
        ]
    )


def test_the_hub_is_offline_where_no_host_may_be_reached(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that loads a dataset uses its built-in items without failing the test; other tests are not restricted."""
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    body = """
import os

def hub():
    return os.environ.get("HF_HUB_OFFLINE"), os.environ.get("HF_DATASETS_OFFLINE")

@pytest.fixture
def ours(agent_result):
    yield
    assert hub() == ("1", "1")

def test_of_this_plugin(ours):
    assert hub() == ("1", "1")

def test_unrelated():
    assert hub() == (None, None)

@pytest.mark.hermes_allow_hosts("192.0.2.3")
def test_with_a_host(agent_result):
    assert hub() == (None, None)
"""
    result = run(pytester, body)

    result.assert_outcomes(passed=3)


def test_wrong_markers_and_arguments_are_errors(pytester: pytest.Pytester, provider: MockServer) -> None:
    """A script that would never be used, a server type that the provider does not have, and unknown marker arguments."""
    body = """
@pytest.mark.hermes_live
def test_script(make_env):
    make_env(TerminalTestEnv, script=GREETING)

@pytest.mark.hermes_live(or_mock=True)
def test_type(make_env):
    make_env(TerminalTestEnv, script=GREETING, server_type="vllm")
"""
    result = run(pytester, body, *custom(provider))
    wrong = run(pytester, "@pytest.mark.hermes_live('mock')\ndef test_it(): ...")

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E*EnvironmentSetupError: make_env was given a script in a test marked hermes_live, which never runs on a mock model.",
            "E*EnvironmentSetupError: make_env was given server_type='vllm', and the real server is of type 'openai': m1 at *",
        ]
    )
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(
        ["ERROR: @pytest.mark.hermes_live takes or_mock=True, may_fail=True or nothing.", "  seen      args ('mock',), *"]
    )


@pytest.mark.parametrize(("engine", "name"), [("atropos", "Atropos' vllm_api_server"), ("vllm", "vllm serve 0.33.0")])
def test_token_mode_runs_on_a_vllm_server(pytester: pytest.Pytester, hermes_tokenizer: str, engine: Engine, name: str) -> None:
    """/health once, the model from the list, tokens counted from the ids, and no key; the line says which server it is."""
    with MockServer(
        [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")],
        model="m1",
        template="chatml",
        tokenizer=hermes_tokenizer,
        engine=engine,
    ) as server:
        args = (
            "--hermes-live",
            "--provider",
            "vllm",
            "--hermes-base-url",
            server.base_url,
            "--hermes-model",
            "m1",
            "--hermes-tokenizer",
            hermes_tokenizer,
        )
        result = run(pytester, ONE, *args, "-v")
        kinds = [exchange.kind for exchange in server.journal]

    result.assert_outcomes(passed=1)
    assert (kinds.count("generate"), kinds[0]) == (2, "health")
    result.stdout.fnmatch_lines(
        [f"live: m1 at *(vllm)*it is {name}, *; raw logprobs, *", "  live: 2 calls, *tokens, cost unknown in this test"]
    )


def test_what_a_model_does_best_is_kept_as_gold(pytester: pytest.Pytester) -> None:
    """It tries each item; the file has its best work, which the contract of the same run plays."""
    pytester.makepyfile(
        greet_env="""
        from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

        class GreetEnv(TerminalTestEnv):
            name = "greet"
        """
    )

    greeting = call("write_file", path="greeting.txt", content="Hello from Hermes Agent")
    with MockServer(lambda conversation: say("Done.") if conversation.turn else greeting, model="m1") as server:
        result = pytester.runpytest_inprocess(
            "-p",
            "no:cacheprovider",
            *custom(server, "--hermes-env", "greet_env.py", "--hermes-keep-gold", "--hermes-rules", "HE412,HE103"),
        )
        text = (pytester.path / "greet_env.contract.yaml").read_text(encoding="utf-8")
        again = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-env", "greet_env.py", "--hermes-keep-gold")

    result.stdout.fnmatch_lines(["hermes-env: wrote *greet_env.contract.yaml with gold of *"])
    assert "# earned 1 in GreetEnv.jsonl\n    gold:\n      - {call: write_file" in text
    again.stderr.fnmatch_lines(["*--hermes-keep-gold needs --hermes-live*"])

"""Files that fill a machine's memory, or Python's stack, are refused at once: with the file's name, and with little time and memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_cli.argparse import FailedExecutionException

from environments.command_line.settings import settings_of
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env.cassette.document import document_of
from pytest_hermes_env.cassette.format import read_tape, text_of
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape
from pytest_hermes_env.contract.ledger.settings import read_settings
from pytest_hermes_env.errors import BadCases, BadCassette, BadSettings, ScriptError, UsageError
from pytest_hermes_env.inference.yaml_script import parse_yaml
from pytest_hermes_env.live.prices import load_prices
from pytest_hermes_env.play.cases.yaml_file import read_cases

CHAIN = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGED = "a0: &a0 {x0: 1, y0: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}], x{n}: 1}}\n" for n in range(1, 12)
)
YAML = {
    "a chain of aliases": CHAIN,
    "a chain of merges": MERGED,
    "a value in itself": "a: &a [*a]\n",
    "deep lists": "a: " + "[" * 20_000,
    "deep mappings": "".join(" " * n + "a:\n" for n in range(3_000)),
    "a number of a million digits": "a: " + "9" * 1_000_000,
    "a number with base 60": "a: 1" + ":59" * 300_000,
    "a day that is none": "a: 2026-13-45",
    "a number that is none": "a: !!int x",
    "an empty number": 'a: !!int ""',
    "a truth that is none": "a: !!bool x",
    "a time that is none": "a: !!timestamp x",
}
JSON = {
    "deep lists": "[" * 200_000,
    "deep objects": '{"a":' * 100_000,
    "a number of a million digits": "9" * 1_000_000,
}
TOML = {
    "deep lists": "[tool.hermes-env]\nselect = " + "[" * 50_000,
    "a number of a million digits": "[tool.hermes-env]\nselect = " + "9" * 1_000_000,
}


def refused(read: Callable[[Path], object], path: Path, expected: type[BaseException]) -> None:
    """Require that a file is refused by an error of that class which names it, within a second of CPU time and 100 MB."""
    start = time.process_time()
    with pytest.raises(expected) as error:
        read(path)
    seconds = time.process_time() - start

    assert path.name in str(error.value)
    assert path.stem not in CASSETTES or "parts expand to many times the size of the file" in str(error.value)
    assert len(str(error.value)) < 3_000
    assert seconds < 1

    tracemalloc.start()  # which slows everything down
    try:
        with pytest.raises(expected):
            read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100_000_000


@pytest.mark.parametrize("kind", YAML)
@pytest.mark.parametrize(
    ("read", "error"),
    [
        pytest.param(parse_yaml, ScriptError, id="script"),
        pytest.param(read_cases, BadCases, id="cases"),
        pytest.param(lambda path: load_prices(str(path)), UsageError, id="prices"),
        pytest.param(
            lambda path: settings_of(TerminalTestEnv, "serve", [], str(path)), FailedExecutionException, id="configuration"
        ),
    ],
)
def test_a_hostile_yaml_file_is_refused(kind, read, error, tmp_path) -> None:
    """Scripts, cases, prices, and the configuration of an environment."""
    path = tmp_path / "hostile.yaml"
    path.write_text(YAML[kind])

    refused(read, path, error)


@pytest.mark.parametrize("kind", JSON)
@pytest.mark.parametrize(
    ("read", "error"),
    [
        pytest.param(read_tape, BadCassette, id="cassette"),
        pytest.param(lambda path: load_prices(str(path)), UsageError, id="prices"),
    ],
)
def test_a_hostile_json_file_is_refused(kind, read, error, tmp_path) -> None:
    """Cassettes and prices."""
    path = tmp_path / "hostile.json"
    path.write_text(JSON[kind])

    refused(read, path, error)


@pytest.mark.parametrize("kind", TOML)
def test_hostile_settings_are_refused(kind, tmp_path) -> None:
    """Selected rules, waivers and all else that pyproject.toml sets."""
    path = tmp_path / "pyproject.toml"
    path.write_text(TOML[kind])

    refused(lambda path: read_settings(str(path)), path, BadSettings)


def test_a_cassette_of_many_calls_with_large_tools_is_read(tmp_path) -> None:
    """400 calls that share 100 KB of tools and a growing conversation are an ordinary recording."""
    tools = [{"type": "function", "function": {"name": f"t{n}", "description": "long " * 200}} for n in range(100)]
    messages = [{"role": "user", "content": f"{n}: " + "word " * 60} for n in range(400)]
    calls = tuple(
        ModelCall(
            number=n,
            request=ModelRequest(method="POST", path="/x", body={"messages": messages[:n], "tools": tools}, body_kind="json"),
            reply=ModelReply(),
        )
        for n in range(1, 401)
    )
    tape = Tape(header=Header(recorded_at="", recorded_from=""), calls=calls)
    path = tmp_path / "large.json"
    path.write_text(text_of(tape))

    assert read_tape(path) == tape


def hostile_cassette(*bodies: dict) -> str:
    """Return a cassette with these bodies of requests, in the notation of the file."""
    document = document_of(Tape(header=Header(recorded_at="", recorded_from="")))
    request = {"method": "POST", "path": "/x"}
    calls = [{"call": n, "request": {**request, "json": body}, "reply": {}} for n, body in enumerate(bodies, start=1)]
    return json.dumps({**document, "calls": len(calls), "tape": calls})


def nested(levels: int) -> list:
    """Return definitions each of which shares the one before ten times."""
    more = [{"~define": str(n), "is": [{"~shared": str(n - 1)}] * 10} for n in range(1, levels)]
    return [{"~define": "0", "is": "x" * 1_000}, *more]


CASSETTES = {
    "nested sharing": hostile_cassette({"model": nested(20)}),
    "a text of nested sharing": hostile_cassette({"model": [*nested(7), {"~json": {"~shared": "6"}}]}),
    "lines": hostile_cassette({"model": [{"~define": "0", "is": "x" * 100_000}, {"~lines": [{"~shared": "0"}] * 20_000}]}),
    "repeated messages": hostile_cassette(
        {"messages": [{}] * 20_000}, *({"messages": {"~as": n, "then": []}} for n in range(1, 3_000))
    ),
}


@pytest.mark.parametrize("kind", CASSETTES)
def test_a_hostile_cassette_is_refused(kind, tmp_path) -> None:
    """What its notation would expand to is counted before it is built."""
    path = tmp_path / f"{kind}.json"
    path.write_text(CASSETTES[kind])

    refused(read_tape, path, BadCassette)

"""Files that fill a machine's memory, or Python's stack, are refused at once: with the file's name, and with little time and memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_cli.argparse import FailedExecutionException

from environments.command_settings import settings_of
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import bounded_yaml
from pytest_hermes_env.cassette.document import document_of
from pytest_hermes_env.cassette.format import read_tape, text_of
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape
from pytest_hermes_env.contract.ledger.settings import read_settings
from pytest_hermes_env.errors import BadCases, BadCassette, BadSettings, ScriptError, UsageError
from pytest_hermes_env.inference.yaml_node import parse_yaml
from pytest_hermes_env.live.prices import load_prices
from pytest_hermes_env.play.declared.yaml_file import read_cases

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
            lambda path: settings_of(TerminalTestEnv, "serve", str(path), []), FailedExecutionException, id="configuration"
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


def _cassette(value: object) -> str:
    """Return a cassette whose one request has ``value`` as its model."""
    call = ModelCall(number=1, request=ModelRequest(method="POST", path="/x", body={}, body_kind="json"), reply=ModelReply())
    document = document_of(Tape(header=Header(recorded_at="", recorded_from=""), calls=(call,)))
    document["tape"][0]["request"]["json"] = {"model": value}  # type: ignore[call-overload, index]
    return json.dumps(document)


def _nested(levels: int, wide: int = 10) -> list[object]:
    """Return definitions each of which shares the one before many times."""
    parts: list[object] = [{"~define": "0", "is": "x" * 1_000}]
    parts += [{"~define": str(n), "is": [{"~shared": str(n - 1)}] * wide} for n in range(1, levels)]
    return parts


def _repeating(calls: int) -> str:
    """Return a cassette whose calls repeat all messages of the one before, and a long first list."""
    call = ModelCall(number=1, request=ModelRequest(method="POST", path="/x", body={}, body_kind="json"), reply=ModelReply())
    document = document_of(Tape(header=Header(recorded_at="", recorded_from=""), calls=(call,)))
    first = document["tape"][0]  # type: ignore[index]
    first["request"]["json"] = {"messages": [{}] * 20_000}  # type: ignore[call-overload, index]
    more = [
        {**first, "call": n, "request": {**first["request"], "json": {"messages": {"~as": n - 1, "up_to": 20_000, "then": []}}}}  # type: ignore[index, dict-item, call-overload]
        for n in range(2, calls + 1)
    ]
    return json.dumps({**document, "calls": calls, "tape": [first, *more]})


CASSETTES = {
    "nested sharing": _cassette(_nested(20)),
    "texts of nested sharing": _cassette([*_nested(6), {"~json": {"~shared": "5"}}, {"~json": [{"~shared": "5"}] * 100}]),
    "lines of nested sharing": _cassette([{"~define": "0", "is": "x" * 100_000}, {"~lines": [{"~shared": "0"}] * 20_000}]),
    "a number of a million digits": _cassette({"~int": "0x" + "f" * 1_000_000}),
    "a deep value of a million levels": _cassette({"~deep": "[" * 1_000_000}),
    "a deep value that is no JSON": _cassette({"~deep": "\n\n\n\n{"}),
    "repeated messages": _repeating(3_000),
}


@pytest.mark.parametrize("kind", CASSETTES)
def test_a_hostile_cassette_is_refused(kind, tmp_path) -> None:
    """What its notation would expand to is counted before it is built."""
    path = tmp_path / "hostile.json"
    path.write_text(CASSETTES[kind])

    refused(read_tape, path, BadCassette)


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


def test_both_packages_read_yaml_within_the_same_bounds(request) -> None:
    """Neither may import the other, so each has the module."""
    theirs = request.config.rootpath / "environments" / "bounded_yaml.py"
    ours = Path(bounded_yaml.__file__)

    code = [path.read_text().partition('"""\n\n')[2] for path in (ours, theirs)]
    assert code[0] == code[1] != ""

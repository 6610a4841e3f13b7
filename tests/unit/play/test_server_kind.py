"""Environments on a mock vLLM or SGLang server: ``make_env(..., server_type=..., template=...)``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import MockServer, call, say, think, turn
from pytest_hermes_env.errors import EnvironmentSetupError, UsageError
from pytest_hermes_env.play.builder import shared_tokenizer
from pytest_hermes_env.play.server_kind import ServerKind, choose_kind

MakeEnv = Callable[..., Any]
GREETING = call("write_file", path="greeting.txt", content="Hello from Hermes Agent")


@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
@pytest.mark.parametrize("template", ["chatml", "mistral"])
def test_a_group_runs_in_token_mode(make_env: MakeEnv, server_type: str, template: str) -> None:
    """The model speaks the template's format, the environment reads it, tools run, and the tokens train."""
    script = [turn(think("Write, then look."), GREETING, call("terminal", command="ls")), say("Done.")]
    env = make_env(TerminalTestEnv, script=script, server_type=server_type, template=template)

    async def collect() -> Any:
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    group, _ = asyncio.run(collect())
    trained = [sum(mask != -100 for mask in masks) for masks in group["masks"]]

    assert (group["scores"], len(set(trained)), trained[0] > 0) == ([1.0, 1.0], 1, True)


def test_both_sides_have_one_tokenizer(make_env: MakeEnv) -> None:
    """Environment, server class and mock take the tiny tokenizer of the template, and the parser its format."""
    env = make_env(TerminalTestEnv, script=["Done."], server_type="vllm", template="glm")
    server = env.server.servers[0]
    asyncio.run(server.tokens_and_logprobs_completion(input_ids=env.tokenizer.encode("x")))

    assert (
        env.config.tokenizer_name,
        server.config.tokenizer_name,
        server.config.server_type,
        env.config.tool_call_parser,
    ) == (
        shared_tokenizer("glm"),
        shared_tokenizer("glm"),
        "vllm",
        "glm45",
    )


def test_a_mock_server_learns_tokens(make_env: MakeEnv, mock_server: MockServer) -> None:
    """A server of chat mode that is given to make_env speaks tokens from then on; one with a template keeps it."""
    before = mock_server.template
    make_env(TerminalTestEnv, server=mock_server, server_type="sglang", template="kimi")
    env = make_env(TerminalTestEnv, server=mock_server, server_type="vllm")

    assert (before, mock_server.template, env.config.tokenizer_name) == (None, "kimi", shared_tokenizer("kimi"))


def test_a_template_serves_chat_mode_too(make_env: MakeEnv) -> None:
    """Without token mode the template is the tokenizer's, and the parser stays the environment's."""
    env = make_env(TerminalTestEnv, script=["Done."], template="llama3")
    env.server.servers[0].initialized = True
    asyncio.run(env.server.chat_completion(messages=[{"role": "user", "content": "x"}]))

    assert (env.config.tokenizer_name, env.config.tool_call_parser) == (shared_tokenizer("llama3"), "hermes")


CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any], ServerKind]] = {
    "chat mode": ({}, {}, ServerKind(server_type="openai", template="chatml", family="hermes")),
    "chat mode with a template": (
        {},
        {"template": "qwen3"},
        ServerKind(server_type="openai", template="qwen3", family="hermes"),
    ),
    "the parser's template": (
        {"tool_call_parser": "glm47"},
        {"server_type": "vllm"},
        ServerKind(server_type="vllm", template="glm47", family="glm47"),
    ),
    "the template's parser": (
        {"tool_call_parser": "glm47"},
        {"server_type": "vllm", "template": "mistral"},
        ServerKind(server_type="vllm", template="mistral", family="mistral"),
    ),
    "both as the test says": (
        {},
        {"server_type": "sglang", "template": "qwen3", "fields": {"tool_call_parser": "qwen3_coder"}},
        ServerKind(server_type="sglang", template="qwen3", family="qwen3_coder"),
    ),
    "a parser of vLLM": (
        {"tool_call_parser": "vllm:mistral"},
        {"server_type": "vllm"},
        ServerKind(server_type="vllm", template="mistral", family="mistral"),
    ),
    "the type of a configured server": (
        {},
        {"server": SimpleNamespace(server_type="sglang")},
        ServerKind(server_type="sglang", template="chatml", family="hermes"),
    ),
    "token mode": ({}, {"mode": "token"}, ServerKind(server_type="vllm", template="chatml", family="hermes")),
    "token mode on a type": (
        {},
        {"mode": "token", "server_type": "sglang"},
        ServerKind(server_type="sglang", template="chatml", family="hermes"),
    ),
    "the template of a server": (
        {},
        {"server_type": "vllm", "server": SimpleNamespace(template="kimi")},
        ServerKind(server_type="vllm", template="kimi", family="kimi_k2"),
    ),
}


def choose(config: dict[str, Any], arguments: dict[str, Any]) -> ServerKind:
    """Return what is chosen for a configuration with these settings."""
    given: dict[str, Any] = {"fields": {}, "server_type": None, "template": None, "server": None, **arguments}
    return choose_kind(SimpleNamespace(**config), given.pop("fields"), **({"mode": None} | given))


@pytest.mark.parametrize("case", CHOICES)
def test_template_and_format_follow_from_what_is_given(case: str) -> None:
    """What the test names goes first, then what its server has, then what the environment's parser reads."""
    config, arguments, expected = CHOICES[case]

    assert choose(config, arguments) == expected


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "type": (
        {"server_type": "trl"},
        "make_env has no server_type 'trl': the mock model is an 'openai', 'vllm' or 'sglang' server",
    ),
    "two types": (
        {"server_type": "vllm", "server": SimpleNamespace(server_type="sglang")},
        "make_env was given server_type='vllm' and an APIServerConfig of type 'sglang': name the type once",
    ),
    "mode and type": (
        {"mode": "chat", "server_type": "vllm"},
        "make_env was given mode='chat' and a server of type 'vllm': mode is 'chat', on an 'openai' server, or 'token', on a 'vllm' "
        "(default) or 'sglang' server",
    ),
    "two templates": (
        {"server_type": "vllm", "template": "glm", "server": SimpleNamespace(template="kimi")},
        "make_env was given template='glm' and a MockServer whose template is 'kimi': name it once",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_exclude_each_other_are_refused(case: str) -> None:
    """Each refusal names both."""
    arguments, text = REFUSED[case]
    with pytest.raises(EnvironmentSetupError) as caught:
        choose({}, arguments)

    assert str(caught.value) == text


def test_tokens_need_a_socket(make_env: MakeEnv) -> None:
    """The server classes of token mode speak HTTP themselves, so nothing can stand in for their socket."""
    with pytest.raises(EnvironmentSetupError) as caught:
        make_env(TerminalTestEnv, script=["Done."], server_type="vllm", in_process=True)

    assert str(caught.value) == (
        "make_env was given in_process=True and a vllm server, whose client asks for tokens over HTTP only: leave out in_process"
    )


def test_unknown_names_are_refused(make_env: MakeEnv) -> None:
    """A misspelt template, and a parser whose format the mock cannot write, say what there is."""
    with pytest.raises(UsageError, match="there is no chat template 'qwen4'"):
        make_env(TerminalTestEnv, script=["Done."], server_type="vllm", template="qwen4")
    with pytest.raises(UsageError, match="the mock model has no tool-call format 'granite'"):
        choose({"tool_call_parser": "granite"}, {"server_type": "vllm"})

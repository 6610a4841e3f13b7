"""What the constructor of an environment checks, loads and exports."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from atroposlib.envs.server_handling.server_baseline import ServerBaseline

from environments import agent_loop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from tests.environments.plain_env import PlainEnv


class Env(PlainEnv):
    """An environment that is only built."""

    def format_prompt(self, item: Any) -> str:
        return str(item)


def build(make_env: Any, **fields: Any) -> Any:
    async def inside_a_loop() -> Any:
        return make_env(Env, server="http://127.0.0.1:9/v1", **fields)

    return asyncio.run(inside_a_loop())


def test_name_and_configuration_class_are_the_contract():
    """Old environments inherit these."""
    assert (HermesAgentBaseEnv.name, HermesAgentBaseEnv.env_config_cls) == ("hermes-agent", HermesAgentEnvConfig)


def test_five_methods_are_abstract():
    """An environment writes five methods, no more."""
    assert HermesAgentBaseEnv.__abstractmethods__ == {
        "setup",
        "get_next_item",
        "format_prompt",
        "compute_reward",
        "evaluate",
    }


def test_terminal_settings_are_exported(make_env):
    """hermes' tools read backend, timeout and lifetime from the environment."""
    build(make_env, terminal_timeout=7, terminal_lifetime=8)

    names = ("TERMINAL_ENV", "TERMINAL_TIMEOUT", "TERMINAL_LIFETIME_SECONDS")
    assert [os.environ[name] for name in names] == ["local", "7", "8"]


@pytest.mark.parametrize("name", ["HERMES_INTERACTIVE", "HERMES_GATEWAY_SESSION", "HERMES_EXEC_ASK", "HERMES_CRON_SESSION"])
def test_nobody_is_asked_for_approval(make_env, monkeypatch, name):
    """An environment runs without the variables that make hermes wait for a person."""
    monkeypatch.setenv(name, "1")

    build(make_env)

    assert name not in os.environ


def test_tool_pool_and_parser_are_set(make_env):
    """The pool has the configured size, the server the configured parser."""
    env = build(make_env, tool_pool_size=3, tool_call_parser="kimi_k2")

    assert (agent_loop._tool_executor._max_workers, env.server.tool_parser) == (3, "kimi_k2")


def test_dotenv_of_the_working_directory_is_loaded_and_overrides_nothing(make_env, monkeypatch, tmp_path):
    """What is set already stays; what is not comes from .env."""
    (tmp_path / ".env").write_text("HERMES_TEST_NEW=from-file\nHERMES_TEST_OLD=from-file\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERMES_TEST_OLD", "set-before")
    monkeypatch.delenv("HERMES_TEST_NEW", raising=False)

    build(make_env)

    assert (os.environ["HERMES_TEST_NEW"], os.environ["HERMES_TEST_OLD"]) == ("from-file", "set-before")


def test_unknown_parser_is_an_error_that_lists_the_known(make_env):
    """A misspelt parser fails at once, not in the first rollout."""
    with pytest.raises(ValueError, match=r"Unknown tool_call_parser 'hermes2'. Available parsers: \['deepseek_v3', .*'hermes'"):
        build(make_env, tool_call_parser="hermes2")


def test_server_configuration_that_is_no_list_is_an_error(hermes_tokenizer):
    """Atropos would wait for servers on localhost:9004 for ever."""
    config = HermesAgentEnvConfig(tokenizer_name=hermes_tokenizer)

    with pytest.raises(TypeError, match="server_configs must be a list of APIServerConfig, not ServerBaseline"):
        Env(config, ServerBaseline())


def test_registers_under_its_own_name(make_env):
    """`serve` needs a name to register; the class has one. A configured name stays."""
    assert build(make_env).config.wandb_name == "hermes-agent"
    assert build(make_env, wandb_name="mine").config.wandb_name == "mine"


def test_token_mode_is_chosen_by_the_first_server(make_env):
    """vLLM and SGLang give tokens, an OpenAI-compatible server does not."""

    async def scenario() -> dict[str, bool]:
        kinds = ("openai", "vllm", "sglang")
        return {kind: make_env(Env, server_type=kind)._use_managed_server() for kind in kinds}

    assert asyncio.run(scenario()) == {"openai": False, "vllm": True, "sglang": True}

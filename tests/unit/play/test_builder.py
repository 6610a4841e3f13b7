"""Environments are built on a double, and what cannot be built says why."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentEnvConfig
from pytest_hermes_env.errors import EnvironmentSetupError, LeftoverTurns
from pytest_hermes_env.inference.server import MockServer
from pytest_hermes_env.inference.transport import IN_PROCESS_URL
from pytest_hermes_env.play.builder import EnvironmentBuilder, initial_config, shared_tokenizer

from .small_env import SmallEnv


@pytest.fixture
def builder() -> Iterator[EnvironmentBuilder]:
    """A builder that releases everything."""
    made = EnvironmentBuilder()
    yield made
    made.close()


class Abstract(SmallEnv):
    """Lacks its reward."""

    @abc.abstractmethod
    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Be missing."""


class Exotic(SmallEnv):
    """Fails in its own configuration."""

    @classmethod
    def config_init(cls) -> Any:
        """Need a file that is not there."""
        raise FileNotFoundError("settings.json")


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (
            SmallEnv,
            {"script": [], "server": "x"},
            "make_env was given both script and server; a server has its own script: give one",
        ),
        (SmallEnv, {"max_turns": 3}, "HermesAgentEnvConfig has no field 'max_turns'. Nearest: max_agent_turns"),
        (SmallEnv, {"group_size": "many"}, "HermesAgentEnvConfig does not accept these settings: group_size: "),
        (SmallEnv, {"server": 3}, "make_env cannot use 3 as a server: give a MockServer, a base URL or an APIServerConfig"),
        (
            SmallEnv,
            {"server": "http://x.invalid", "in_process": True},
            "make_env cannot reach http://x.invalid in this process: ",
        ),
        (SmallEnv, {"server_type": "vllm", "in_process": True}, "make_env was given in_process=True and a vllm server, "),
        (SmallEnv, {"tokenizer_name": "./nowhere"}, "There is no tokenizer directory ./nowhere. "),
        (Abstract, {"in_process": True}, "Abstract cannot be built: it lacks compute_reward"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_built_says_why(builder: EnvironmentBuilder, cls: type, arguments: Any, message: str) -> None:
    """The beginning of the message; what follows is the way out."""
    with pytest.raises(EnvironmentSetupError) as caught:
        builder.build(cls, **arguments)

    assert str(caught.value).startswith(message)


def test_settings_are_made_fit_for_a_test(builder: EnvironmentBuilder) -> None:
    """A small group, no wandb, the tiny tokenizer; the test's own settings win, the class's others stay."""
    env = builder.build(SmallEnv, in_process=True, max_agent_turns=7)
    config = env.config

    assert (config.group_size, config.use_wandb, config.terminal_backend) == (2, False, "local")
    assert (config.tokenizer_name, config.max_agent_turns, config.system_prompt) == (shared_tokenizer(), 7, "Be brief.")


def test_a_script_that_is_not_used_up_fails_at_the_end() -> None:
    """A mock that the builder started is verified and stopped by it."""
    builder = EnvironmentBuilder()
    builder.build(SmallEnv, script=["Done."], in_process=True)

    with pytest.raises(LeftoverTurns):
        builder.close()


def test_a_class_without_a_configuration_of_its_own_gets_the_bare_one() -> None:
    """HE105 judges config_init; here it only must not stand in the way."""
    assert type(initial_config(Exotic)) is HermesAgentEnvConfig
    assert initial_config(SmallEnv).system_prompt == "Be brief."


def test_a_layer_is_watched_when_it_is_built_on() -> None:
    """A cassette learns of classes that were loaded after it was opened."""
    seen: list[str] = []
    builder = EnvironmentBuilder(watch=lambda cls: seen.append(cls.__name__), allow_leftovers=True)
    builder.build(SmallEnv, in_process=True)
    builder.close()

    assert seen == ["HermesAgentBaseEnv", "HermesAgentLoop"]


def sandbox(**fields: Any) -> Any:
    """Return a seam over a sandbox."""
    return SimpleNamespace(
        sandbox=SimpleNamespace(**{"backend": "local", "is_confined": False, "description": "this machine"} | fields)
    )


@pytest.mark.parametrize(
    ("seam", "allow", "is_refused"),
    [
        (None, False, True),
        (sandbox(), False, True),
        (sandbox(is_confined=True), True, False),
        (None, True, False),
    ],
    ids=["no sandbox", "nothing confines it", "confined", "accepted"],
)
def test_a_live_model_gets_no_unconfined_terminal(seam: Any, allow: bool, is_refused: bool) -> None:
    """Its commands would run with the user's files and network."""
    builder = EnvironmentBuilder(seam=lambda: seam if is_refused else None, allow_unconfined=allow)
    if is_refused:
        with pytest.raises(EnvironmentSetupError, match=r"^A live model at api\.example\.org would be given a terminal"):
            builder.build(SmallEnv, server="https://api.example.org/v1")
    else:
        assert builder.build(SmallEnv, server="https://api.example.org/v1").server is not None
    builder.close()


@pytest.mark.parametrize("backend", ["local", "", "LOCAL", " Local "])
@pytest.mark.parametrize("host", ["api.example.org", "127.evil.com", "localhost.evil.com"])
def test_a_backend_that_hermes_reads_as_local_is_local(backend: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of hermes' tools strip the name, ignore its capitals, and take none for local; so does the check."""
    from tools import image_source

    monkeypatch.setenv("TERMINAL_ENV", backend)
    builder = EnvironmentBuilder()

    with pytest.raises(EnvironmentSetupError, match=rf"^A live model at {re.escape(host)} would be given a terminal"):
        builder.build(SmallEnv, server=f"https://{host}/v1", terminal_backend=backend)

    builder.close()
    assert image_source._is_local_terminal_backend() is True


def test_a_mock_server_of_the_test_is_asked(builder: EnvironmentBuilder) -> None:
    """Without a socket where the test wants none."""
    mock = MockServer(["Done."], allow_leftovers=True)

    env = builder.build(SmallEnv, server=mock, in_process=True)

    assert env.server.servers[0].config.base_url == IN_PROCESS_URL

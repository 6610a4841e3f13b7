"""HE105: config_init is a classmethod that gives a config and a list."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str
    message: str = ""


BROKEN = (
    Case(
        name="a single server config",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                return HermesAgentEnvConfig(), APIServerConfig(model_name="m")  # <- here
        """,
        message="config_init returns a single APIServerConfig instead of a list; "
        "Atropos ignores anything but a list here and falls back to localhost:9004-9007",
    ),
    Case(
        name="a single server config behind two names and a helper",
        source="""
        import atroposlib.envs.server_handling.server_manager as sm

        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                config = HermesAgentEnvConfig()
                server = cls._server()
                chosen = server
                return config, chosen  # <- here

            @staticmethod
            def _server():
                return sm.APIServerConfig(model_name="m")
        """,
        message="config_init returns a single APIServerConfig instead of a list; "
        "Atropos ignores anything but a list here and falls back to localhost:9004-9007",
    ),
    Case(
        name="no classmethod",
        source="""
        class Env(HermesAgentBaseEnv):
            def config_init(cls):  # <- here
                return HermesAgentEnvConfig(), [APIServerConfig()]
        """,
        message="config_init is not a classmethod; Atropos calls it on the class",
    ),
    Case(
        name="only the config",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                config = HermesAgentEnvConfig()  # <- here
                return config
        """,
        message="config_init returns one value, a HermesAgentEnvConfig; the list of server configs is missing",
    ),
    Case(
        name="none at all",
        source="""
        class Env(HermesAgentBaseEnv):  # <- here
            async def evaluate(self): ...
        """,
        message="no config_init: the class inherits Atropos' default, which names no server and falls back to "
        "localhost:9004-9007",
    ),
    Case(
        name="the default of the base handed on",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                config, servers = super().config_init()
                return config, servers  # <- here
        """,
        message="config_init returns a ServerBaseline, which names no server and falls back to localhost:9004-9007",
    ),
    Case(
        name="an empty list",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                return HermesAgentEnvConfig(), []  # <- here
        """,
        message="config_init returns an empty list of server configs; Atropos reads the first one",
    ),
    Case(
        name="a list on one way, a single one on the other",
        source="""
        import os

        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                server = APIServerConfig()
                if os.environ.get("MANY"):
                    return HermesAgentEnvConfig(), [server]
                return HermesAgentEnvConfig(), server  # <- here
        """,
        message="config_init returns a single APIServerConfig instead of a list; "
        "Atropos ignores anything but a list here and falls back to localhost:9004-9007",
    ),
    Case(
        name="nothing returned",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):  # <- here
                HermesAgentEnvConfig(), [APIServerConfig()]
        """,
        message="config_init must return (config, [APIServerConfig(...)]), but returns nothing",
    ),
)

SOUND = (
    Case(
        name="a literal list",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                return HermesAgentEnvConfig(), [APIServerConfig(base_url="http://localhost:8000/v1")]
        """,
    ),
    Case(
        name="a list that grows",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
                servers = []
                for port in (8000, 8001):
                    servers.append(APIServerConfig(base_url=f"http://localhost:{port}/v1"))
                return cls.env_config_cls(), servers
        """,
    ),
    Case(
        name="a comprehension, through a helper",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                config = cls.env_config_cls()
                return config, cls._servers()

            @classmethod
            def _servers(cls):
                return [APIServerConfig(base_url=url) for url in cls.urls]
        """,
    ),
    Case(
        name="inherited from another environment, changed a little",
        source="""
        class Parent(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                return HermesAgentEnvConfig(), [APIServerConfig()]

        class Env(Parent):
            @classmethod
            def config_init(cls):
                config, servers = super().config_init()
                config.max_agent_turns = 3
                return config, servers
        """,
    ),
    Case(
        name="two lists added",
        source="""
        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                return (HermesAgentEnvConfig(), [APIServerConfig()] * 2 + list(cls.more))
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_anything_but_a_pair_with_a_list_is_found(judge, case):
    judgement = judge("HE105", case.source)

    assert (judgement.lines, judgement.messages) == (judgement.marked, (case.message,))


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_classmethod_that_returns_a_pair_with_a_list_passes(judge, case):
    assert judge("HE105", case.source).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "source",
    [
        "class Env(HermesAgentBaseEnv):\n    @classmethod\n    def config_init(cls):\n        return load(cls)\n",
        "from company import servers\n\nclass Env(HermesAgentBaseEnv):\n    @classmethod\n"
        "    def config_init(cls):\n        return HermesAgentEnvConfig(), servers()\n",
        "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv):\n    pass\n",
    ],
    ids=["one call", "the list is computed elsewhere", "a base that cannot be read"],
)
def test_what_is_computed_elsewhere_is_undecided(judge, source):
    assert judge("HE105", source).outcome is Outcome.UNDECIDED

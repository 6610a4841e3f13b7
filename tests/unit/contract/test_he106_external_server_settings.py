"""HE106: an external API has server_type openai and no health check."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound


def env(body: str) -> str:
    """Return an environment whose config_init ends in ``body``."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"import os\n\nclass Env(HermesAgentBaseEnv):\n    @classmethod\n    def config_init(cls):\n{lines}"


def returning(*arguments: str) -> str:
    """Return an environment with one server configuration."""
    return env(f"return HermesAgentEnvConfig(), [APIServerConfig({', '.join(arguments)})]  # <- here")


HEALTH = "health_check is on by default for openrouter.ai: Atropos would send it a request every second"
OPENROUTER = 'base_url="https://openrouter.ai/api/v1"'

CASES = (
    broken("no health_check", returning(OPENROUTER, 'server_type="openai"'), HEALTH),
    broken(
        "health_check=True",
        returning('base_url="https://api.openai.com/v1"', "health_check=True"),
        "health_check is on for api.openai.com: Atropos would send it a request every second",
    ),
    broken(
        "the wrong type",
        returning(OPENROUTER, 'server_type="vllm"', "health_check=False"),
        "server_type is 'vllm' for openrouter.ai, an API that supports only 'openai'",
    ),
    broken(
        "an unknown https endpoint",
        returning('base_url="https://llm.example.com/v1"'),
        "health_check is on by default for llm.example.com: Atropos would send it a request every second",
    ),
    broken("a default of the environment", returning('base_url=os.environ.get("URL", "https://openrouter.ai/api/v1")'), HEALTH),
    broken(
        "through a constant, a helper and a list",
        """
        URL = "https://openrouter.ai" + "/api/v1"

        class Parent(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                servers = []
                servers.append(cls.server())
                return HermesAgentEnvConfig(), servers

        class Env(Parent):
            @staticmethod
            def server():
                url = URL
                return APIServerConfig(base_url=url, model_name="m")  # <- here
        """,
        HEALTH,
    ),
    sound("as it should be", returning(OPENROUTER, 'server_type="openai"', "health_check=False")),
    sound("loopback", returning('base_url="http://localhost:8000/v1"')),
    sound("a private address", returning('base_url="http://10.0.0.4:8000/v1"')),
    sound("a name of the local network", returning('base_url="https://vllm:8000/v1"')),
    sound("a vLLM of one's own behind https", returning('base_url="https://gpu7.my-lab.org/v1"', 'server_type="vllm"')),
    sound("no address: it comes from a flag", returning('model_name="m"')),
    sound(
        "set afterwards",
        env(
            'server = APIServerConfig(base_url="https://openrouter.ai/api/v1")\nserver.health_check = False\nreturn HermesAgentEnvConfig(), [server]'
        ),
    ),
    open_("computed", returning("base_url=cls.address()")),
    open_("spread from a dict", returning(OPENROUTER, "**cls.settings")),
    open_("no config_init", "class Env(HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_external_apis_are_configured_for_what_they_are(judge, case):
    check(judge, "HE106", case)

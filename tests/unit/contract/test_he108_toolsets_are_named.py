"""HE108: toolsets are named, and hermes knows them."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound


def returning(*arguments: str) -> str:
    """Return an environment whose config_init makes one configuration."""
    given = ", ".join(arguments)
    return (
        "class Env(HermesAgentBaseEnv):\n    @classmethod\n    def config_init(cls):\n"
        f"        return HermesAgentEnvConfig({given}), [APIServerConfig()]  # <- here\n"
    )


NEITHER = "neither enabled_toolsets nor distribution is set: the model would be offered every tool, messaging included"

CASES = (
    broken("neither", returning("group_size=4"), NEITHER),
    broken("None", returning("enabled_toolsets=None"), NEITHER),
    broken(
        "default_toolsets is only a hint",
        "class Config(HermesAgentEnvConfig): ...\n\n"
        + returning().replace("    @classmethod", '    default_toolsets = ["file"]\n\n    @classmethod', 1),
        NEITHER,
    ),
    broken(
        "both",
        returning('enabled_toolsets=["file"]', 'distribution="default"'),
        "enabled_toolsets and distribution are both set: set only one of them",
    ),
    broken(
        "misspelt", returning('enabled_toolsets=["terminal", "flie"]'), "hermes has no toolset 'flie'; did you mean 'file'?"
    ),
    broken(
        "a tool's name",
        returning('enabled_toolsets=["web_search"]'),
        "hermes has no toolset 'web_search'; did you mean 'x_search'?",
    ),
    broken(
        "one text",
        returning('enabled_toolsets="terminal"'),
        "enabled_toolsets must be a list of names, not the string 'terminal'",
    ),
    broken("empty", returning("enabled_toolsets=[]"), "enabled_toolsets is empty: the model would have no tools"),
    broken(
        "an unknown distribution",
        returning('distribution="reserch"'),
        "hermes has no distribution 'reserch'; did you mean 'research'?",
    ),
    broken(
        "misspelt in a constant, behind the class's own configuration",
        """
        TOOLS = ["terminal"] + ["fiel"]

        class Config(HermesAgentEnvConfig): ...

        class Env(HermesAgentBaseEnv):
            env_config_cls = Config

            @classmethod
            def config_init(cls):
                config = cls.env_config_cls(enabled_toolsets=TOOLS)  # <- here
                return config, [APIServerConfig()]
        """,
        "hermes has no toolset 'fiel'; did you mean 'file'?",
    ),
    sound("named", returning('enabled_toolsets=["terminal", "file", "web"]')),
    sound("everything, said so", returning('enabled_toolsets=["all"]')),
    sound("an old name", returning('enabled_toolsets=["file_tools"]')),
    sound("a distribution", returning('distribution="research"')),
    sound(
        "set afterwards",
        returning().replace(
            "return HermesAgentEnvConfig(), [",
            'c = HermesAgentEnvConfig()\n        c.enabled_toolsets = ["file"]\n        return c, [',
        ),
    ),
    sound(
        "the default of the configuration's own class",
        """
        from pydantic import Field

        class Config(HermesAgentEnvConfig):
            enabled_toolsets: list[str] = Field(default_factory=lambda: ["terminal"], description="Tools.")

        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):
                return Config(), [APIServerConfig()]
        """,
    ),
    sound(
        "a toolset of one's own",
        "import toolsets\n\ntoolsets.create_custom_toolset('maze', tools=['terminal'])\n\n"
        + returning('enabled_toolsets=["maze"]'),
    ),
    open_("computed", returning("enabled_toolsets=cls.tools()")),
    open_("spread from a dict", returning("**cls.settings")),
    open_(
        "a configuration that cannot be read",
        "from company import Config\n\n" + returning().replace("HermesAgentEnvConfig()", "Config()"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_toolsets_are_named(judge, case):
    check(judge, "HE108", case)

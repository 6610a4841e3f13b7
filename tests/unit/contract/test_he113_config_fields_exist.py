"""HE113: every field that is set is declared."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound


def env(call: str, field: str = "weight: float = 0.5", config: str = "Config") -> str:
    """Return an environment whose config_init makes one configuration."""
    return (
        f"class Config(HermesAgentEnvConfig):\n    {field}\n\n"
        f"class Env(HermesAgentBaseEnv):\n    env_config_cls = {config}\n\n"
        "    @classmethod\n    def config_init(cls):\n"
        f"        config = {call}  # <- here\n        return config, []\n"
    )


GROUP = "the configuration has no field 'groupsize': it is silently ignored; did you mean 'group_size'?"

CASES = (
    broken("a field of Atropos, misspelt", env("Config(groupsize=4)"), GROUP),
    broken("through env_config_cls", env("cls.env_config_cls(groupsize=4)"), GROUP),
    broken("of the layer's class", env("HermesAgentEnvConfig(groupsize=4)", config="HermesAgentEnvConfig"), GROUP),
    broken(
        "an own field, misspelt",
        env("Config(wieght=1.0)"),
        "the configuration has no field 'wieght': it is silently ignored; did you mean 'weight'?",
    ),
    broken("nothing near", env("Config(zzzzzz=1)"), "the configuration has no field 'zzzzzz': it is silently ignored"),
    sound("fields of Atropos, of the layer and its own", env("Config(group_size=4, max_agent_turns=3, weight=1.0)")),
    open_("extra fields are allowed", env("Config(groupsize=4)", field="model_config = {'extra': 'allow'}")),
    open_("an alias", env("Config(w=4)", field="weight: float = Field(default=1.0, alias='w')")),
    open_("computed fields", env("Config(**{'group' + 'size': 4})")),
    open_("a class that cannot be read", "from company import Config\n" + env("Config(x=1)").partition("\n\n")[2]),
    open_("no configuration", env("None")),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fields_that_nothing_declares_are_found(judge, case):
    check(judge, "HE113", case)

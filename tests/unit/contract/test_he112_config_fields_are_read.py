"""HE112: every own setting is read."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, other, sound


def env(body: str = "", field: str = "weight: float = 0.5") -> str:
    """Return an environment with one setting and a method."""
    return (
        f"class Config(HermesAgentEnvConfig):\n    {field.replace(chr(10), '  # <- here' + chr(10), 1) if chr(10) in field else field + '  # <- here'}\n    group_size: int = 2\n\n"
        "class Parent(HermesAgentBaseEnv):\n    env_config_cls = Config\n\nclass Env(Parent):\n"
        f"    async def setup(self):\n        self.items = []\n        {body}\n"
    )


UNREAD = "nothing reads the setting weight"

CASES = (
    broken("unread", env(), UNREAD),
    broken("only given", env("self.other = Config(weight=0.3)"), UNREAD),
    broken("only set", env("self.config.weight = 3"), UNREAD),
    broken("the configuration goes to the base alone", env("super().__init__(config=self.config)"), UNREAD),
    sound(
        "a validator that gives another field its value",
        env(
            field="weight: float = 0.5\n    @model_validator(mode='after')\n    def twice(self): self.other = self.weight; return self"
        ),
    ),
    sound("self.config", env("print(self.config.weight)")),
    sound("another name", env("c = self.config; print(c.weight)")),
    sound("getattr", env("print(getattr(self.config, 'weight', 1))")),
    sound("a dump", env("d = self.config.model_dump(); print(d['weight'])")),
    sound("a validator of the class", env(field="weight: float = 0.5\n    def doubled(self): return self.weight * 2")),
    open_("handed to code that cannot be read", env("from company import use; use(self.config)")),
    open_("dumped whole", env("d = self.config.model_dump(); print(d)")),
    open_("getattr with a computed name", env("print([getattr(self.config, name) for name in self.items])")),
    other("no settings", "class Env(HermesAgentBaseEnv): ...\n"),
    other("only other defaults", env().replace("weight: float = 0.5", "max_agent_turns: int = 3")),
    open_("a base that cannot be read", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_own_settings_are_read(judge, case):
    check(judge, "HE112", case)

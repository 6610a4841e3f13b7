"""HE104: settings are a subclass that env_config_cls names, and each is described."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound

CASES = (
    broken(
        "no descriptions",
        """
        from typing import Annotated, ClassVar
        from pydantic import Field

        class Config(HermesAgentEnvConfig):
            weight: float = 0.5  # <- here
            size: int = Field(default=3, ge=1)  # <- here
            depth: int  # <- here
            steps: Annotated[int, Field(ge=1)] = 3  # <- here
            KINDS: ClassVar[list[str]] = []
            _seen: int = 0

        class Env(HermesAgentBaseEnv):
            env_config_cls = Config
        """,
        "the setting weight has no description",
        "the setting size has no description",
        "the setting depth has no description",
        "the setting steps has no description",
    ),
    broken(
        "Atropos' own configuration",
        """
        from atroposlib.envs.base import BaseEnvConfig

        class Config(BaseEnvConfig): ...

        class Env(HermesAgentBaseEnv):
            env_config_cls = Config  # <- here
        """,
        "env_config_cls is Config, which is not a subclass of HermesAgentEnvConfig",
    ),
    broken(
        "a plain model",
        """
        import pydantic

        class Settings(pydantic.BaseModel): ...

        class Env(HermesAgentBaseEnv):
            env_config_cls = Settings  # <- here
        """,
        "env_config_cls is Settings, which is not a subclass of HermesAgentEnvConfig",
    ),
    broken(
        "forgotten, although config_init makes one",
        """
        from pydantic import Field

        class Config(HermesAgentEnvConfig):
            weight: float = Field(default=0.5, description="Weight.")

        class Env(HermesAgentBaseEnv):
            @classmethod
            def config_init(cls):  # <- here
                return Config(), [APIServerConfig()]
        """,
        "config_init returns a Config, but env_config_cls is HermesAgentEnvConfig: its own fields cannot be set by command-line flags",
    ),
    sound("the layer's own", "class Env(HermesAgentBaseEnv):\n    env_config_cls = HermesAgentEnvConfig\n"),
    sound("inherited", "class Env(HermesAgentBaseEnv): ...\n"),
    sound(
        "described in four ways, and another default for a field of the layer",
        """
        from typing import Annotated
        from pydantic import ConfigDict, Field

        SIZE = Field(default=3, description="Size.")

        class Base(HermesAgentEnvConfig):
            model_config = ConfigDict(use_attribute_docstrings=True)
            depth: int = 3
            "How deep."

        class Config(Base):
            max_agent_turns: int = 5
            group_size: int = 2
            weight: float = Field(0.5, description="Weight.")
            size: int = SIZE
            steps: Annotated[int, Field(description="Steps.")] = 3

        class Env(HermesAgentBaseEnv):
            env_config_cls = Config

            @classmethod
            def config_init(cls):
                return cls.env_config_cls(weight=0.1), [APIServerConfig()]
        """,
    ),
    sound(
        "a class inside of the environment",
        "class Env(HermesAgentBaseEnv):\n    class Config(HermesAgentEnvConfig): ...\n\n    env_config_cls = Config\n",
    ),
    open_(
        "a configuration that cannot be read",
        "from company import Config\n\nclass Env(HermesAgentBaseEnv):\n    env_config_cls = Config\n",
    ),
    open_("a base that cannot be read", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_settings_are_named_and_described(judge, case):
    check(judge, "HE104", case)

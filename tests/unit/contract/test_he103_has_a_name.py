"""HE103: an environment has a name of its own."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound

CASES = (
    broken(
        "none",
        "class Env(HermesAgentBaseEnv):  # <- here\n    async def setup(self): ...\n",
        "Env sets no name, so it gets the default name 'hermes-agent'",
    ),
    broken(
        "the base's",
        'class Env(HermesAgentBaseEnv):\n    name = "hermes-agent"  # <- here\n',
        "name is 'hermes-agent', which is the base class's default",
    ),
    broken("empty", 'class Env(HermesAgentBaseEnv):\n    name: str = " "  # <- here\n', "name is empty"),
    broken("None", "class Env(HermesAgentBaseEnv):\n    name = None  # <- here\n", "name is None; it must be a string"),
    broken(
        "the base's, by way of a constant",
        'DEFAULT = "hermes-agent"\n\nclass Env(HermesAgentBaseEnv):\n    name = DEFAULT  # <- here\n',
        "name is 'hermes-agent', which is the base class's default",
    ),
    sound("a text", 'class Env(HermesAgentBaseEnv):\n    name = "maze"\n'),
    sound("put together", 'STEM = "maze"\n\nclass Env(HermesAgentBaseEnv):\n    name: str = f"{STEM}-{2}" + "b"\n'),
    sound("inherited", 'class Parent(HermesAgentBaseEnv):\n    name = "maze"\n\nclass Env(Parent): ...\n'),
    sound("under an if", 'class Env(HermesAgentBaseEnv):\n    if time.time():\n        name = "maze"\n'),
    sound(
        "set by the constructor",
        "class Env(HermesAgentBaseEnv):\n    def __init__(self, *args):\n        super().__init__(*args)\n        self.name = 'maze'\n",
    ),
    open_("computed", "import os\n\nclass Env(HermesAgentBaseEnv):\n    name = os.environ['ENV_NAME']\n"),
    open_("a property", "class Env(HermesAgentBaseEnv):\n    @property\n    def name(self):\n        return 'maze'\n"),
    open_("a base that cannot be read", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_environment_has_a_name(judge, case):
    check(judge, "HE103", case)

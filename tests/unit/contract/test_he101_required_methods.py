"""HE101: the five methods exist, own or inherited."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound

CASES = (
    broken(
        "evaluate forgotten",
        """
        class Env(HermesAgentBaseEnv):  # <- here
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
        """,
    ),
    broken(
        "one that is written twice",
        """
        class Env(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx):
                return 1.0
            async def evaluate(self): ...
            async def compute_reward(self, item, result, ctx):  # <- here
                pass
        """,
        "compute_reward is defined twice: this one takes the place of line 20",
    ),
    broken(
        "a misspelt name",
        """
        class Env(HermesAgentBaseEnv[HermesAgentEnvConfig]):
            async def setup(self): ...
            async def get_next_items(self): ...  # <- here
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    broken(
        "methods that a helper between them took",
        """
        class Env(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...

        def check(text):
            return len(text)

            async def compute_reward(self, item, result, ctx): ...  # <- here
            async def evaluate(self): ...
        """,
    ),
    broken(
        "a method that lost its indentation",
        """
        class Env(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...

        async def evaluate(self): ...  # <- here
        """,
    ),
    broken(
        "a method at module level",
        """
        import environments.hermes_base_env as base

        async def setup(self): ...  # <- here

        class Env(base.HermesAgentBaseEnv):
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    broken(
        "a mixin that comes after the base, which hides it",
        """
        class Rest:
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...

        class Env(HermesAgentBaseEnv, Rest):  # <- here
            async def evaluate(self): ...
        """,
    ),
    broken(
        "inherited from an environment that lacks it too",
        """
        Base = HermesAgentBaseEnv

        class Half(Base):
            async def setup(self): ...
            async def get_next_item(self): ...

        class Env(Half):  # <- here
            def format_prompt(self, item): ...
            async def evaluate(self): ...
        """,
    ),
    broken(
        "methods that nobody can call",
        """
        class Env(HermesAgentBaseEnv):
            async def setup(self):
                self.evaluate = "on"  # <- here
                self.items = []
            async def get_next_item(self): ...
            @property
            def format_prompt(self):  # <- here
                return "x"
            @staticmethod
            async def compute_reward(self, item, result, ctx): ...  # <- here
            async def evaluate(self): ...
        """,
        "setup sets self.evaluate, which hides the method in line 26",
        "format_prompt is a property, and it is called",
        "compute_reward is a staticmethod, and takes self: nothing passes it",
    ),
    broken(
        "a dataclass",
        """
        @dataclass(kw_only=True)
        class Env(HermesAgentBaseEnv):  # <- here
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    sound(
        "a static method, a function in the place of one, and a dataclass with the constructor of the layer",
        """
        @dataclass(init=False)
        class Env(HermesAgentBaseEnv):
            async def setup(self):
                self.format_prompt = make_prompt
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            @staticmethod
            async def compute_reward(item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    sound(
        "all own",
        """
        class Env(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...
        """,
    ),
    sound(
        "inherited from another environment",
        """
        class Parent(HermesAgentBaseEnv):
            async def setup(self): ...
            async def get_next_item(self): ...
            def format_prompt(self, item): ...
            async def compute_reward(self, item, result, ctx): ...
            async def evaluate(self): ...

        class Env(Parent):
            name = "child"
        """,
    ),
    sound(
        "from a mixin, under an if, and by assignment",
        """
        class Rest:
            async def setup(self): ...
            async def get_next_item(self): ...
            async def _evaluate(self): ...

        class Env(Rest, HermesAgentBaseEnv):
            if True:
                def format_prompt(self, item): ...
            else:
                def format_prompt(self, item, more=None): ...
            async def compute_reward(self, item, result, ctx): ...
            evaluate = Rest._evaluate
        """,
    ),
    broken(
        "all that is missing is one finding",
        "class Env(HermesAgentBaseEnv):  # <- here\n    def format_prompt(self, item): ...\n",
        "setup, get_next_item, compute_reward, evaluate are missing",
    ),
    open_("a base that cannot be read", "from company import Tools\n\nclass Env(Tools, HermesAgentBaseEnv):\n    pass\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_missing_method_is_found_at_the_class(judge, case):
    check(judge, "HE101", case)

"""HE114: the base is the layer's, and what is called on it exists."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound

TRY = "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv\nexcept ImportError:\n    {}  # <- here\n\n\n"
STUB = "HermesAgentBaseEnv is an empty class where the layer cannot be imported: nothing says so"


def env(body: str = "pass", base: str = "HermesAgentBaseEnv") -> str:
    """Return an environment with a method."""
    return f"class Env({base}):\n    async def setup(self):\n        {body}\n"


CASES = (
    broken("an empty class", TRY.format("class HermesAgentBaseEnv: pass") + env(), STUB),
    broken("object", TRY.format("HermesAgentBaseEnv = object") + env(), STUB),
    sound("a stub that raises", TRY.format("raise") + env()),
    broken(
        "subscripted",
        "class Config(HermesAgentEnvConfig): ...\n\n"
        + env(base="HermesAgentBaseEnv[Config]").replace(":\n", ":  # <- here\n", 1),
        "HermesAgentBaseEnv is not generic: HermesAgentBaseEnv[Config] raises a TypeError at import",
    ),
    broken(
        "a method that does not exist",
        env("await self.evaluate_logs({})  # <- here"),
        "setup calls self.evaluate_logs, which does not exist; did you mean 'evaluate_log'?",
    ),
    broken(
        "of super",
        env("await super().set_up_everything()  # <- here"),
        "setup calls super().set_up_everything, which does not exist",
    ),
    sound("methods of Atropos and of the layer", env("self._resolve_tools_for_group(); await self.evaluate_log({})")),
    sound("an attribute that is set", env("self.load = lambda: 1; self.load()")),
    open_("names that are computed", env("setattr(self, 'lo' + 'ad', print); self.load()")),
    open_("a base that cannot be read", "from company import Base\n\n" + env("self.load()", base="Base, HermesAgentBaseEnv")),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bases_and_calls_that_do_not_work_are_found(judge, case):
    check(judge, "HE114", case)

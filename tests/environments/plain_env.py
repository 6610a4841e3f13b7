"""An environment with nothing of its own; tests derive theirs from it."""

from __future__ import annotations

from typing import Any

from environments.hermes_base_env import HermesAgentBaseEnv


class PlainEnv(HermesAgentBaseEnv):
    """Items are texts, and every reward is 1.0."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any:
        return "item"

    def format_prompt(self, item: Any) -> str:
        return f"do {item}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return 1.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...

"""Multi-signal: renaming files in the sandbox. Most of it is inherited from an abstract base in another file of the package."""

from __future__ import annotations

import os

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext

from .signals_base import SignalsConfig, SignalsEnv

PAIRS = ("draft:final", "old:new", "left:right", "input:output", "before:after", "raw:cooked")


class RenameEnv(SignalsEnv):
    """Make a file that is named after another one."""

    name = "many-signals"

    @classmethod
    def config_init(cls) -> tuple[SignalsConfig, list[APIServerConfig]]:
        """Return settings and servers."""
        config = cls.env_config_cls(enabled_toolsets=["terminal"], max_agent_turns=12, max_token_length=512, use_wandb=False)
        server = APIServerConfig(
            base_url="http://localhost:8000/v1",
            model_name="Qwen/Qwen3-8B",
            api_key=os.environ.get("LOCAL_KEY", "x"),
            server_type="openai",
            health_check=False,
        )
        return config, [server]

    def all_items(self) -> list[dict[str, str]]:
        """Return the pairs as items."""
        return [dict(zip(("source", "target"), pair.split(":"), strict=True)) for pair in PAIRS]

    def format_prompt(self, item: dict[str, str]) -> str:
        """Return the task."""
        return "Make an empty file named {source}, then rename it to {target}.".format(**item)

    def is_right(self, item: dict[str, str], result: AgentResult, ctx: ToolContext) -> bool:
        """Tell whether the target is there and the source is not."""
        listing = ctx.terminal("ls").get("output", "").split()
        return item["target"] in listing and item["source"] not in listing


if __name__ == "__main__":
    RenameEnv.cli()

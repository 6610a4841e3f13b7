"""The base class of Hermes Agent environments on Atropos: configuration and orchestration.

An item becomes a prompt, `HermesAgentLoop` works on it with real tools, ``compute_reward`` looks at the result in the same
sandbox, `scoring` turns that into what the trainer gets. An environment writes five methods: ``setup``, ``get_next_item``,
``format_prompt``, ``compute_reward``, ``evaluate``.

Source: the interface is that of hermes-agent's former ``environments.hermes_base_env``; atroposlib 0.4.0 stands below.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from abc import abstractmethod
from contextvars import ContextVar
from typing import Any, ClassVar

from environments.agent_loop import AgentResult, HermesAgentLoop, resize_tool_pool  # first: explains shadowed modules

import model_tools  # isort: skip
import toolset_distributions
import toolsets
from atroposlib.envs.base import BaseEnv, BaseEnvConfig, ScoredDataGroup, ScoredDataItem
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServerConfig, ServerBaseline
from atroposlib.type_definitions import Item
from pydantic import Field, model_validator
from tools.budget_config import (
    DEFAULT_PREVIEW_SIZE_CHARS,
    DEFAULT_RESULT_SIZE_CHARS,
    DEFAULT_TURN_BUDGET_CHARS,
    BudgetConfig,
)

from environments import command_line, rollout_text, scoring
from environments.bridge import bridged
from environments.hermes_modules import explain_shadowing
from environments.tool_call_parsers import list_parsers
from environments.tool_context import ToolContext

__all__ = ["HermesAgentBaseEnv", "HermesAgentEnvConfig"]

logger = logging.getLogger(__name__)

Tools = tuple[list[dict[str, Any]], set[str]]
"""(tool schemas in OpenAI's format, the names that may run)."""

_group_tools: ContextVar[tuple[int, Tools] | None] = ContextVar("hermes_group_tools", default=None)
"""(id of the environment, its tools) of the group that the current task belongs to."""

PARSERS_OF_TOKEN_MODE = (
    "deepseek_v3", "deepseek_v31", "deepseek_v3_1", "glm45", "glm47", "hermes", "kimi_k2", "llama3_json", "llama4_json",
    "longcat", "mistral", "qwen", "qwen3_coder",
)  # fmt: skip
"""Names that ``tool_call_parser`` may have. Chat mode reads structured tool calls and needs none of them."""

APPROVAL_VARIABLES = ("HERMES_INTERACTIVE", "HERMES_GATEWAY_SESSION", "HERMES_EXEC_ASK", "HERMES_CRON_SESSION")
"""Where one of these is set, hermes asks a person before it runs what looks dangerous."""

MAX_FAILURES_IN_A_ROW = 3
"""Groups without data after which ``process`` gives up."""


class HermesAgentEnvConfig(BaseEnvConfig):
    """Configuration of a Hermes Agent environment, on top of Atropos' own fields."""

    enabled_toolsets: list[str] | None = Field(
        default=None,
        description="Toolsets to offer to the model. None offers every tool, messaging included, and warns.",
    )
    disabled_toolsets: list[str] | None = Field(
        default=None, description="Toolsets to take away after enabled_toolsets or distribution have chosen."
    )
    distribution: str | None = Field(
        default=None,
        description="Name in hermes' toolset_distributions, sampled once per group. Excludes enabled_toolsets.",
    )
    max_agent_turns: int = Field(default=30, description="Model calls per rollout, at most.")
    system_prompt: str | None = Field(default=None, description="System message put before the item's prompt.")
    agent_temperature: float = Field(default=1.0, description="Sampling temperature of training rollouts.")
    terminal_backend: str = Field(
        default="local", description="Where tools run: local, docker, modal, daytona, ssh or singularity."
    )
    terminal_timeout: int = Field(default=120, description="Seconds that one terminal command may take.")
    terminal_lifetime: int = Field(default=3600, description="Seconds without use after which a sandbox is reaped.")
    dataset_name: str | None = Field(default=None, description="Hugging Face dataset to load items from.")
    dataset_split: str = Field(default="train", description="Split of dataset_name.")
    prompt_field: str = Field(default="prompt", description="Column of dataset_name that holds the prompt.")
    tool_pool_size: int = Field(default=128, description="Threads for tool execution.")
    tool_call_parser: str = Field(default="hermes", description="Tool-call format of the model, for token mode (vLLM, SGLang).")
    default_result_size_chars: int = Field(
        default=DEFAULT_RESULT_SIZE_CHARS, description="Largest single tool result kept in the conversation, in characters."
    )
    turn_budget_chars: int = Field(
        default=DEFAULT_TURN_BUDGET_CHARS, description="Largest sum of tool results in one turn, in characters."
    )
    preview_size_chars: int = Field(
        default=DEFAULT_PREVIEW_SIZE_CHARS, description="Preview left in the conversation when a result is moved out."
    )
    tool_result_overrides: dict[str, int] | None = Field(
        default=None, description="Largest result per tool name, in characters; wins over default_result_size_chars."
    )
    extra_body: dict[str, Any] | None = Field(
        default=None, description="Passed on with chat completions: OpenRouter provider preferences, transforms."
    )

    @model_validator(mode="after")
    def _one_source_of_tools(self) -> HermesAgentEnvConfig:
        if self.enabled_toolsets is not None and self.distribution is not None:
            raise ValueError(
                f"enabled_toolsets ({self.enabled_toolsets}) and distribution ({self.distribution!r}) are both set; "
                "set one: a distribution samples its own toolsets"
            )
        return self

    def build_budget_config(self) -> BudgetConfig:
        """Return hermes' own form of the size limits."""
        return BudgetConfig(
            default_result_size=self.default_result_size_chars,
            turn_budget=self.turn_budget_chars,
            preview_size=self.preview_size_chars,
            tool_overrides=dict(self.tool_result_overrides or {}),
        )


class HermesAgentBaseEnv(BaseEnv):
    """Collects groups of scored agent rollouts.

    ``compute_reward`` runs so that synchronous `ToolContext` calls in it do not hold up other rollouts. An exception in it, or
    a value that is no finite number, is logged, scored 0.0 and counted in ``train/reward_errors``.
    """

    name: str | None = "hermes-agent"
    env_config_cls: ClassVar[type[BaseEnvConfig]] = HermesAgentEnvConfig

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "compute_reward" in cls.__dict__:
            cls.compute_reward = bridged(cls.__dict__["compute_reward"])  # type: ignore[method-assign]

    def __init__(
        self,
        config: HermesAgentEnvConfig,
        server_configs: ServerBaseline | list[APIServerConfig],
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Build the environment; exports the terminal settings that hermes' tools read from ``os.environ``.

        The variables that make hermes wait for a person's approval are removed: nobody watches a rollout.
        """
        command_line.load_dotenv_of_cwd()
        _check_parser(config.tool_call_parser)
        _check_servers(server_configs, testing=testing)
        if getattr(config, "wandb_name", None) is None and self.name:
            config.wandb_name = self.name
        super().__init__(config, server_configs, slurm, testing)
        os.environ["TERMINAL_ENV"] = config.terminal_backend
        os.environ["TERMINAL_TIMEOUT"] = str(config.terminal_timeout)
        os.environ["TERMINAL_LIFETIME_SECONDS"] = str(config.terminal_lifetime)
        for name in APPROVAL_VARIABLES:
            os.environ.pop(name, None)
        resize_tool_pool(config.tool_pool_size)
        self.server.tool_parser = config.tool_call_parser
        self._tool_error_buffer: list[str] = []
        self._reward_errors = 0

    # ------------------------------------------------------------------ written by the environment

    @abstractmethod
    async def setup(self) -> None:
        """Load items; called once before anything else."""

    @abstractmethod
    async def get_next_item(self) -> Item:
        """Return the next training item, starting again at the end; None means that there is none at the moment."""

    @abstractmethod
    def format_prompt(self, item: Item) -> str:
        """Return the user message for ``item``."""

    @abstractmethod
    async def compute_reward(self, item: Item, result: AgentResult, ctx: ToolContext) -> float:
        """Return the reward of one rollout. ``ctx`` reaches the agent's own sandbox; the base cleans it up."""

    @abstractmethod
    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run the agent over held-out items and log with `evaluate_log`."""

    # ------------------------------------------------------------------ tools

    def _resolve_tools_for_group(self) -> Tools:
        """Return the tools to offer, sampled anew when the configuration names a distribution.

        Raises: ValueError when a toolset is unknown or no tool is left, naming the known ones.
        """
        config = self.config
        if config.distribution is not None:
            if not toolset_distributions.validate_distribution(config.distribution):
                known = sorted(toolset_distributions.list_distributions())
                raise ValueError(f"Unknown distribution {config.distribution!r}. Known distributions: {known}")
            enabled = toolset_distributions.sample_toolsets_from_distribution(config.distribution)
        else:
            enabled = config.enabled_toolsets
        if enabled is None:
            logger.warning("enabled_toolsets is not set: the model is offered every tool, messaging included")
        _check_toolsets([*(enabled or ()), *(config.disabled_toolsets or ())])
        schemas = model_tools.get_tool_definitions(
            enabled_toolsets=enabled, disabled_toolsets=config.disabled_toolsets, quiet_mode=True
        )
        if not schemas:
            raise ValueError(_no_tools_message(enabled, config.disabled_toolsets))
        names = {schema["function"]["name"] for schema in schemas}
        _warn_of_hidden_tools(enabled or [], config.disabled_toolsets or [], names)
        return schemas, names

    @property
    def _current_group_tools(self) -> Tools | None:
        """The tools of the group that the running task belongs to; None outside of a group.

        An environment with a ``collect_trajectories`` of its own may assign them; that, too, holds for its own group only.
        """
        held = _group_tools.get()
        return held[1] if held is not None and held[0] == id(self) else None

    @_current_group_tools.setter
    def _current_group_tools(self, tools: Tools | None) -> None:
        _group_tools.set(None if tools is None else (id(self), tools))

    # ------------------------------------------------------------------ rollouts

    async def collect_trajectories(self, item: Item) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Run one group: ``group_size`` rollouts of ``item``, with one choice of tools for all.

        When a rollout raises, its siblings are cancelled and awaited before the error goes on.
        """
        token = _group_tools.set((id(self), self._resolve_tools_for_group()))
        try:
            results = await _all_or_none([self.collect_trajectory(item) for _ in range(self.config.group_size)])
        finally:
            _group_tools.reset(token)
        backlog = [left for _, lefts in results for left in lefts]
        items = [scored for scored, _ in results if scored is not None]
        if len(items) < len(results):
            logger.warning(
                "%d of %d rollouts of a group gave no item; the group is dropped", len(results) - len(items), len(results)
            )
            return None, backlog
        return scoring.group_of(items), backlog  # type: ignore[return-value] - a TypedDict built from columns

    async def collect_trajectory(self, item: Item) -> tuple[ScoredDataItem | None, list[Item]]:
        """Run one rollout in a sandbox of its own, score it, and release the sandbox on every way out."""
        if self._use_managed_server():
            raise NotImplementedError(_CHAT_MODE_ONLY.format(server_type=type(self.server.servers[0]).__name__))
        schemas, names = self._current_group_tools or self._resolve_tools_for_group()
        ctx = ToolContext(str(uuid.uuid4()))
        try:
            loop = HermesAgentLoop(
                server=self.server,
                tool_schemas=schemas,
                valid_tool_names=names,
                max_turns=self.config.max_agent_turns,
                task_id=ctx.task_id,
                temperature=self.config.agent_temperature,
                max_tokens=self.config.max_token_length,
                extra_body=self.config.extra_body,
                budget_config=self.config.build_budget_config(),
            )
            result = await loop.run(self._first_messages(item))
            reward = await self._reward_of(item, result, ctx)
        finally:
            await _to_the_end(asyncio.to_thread(ctx.cleanup))
        self._remember_tool_errors(result)
        return scoring.chat_item(self.tokenizer, result.messages, reward), []  # type: ignore[return-value]

    def _first_messages(self, item: Item) -> list[dict[str, Any]]:
        system = [{"role": "system", "content": self.config.system_prompt}] if self.config.system_prompt else []
        return [*system, {"role": "user", "content": self.format_prompt(item)}]

    async def _reward_of(self, item: Item, result: AgentResult, ctx: ToolContext) -> float:
        """Return the reward, 0.0 without asking when the model said nothing, and 0.0 counted as an error when it fails."""
        if not scoring.did_work(result.messages):
            logger.warning("The model said nothing in rollout %s; reward 0.0, nothing trains on it", ctx.task_id)
            return 0.0
        try:
            return scoring.as_reward(await bridged(self.compute_reward)(item, result, ctx))
        except Exception:
            logger.exception("compute_reward failed in rollout %s; scored 0.0 and counted as a reward error", ctx.task_id)
            self._reward_errors += 1
            return 0.0

    def _remember_tool_errors(self, result: AgentResult) -> None:
        self._tool_error_buffer.extend(
            f"[turn {error.turn}] {error.tool_name}({error.arguments[:200]}): {error.error[:500]}"
            for error in result.tool_errors
        )

    def _use_managed_server(self) -> bool:
        """Tell whether rollouts run in token mode: always, unless the first server is an OpenAI-compatible one."""
        servers = self.server.servers
        return bool(servers) and not isinstance(servers[0], OpenAIServer)

    # ------------------------------------------------------------------ logging

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Add tool and reward errors to the metrics, log them, and start counting anew."""
        metrics = {} if wandb_metrics is None else wandb_metrics
        metrics["train/tool_errors_count"] = len(self._tool_error_buffer)
        if self._tool_error_buffer:
            metrics["train/tool_error_details"] = "\n".join(map(str, self._tool_error_buffer))
        metrics["train/reward_errors"] = self._reward_errors
        self._tool_error_buffer = []
        self._reward_errors = 0
        await super().wandb_log(metrics)

    async def add_rollouts_for_wandb(self, scored_data: Any, item: Item = None) -> None:
        """Keep conversations for wandb's rollout table, readable; decoded tokens where there are no messages."""
        kept = self.config.num_rollouts_per_group_for_logging
        count = len(scored_data["tokens"])
        rows = range(count if kept == -1 else min(kept, count))
        messages = scored_data.get("messages") or []
        self.rollouts_for_wandb.append(
            [
                (
                    rollout_text.render(messages[row])
                    if row < len(messages) and messages[row]
                    else self.tokenizer.decode(scored_data["tokens"][row]),
                    scored_data["scores"][row],
                )
                for row in rows
            ]
        )
        del self.rollouts_for_wandb[: max(0, len(self.rollouts_for_wandb) - self.config.num_rollouts_to_keep)]

    # ------------------------------------------------------------------ the three modes

    async def env_manager(self) -> None:
        """Serve a trainer; refuses at once what this version cannot train on, instead of failing group by group."""
        if self._use_managed_server():
            raise NotImplementedError(_CHAT_MODE_ONLY.format(server_type=type(self.server.servers[0]).__name__))
        await super().env_manager()

    async def process_manager(self) -> None:
        """Write ``n_groups_to_process`` groups to the JSONL file and the HTML page beside it.

        Raises: RuntimeError when several groups in a row gave no data.
        """
        await command_line.process_groups(self, give_up_after=MAX_FAILURES_IN_A_ROW)

    @classmethod
    def cli(cls) -> None:
        """Run ``serve``, ``process`` or ``evaluate`` from the command line."""
        command_line.main(cls)

    @classmethod
    def get_cli_serve_config_cls(cls) -> type:
        """Return the command class of ``serve``."""
        return command_line.command_class(cls, "serve")

    @classmethod
    def get_cli_process_config_cls(cls) -> type:
        """Return the command class of ``process``."""
        return command_line.command_class(cls, "process")

    @classmethod
    def get_cli_evaluate_config_cls(cls) -> type:
        """Return the command class of ``evaluate``."""
        return command_line.command_class(cls, "evaluate")


_CHAT_MODE_ONLY = (
    "The first server is a {server_type}, which means token mode, and this version of pytest-hermes-env runs rollouts in chat "
    'mode only. Use server_type "openai" (vLLM and SGLang serve that too, under /v1), with health_check false.'
)


def _check_parser(name: str) -> None:
    known = sorted({*PARSERS_OF_TOKEN_MODE, *list_parsers()})
    if name not in known:
        raise ValueError(f"Unknown tool_call_parser {name!r}. Available parsers: {known}")


def _check_servers(server_configs: object, *, testing: bool) -> None:
    if not isinstance(server_configs, list) and not testing:
        raise TypeError(
            f"server_configs must be a list of APIServerConfig, not {type(server_configs).__name__}: Atropos would ignore it "
            "and wait for model servers on localhost:9004 to 9007"
        )


def _check_toolsets(names: list[str]) -> None:
    legacy = getattr(model_tools, "_LEGACY_TOOLSET_MAP", {})
    unknown = [name for name in names if not toolsets.validate_toolset(name) and name not in legacy]
    if unknown:
        raise ValueError(_with_shadowing(f"Unknown toolsets {unknown}. Known toolsets: {toolsets.get_toolset_names()}"))


def _no_tools_message(enabled: list[str] | None, disabled: list[str] | None) -> str:
    return _with_shadowing(
        f"No tool is available with enabled_toolsets={enabled} and disabled_toolsets={disabled}: hermes leaves out tools "
        f"whose requirements are not met (an API key, a browser, Docker). Known toolsets: {toolsets.get_toolset_names()}"
    )


def _warn_of_hidden_tools(enabled: list[str], disabled: list[str], offered: set[str]) -> None:
    """Warn when tools are missing that were asked for and a project module shadows one of hermes': that may be why."""
    wanted = {tool for name in enabled if toolsets.validate_toolset(name) for tool in toolsets.resolve_toolset(name)}
    unwanted = {tool for name in disabled if toolsets.validate_toolset(name) for tool in toolsets.resolve_toolset(name)}
    missing = sorted(wanted - unwanted - offered)
    if missing and (reason := explain_shadowing()):
        logger.warning("hermes does not offer %s. %s", missing, reason)


def _with_shadowing(message: str) -> str:
    return f"{message}\n{reason}" if (reason := explain_shadowing()) else message


async def _all_or_none(coroutines: list[Any]) -> list[Any]:
    """Run all; when one raises, cancel and await the others, then raise the first error as it was."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _to_the_end(awaitable: Any) -> None:
    """Await something that must finish even when the awaiting task is cancelled meanwhile; the cancellation then goes on."""
    task = asyncio.ensure_future(awaitable)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled

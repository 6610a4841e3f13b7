"""The base class of Hermes Agent environments on Atropos: configuration and orchestration.

An item becomes a prompt, `HermesAgentLoop` works on it with real tools, ``compute_reward`` checks the result in the same
sandbox, and `scoring` builds the data for the trainer. An environment implements five methods: ``setup``, ``get_next_item``,
``format_prompt``, ``compute_reward``, ``evaluate``.

Source: the interface is that of hermes-agent's former ``environments.hermes_base_env``, on top of atroposlib 0.4.0.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import os
import time
import uuid
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

from atroposlib.envs.base import BaseEnv, BaseEnvConfig, ScoredDataGroup, ScoredDataItem
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServerConfig, ServerBaseline
from atroposlib.type_definitions import Item
from pydantic import Field, model_validator

from environments import command_line, rollout_text, scoring
from environments.agent_loop import AgentResult, HermesAgentLoop, resize_tool_pool  # first: explains shadowed modules
from environments.agent_rollout import AgentRollout
from environments.concurrency import all_or_none, to_the_end
from environments.evaluation import Evaluation, Sample, Score, held_out_items, metrics_of, run_each, sample_of
from environments.exact_tokens import TokenModeError, exact_server_class
from environments.model_reply import check_parser, check_parser_name
from environments.nonblocking_calls import bridged
from environments.offered_tools import Tools, offered_tools
from environments.scoring import SplitRollouts
from environments.token_mode import HistoryRendering, TokenMode
from environments.tool_context import ToolContext

# isort: split
from tools.budget_config import (
    DEFAULT_PREVIEW_SIZE_CHARS,
    DEFAULT_RESULT_SIZE_CHARS,
    DEFAULT_TURN_BUDGET_CHARS,
    BudgetConfig,
)

__all__ = ["HermesAgentBaseEnv", "HermesAgentEnvConfig"]

logger = logging.getLogger(__name__)

_group_tools: ContextVar[tuple[int, Tools] | None] = ContextVar("hermes_group_tools", default=None)
"""(id of the environment, its tools) for the group of the current task."""

APPROVAL_VARIABLES = ("HERMES_INTERACTIVE", "HERMES_GATEWAY_SESSION", "HERMES_EXEC_ASK", "HERMES_CRON_SESSION")
"""If one of these is set, hermes asks for a person's approval before it runs a dangerous command."""

MAX_FAILURES_IN_A_ROW = 3
"""Groups without data after which ``process`` gives up."""


class HermesAgentEnvConfig(BaseEnvConfig):
    """Configuration of a Hermes Agent environment, in addition to Atropos' own fields."""

    enabled_toolsets: list[str] | None = Field(
        default=None,
        description="Toolsets to offer to the model. None offers every tool, messaging included, and warns.",
    )
    disabled_toolsets: list[str] | None = Field(
        default=None, description="Toolsets to remove from those of enabled_toolsets or distribution."
    )
    distribution: str | None = Field(
        default=None,
        description="Name in hermes' toolset_distributions, sampled once per group. Excludes enabled_toolsets.",
    )
    max_agent_turns: int = Field(default=30, description="Maximum number of model calls per rollout.")
    system_prompt: str | None = Field(default=None, description="System message before the item's prompt.")
    agent_temperature: float = Field(default=1.0, description="Sampling temperature of training rollouts.")
    terminal_backend: str = Field(
        default="local", description="Where tools run: local, docker, modal, daytona, ssh or singularity."
    )
    terminal_timeout: int = Field(default=120, description="Timeout of a terminal command, in seconds.")
    terminal_lifetime: int = Field(default=3600, description="Seconds of inactivity after which a sandbox is removed.")
    dataset_name: str | None = Field(default=None, description="Hugging Face dataset to load items from.")
    dataset_split: str = Field(default="train", description="Split of dataset_name.")
    prompt_field: str = Field(default="prompt", description="Column of dataset_name that holds the prompt.")
    tool_pool_size: int = Field(default=128, description="Threads for tool execution.")
    tool_call_parser: str = Field(default="hermes", description="Tool-call format of the model, for token mode (vLLM, SGLang).")
    history_rendering: HistoryRendering = Field(
        default="sampled",
        description="Token mode: 'sampled' continues the sampled text, so that a rollout is one sequence; 'template' renders the "
        "whole conversation again each turn, as a chat server does, which may split a rollout into several.",
    )
    split_rollouts: SplitRollouts = Field(
        default="keep",
        description="Token mode: 'keep' trains on every sequence of a split rollout, 'reject' on none.",
    )
    default_result_size_chars: int = Field(
        default=DEFAULT_RESULT_SIZE_CHARS, description="Largest single tool result kept in the conversation, in characters."
    )
    turn_budget_chars: int = Field(
        default=DEFAULT_TURN_BUDGET_CHARS, description="Largest sum of tool results in one turn, in characters."
    )
    preview_size_chars: int = Field(
        default=DEFAULT_PREVIEW_SIZE_CHARS,
        description="Size of the preview that stays in the conversation when a result is moved out, in characters.",
    )
    tool_result_overrides: dict[str, int] | None = Field(
        default=None, description="Largest result per tool name, in characters; overrides default_result_size_chars."
    )
    extra_body: dict[str, Any] | None = Field(
        default=None, description="Extra fields of chat completion requests: OpenRouter provider preferences, transforms."
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
        """Return the size limits as hermes' BudgetConfig."""
        return BudgetConfig(
            default_result_size=self.default_result_size_chars,
            turn_budget=self.turn_budget_chars,
            preview_size=self.preview_size_chars,
            tool_overrides=dict(self.tool_result_overrides or {}),
        )


class HermesAgentBaseEnv(BaseEnv):
    """Collects groups of scored agent rollouts.

    Synchronous `ToolContext` calls in ``compute_reward`` do not block other rollouts. If it raises, or returns a value that is not
    a finite number, that is logged, scored 0.0 and counted in ``train/reward_errors``.
    """

    name: str | None = "hermes-agent"
    server: Any
    server_cls: Any
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
        """Build the environment, and export the terminal settings that hermes' tools read from ``os.environ``.

        Removes the variables that make hermes wait for a person's approval. Raises: ValueError for an unknown parser, and in
        token mode for a tokenizer whose chat template is missing or cannot show tool results.
        """
        command_line.load_dotenv_of_cwd()
        check_parser_name(config.tool_call_parser)
        _check_servers(server_configs, testing=testing)
        if getattr(config, "wandb_name", None) is None and self.name:
            config.wandb_name = self.name
        if inspect.isabstract(self.server_cls) and isinstance(server_configs, list) and server_configs:
            self.server_cls = exact_server_class(server_configs[0].server_type) or self.server_cls
        super().__init__(config, server_configs, slurm, testing)
        os.environ["TERMINAL_ENV"] = config.terminal_backend
        os.environ["TERMINAL_TIMEOUT"] = str(config.terminal_timeout)
        os.environ["TERMINAL_LIFETIME_SECONDS"] = str(config.terminal_lifetime)
        for name in APPROVAL_VARIABLES:
            os.environ.pop(name, None)
        resize_tool_pool(config.tool_pool_size)
        self.server.tool_parser = config.tool_call_parser
        self._token_mode = TokenMode(config.tool_call_parser, config.history_rendering)
        if self._use_managed_server():
            check_parser(config.tool_call_parser, self.tokenizer)
            self._token_mode.template_of(self.tokenizer).check()
            self.server = self._token_mode.manager(self.server)
        self._tool_error_buffer: list[str] = []
        self._reward_errors = 0
        self._counts: Counter[str] = Counter()

    # ------------------------------------------------------------------ implemented by the environment

    @abstractmethod
    async def setup(self) -> None:
        """Load the items; called once, before all other methods."""

    @abstractmethod
    async def get_next_item(self) -> Item:
        """Return the next training item, cycling; None means that there is none at the moment."""

    @abstractmethod
    def format_prompt(self, item: Item) -> str:
        """Return the user message for ``item``."""

    @abstractmethod
    async def compute_reward(self, item: Item, result: AgentResult, ctx: ToolContext) -> float:
        """Return the reward of one rollout. ``ctx`` provides access to the agent's sandbox; the base class releases it."""

    @abstractmethod
    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run the agent over held-out items and log the results: ``await self.evaluate_items()``, or a custom loop."""

    # ------------------------------------------------------------------ tools

    def _resolve_tools_for_group(self) -> Tools:
        """Return the tools to offer, newly sampled if the configuration names a distribution.

        Raises: ValueError, listing the known toolsets, when a toolset is unknown or no tool is left.
        """
        config = self.config
        return offered_tools(config.enabled_toolsets, config.disabled_toolsets, config.distribution)

    @property
    def _current_group_tools(self) -> Tools | None:
        """The tools of the current task's group; None outside a group.

        An environment that overrides ``collect_trajectories`` may assign them, for its own group only.
        """
        held = _group_tools.get()
        return held[1] if held is not None and held[0] == id(self) else None

    @_current_group_tools.setter
    def _current_group_tools(self, tools: Tools | None) -> None:
        _group_tools.set(None if tools is None else (id(self), tools))

    # ------------------------------------------------------------------ rollouts

    async def collect_trajectories(self, item: Item) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Run one group: ``group_size`` rollouts of ``item`` with the same tools.

        When a rollout raises, the others are cancelled and awaited before the error is re-raised.
        """
        token = _group_tools.set((id(self), self._resolve_tools_for_group()))
        try:
            results = await all_or_none([self.collect_trajectory(item) for _ in range(self.config.group_size)])
        finally:
            _group_tools.reset(token)
        backlog = [left for _, lefts in results for left in lefts]
        items = [scored for scored, _ in results if scored is not None]
        if len(items) < len(results):
            logger.warning(
                "%d of %d rollouts of a group returned no item; the group is dropped", len(results) - len(items), len(results)
            )
            return None, backlog
        return scoring.group_of(items), backlog

    async def collect_trajectory(self, item: Item) -> tuple[ScoredDataItem, list[Item]]:
        """Run one rollout in its own sandbox, and score it; see `agent_rollout`.

        Raises: TokenModeError when the model server returns no exact tokens; the rollout is not scored then.
        """
        try:
            async with self.rollout_server() as server, self.agent_rollout(item, server=server) as rollout:
                reward = await self._reward_of(item, rollout.result, rollout.ctx)
        except TokenModeError:
            self._counts["train/token_mode_errors"] += 1
            raise
        self._remember_tool_errors(rollout.result)
        return self._item_of(rollout.result, reward, rollout.task_id, server), []

    @asynccontextmanager
    async def agent_rollout(
        self,
        item: Item,
        *,
        prompt: str | None = None,
        temperature: float | None = None,
        max_turns: int | None = None,
        max_tokens: int | None = None,
        extra_body: dict[str, Any] | None = None,
        system_prompt: str | None = None,
        server: Any = None,
    ) -> AsyncIterator[AgentRollout]:
        """Run the agent on one item in its own sandbox, which is released however the block ends.

        ``async with self.agent_rollout(item, temperature=0.0) as rollout:``
        ``    reward = await self.compute_reward(item, rollout.result, rollout.ctx)``

        None takes the prompt from `format_prompt` and each other setting from the configuration; ``system_prompt=""`` sends no
        system message, ``extra_body={}`` no extra body. ``server`` defaults to ``self.server``, which serves chat completions in
        both modes; pass the server of `rollout_server` for exact tokens. A model server that fails ends the agent's run without
        an exception: ``rollout.failure`` has its error.

        Raises: TokenModeError when ``server`` fails to return exact tokens.
        """
        config = self.config
        server = self.server if server is None else server
        system_prompt = config.system_prompt if system_prompt is None else system_prompt
        schemas, names = self._current_group_tools or self._resolve_tools_for_group()
        ctx = ToolContext(str(uuid.uuid4()))
        try:
            prompt = self.format_prompt(item) if prompt is None else prompt
            loop = HermesAgentLoop(
                server=server,
                tool_schemas=schemas,
                valid_tool_names=names,
                max_turns=config.max_agent_turns if max_turns is None else max_turns,
                task_id=ctx.task_id,
                temperature=config.agent_temperature if temperature is None else temperature,
                max_tokens=config.max_token_length if max_tokens is None else max_tokens,
                extra_body=config.extra_body if extra_body is None else extra_body,
                budget_config=config.build_budget_config(),
            )
            system = [{"role": "system", "content": system_prompt}] if system_prompt else []
            result = await loop.run([*system, {"role": "user", "content": prompt}])
            if isinstance(token_failure := getattr(server, "failure", None), TokenModeError):
                raise token_failure
            failure = getattr(loop, "failure", None)  # a test double of the loop may not have it
            yield AgentRollout(item=item, prompt=prompt, result=result, ctx=ctx, server=server, failure=failure)
        finally:
            await to_the_end(asyncio.to_thread(ctx.cleanup))

    @asynccontextmanager
    async def rollout_server(self) -> AsyncIterator[Any]:
        """Yield the model server of one rollout: its own managed server in token mode, else ``self.server``.

        Environments may pass it to `agent_rollout` or to their own loop. Evaluations need no tokens: ``self.server`` serves
        chat completions in both modes.
        """
        async with AsyncExitStack() as stack:
            server = self.server
            if self._use_managed_server():
                try:
                    managed = await stack.enter_async_context(
                        self.server.managed_server(
                            tokenizer=self.tokenizer, preserve_think_blocks=self._token_mode.preserve_think_blocks
                        )
                    )
                    server = self._token_mode.adopt(managed)
                except NotImplementedError as error:
                    self._token_mode.tell_once(
                        "fallback", f"Rollouts run in chat mode, whose tokens are placeholders and not for training: {error}"
                    )
            yield server

    def _item_of(self, result: AgentResult, reward: float, rollout_id: str, server: Any) -> dict[str, Any]:
        """Return the rollout's item: with the sampled tokens in token mode, with placeholders in chat mode."""
        if server is self.server or result.managed_state is None:
            return scoring.chat_item(self.tokenizer, result.messages, reward)
        nodes = result.managed_state.get("nodes") or []
        policy = self.config.split_rollouts
        if len(nodes) > 1:
            self._counts["train/split_rollouts"] += 1
            self._counts["train/split_rollouts_rejected"] += policy == "reject"
        prompt = getattr(server, "prompt_tokens", None) or self.tokenizer.encode(scoring.transcript(result.messages))
        return scoring.token_item(
            nodes, result.messages, reward, rollout_id=rollout_id, prompt_tokens=prompt, split_rollouts=policy
        )

    async def _reward_of(self, item: Item, result: AgentResult, ctx: ToolContext) -> float:
        """Return the reward: 0.0 if the model returned nothing; 0.0, counted as an error, if `compute_reward` fails."""
        if not scoring.did_work(result.messages):
            logger.warning("The model returned nothing in rollout %s; its reward is 0.0, and it is not trained on", ctx.task_id)
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
        """Return whether rollouts run in token mode: always, unless the first server is OpenAI-compatible."""
        servers = self.server.servers
        return bool(servers) and not isinstance(servers[0], OpenAIServer)

    # ------------------------------------------------------------------ evaluation

    async def get_eval_items(self) -> Sequence[Item]:
        """Return the held-out items: ``self.eval_items``, where `setup` sets it. An override may be a plain function."""
        items = getattr(self, "eval_items", None)
        return [] if items is None else items

    async def evaluate_items(
        self,
        items: Sequence[Item] | None = None,
        *,
        score: Score | None = None,
        metrics: Callable[[list[Sample]], Mapping[str, Any]] | None = None,
        item_fields: Callable[[Item], Mapping[str, Any]] | None = None,
        pass_score: float | None = 1.0,
        max_concurrent: int | None = None,
        temperature: float = 0.0,
        **settings: Any,
    ) -> Evaluation:
        """Run the agent on every item, score the rollouts, log metrics and samples with `evaluate_log`, and return them.

        An item that fails (its prompt, the tools, the model server, the score) is logged, counted in ``eval/errors`` and left out
        of the means; the others continue. Training metrics do not change. `environments.evaluation` lists the fields of a sample.

        Args:
            items: The items to evaluate; `get_eval_items` by default.
            score: ``async (rollout) -> float``, or fields of the sample with ``score`` among them; `compute_reward` by default.
                Its synchronous tool calls do not block the event loop.
            metrics: Returns further metrics of the samples that were scored; not called when every item failed.
            item_fields: Returns further fields of an item's sample, from the item alone.
            pass_score: The score from which an item counts in ``eval/pass_rate``; None omits this metric.
            max_concurrent: How many items run at once; the setting ``max_eval_workers`` by default.
            temperature: The sampling temperature.
            **settings: Further arguments of `agent_rollout`.

        Raises: ValueError when there are no items.
        """
        inspect.signature(self.agent_rollout).bind(None, **settings)  # a misspelt setting is not a failure of each item
        evaluate_item = functools.partial(
            sample_of,
            format_prompt=self.format_prompt,
            rollout_of=lambda item, prompt: self.agent_rollout(item, prompt=prompt, temperature=temperature, **settings),
            score=score or self._reward_of_rollout,
            item_fields=item_fields,
        )
        start_time = time.time()
        samples = await run_each(
            await held_out_items(self) if items is None else list(items),
            evaluate_item,
            max_concurrent=self.config.max_eval_workers if max_concurrent is None else max_concurrent,
        )
        evaluation = Evaluation(
            metrics=metrics_of(samples, pass_score=pass_score, more=metrics),
            samples=samples,
            start_time=start_time,
            end_time=time.time(),
        )
        logger.info("Evaluated %d items: %s", len(samples), evaluation.metrics)
        generation = {"temperature": temperature, "max_new_tokens": settings.get("max_tokens") or self.config.max_token_length}
        await self.evaluate_log(**vars(evaluation), generation_parameters=generation)
        return evaluation

    async def _reward_of_rollout(self, rollout: AgentRollout) -> float:
        return await self.compute_reward(rollout.item, rollout.result, rollout.ctx)

    # ------------------------------------------------------------------ logging

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Add tool and reward errors to the metrics, log them, and reset the counters."""
        metrics = {} if wandb_metrics is None else wandb_metrics
        metrics["train/tool_errors_count"] = len(self._tool_error_buffer)
        if self._tool_error_buffer:
            metrics["train/tool_error_details"] = "\n".join(map(str, self._tool_error_buffer))
        metrics["train/reward_errors"] = self._reward_errors
        metrics.update(self._counts)
        self._tool_error_buffer = []
        self._reward_errors = 0
        self._counts = Counter()
        await super().wandb_log(metrics)

    async def add_rollouts_for_wandb(self, scored_data: Any, item: Item = None) -> None:
        """Add readable conversations to wandb's rollout table; decoded tokens if there are no messages."""
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

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Item = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Send groups to the trainer, in the size that its queue accepts; see `scoring.layers_of`."""
        groups = scored_data if isinstance(scored_data, list) else [scored_data]
        if abort_on_any_max_length_exceeded:
            for group in filter(None, groups):
                self._warn_if_too_long(group)
        if do_send_to_api:
            groups = [layer for group in filter(None, groups) for layer in scoring.layers_of(group, self.config.group_size)]
            if len(groups) != 1 or isinstance(scored_data, list):
                scored_data = groups
        await super().handle_send_to_api(scored_data, item, do_send_to_api, abort_on_any_max_length_exceeded)

    def _warn_if_too_long(self, group: dict[str, Any]) -> None:
        """Warn which sequences make atroposlib drop a group, and how to fix that; atroposlib's own warning says neither."""
        if lengths := scoring.too_long(group, self.max_token_len):
            self._counts["train/groups_too_long"] += 1
            logger.warning(
                "A group is dropped: its sequences of %s tokens are not shorter than the trainer's max_token_len of %d, and every "
                "group like it will be dropped too. Raise the trainer's max_token_len, or lower max_agent_turns (%d), "
                "max_token_length per turn (%d) or the sizes of tool results (turn_budget_chars %d)",
                lengths,
                self.max_token_len,
                self.config.max_agent_turns,
                self.config.max_token_length,
                self.config.turn_budget_chars,
            )

    async def process_manager(self) -> None:
        """Write ``n_groups_to_process`` groups to the JSONL file and the HTML page next to it.

        Raises: RuntimeError when several groups in a row returned no data.
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


def _check_servers(server_configs: object, *, testing: bool) -> None:
    if not isinstance(server_configs, list) and not testing:
        raise TypeError(
            f"server_configs must be a list of APIServerConfig, not {type(server_configs).__name__}: Atropos would ignore it "
            "and wait for model servers on localhost:9004 to 9007"
        )

"""The base class of Hermes Agent environments on Atropos.

An item becomes a prompt, `HermesAgentLoop` works on it with real tools, ``compute_reward`` checks the result in the same
sandbox, and `scoring` builds the data for the trainer. An environment implements five methods: ``setup``, ``get_next_item``,
``format_prompt``, ``compute_reward``, ``evaluate``.

Source: the interface is that of hermes-agent's former ``environments.hermes_base_env``, on top of atroposlib 0.4.0.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
import uuid
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import jsonlines
from atroposlib.envs.base import BaseEnv, BaseEnvConfig, ScoredDataGroup, ScoredDataItem
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServerConfig, ServerBaseline
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from atroposlib.type_definitions import Item
from tenacity import RetryError

from environments.agent_loop import AgentResult, HermesAgentLoop, resize_tool_pool  # first: explains shadowed modules
from environments.command_line import main as command_line
from environments.command_line.settings import Mode
from environments.hermes_modules import warn_of_stale_package
from environments.loop.end import RolloutEnd
from environments.loop.messages import render
from environments.loop.plain_requests import PlainOpenAIServer
from environments.rollout import evaluation, group_policy, recorder
from environments.rollout.agent_rollout import AgentRollout, check_prompt, check_sampling, scored_rollout
from environments.rollout.attempts import last_rollout, rollout_of_group
from environments.rollout.concurrency import all_or_none, to_the_end
from environments.rollout.config import HermesAgentEnvConfig
from environments.rollout.hosted import (
    RolloutOutcome,
    collect_outcome,
    given_server,
    only_row,
    recording_reward_errors,
)
from environments.sandbox.nonblocking_calls import bridged
from environments.sandbox.offered_tools import Tools, offered_tools
from environments.tokens.answer_checks import TokenModeError
from environments.tokens.exact_tokens import exact_server_class
from environments.tokens.library_parsers import is_library_parser
from environments.tokens.model_reply import check_parser, check_parser_name
from environments.tokens.server_check import ModelWatch, check_chat_servers, check_servers
from environments.tokens.token_mode import TokenMode
from environments.tool_context import ToolContext
from environments.trainer.groups import sampling_params
from environments.trainer.run_api_link import RunApiLink

__all__ = ["HermesAgentBaseEnv", "HermesAgentEnvConfig"]

_group_tools: ContextVar[tuple[int, Tools] | None] = ContextVar("hermes_group_tools", default=None)
"""(id of the environment, its tools) for the group of the current task."""

APPROVAL_VARIABLES = ("HERMES_INTERACTIVE", "HERMES_GATEWAY_SESSION", "HERMES_EXEC_ASK", "HERMES_CRON_SESSION")
"""If one of these is set, hermes asks for a person's approval before it runs a dangerous command."""

MAX_FAILURES_IN_A_ROW = 3
"""Groups without data after which ``process`` gives up."""


class HermesAgentBaseEnv(BaseEnv):
    """Collects groups of scored agent rollouts.

    Synchronous `ToolContext` calls in ``compute_reward`` do not block other rollouts. Every rollout ends in one of the ways of
    `RolloutEnd`, each of which is counted in ``train/rollouts_<end>``; a rollout that failed has no score.
    """

    name: str | None = "hermes-agent"
    server_cls: Any
    env_config_cls: ClassVar[type[BaseEnvConfig]] = HermesAgentEnvConfig

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not getattr(cls.compute_reward, "__bridged__", False):  # its own one, or that of a mixin
            written = inspect.getattr_static(cls, "compute_reward")
            kind = type(written) if isinstance(written, staticmethod | classmethod) else lambda function: function
            function = getattr(written, "__func__", written)
            wrapped: Any = kind(recording_reward_errors(bridged(function)))
            cls.compute_reward = wrapped  # type: ignore[method-assign]
        if "postprocess_histories" in cls.__dict__:
            cls.postprocess_histories = group_policy.counting_errors(cls.__dict__["postprocess_histories"])

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
        warn_of_stale_package()
        command_line.load_dotenv_of_cwd()
        check_parser_name(config.tool_call_parser)
        if not isinstance(server_configs, list) and not testing:
            raise TypeError(
                f"server_configs must be a list of APIServerConfig, not {type(server_configs).__name__}: Atropos would ignore it "
                "and wait for model servers on localhost:9004 to 9007"
            )
        if getattr(config, "wandb_name", None) is None and self.name:
            config.wandb_name = self.name
        if inspect.isabstract(self.server_cls) and isinstance(server_configs, list) and server_configs:
            kind = server_configs[0].server_type
            self.server_cls = PlainOpenAIServer if kind == "openai" else exact_server_class(kind) or self.server_cls
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
            self._token_mode.template_of(self.tokenizer).check(reads_tokens=is_library_parser(config.tool_call_parser))
            self.server = self._token_mode.manager(self.server)
        self._tool_error_buffer: list[str] = []
        self._reward_errors = 0
        self._counts: Counter[str] = Counter()
        self._model_watch = ModelWatch()
        self._logprobs = ""
        self._failed_evaluation = ""
        writer = vars(self)["jsonl_writer"]
        if writer is not None:  # atroposlib's keeps lines in memory, which a killed process loses
            writer.close()
            self.jsonl_writer = jsonlines.open(config.data_path_to_save_groups, "a", flush=True)
        self._hermes_run_api = RunApiLink(self, self._add_to_count)

    @property
    def server(self) -> Any:
        """The configured model servers; in a rollout of `run_rollout` the server that it was given, in `compute_reward` its judge."""
        server = given_server(self)
        if server is not None:
            return recorder.recording_judge(server)
        if "server" not in self.__dict__:
            text = f"{type(self).__name__} has no server before its constructor has run"
            raise AttributeError(text, name="server", obj=self)
        return recorder.recording_judge(self.__dict__["server"])

    @server.setter
    def server(self, server: Any) -> None:
        self.__dict__["server"] = server

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

        A rollout that failed in every attempt is left out, or takes the group with it, as ``failed_rollouts`` says; None is a
        group that is dropped. When a rollout raises and the group is dropped, the others are cancelled and awaited before the
        error is re-raised.
        """
        token = _group_tools.set((id(self), self._resolve_tools_for_group()))
        try:
            attempts = await all_or_none([rollout_of_group(self, item) for _ in range(self.config.group_size)])
        except Exception as error:
            group_policy.drop_group(self._counts, f"a rollout raised {type(error).__name__}")
            raise
        finally:
            _group_tools.reset(token)
        return group_policy.combine(attempts, self.config, self._counts), [
            left for attempt in attempts for left in attempt.backlog
        ]

    def _add_to_count(self, name: str, number: int) -> None:
        if number:
            self._counts[name] += number

    async def collect_trajectory(self, item: Item) -> tuple[ScoredDataItem, list[Item]]:
        """Run one rollout in its own sandbox, and score it; see `agent_rollout`.

        A rollout that fails is run again, ``rollout_retries`` times. If it fails in every attempt, its item has only masked
        labels, the score 0.0 and ``overrides.left_out``. Raises: what the environment raised in the last attempt; TokenModeError
        when the model server returns no exact tokens.
        """
        made = await last_rollout(self, lambda: scored_rollout(self, item))
        if isinstance(made.error, TokenModeError):
            self._counts["train/token_mode_errors"] += 1
        if made.error is not None:
            raise made.error
        if made.end is RolloutEnd.REWARD_FAILED:
            self._reward_errors += 1
        return made.item, []

    async def run_rollout(self, item: Item, *, server: Any, judge: Any = None) -> RolloutOutcome:
        """Run one rollout of ``item`` on a model server that the caller provides, once, and return what happened in it.

        For training engines other than Atropos, which sample behind an endpoint of their own. The rollout is that of
        `collect_trajectory`; where `collect_trajectories` is overridden, that of a group of one, which requires ``group_size`` 1.
        Meanwhile ``self.server`` is ``server``, a ServerManager of type openai, and ``judge`` inside `compute_reward`; None leaves
        the configured one there. A failed rollout is not run again: the engine has seen its turns. Its outcome has no reward.

        Raises: ValueError when ``group_size`` is not 1 and must be.
        """
        is_of_group = type(self).collect_trajectories is not HermesAgentBaseEnv.collect_trajectories
        if is_of_group and self.config.group_size != 1:
            raise ValueError(
                f"{type(self).__name__} overrides collect_trajectories, so that run_rollout requires group_size 1, not "
                f"{self.config.group_size}"
            )

        async def collect() -> Mapping[str, Any] | None:
            if is_of_group:
                return only_row((await self.collect_trajectories(item))[0])
            token = _group_tools.set((id(self), self._resolve_tools_for_group()))
            try:
                row: Mapping[str, Any] | None = (await self.collect_trajectory(item))[0]
                return row
            finally:
                _group_tools.reset(token)

        judge = self.__dict__["server"] if judge is None else judge
        has_rows = is_of_group or type(self).collect_trajectory is not HermesAgentBaseEnv.collect_trajectory
        with recorder.recorded_group(self, "service"):
            return await collect_outcome(self, collect, policy=server, judge=judge, has_rows=has_rows)

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
        an exception: ``rollout.failure`` has its error, and ``rollout.end`` names every end. ``rollout.ctx`` raises
        ContextClosedError after the block.

        Raises: TokenModeError when ``server`` fails to return exact tokens; TypeError or ValueError for an unknown setting.
        """
        check_sampling(
            temperature=temperature,
            max_turns=max_turns,
            max_tokens=max_tokens,
            extra_body=extra_body,
            system_prompt=system_prompt,
        )
        config = self.config
        server = self.server if server is None else server
        system_prompt = config.system_prompt if system_prompt is None else system_prompt
        temperature = config.agent_temperature if temperature is None else temperature
        extra_body = config.extra_body if extra_body is None else extra_body
        schemas, names = self._current_group_tools or self._resolve_tools_for_group()
        ctx = ToolContext(str(uuid.uuid4()))
        params = sampling_params(temperature, extra_body)
        with recorder.recorded_rollout(self, item, ctx, tools=names, sampling=params) as draft:
            try:
                prompt = check_prompt(self.format_prompt(item) if prompt is None else prompt)
                loop = HermesAgentLoop(
                    server=server,
                    tool_schemas=schemas,
                    valid_tool_names=names,
                    max_turns=config.max_agent_turns if max_turns is None else max_turns,
                    task_id=ctx.task_id,
                    temperature=temperature,
                    max_tokens=config.max_token_length if max_tokens is None else max_tokens,
                    extra_body=extra_body,
                    budget_config=config.build_budget_config(),
                )
                await bridged(self._prepared)(item, ctx)
                await recorder.note_start(draft, ctx.task_id)
                system = [{"role": "system", "content": system_prompt}] if system_prompt else []
                result = await loop.run([*system, {"role": "user", "content": prompt}])
                if isinstance(token_failure := getattr(server, "failure", None), TokenModeError):
                    raise token_failure
                rollout = AgentRollout(
                    item=item,
                    prompt=prompt,
                    result=result,
                    ctx=ctx,
                    server=server,
                    failure=getattr(loop, "failure", None),  # a test double of the loop may not have it
                    generation_params=params,
                )
                await recorder.note_end(self, draft, rollout)
                yield rollout
            finally:
                ctx._is_closed = True
                await to_the_end(asyncio.to_thread(ctx.cleanup))

    async def prepare_sandbox(self, item: Item, ctx: ToolContext) -> None:
        """Prepare the sandbox of one run before the agent starts: choose an image, or write files. Does nothing by default.

        Synchronous tool calls do not block the event loop, and the method may be a plain one. Raise an exception when the agent cannot
        start; the run is then repeated.
        """

    async def _prepared(self, item: Item, ctx: ToolContext) -> None:
        if inspect.isawaitable(prepared := self.prepare_sandbox(item, ctx)):
            await prepared

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
                    self._token_mode.warn_once(
                        "fallback", f"Rollouts run in chat mode, whose tokens are placeholders and not for training: {error}"
                    )
            yield server

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
        """Return the held-out items: ``self.eval_items``, where `setup` sets it.

        An override may be a plain function, or a generator, asynchronous or not.
        """
        items = getattr(self, "eval_items", None)
        return [] if items is None else items

    evaluate_items = evaluation.evaluate_items

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
                    render(messages[row])
                    if row < len(messages) and messages[row]
                    else self.tokenizer.decode(scored_data["tokens"][row]),
                    scored_data["scores"][row],
                )
                for row in rows
            ]
        )
        del self.rollouts_for_wandb[: max(0, len(self.rollouts_for_wandb) - self.config.num_rollouts_to_keep)]

    # ------------------------------------------------------------------ the three modes

    async def handle_env(self, item_uuid: str) -> Any:
        """Run one group of `serve`; a group whose worker is cancelled because of ``worker_timeout`` is counted."""
        start_time, limit = (self.running_items.get(item_uuid) or {}).get("start_time"), self.config.worker_timeout
        try:
            with recorder.recorded_group(self, "serve"):
                group = await super().handle_env(item_uuid)
        except asyncio.CancelledError:
            if start_time is not None and 0 < limit < time.time() - start_time:  # atroposlib does not repeat it
                reason = f"its worker ran longer than worker_timeout ({limit:g} s)"
                group_policy.drop_group(self._counts, reason, "train/groups_timed_out")
            raise
        self._model_watch.group_ended()
        return group

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Item = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Send groups to the trainer, or write them, as `trainer_groups` prepares them; what is not sent is counted."""
        limit = self.max_token_len if abort_on_any_max_length_exceeded else 0
        try:
            groups = group_policy.prepared(
                scored_data, self.config, self._counts, limit, is_sent=do_send_to_api, logprobs=self._logprobs
            )
            is_single = len(groups) == 1 and not isinstance(scored_data, list)
            await super().handle_send_to_api(
                groups[0] if is_single else groups, item, do_send_to_api, abort_on_any_max_length_exceeded
            )
        except Exception as error:
            group_policy.drop_group(self._counts, f"preparing it raised {type(error).__name__}", "train/groups_not_sent")
            raise

    async def get_status(self) -> None:
        """Read run-api's status, and send what it has not acknowledged; if it was restarted, register again before.

        Raises: ModelServerError when the model has never answered, and will not.
        """
        self._model_watch.check()
        await self._hermes_run_api.ensure_registered()
        try:
            await super().get_status()
        except RetryError:
            await self._hermes_run_api.ensure_registered()  # it ended in between
            await super().get_status()
        await self._hermes_run_api.deliver()

    async def _send_scored_data_to_api(self, scored_data: Any) -> None:
        """Send groups to run-api; those that it does not acknowledge are kept and sent again by `get_status`."""
        await self._hermes_run_api.send(scored_data)

    async def check_model_servers(self, mode: Mode) -> None:
        """Check, before a run of the command line, that the model servers return what the mode needs.

        Raises: ModelServerError; FailedExecutionException for ``serve`` in chat mode, unless the trainer reads messages.
        """
        config, servers = self.config, self.server.servers
        has_tokens = self._use_managed_server() and not isinstance(servers[0], TrlVllmServer)
        if mode == "serve" and not has_tokens and config.trainer_reads == "tokens":
            raise command_line.without_tokens(servers[0].config)
        if not has_tokens:
            await check_chat_servers(servers)
        else:
            self._logprobs = await check_servers(
                servers,
                sampling_params(config.agent_temperature, config.extra_body),
                is_training=mode == "serve",
                allow_raw=config.allow_raw_logprobs,
                patience_s=config.model_server_timeout,
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

"""The agent loop: calls the model, runs its tool calls and returns the results, until it answers or runs out of turns.

Place in the flow: `HermesAgentBaseEnv` builds one loop per rollout; `HermesAgentLoop.run` returns an `AgentResult`, from which
the environment computes a reward. This module does no scoring.

Source: the interface is that of hermes-agent's former ``environments.agent_loop``.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import logging
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from environments.hermes_modules import explain_shadowing
from environments.loop.end import NO_REASON, RolloutEnd, current_record, end_of_reply
from environments.loop.log_once import OF_SERVERS, log_once
from environments.loop.messages import (
    BadArguments,
    ModelCall,
    as_list,
    assistant_message,
    attribute_of,
    encodable,
    encodable_message,
    error_of,
    message_text,
    multimodal_text,
    read_call,
    read_text,
    reasoning_of,
)
from environments.sandbox.nonblocking_calls import ToolPoolError, run_interruptibly
from environments.tool_call_parsers import get_parser
from hermes_env_shared.hermes_names import hermes_name, tool_name

try:
    with warnings.catch_warnings():
        # hermes 0.19 opens two databases on import and never closes them explicitly; Python 3.13 warns about that
        warnings.simplefilter("ignore", ResourceWarning)
        from model_tools import handle_function_call
        from tools.budget_config import DEFAULT_BUDGET, BudgetConfig
        from tools.todo_tool import TodoStore, todo_tool
        from tools.tool_result_storage import enforce_turn_budget, maybe_persist_tool_result

        hermes_name("tools.terminal_tool", "get_active_env")  # now, so that what hides a module is explained below
except ImportError as error:
    if not (reason := explain_shadowing()):
        raise
    raise ImportError(f"hermes-agent cannot be imported: {error}. {reason}") from error

from environments.sandbox.isolation import SandboxLost, in_sandbox, result_storage

__all__ = ["AgentResult", "HermesAgentLoop", "ToolError", "ToolPoolError", "resize_tool_pool"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_extract_reasoning_from_message = reasoning_of
"""The name under which existing tests call it."""

USER_TASK_LIMIT = 500
"""Length, in characters, of the start of the first user message that tools get as the task."""

_tool_executor = concurrent.futures.ThreadPoolExecutor(max_workers=128, thread_name_prefix="hermes-tool")


def resize_tool_pool(max_workers: int) -> None:
    """Replace the pool in which tools run. Calls in the old pool finish there; none is cancelled."""
    global _tool_executor  # noqa: PLW0603 - one pool per process, under the name that existing tests replace
    old = _tool_executor
    _tool_executor = concurrent.futures.ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="hermes-tool")
    old.shutdown(wait=False)


async def run_in_tool_pool(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a blocking tool function in the pool; see `run_interruptibly`."""
    return await run_interruptibly(_tool_executor, function, *args, **kwargs)


@dataclass
class ToolError:
    """A tool call that failed. ``turn`` counts from 1; the other fields are text."""

    turn: int
    tool_name: str
    arguments: str
    error: str
    tool_result: str


@dataclass
class AgentResult:
    """The outcome of one run of the agent, from which its reward is computed.

    The final answer is the last assistant message with content: walk ``messages`` backwards. The tools used are the names in
    the assistant messages' ``tool_calls``, which are dicts. ``managed_state`` is the ManagedServer's state in token mode. ``end``
    says how the run ended; it is None in a result that no loop made.
    """

    messages: list[dict[str, Any]]
    managed_state: dict[str, Any] | None = None
    turns_used: int = 0
    finished_naturally: bool = False
    reasoning_per_turn: list[str | None] = field(default_factory=list)
    tool_errors: list[ToolError] = field(default_factory=list)
    end: RolloutEnd | None = field(default=None, compare=False, repr=False)


class HermesAgentLoop:
    """Runs one rollout's conversation with real tools."""

    def __init__(
        self,
        server: Any,
        tool_schemas: list[dict[str, Any]],
        valid_tool_names: set[str],
        max_turns: int = 30,
        task_id: str | None = None,
        temperature: float = 1.0,
        max_tokens: int | None = None,
        extra_body: dict[str, Any] | None = None,
        budget_config: BudgetConfig | None = None,
    ) -> None:
        """Prepare a rollout.

        ``server`` is anything with ``async chat_completion(**kwargs)``: a ServerManager, a ManagedServer, a double.
        ``tool_schemas`` are offered to the model; only ``valid_tool_names`` run. ``task_id`` identifies the rollout's sandbox.
        """
        self.server = server
        self.tool_schemas = tool_schemas
        self.valid_tool_names = valid_tool_names
        self.max_turns = max_turns
        self.task_id = task_id or str(uuid.uuid4())
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.extra_body = extra_body
        self.budget_config = budget_config or DEFAULT_BUDGET
        self.failure: Exception | None = None
        """The error of the server or the tool pool that ended the last run early, or None."""
        self._todo_store = TodoStore()

    async def run(self, messages: list[dict[str, Any]]) -> AgentResult:
        """Run until the model answers without a tool call, a reply is cut, something fails, or the turns are used up.

        ``messages`` is extended in place and becomes ``result.messages``; ``result.end`` names the end.
        """
        self.failure = None
        messages[:] = [encodable_message(message) for message in messages]
        result = AgentResult(messages=messages)
        user_task = _user_task(messages)
        end: RolloutEnd | None = None
        try:
            for turn in range(1, self.max_turns + 1):
                result.turns_used = turn
                end = await self._turn(turn, user_task, result)
                if end is not None:
                    break
        except ToolPoolError as error:
            log_once(logger, error, "Tools cannot run on turn %d of rollout %s", result.turns_used, self.task_id)
            self.failure, end = error, RolloutEnd.TOOL_POOL_FAILED
        record = current_record()
        record.results.append(result)
        record.failure = self.failure
        result.end = record.end = end or RolloutEnd.TURNS_USED_UP
        result.finished_naturally = result.end is RolloutEnd.FINISHED
        result.managed_state = self.server.get_state() if hasattr(self.server, "get_state") else None
        logger.debug("Rollout %s ended: %s, after %d turns", self.task_id, result.end, result.turns_used)
        return result

    async def _turn(self, turn: int, user_task: str | None, result: AgentResult) -> RolloutEnd | None:
        """Ask the model once and run its tool calls; return the rollout's end, or None when it goes on."""
        choice = await self._ask(result.messages, turn)
        if choice is None:
            return RolloutEnd.MODEL_FAILED
        reasoning, content = read_text(choice.message)
        result.reasoning_per_turn.append(reasoning)
        content, calls = self._read_calls(choice.message, content)
        result.messages.append(assistant_message(content, calls, reasoning))
        reason = getattr(choice, "finish_reason", NO_REASON)
        if cut := end_of_reply(reason):
            self._log_incomplete(cut, reason, turn)
            error = f"Not run: the reply with this call is incomplete ({cut})"  # it may be half of another call
            text = json.dumps({"error": error})
            result.messages.extend(_tool_message(call, text, error, turn, result) for call in calls)
            return cut
        if not calls:
            return RolloutEnd.FINISHED
        answers = [await self._answer(call, turn, user_task, result) for call in calls]
        result.messages.extend(await self._within_turn_budget(answers))
        return None

    async def _ask(self, messages: list[dict[str, Any]], turn: int) -> Any:
        """Return the choice with the model's next message; None, with ``failure`` set, when the server failed or returned none."""
        request: dict[str, Any] = {"messages": messages, "n": 1, "temperature": self.temperature}
        if self.tool_schemas:
            request["tools"] = self.tool_schemas
        if self.max_tokens is not None:
            request["max_tokens"] = self.max_tokens
        if self.extra_body:
            request["extra_body"] = self.extra_body
        try:
            response = await self.server.chat_completion(**request)
        except Exception as error:  # noqa: BLE001 - it is logged, and is the end of the rollout
            log_once(logger, error, f"{OF_SERVERS} on turn %d of rollout %s", turn, self.task_id)
            self.failure = error
            return None
        choices: Any = getattr(response, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        content = attribute_of(message, "content")
        if message is not None and not isinstance(content, int | float | dict):
            return choices[0]
        what = "no choices" if message is None else f"content of the type {type(content).__name__} instead of a text"
        logger.warning("The inference server returned %s on turn %d of rollout %s", what, turn, self.task_id)
        self.failure = RuntimeError(f"the inference server returned {what} on turn {turn}")
        return None

    def _log_incomplete(self, end: RolloutEnd, reason: Any, turn: int) -> None:
        """Log that a reply is incomplete; a reply that the server aborted is a failure of the server."""
        text = f"The reply on turn {turn} of rollout {self.task_id} is incomplete: finish_reason {reason!r}"
        logger.warning("%s; the rollout ends (%s)", text, end)
        if end.is_failure:
            self.failure = RuntimeError(text)

    def _read_calls(self, message: Any, content: str) -> tuple[str, list[ModelCall]]:
        """Return content and tool calls; calls that the server left in the text are parsed."""
        calls = as_list(attribute_of(message, "tool_calls"))
        if not calls and self.tool_schemas and "<tool_call>" in content:
            parsed_content, parsed_calls = get_parser("hermes").parse(content)
            if parsed_calls:
                content, calls = parsed_content or "", parsed_calls
        return content, [read_call(call) for call in calls]

    async def _answer(self, call: ModelCall, turn: int, user_task: str | None, result: AgentResult) -> dict[str, Any]:
        """Run one tool call and return the tool message; an error goes to the model and into the result."""
        error = ""
        try:
            if call.name not in self.valid_tool_names:
                error = f"Unknown tool '{call.name}'"
                text = json.dumps({"error": f"{error}. Available tools: {sorted(self.valid_tool_names)}"})
            else:
                text = await self._run_tool(call.name, call.arguments(), user_task)
                error = error_of(text)
                text = await self._within_result_budget(text, call)
        except BadArguments as bad:
            error = f"Invalid arguments for {call.name}: {bad}"
            text = json.dumps({"error": f"{error}. Send one JSON object with the tool's parameters."}, ensure_ascii=False)
        except ToolPoolError:
            raise
        except Exception as failure:  # noqa: BLE001 - the model reads it as the result
            error = encodable(f"Tool execution failed: {type(failure).__name__}: {failure}", "The error of a tool")
            text = json.dumps({"error": error}, ensure_ascii=False)
            log_once(logger, failure, "Tool %s raised on turn %d of rollout %s", call.name, turn, self.task_id)
        return _tool_message(call, text, error, turn, result)

    async def _run_tool(self, name: str, arguments: dict[str, Any], user_task: str | None) -> str:
        """Run one of the loop's own tools, or one of hermes' in the tool pool."""
        if name == tool_name("todo"):
            todos, merge = arguments.get("todos"), arguments.get("merge", False)
            return str(todo_tool(todos=todos, merge=merge, store=self._todo_store))
        if name in hermes_name("model_tools", "_AGENT_LOOP_TOOLS"):
            return json.dumps({"error": f"{name} is not available in RL environments."})
        return await run_in_tool_pool(self._dispatch, name, arguments, user_task)

    def _dispatch(self, name: str, arguments: dict[str, Any], user_task: str | None) -> str:
        """Call hermes from a pool thread, in this rollout's own sandbox."""
        extra: dict[str, Any] = {}
        if name == "execute_code":  # otherwise hermes uses the tools of the group that resolved its tools last
            extra["enabled_tools"] = sorted(self.valid_tool_names)
        try:
            with contextlib.ExitStack() as sandbox:
                try:
                    sandbox.enter_context(in_sandbox(self.task_id))
                except Exception as error:
                    raise ToolPoolError(f"the sandbox of rollout {self.task_id} cannot be opened: {error}") from error
                answer = handle_function_call(name, arguments, task_id=self.task_id, user_task=user_task, **extra)
        except SandboxLost as error:
            raise ToolPoolError(f"the sandbox of rollout {self.task_id} cannot be used any more: {error}") from error
        return encodable(answer if isinstance(answer, str) else multimodal_text(answer), f"The result of {name}")

    async def _within_result_budget(self, text: str, call: ModelCall) -> str:
        """Move a result that is too long for the conversation into the sandbox, and leave a preview."""
        if len(text) <= self.budget_config.resolve_threshold(call.name):
            return text
        return await run_in_tool_pool(
            maybe_persist_tool_result,
            content=text,
            tool_name=call.name,
            tool_use_id=call.id,
            env=result_storage(self.task_id, hermes_name("tools.terminal_tool", "get_active_env")(self.task_id)),
            config=self.budget_config,
        )

    async def _within_turn_budget(self, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Keep the total size of one turn's results below the configured limit."""
        if sum(len(answer["content"]) for answer in answers) <= self.budget_config.turn_budget:
            return answers
        return await run_in_tool_pool(
            enforce_turn_budget,
            answers,
            env=result_storage(self.task_id, hermes_name("tools.terminal_tool", "get_active_env")(self.task_id)),
            config=self.budget_config,
        )


def _tool_message(call: ModelCall, text: str, error: str, turn: int, result: AgentResult) -> dict[str, Any]:
    """Return the message with a call's result, and record its error, if there is one."""
    if error:
        result.tool_errors.append(ToolError(turn=turn, tool_name=call.name, arguments=call.text, error=error, tool_result=text))
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}


def _user_task(messages: list[dict[str, Any]]) -> str | None:
    asked = (message_text(message.get("content")) for message in messages if message.get("role") == "user")
    return next((text[:USER_TASK_LIMIT] for text in asked), None)

"""The loop between model and tools."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from model_tools import handle_function_call

POOL = ThreadPoolExecutor(max_workers=16)


@dataclass
class ToolError:
    turn: int
    tool_name: str
    arguments: str
    error: str
    tool_result: str


@dataclass
class AgentResult:
    messages: list[dict[str, Any]]
    managed_state: dict[str, Any] | None = None
    turns_used: int = 0
    finished_naturally: bool = False
    reasoning_per_turn: list[str | None] = field(default_factory=list)
    tool_errors: list[ToolError] = field(default_factory=list)


class HermesAgentLoop:
    def __init__(self, server, tool_schemas, valid_tool_names, max_turns=30, task_id="", temperature=1.0, max_tokens=None):
        self.server = server
        self.tool_schemas = tool_schemas
        self.valid_tool_names = valid_tool_names
        self.max_turns = max_turns
        self.task_id = task_id
        self.sampling = {"temperature": temperature, "max_tokens": max_tokens}

    async def run(self, messages):
        errors = []
        for turn in range(1, self.max_turns + 1):
            answer = await self.server.chat_completion(messages=messages, n=1, tools=self.tool_schemas, **self.sampling)
            message = answer.choices[0].message
            if not message.tool_calls:
                messages.append({"role": "assistant", "content": message.content or ""})
                return AgentResult(messages, turns_used=turn, finished_naturally=True, tool_errors=errors)
            calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
            messages.append({"role": "assistant", "content": message.content or "", "tool_calls": calls})
            for call in calls:
                result = await self.call(**call["function"])
                if '"error"' in result[:12]:
                    errors.append(ToolError(turn, call["function"]["name"], call["function"]["arguments"], result, result))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return AgentResult(messages, turns_used=self.max_turns, tool_errors=errors)

    async def call(self, name, arguments):
        if name not in self.valid_tool_names:
            return json.dumps({"error": f"Unknown tool {name!r}"})
        context = copy_context()
        values = json.loads(arguments or "{}")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(POOL, lambda: context.run(handle_function_call, name, values, task_id=self.task_id))

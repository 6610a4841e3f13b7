"""The fork's agent loop."""

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from model_tools import handle_function_call

_tool_executor = ThreadPoolExecutor(max_workers=8)


@dataclass
class AgentResult:
    """The result of a rollout."""

    messages: list
    managed_state: Any = None
    turns_used: int = 0
    finished_naturally: bool = False
    reasoning_per_turn: list = field(default_factory=list)
    tool_errors: list = field(default_factory=list)


class HermesAgentLoop:
    """Calls the model and runs its tools."""

    def __init__(self, server, tool_schemas, valid_tool_names, max_turns=30, task_id=None, temperature=1.0, max_tokens=None):
        self.server, self.tool_schemas, self.valid_tool_names = server, tool_schemas, valid_tool_names
        self.max_turns, self.task_id, self.temperature = max_turns, task_id or str(uuid.uuid4()), temperature

    async def run(self, messages):
        for turn in range(1, self.max_turns + 1):
            answer = await self.server.chat_completion(
                messages=messages, n=1, temperature=self.temperature, tools=self.tool_schemas
            )
            message = answer.choices[0].message
            entry = {"role": "assistant", "content": message.content or ""}
            messages.append(entry)
            if not message.tool_calls:
                return AgentResult(messages=messages, turns_used=turn, finished_naturally=True)
            entry["tool_calls"] = [call.model_dump() for call in message.tool_calls]
            for call in message.tool_calls:
                arguments = json.loads(call.function.arguments)
                text = await asyncio.get_running_loop().run_in_executor(
                    _tool_executor, lambda c=call, a=arguments: handle_function_call(c.function.name, a, task_id=self.task_id)
                )
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return AgentResult(messages=messages, turns_used=self.max_turns)

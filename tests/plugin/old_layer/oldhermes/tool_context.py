"""The fork's tool context."""

import json

from model_tools import handle_function_call
from tools.terminal_tool import cleanup_vm


class ToolContext:
    """Tools for the verifier."""

    def __init__(self, task_id):
        self.task_id = task_id

    def terminal(self, command, timeout=180):
        return json.loads(handle_function_call("terminal", {"command": command, "timeout": timeout}, task_id=self.task_id))

    def cleanup(self):
        cleanup_vm(self.task_id)

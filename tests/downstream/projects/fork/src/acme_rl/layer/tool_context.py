"""The sandbox of one rollout, for its reward."""

import json

from model_tools import handle_function_call
from tools.terminal_tool import cleanup_vm


class ToolContext:
    def __init__(self, task_id):
        self.task_id = task_id

    def call_tool(self, name, arguments):
        return handle_function_call(name, arguments, task_id=self.task_id)

    def terminal(self, command, timeout=180):
        return json.loads(self.call_tool("terminal", {"command": command, "timeout": timeout}))

    def read_file(self, path):
        return json.loads(self.call_tool("read_file", {"path": path}))

    def write_file(self, path, content):
        return json.loads(self.call_tool("write_file", {"path": path, "content": content}))

    def cleanup(self):
        cleanup_vm(self.task_id)

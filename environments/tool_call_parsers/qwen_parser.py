"""The Qwen format, which is Hermes'; existing environments import it from here."""

from environments.tool_call_parsers.hermes_parser import HermesToolCallParser as QwenToolCallParser

__all__ = ["QwenToolCallParser"]

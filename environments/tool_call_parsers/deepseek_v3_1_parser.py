"""The DeepSeek V3.1 format, whose parser is next to V3's; existing environments import it from here."""

from environments.tool_call_parsers.deepseek_v3_parser import DeepSeekV31ToolCallParser

__all__ = ["DeepSeekV31ToolCallParser"]

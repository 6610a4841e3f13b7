"""The GLM 4.7 format, which is read as that of 4.5; existing environments import it from here."""

from environments.tool_call_parsers.glm45_parser import Glm45ToolCallParser as Glm47ToolCallParser

__all__ = ["Glm47ToolCallParser"]

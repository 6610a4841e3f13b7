"""The LongCat format, which is read beside Hermes'; existing environments import it from here."""

from environments.tool_call_parsers.hermes_parser import LongcatToolCallParser

__all__ = ["LongcatToolCallParser"]

"""The LongCat format, which the Hermes parser reads with other tags; existing environments import it from here."""

from environments.tool_call_parsers.hermes_parser import LongcatToolCallParser

__all__ = ["LongcatToolCallParser"]

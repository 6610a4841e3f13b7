"""vLLM's own tool-call parsers, for users who want the same code that serves their model.

Place in the flow: `model_reply` uses one when ``tool_call_parser`` is ``vllm:<name>``. vLLM is not a dependency; only this module
imports it. atroposlib's ToolCallTranslator is not used, because it only supports an older layout of vLLM's modules.
Source: vLLM 0.33, ``vllm/tool_parsers`` and the chat-completion protocol; the second path of each is that of earlier versions.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from typing import Any

__all__ = ["VLLM_PREFIX", "VllmProblem", "VllmToolCallParser"]

logger = logging.getLogger(__name__)

VLLM_PREFIX = "vllm:"
"""``tool_call_parser="vllm:hermes"`` selects vLLM's parser of that name."""

_MANAGERS = ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")
_REQUESTS = ("vllm.entrypoints.openai.chat_completion.protocol", "vllm.entrypoints.openai.protocol")


class VllmProblem(ValueError):
    """vLLM cannot be imported, or has no parser of that name."""


class VllmToolCallParser:
    """One of vLLM's parsers with the interface of ours. Raises: VllmProblem."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        self._name = name
        self._tokenizer = tokenizer
        manager = _first(_MANAGERS, "ToolParserManager")
        self._request_class = _first(_REQUESTS, "ChatCompletionRequest")
        try:
            self._parser_class = manager.get_tool_parser(name)
        except Exception as error:
            raise VllmProblem(f"vLLM has no tool-call parser {name!r} that can be used here: {error}") from error

    def parse(self, text: str, tools: list[dict[str, Any]]) -> tuple[str | None, list[Any] | None]:
        """Return content and calls; if vLLM's parser fails, log that and return the text unchanged."""
        try:
            request = self._request_class(
                messages=[{"role": "user", "content": ""}], model="token-mode", tools=tools, tool_choice="auto"
            )
            found = self._parser(request.tools).extract_tool_calls(text, request)
        except Exception:
            logger.exception("vLLM's parser %r failed; the reply is taken as text: %.200r", self._name, text)
            return text, None
        return (found.content, found.tool_calls) if found.tools_called and found.tool_calls else (text, None)

    def _parser(self, tools: Any) -> Any:
        """Return a new parser, because parsers are stateful. Older ones do not accept the tools."""
        wants_tools = "tools" in inspect.signature(self._parser_class.__init__).parameters
        return self._parser_class(self._tokenizer, tools) if wants_tools else self._parser_class(self._tokenizer)


def _first(modules: tuple[str, ...], name: str) -> Any:
    """Return ``name`` of the first of the modules that has it. Raises: VllmProblem when none can be imported."""
    errors = []
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            errors.append(f"{module}: {error}")
    raise VllmProblem(f"vLLM's {name} cannot be imported ({'; '.join(errors)})")

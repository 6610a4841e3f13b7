"""Reads reasoning, content and tool calls from the raw text that a model sampled.

Place in the flow: `token_mode.RolloutServer` has the raw text of a reply; the agent loop expects the message that a chat server
would return. With ``tool_call_parser="vllm:<name>"`` vLLM's own parser reads it, for users who want the same code that serves their
model. vLLM is not a dependency, and only this module imports it; atroposlib's ToolCallTranslator only supports an older layout of it.

Source: vLLM 0.33, ``vllm/tool_parsers`` and the chat-completion protocol; the second path of each is that of earlier versions.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from environments.loop.thoughts import split_thought
from environments.tokens.chat_template import ChatTemplate
from environments.tokens.library_parsers import RENDERERS_PREFIX, TRANSFORMERS, is_library_parser, library_parser
from environments.tool_call_parsers import get_parser, list_parsers

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


# ---------------------------------------------------------------------- replies

Tools = list[dict[str, Any]] | None

_FALLBACK_TAG, _FALLBACK_PARSER = "<tool_call>", "hermes"


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """The answer of a chat server. ``calls`` are dicts in OpenAI's format; ``reasoning`` is None when there is none."""

    content: str
    calls: list[dict[str, Any]]
    reasoning: str | None


class ReplyReader:
    """Reads the replies of one model with the tool-call parser ``parser_name``."""

    def __init__(self, template: ChatTemplate, parser_name: str) -> None:
        self._template = template
        self._library = library_parser(parser_name, template.tokenizer) if is_library_parser(parser_name) else None
        self._name = parser_name
        self._parse_fallback = _parser_of(_FALLBACK_PARSER, template.tokenizer)
        self._parse = self._parse_fallback if self._library else _parser_of(parser_name, template.tokenizer)
        specials = sorted(template.special_tokens, key=len, reverse=True)
        self._specials = re.compile("|".join(map(re.escape, specials))) if specials else None

    def read(
        self,
        text: str,
        *,
        end: str,
        tools: Tools,
        opened: str | None = None,
        prompt_tokens: Sequence[int] = (),
        tokens: Sequence[int] = (),
    ) -> ModelReply:
        """Return the message in ``text``.

        ``end`` is the token that ended it. ``tools`` are the offered tools: if there are none, no text is a call.
        ``opened`` is the think tag with which the prompt opened the reply, as the templates of some models do. Parsers of libraries read
        ``tokens``, those of the reply, after ``prompt_tokens``.
        """
        if self._library is not None and (reply := self._read_by_library(text, prompt_tokens, tokens, tools)):
            return reply
        spoken = text[: len(text) - len(end)]
        reasoning, rest = split_thought(spoken, opened)
        content, calls = self._calls(rest, rest + end, tools) if tools else (rest, [])
        return ModelReply(content=self._plain(content), calls=calls, reasoning=self._plain(reasoning).strip() or None)

    def _read_by_library(
        self, text: str, prompt_tokens: Sequence[int], tokens: Sequence[int], tools: Tools
    ) -> ModelReply | None:
        """Return what the library reads; None where it fails, which is logged, or reads a call although no tool is offered."""
        assert self._library is not None
        try:
            content, calls, reasoning = self._library(prompt_tokens, tokens, tools)
        except Exception:
            logger.exception("The parser %r failed; the reply is taken as text: %.200r", self._name, text)
            return None
        if calls and not tools:
            return None
        return ModelReply(
            content=self._plain(content),
            calls=[_as_dict(call) for call in calls],
            reasoning=self._plain(reasoning or "").strip() or None,
        )

    def _calls(self, text: str, whole: str, tools: Tools) -> tuple[str, list[dict[str, Any]]]:
        """Return content and calls.

        Formats whose last tag is a special token may need ``whole``, which includes the token that ended the text. Calls in
        the Hermes format are read from every model: the agent loop would run them anyway, under new ids.
        """
        candidates = [(self._parse, text)]
        if whole != text:
            candidates.append((self._parse, whole))
        if _FALLBACK_TAG in text:
            candidates.append((self._parse_fallback, text))
        for parse, candidate in candidates:
            content, calls = parse(candidate, tools)
            if calls:
                return content or "", calls
        return text, []

    def _plain(self, text: str) -> str:
        """Return the text without special tokens."""
        return self._specials.sub("", text) if self._specials is not None else text


def _parser_of(name: str, tokenizer: Any) -> Callable[[str, Tools], tuple[str | None, list[dict[str, Any]]]]:
    """Return a function that parses with one of our tool-call parsers, or of vLLM's."""
    is_vllm = name.startswith(VLLM_PREFIX)
    parser: Any = VllmToolCallParser(name.removeprefix(VLLM_PREFIX), tokenizer) if is_vllm else get_parser(name)
    # A parser that an environment registered for the old layer takes the text alone
    takes_tools = "tools" in inspect.signature(parser.parse).parameters

    def parse(text: str, tools: Tools) -> tuple[str | None, list[dict[str, Any]]]:
        content, calls = parser.parse(text, tools=tools) if takes_tools else parser.parse(text)
        return content, [_as_dict(call) for call in calls or ()]

    return parse


def _as_dict(call: Any) -> dict[str, Any]:
    function = call.function
    return {"id": call.id, "type": "function", "function": {"name": function.name, "arguments": function.arguments}}


def check_parser_name(name: str) -> None:
    """Raise ValueError, listing the known names, when no parser has that name. Names of other packages' parsers are not checked."""
    if name not in list_parsers() and not name.startswith(VLLM_PREFIX) and not is_library_parser(name):
        raise ValueError(
            f"Unknown tool_call_parser {name!r}. Available parsers: {list_parsers()}, "
            f'"{RENDERERS_PREFIX}<name>" for one of the package renderers, "{TRANSFORMERS}" for the response template of the tokenizer, '
            f'or "{VLLM_PREFIX}<name>" for one of vLLM\'s where vLLM is installed'
        )


def check_parser(name: str, tokenizer: Any) -> None:
    """Raise ValueError when a parser cannot be created; those of other packages import them."""
    check_parser_name(name)
    if is_library_parser(name):
        library_parser(name, tokenizer)
    if not name.startswith(VLLM_PREFIX):
        return
    try:
        VllmToolCallParser(name.removeprefix(VLLM_PREFIX), tokenizer)
    except VllmProblem as problem:
        ours = name.removeprefix(VLLM_PREFIX)
        advice = f'set tool_call_parser="{ours}"' if ours in list_parsers() else f"use one of ours: {list_parsers()}"
        raise ValueError(
            f"tool_call_parser={name!r} selects vLLM's own parser. {problem}. Install vllm, or {advice}"
        ) from problem

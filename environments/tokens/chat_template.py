"""The tokenizer's chat template for token mode: renders a whole prompt, or only the text that follows a reply.

Place in the flow: `token_mode.RolloutServer` renders the first prompt of a rollout with `ChatTemplate.render`. From then on the
prompt is the text so far plus the result of `ChatTemplate.after_reply`. The sampled tokens thus stay unchanged, even where the
template would render them differently.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from environments.loop.thoughts import THINK_TAGS

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Tools = list[dict[str, Any]] | None

_THINK_TAGS = frozenset([*THINK_TAGS, *THINK_TAGS.values()]) - {"<|end_message|>"}  # which ends every message of Inkling


class TemplateProblem(ValueError):
    """The chat template of a tokenizer is missing, or cannot render a conversation with tools."""


class ChatTemplate:
    """The chat template and the special tokens of one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.name = str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)

    def render(self, messages: Sequence[Message], tools: Tools = None, **options: Any) -> str:
        """Return the conversation as text, ready for the model's next turn unless the last message is the assistant's.

        ``options`` go to the template. Raises: TemplateProblem.
        """
        options.setdefault("add_generation_prompt", not messages or messages[-1].get("role") != "assistant")
        try:
            text = self.tokenizer.apply_chat_template(
                [_as_templates_expect(message) for message in messages], tools=tools or None, tokenize=False, **options
            )
        except Exception as error:
            raise TemplateProblem(self._failure(messages, error)) from error
        return str(text)

    def _failure(self, messages: Sequence[Message], error: Exception) -> str:
        if not getattr(self.tokenizer, "chat_template", None):
            return (
                f"The tokenizer {self.name!r} has no chat template, and token mode renders conversations with it. Set "
                'tokenizer_name to the tokenizer of the instruct model that is served, or use server_type "openai" (chat mode).'
            )
        roles = " > ".join(str(message.get("role")) for message in messages)
        return (
            f"The chat template of the tokenizer {self.name!r} fails on the messages {roles}: {type(error).__name__}: {error}. "
            "Token mode needs a template for tool calls and tool results. Set tokenizer_name to one that has it, or use "
            'server_type "openai" (chat mode).'
        )

    # ------------------------------------------------------------------ the text after a reply

    def after_reply(
        self, position: int, messages: Sequence[Message], raw: Sequence[Message], tools: Tools, end: str = "", **options: Any
    ) -> str | None:
        """Return the template's text after the reply at ``position``: the end of its turn and all later messages.

        ``messages`` has replies with their ``tool_calls``, ``raw`` the same replies with the sampled text as content. ``end`` is
        the token that ended the sampled reply. Returns None when the template does not mark where the reply ends, for example
        because it fails on later messages.
        """
        marker = _text_not_in(messages)
        ways: list[tuple[Callable[..., str | None], Sequence[Message]]] = [(self._after_content, raw)]
        if messages[position].get("tool_calls"):
            ways.insert(0, (self._after_calls, messages))
        else:  # some templates fail on the earlier calls as text: an assistant message without calls would be one too many
            ways.append((self._after_content, messages))
        for way, history in ways:
            try:
                after = way(marker, position, history, tools, end, options)
            except TemplateProblem:
                continue
            if after is not None:
                return after
        return None

    def _after_content(
        self, marker: str, position: int, messages: Sequence[Message], tools: Tools, end: str, options: dict[str, Any]
    ) -> str | None:
        """Find the text after a reply whose whole content is the marker."""
        marked = [*messages[:position], {"role": "assistant", "content": marker}, *messages[position + 1 :]]
        return _after(self.render(marked, tools, **options), marker)

    def _after_calls(
        self, marker: str, position: int, messages: Sequence[Message], tools: Tools, end: str, options: dict[str, Any]
    ) -> str | None:
        """Find the text after a reply whose last call has the marker as its argument.

        Some templates (Mistral's, for example) only render tool messages after their calls. The end of the call is between the
        marker and the end of the turn: it is the text that the same reply has as the last message.
        """
        calls = messages[position]["tool_calls"]
        last = {**calls[-1], "function": {**calls[-1]["function"], "arguments": {"marker": marker}}}
        reply = {**messages[position], "tool_calls": [*calls[:-1], last]}
        history = [*messages[:position], reply]
        closed = _after(self.render(history, tools, **options), marker)
        whole = _after(self.render([*history, *messages[position + 1 :]], tools, **options), marker)
        if closed is None or whole is None or not whole.startswith(closed):
            return None
        if end and closed.rstrip().endswith(end):
            closing = closed[closed.rindex(end) :]
        elif self.closing is not None and closed.endswith(self.closing):
            closing = self.closing
        else:
            return None
        return closing + whole[len(closed) :]

    @cached_property
    def closing(self) -> str | None:
        """The template's text after the content of a reply; for ChatML ``<|im_end|>`` and a line break."""
        question = {"role": "user", "content": "?"}
        marker = _text_not_in([question])
        try:
            return _after(self.render([question, {"role": "assistant", "content": marker}]), marker)
        except TemplateProblem:
            return None

    # ------------------------------------------------------------------ special tokens

    @cached_property
    def special_tokens(self) -> frozenset[str]:
        """The tokens that are not part of a message's text. Think tags are not among them: they mark reasoning."""
        tokens = {str(token) for token in getattr(self.tokenizer, "all_special_tokens", ())}
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        tokens |= {str(token) for token in added.values() if getattr(token, "special", False)}
        return frozenset(tokens - _THINK_TAGS)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of the special tokens."""
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        ids = {token_id for token_id, token in added.items() if getattr(token, "special", False)}
        return frozenset({*ids, *getattr(self.tokenizer, "all_special_ids", ())})

    def end_of(self, text: str, tokens: Sequence[int]) -> str:
        """Return the token that ends a sampled text, or an empty text when it has none.

        If the template's end of a turn is not a special token of the tokenizer, its text counts as one.
        """
        if tokens and tokens[-1] in self.special_ids:
            end = self.tokenizer.decode([tokens[-1]], skip_special_tokens=False)
        else:
            end = (self.closing or "").strip()
        return end if end and text.endswith(end) else ""

    # ------------------------------------------------------------------ check

    def check(self, *, reads_tokens: bool = False) -> None:
        """Render two rounds of tool calls. ``reads_tokens``: a parser of a library reads calls that ours cannot.

        Raises: TemplateProblem when the model would not see the results of its calls, or writes calls that no parser reads.
        """
        prompt = self.render(_ROUNDS[:1], _PROBE_TOOLS)
        if _PROBE not in prompt:
            logger.warning(
                "The chat template of the tokenizer %r does not show the tools to the model; describe them in system_prompt",
                self.name,
            )
        source = str(getattr(self.tokenizer, "chat_template", ""))
        family = next((name for mark, name in _UNREAD_CALLS.items() if mark in source), None)
        if family and not reads_tokens:
            way = 'tool_call_parser "renderers:gpt-oss", or ' if family == "gpt-oss" else ""
            raise TemplateProblem(
                f"The chat template of the tokenizer {self.name!r} writes tool calls as {family} does, which no parser of ours "
                f'reads: every call would be trained as a final answer. Use {way}server_type "openai" (chat mode) and a server that '
                "parses them."
            )
        for position in (1, 3):
            conversation = _ROUNDS[: position + 2]
            raw = [{"role": "assistant", "content": "I look."} if one["role"] == "assistant" else one for one in conversation]
            after = self.after_reply(position, conversation, raw, _PROBE_TOOLS)
            if after is None:
                after = self.render(conversation, _PROBE_TOOLS)
            if f"result {position}" not in after:
                raise TemplateProblem(
                    f"The chat template of the tokenizer {self.name!r} leaves out tool messages: the model would never see the "
                    'results of its tools. Set tokenizer_name to one whose template has tools, or use server_type "openai" (chat mode).'
                )


def _after(text: str, marker: str) -> str | None:
    """Return the text after the only marker in ``text``."""
    before, _, after = text.partition(marker)
    return after if len(before) < len(text) and marker not in after else None


def _text_not_in(messages: Sequence[Message]) -> str:
    """Return a word that occurs in no message."""
    text = json.dumps(messages, ensure_ascii=False, default=str)
    word = "REPLYENDSHERE"
    while word in text:
        word += "X"
    return word


def _as_templates_expect(message: Message) -> Message:
    """Return a message with text as its content and objects as the arguments of its calls.

    Parts that are all text are joined, as in vLLM. Arguments that are not a JSON object stay text.
    """
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        message = {**message, "content": "\n".join(part["text"] for part in content)}
    if message.get("tool_calls"):
        message = {**message, "tool_calls": [_with_argument_object(call) for call in message["tool_calls"]]}
    return message


def _with_argument_object(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call["function"].get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return call
    return {**call, "function": {**call["function"], "arguments": arguments}} if isinstance(arguments, dict) else call


_UNREAD_CALLS = {"<|channel|>commentary": "gpt-oss", "<atem:invoke": "Muse"}
"""What a family writes in a call and nowhere else, for those whose servers read calls from tokens and channels."""
_PROBE = "template_probe"
_PROBE_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": _PROBE,
            "description": "Look at something.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string", "description": "What to look at."}}},
        },
    }
]


def _round(number: int) -> list[Message]:
    call_id = f"probe{number:04d}"  # nine characters: Mistral's template insists
    call = {"id": call_id, "type": "function", "function": {"name": _PROBE, "arguments": '{"at": "it"}'}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": f"result {number}"},
    ]


_ROUNDS: list[Message] = [{"role": "user", "content": "look"}, *_round(1), *_round(3)]

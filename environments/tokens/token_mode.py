"""Token mode: rollouts on atroposlib's ManagedServer, with our own tool-call parsers and exactly the sampled tokens.

Place in the flow: `HermesAgentBaseEnv.rollout_server` opens a managed server per rollout, and `TokenMode.adopt` makes a
`RolloutServer` of it. The agent loop uses that like a chat server; its nodes (tokens, masks, logprobs) become the
rollout's item in `scoring`.

ManagedServer keeps a rollout in one node as long as each prompt begins with the node's text. Rendering the whole conversation
again each turn rarely achieves that: a parser has split off the calls, templates strip think blocks, the end of the turn is
duplicated. A `RolloutServer` therefore continues the node's own text; ``history_rendering`` selects the alternative.

Source: atroposlib 0.4.0, ``envs/server_handling/managed_server.py`` and ``server_manager.py``.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from atroposlib.envs.server_handling.managed_server import ManagedServer, SequenceNode
from atroposlib.envs.server_handling.server_manager import ServerManager
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from openai.types.chat.chat_completion import ChatCompletion
from tenacity import RetryError

from environments.loop.end import end_of_reply
from environments.loop.messages import encodable, encodable_arguments
from environments.loop.thoughts import opened_thought
from environments.sandbox.nonblocking_calls import bridged, is_bridged, wait_for
from environments.tokens.answer_checks import CheckedServer, TokenModeError
from environments.tokens.chat_template import ChatTemplate, TemplateProblem
from environments.tokens.exact_tokens import kept_connections
from environments.tokens.model_reply import ModelReply, ReplyReader
from environments.tokens.sampled_turns import (
    INCOMPLETE,
    LONG_TEXT,
    Message,
    Sampled,
    Tools,
    Turn,
    cause_of_split,
    fingerprint,
    first_difference,
)

__all__ = ["HistoryRendering", "RolloutServer", "TokenMode", "TokenModeError", "TokenServerManager"]

logger = logging.getLogger(__name__)

HistoryRendering = Literal["sampled", "template"]
"""Source of the start of a prompt after the first turn: the sampled text, or the template again."""


MAX_TEXT = 4_000_000
"""Characters that a turn may add to a prompt: about a million tokens, the largest context there is."""


MAX_PROMPTS = 64
"""First prompts whose ids are kept."""


class TokenMode:
    """State shared by the rollouts of an environment: the parser's name, the rendering mode, the warnings already logged."""

    def __init__(self, parser_name: str, history_rendering: HistoryRendering = "sampled") -> None:
        self.parser_name = parser_name
        self.history_rendering = history_rendering
        self._templates: dict[int, ChatTemplate] = {}
        self._warned: set[str] = set()
        self.first_prompts: dict[tuple[int, str], list[int]] = {}
        """The ids of the latest prompts by tokenizer and text: all rollouts of a group begin with the same one."""
        self.first_texts: dict[tuple[int, str], str] = {}
        """Their texts by tokenizer and request."""

    @property
    def preserve_think_blocks(self) -> bool:
        """The value of atroposlib's flag, which is inverted: True lets templates strip think blocks from earlier turns."""
        return self.history_rendering == "template"

    def template_of(self, tokenizer: Any) -> ChatTemplate:
        """Return the chat template of a tokenizer, shared by all rollouts."""
        if id(tokenizer) not in self._templates:
            self._templates[id(tokenizer)] = ChatTemplate(tokenizer)  # which references the tokenizer, so its id is not reused
        return self._templates[id(tokenizer)]

    def remember(self, tokenizer: Any, text: str, ids: list[int]) -> None:
        """Keep the ids of a first prompt for the other rollouts of its group."""
        _keep(self.first_prompts, (id(tokenizer), text), list(ids))

    def adopt(self, managed: Any) -> Any:
        """Return a server like ``managed`` that also reads tool calls; anything but a ManagedServer is returned unchanged.

        Raises: NotImplementedError when the server behind it returns no tokens at all.
        """
        if not isinstance(managed, ManagedServer) or isinstance(managed, RolloutServer):
            return managed
        if isinstance(managed.server, TrlVllmServer):
            raise NotImplementedError("trl's vLLM server returns no tokens and logprobs")
        return RolloutServer(managed, self)

    def manager(self, manager: ServerManager) -> ServerManager:
        """Return a server manager whose managed servers read tool calls; a test double is returned unchanged."""
        return TokenServerManager(manager, self) if type(manager) is ServerManager else manager

    def warn_once(self, about: str, text: str) -> None:
        """Log a warning once, although its cause occurs in every rollout."""
        if about not in self._warned:
            self._warned.add(about)
            logger.warning("%s (logged once)", text)


def _keep(held: dict[Any, Any], key: Any, value: Any) -> None:
    held[key] = value
    while len(held) > MAX_PROMPTS:
        del held[next(iter(held))]


class TokenServerManager(ServerManager):
    """A server manager whose managed servers are `RolloutServer`."""

    def __init__(self, manager: ServerManager, mode: TokenMode) -> None:
        # Without super().__init__: it would build the servers again, which this shares with the manager that it replaces
        self.__dict__.update(vars(manager))
        self._mode = mode

    @asynccontextmanager
    async def managed_server(self, *args: Any, **settings: Any) -> AsyncIterator[Any]:
        """Open a managed server as atroposlib does."""
        async with kept_connections(), super().managed_server(*args, **settings) as managed:
            yield self._mode.adopt(managed)


class RolloutServer(ManagedServer):
    """A ManagedServer for one rollout: reads tool calls and reasoning, and continues the sampled text.

    ``failure`` is the first `TokenModeError`, because the agent loop treats every exception as a server that is down.
    ``prompt_tokens`` are those of the last request.
    """

    def __init__(self, managed: ManagedServer, mode: TokenMode) -> None:
        super().__init__(
            server=managed.server,
            tokenizer=managed.tokenizer,
            track_tree=managed.track_tree,
            tool_parser=managed._tool_parser_name,
            preserve_think_blocks=managed._preserve_think_blocks,
        )
        if not self.track_tree:
            self.current_nodes = managed.current_nodes  # which the server manager clears when the rollout is over
        self.failure: TokenModeError | None = None
        self.prompt_tokens: list[int] = []
        self._mode = mode
        self._template = mode.template_of(self.tokenizer)
        self._reader = ReplyReader(self._template, self._tool_parser_name or mode.parser_name)
        self._turns: list[Turn] = []
        self._texts: dict[str, str] = {}
        self._sampled: list[Sampled] = []  # of the response that is not read yet
        self._template_options: dict[str, Any] = {}

    @property
    def server(self) -> CheckedServer:
        """The model server, whose every answer is checked."""
        return self._checked

    @server.setter
    def server(self, server: Any) -> None:
        self._checked = server if isinstance(server, CheckedServer) else CheckedServer(server, lambda: self.tokenizer)

    # ------------------------------------------------------------------ one turn

    async def chat_completion(self, **kwargs: Any) -> ChatCompletion:
        """Sample the next reply. ``extra_body`` is merged into the request, as in OpenAI's client.

        Raises: TokenModeError when the response has no exact tokens with logprobs, or the conversation cannot be rendered.
        """
        try:
            reply: ChatCompletion = await self._reply(**kwargs)
        except TokenModeError as error:
            self.failure = self.failure or error
            raise
        return reply

    async def _reply(self, *, messages: Sequence[Message] = (), extra_body: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        sampling = dict(extra_body or {})
        self._template_options = sampling.pop("chat_template_kwargs", None) or {}
        tools = kwargs.get("tools") if kwargs.get("tool_choice") != "none" else None
        asked = tuple(map(fingerprint, messages))
        complete = super().chat_completion
        if sum(map(len, asked)) > LONG_TEXT:
            complete = bridged(complete)  # lets `_compute_input_ids` wait for a thread
        try:
            response = await complete(**{"messages": messages, **kwargs, **sampling})
        except TemplateProblem as error:
            raise TokenModeError(str(error)) from error
        except RetryError as error:
            raise error.last_attempt.exception() or error from error  # unlike tenacity's error, it has the reason
        # Nothing is awaited between the nodes and here: the last ones are this response's
        sampled = self._sampled[-len(response.choices) :]
        self._sampled.clear()
        for choice, seen in zip(response.choices, sampled, strict=True):
            opened = opened_thought(seen.prompt)
            reply = _encodable(
                self._reader.read(
                    seen.text,
                    end=seen.end,
                    tools=tools,
                    opened=opened,
                    prompt_tokens=seen.prompt_tokens,
                    tokens=seen.tokens,
                )
            )
            message = {"role": "assistant", "content": reply.content, "tool_calls": reply.calls}
            turn = Turn(asked=asked, tools=kwargs.get("tools"), reply=fingerprint(message), **vars(seen))
            self._turns.append(turn)
            self._texts[turn.reply] = turn.spoken
            choice.message.content = reply.content
            choice.message.tool_calls = reply.calls or None
            if reply.reasoning is not None:
                choice.message.reasoning_content = reply.reasoning
            is_whole = end_of_reply(seen.finish_reason) is None
            choice.finish_reason = ("tool_calls" if reply.calls else "stop") if is_whole else _kind_of(seen.finish_reason)
        return response

    def _get_translator(self) -> Any:
        """Return the translator that ManagedServer requires to offer tools; see `_Untranslated`."""
        return _Untranslated()

    # ------------------------------------------------------------------ the prompt

    def _convert_messages_to_prompt(self, messages: Sequence[Message], tools: Tools = None) -> str:
        """Return the prompt: the text of the turn that the conversation continues, and the text after it."""
        turns = self._turns_in(messages)
        same_tools = [turn for turn in turns.values() if (turn.tools or None) == (tools or None)]
        last = max(same_tools, key=lambda turn: turn.position, default=None)
        raw = [self._as_sampled(message, turns.get(position)) for position, message in enumerate(messages)]
        prompt = self._prompt_after(last, messages, raw, tools)
        if self._turns and self._find_extending_node(prompt) is None:
            self._warn_of_split(last or self._turns[-1], messages, tools, prompt)
        return prompt

    def _prompt_after(self, turn: Turn | None, messages: Sequence[Message], raw: Sequence[Message], tools: Tools) -> str:
        if turn is None:
            return self._first_text(messages, raw, tools)
        if self._mode.history_rendering == "sampled":
            after = self._template.after_reply(turn.position, messages, raw, tools, turn.end, **self._template_options)
            if after is not None:
                return turn.continued(after)
        prompt = self._rendered(messages, raw, tools)
        so_far = turn.prompt + turn.spoken
        return turn.continued(prompt[len(so_far) :]) if prompt.startswith(so_far) else prompt

    def _first_text(self, messages: Sequence[Message], raw: Sequence[Message], tools: Tools) -> str:
        try:
            key = id(self.tokenizer), json.dumps([messages, raw, tools, self._template_options, self._preserve_think_blocks])
        except (TypeError, ValueError):
            return self._rendered(messages, raw, tools)
        if key not in self._mode.first_texts:
            _keep(self._mode.first_texts, key, self._rendered(messages, raw, tools))
        return self._mode.first_texts[key]

    def _turns_in(self, messages: Sequence[Message]) -> dict[int, Turn]:
        """Return the turns that are in a conversation unchanged, by the position of their replies."""
        prints = tuple(map(fingerprint, messages))
        return {turn.position: turn for turn in self._turns if prints[: turn.position + 1] == (*turn.asked, turn.reply)}

    def _as_sampled(self, message: Message, turn: Turn | None) -> Message:
        """Return a reply with the sampled text as its content, other messages unchanged.

        A reply is identified by its position, or by its text if earlier messages have changed.
        """
        text = turn.spoken if turn is not None else None
        if text is None and message.get("role") == "assistant":
            text = self._texts.get(fingerprint(message))
        return message if text is None else {"role": "assistant", "content": text}

    def _rendered(self, messages: Sequence[Message], raw: Sequence[Message], tools: Tools) -> str:
        """Render the whole conversation: with the sampled texts, or with structured calls if the template requires them."""
        if not self._preserve_think_blocks:
            raw = self._protect_think_blocks(raw)
        try:
            prompt = self._template.render(raw, tools, **self._template_options)
        except TemplateProblem:
            if not any(message.get("tool_calls") for message in messages):
                raise
            prompt = self._template.render(messages, tools, **self._template_options)
        return prompt.replace(self._THINK_OPEN, "<think>").replace(self._THINK_CLOSE, "</think>")

    def _find_extending_node(self, input_text: str) -> SequenceNode | None:
        """Return the longest node that a prompt continues."""
        fitting = [node for node in self.current_nodes if input_text.startswith(node.full_text)]
        return max(fitting, key=lambda node: len(node.full_text), default=None)

    def _compute_input_ids(self, input_text: str, extending_node: SequenceNode | None) -> list[int]:
        """Return the ids of a prompt. A long text is encoded in a thread, while the event loop serves other rollouts.

        Raises: TokenModeError for a text that no model's context holds, which would occupy the tokenizer for minutes.
        """
        new = len(input_text) - (len(extending_node.full_text) if extending_node is not None else 0)
        if new > MAX_TEXT:
            raise TokenModeError(
                f"A prompt has {new:,} new characters; at most {MAX_TEXT:,} are encoded. Lower the sizes of tool results "
                "(turn_budget_chars, default_result_size_chars), or shorten the prompt."
            )
        ids = self._mode.first_prompts.get((id(self.tokenizer), input_text)) if extending_node is None else None
        if ids is None:
            encode = functools.partial(super()._compute_input_ids, input_text, extending_node)
            ids = wait_for(asyncio.to_thread(encode)) if new > LONG_TEXT and is_bridged() else encode()
        if extending_node is None and new <= LONG_TEXT:
            self._mode.remember(self.tokenizer, input_text, ids)
        self.prompt_tokens = list(ids)
        return list(ids)

    # ------------------------------------------------------------------ what was sampled

    def _create_sequence_node(
        self,
        input_text: str,
        parent_node: SequenceNode | None,
        prompt_tokens: list[int],
        output_tokens: list[int],
        output_logprobs: list[float],
        completion_text: str,
        finish_reason: str = "stop",
        extending_node: SequenceNode | None = None,
    ) -> SequenceNode:
        """Return the node, with the text of all its tokens; atroposlib omits special tokens when no tools are offered.

        Its metadata has the positions of the replies in it that the server did not finish.
        """
        text = self.tokenizer.decode(output_tokens, skip_special_tokens=False)
        reason = self.server.finish_reasons.pop(0)
        self._sampled.append(
            Sampled(
                prompt=input_text,
                text=text,
                end=self._template.end_of(text, output_tokens),
                finish_reason=reason,
                prompt_tokens=prompt_tokens,
                tokens=output_tokens,
            )
        )
        node = super()._create_sequence_node(
            input_text, parent_node, prompt_tokens, output_tokens, output_logprobs, text, finish_reason, extending_node
        )
        before = (extending_node.metadata or {}).get(INCOMPLETE, []) if extending_node is not None else []
        own = [] if end_of_reply(reason) is None else [(len(node.tokens) - len(output_tokens), len(node.tokens))]
        node.metadata = {**(node.metadata or {}), INCOMPLETE: [*before, *own]}
        return node

    def _warn_of_split(self, turn: Turn, messages: Sequence[Message], tools: Tools, prompt: str) -> None:
        """Warn that the next reply starts a new node, with the cause; the rollout then has several sequences."""
        texts = [node.full_text for node in self.current_nodes]
        rendering, template = self._mode.history_rendering, self._template.name
        cause, advice = cause_of_split(turn, messages, tools, texts, rendering=rendering, template=template)
        self._mode.warn_once(
            cause,
            f"A rollout became several sequences: {cause}. {first_difference(turn, prompt)} {advice} "
            "The setting split_rollouts decides what happens to such a rollout.",
        )


class _Untranslated:
    """A ToolCallTranslator for ManagedServer that translates nothing; without one, ManagedServer offers no tools.

    It returns the text unchanged: `RolloutServer` reads calls and reasoning from it when the response is complete.
    """

    def parse_model_output(self, raw_text: str, tool_choice: str | None = None, tools: Tools = None) -> tuple[str, None, str]:
        """Return the text, no calls, and the finish reason "stop"."""
        return raw_text, None, "stop"


def _encodable(reply: ModelReply) -> ModelReply:
    """Return the reply as the agent loop puts it into the conversation, so that the reply is recognised in it."""
    calls = [
        {**call, "function": {**call["function"], "arguments": encodable_arguments(call["function"]["arguments"], _REPLY)}}
        for call in reply.calls
    ]
    reasoning = None if reply.reasoning is None else encodable(reply.reasoning, _REPLY)
    return ModelReply(content=encodable(reply.content, _REPLY), calls=calls, reasoning=reasoning)


_REPLY = "A reply of the model"


def _kind_of(finish_reason: Any) -> Any:
    """Return the reason as chat servers write it; SGLang has it in an object."""
    return finish_reason.get("type") if isinstance(finish_reason, dict) else finish_reason

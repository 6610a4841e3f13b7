"""Token-mode state of a built conversation: the nodes that atroposlib's ManagedServer would have.

Shapes: per node ``tokens [T]``, ``masked_tokens [T]`` (-100 where masked), ``logprobs [T]`` in nats (1.0 is filler
where masked). Source: atroposlib 0.4.0, ``envs/server_handling/managed_server.py``, whose functions make the nodes.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import ResultError, shorten, with_type

PLAUSIBLE_STEPS = 97
"""The number of different logprobs: a prime, so adjacent ones differ."""
LOWEST_NATS = 2.0


def checked_tokenizer(tokenizer: Any) -> Any:
    """Return ``tokenizer`` if it is a tokenizer with a chat template, or the directory of one.

    Raises: anything else → ResultError.
    """
    is_path = isinstance(tokenizer, str | Path)
    if is_path and not Path(tokenizer).is_dir():
        raise ResultError(
            f"with_nodes(...) takes a directory; this path is not one: {shorten(str(tokenizer))}.\n"
            "  fix       use the path of the fixture hermes_tokenizer, or pass a loaded tokenizer"
        )
    if not getattr(_loaded(tokenizer), "chat_template", None):
        raise ResultError(
            "with_nodes(...) takes a tokenizer with a chat template, or the directory of one.\n"
            f"  seen      {with_type(tokenizer)}\n"
            "  fix       use the path of the fixture hermes_tokenizer"
        )
    return str(tokenizer) if is_path else tokenizer


def managed_state(messages: list[dict[str, Any]], tokenizer: Any) -> dict[str, Any]:
    """Return ``{"nodes": [...]}``, the result of ``ManagedServer.get_state()`` after this conversation.

    Assistant messages are trained on, each with its end-of-turn token. There is one node, unless the chat template rewrites
    earlier messages.
    """
    from atroposlib.envs.server_handling.managed_server import ManagedServer  # noqa: PLC0415 - heavy

    tokenizer = _loaded(tokenizer)
    managed = ManagedServer(server=None, tokenizer=tokenizer)
    written = [_as_written(message) for message in messages]
    for place, message in enumerate(written):
        if message["role"] == "assistant":
            _sample(managed, tokenizer, written[:place], message["content"])
    state: dict[str, Any] = managed.get_state()
    return state


def _sample(managed: Any, tokenizer: Any, prompt_messages: list[dict[str, Any]], text: str) -> None:
    """Add the node that the server adds after it sampled ``text``."""
    prompt = managed._convert_messages_to_prompt(prompt_messages)  # noqa: SLF001 - as the pinned version does
    earlier = managed._find_extending_node(prompt)  # noqa: SLF001
    prompt_tokens = managed._compute_input_ids(prompt, earlier)  # noqa: SLF001
    end = tokenizer.eos_token_id
    if earlier is not None:
        size = len(earlier.tokens)
        if earlier.tokens[-1:] == [end] == prompt_tokens[size : size + 1]:
            # The node ends with the sampled end-of-turn token, and the template writes it again.
            prompt_tokens = prompt_tokens[:size] + prompt_tokens[size + 1 :]
    output = [*tokenizer.encode(text, add_special_tokens=False), *([] if end is None else [end])]
    node = managed._create_sequence_node(  # noqa: SLF001
        input_text=prompt,
        parent_node=None,
        prompt_tokens=prompt_tokens,
        output_tokens=output,
        output_logprobs=[_plausible(len(prompt_tokens) + place, token) for place, token in enumerate(output)],
        completion_text=text,
        finish_reason="stop",
        extending_node=earlier,
    )
    if earlier is None:
        managed.current_nodes.append(node)
    else:
        managed.current_nodes[managed.current_nodes.index(earlier)] = node


def _plausible(place: int, token: int) -> float:
    """Return a logprob below 0, the same in every run."""
    step = (place * 31 + token * 17) % PLAUSIBLE_STEPS + 1
    return -LOWEST_NATS * step / PLAUSIBLE_STEPS


def _as_written(message: dict[str, Any]) -> dict[str, Any]:
    """Return an assistant message as text with calls in Hermes format; other messages as they are."""
    if message["role"] != "assistant":
        return message
    parts = [message["content"]] if message["content"] else []
    for call in message.get("tool_calls") or ():
        name = json.dumps(call["function"]["name"], ensure_ascii=False)
        parts.append(f'<tool_call>\n{{"name": {name}, "arguments": {call["function"]["arguments"]}}}\n</tool_call>')
    return {"role": "assistant", "content": "\n".join(parts)}


def _loaded(tokenizer: Any) -> Any:
    return _from_directory(str(tokenizer)) if isinstance(tokenizer, str | Path) else tokenizer


@functools.lru_cache(maxsize=8)
def _from_directory(path: str) -> Any:
    from transformers import AutoTokenizer  # noqa: PLC0415 - heavy

    return AutoTokenizer.from_pretrained(path)

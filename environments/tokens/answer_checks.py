"""Checks what a model server answered against what it was asked: in token mode, nothing is trained that does not match.

Place in the flow: `exact_tokens` checks the fields of an answer, `CheckedServer` every answer of any server on its way to
ManagedServer. Each check raises a `TokenModeError` that names what was asked and what came back.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from hermes_env_shared.token_servers import ADVICE

LARGEST_LOGPROB = 1e-3
"""The largest valid logprob, in nats; rounding may produce slightly more than 0."""

SMALLEST_LOGPROB = -104.0
"""The smallest logprob, in nats, of a token that can be sampled: below it, its probability is 0 in single precision."""

_SHOWN = 80
"""Characters of a text that are shown in a message."""


class TokenModeError(RuntimeError):
    """A rollout has no exact tokens, because of the inference server, the tokenizer or the chat template."""


def described(server: Any) -> str:
    """Return the server's address and class, for messages."""
    server = server.server if isinstance(server, CheckedServer) else server
    return f"The inference server {without_credentials(str(getattr(server.config, 'base_url', '')))} ({type(server).__name__})"


class SampledIds(list[int]):
    """The ids of a completion, with the text that the server returned for them, if any."""

    def __init__(self, ids: Sequence[int], text: Any) -> None:
        super().__init__(ids)
        self.text = text


class CheckedServer:
    """A server whose completions are checked before ManagedServer builds nodes of them.

    ``finish_reasons`` are those of the last answer. ManagedServer itself gets "stop" or "length", because it refuses others.
    """

    def __init__(self, server: Any, tokenizer: Callable[[], Any]) -> None:
        self.server = server
        self.finish_reasons: list[Any] = []
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    async def tokens_and_logprobs_completion(self, **request: Any) -> tuple[list[int], list[Any], list[Any], list[str]]:
        """Return prompt, tokens, logprobs and finish reasons. Raises: TokenModeError."""
        asked = request.get("input_ids")
        count = request.get("n", 1)
        prompt, tokens, logprobs, reasons = await self.server.tokens_and_logprobs_completion(**request)
        if not tokens:
            raise TokenModeError(f"{described(self.server)} answered without a completion. {ADVICE}")
        if len(tokens) != count:
            raise TokenModeError(f"{described(self.server)} returned {len(tokens)} completions, and {count} was asked for (n)")
        if asked is not None and list(prompt) not in (list(asked), list(asked)[1:]):  # a doubled start token is removed
            check_prompt(self.server, asked, prompt)
        for sampled, own in zip(tokens, logprobs, strict=True):
            check_sampled(self.server, self._tokenizer(), sampled, own)
            _check_echo(self.server, prompt, sampled)
            check_text(self.server, self._tokenizer(), prompt, sampled, getattr(sampled, "text", None))
        self.finish_reasons = list(reasons)
        kinds = (reason.get("type") if isinstance(reason, dict) else reason for reason in reasons)
        return prompt, tokens, logprobs, ["length" if kind == "length" else "stop" for kind in kinds]


def check_sampled(server: Any, tokenizer: Any, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
    """Raise TokenModeError unless each sampled token has a logprob and an id that is in the tokenizer's vocabulary."""
    if len(logprobs) != len(tokens) or not tokens:
        raise TokenModeError(
            f"{described(server)} returned {len(logprobs)} logprobs for {len(tokens)} sampled tokens; there must be one for each "
            f"token, and at least one token. {ADVICE}"
        )
    size = len(tokenizer) if hasattr(tokenizer, "__len__") else math.inf
    for index, (token, logprob) in enumerate(zip(tokens, logprobs, strict=True)):
        if not _is_logprob(logprob):
            raise TokenModeError(
                f"{described(server)} returned {logprob!r} as the logprob of sampled token {index}; expected a number of at most 0. "
                f"{ADVICE}"
            )
        if logprob < SMALLEST_LOGPROB:
            raise TokenModeError(
                f"{described(server)} returned {logprob!r} as the logprob of sampled token {index}, id {token}; a token of a probability "
                f"below exp({SMALLEST_LOGPROB:g}) cannot be sampled. Some servers return such a number in place of a missing logprob"
            )
        if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < size:
            name = getattr(tokenizer, "name_or_path", type(tokenizer).__name__)
            raise TokenModeError(
                f"{described(server)} sampled the token id {token!r}, and the tokenizer {name!r} knows the ids 0 to {size - 1}. "
                "Set tokenizer_name to the tokenizer of the model that is served."
            )


def _is_logprob(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value <= LARGEST_LOGPROB


# ---------------------------------------------------------------------- the prompt


def check_prompt(server: Any, asked: Sequence[int], seen: Sequence[int]) -> None:
    """Raise TokenModeError when the server worked on another prompt than it was sent."""
    asked, seen = list(asked), list(seen)
    if asked == seen:
        return
    check_prompt_length(server, asked, len(seen))
    place = next(index for index, pair in enumerate(zip(asked, seen, strict=True)) if pair[0] != pair[1])
    raise TokenModeError(
        f"{described(server)} was sent id {asked[place]} at position {place} of the prompt and worked on id {seen[place]}. {_SAME_PROMPT}"
    )


def check_prompt_length(server: Any, asked: Sequence[int], seen: int) -> None:
    """Raise TokenModeError when the server worked on more or fewer prompt tokens than it was sent."""
    if len(asked) != seen:
        raise TokenModeError(
            f"{described(server)} was sent a prompt of {len(asked)} tokens and worked on one of {seen}. {_SAME_PROMPT}"
        )


_SAME_PROMPT = (
    "Replies to another prompt cannot be trained on. Let the server neither truncate prompts nor add tokens, and keep "
    "conversations shorter than its context."
)


# ---------------------------------------------------------------------- the reply


def _check_echo(server: Any, prompt: Sequence[int], tokens: Sequence[int]) -> None:
    if len(tokens) > len(prompt) > 0 and list(tokens[: len(prompt)]) == list(prompt):
        raise TokenModeError(
            f"{described(server)} returned {len(tokens)} tokens that begin with all {len(prompt)} tokens of the prompt. {_NO_ECHO}"
        )


_NO_ECHO = "The prompt would be trained on as if it were sampled. Switch the echo of the prompt off."


def check_text(server: Any, tokenizer: Any, prompt: Sequence[int], tokens: Sequence[int], text: Any) -> None:
    """Raise TokenModeError when the text of a reply is not that of its ids, or repeats the prompt.

    The text may lack what a server strips: special tokens, a stop string at the end, an incomplete character, white space.
    """
    if not isinstance(text, str):
        return
    sampled, seen = _plain(tokenizer, tokenizer.decode(tokens)), _plain(tokenizer, text)
    if not seen or sampled.startswith(seen):
        return
    if seen.startswith(_plain(tokenizer, tokenizer.decode(list(prompt))) + sampled[:_SHOWN]):
        raise TokenModeError(f"{described(server)} returned a text that begins with the prompt: {text[:_SHOWN]!r}. {_NO_ECHO}")
    raise TokenModeError(
        f"{described(server)} returned the text {text[:_SHOWN]!r} with ids of the text {tokenizer.decode(tokens)[:_SHOWN]!r}. Set "
        "tokenizer_name to the tokenizer of the model that is served."
    )


def _plain(tokenizer: Any, text: str) -> str:
    """Return the characters of a text that every server returns alike."""
    return "".join(_specials(tokenizer).sub("", text).replace("\ufffd", "").split())


@functools.lru_cache(maxsize=8)
def _specials(tokenizer: Any) -> re.Pattern[str]:
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    tokens = {str(token) for token in added if getattr(token, "special", False)}
    tokens |= {str(token) for token in getattr(tokenizer, "all_special_tokens", ())}
    return re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True))) or r"(?!)")


# ---------------------------------------------------------------------- addresses in messages

_USER = re.compile(r"(?<=://)[^/\s\"'?#]+(?=@)")
_PARAMETER = re.compile(
    r"(?i)([?&](?:[\w-]*[_-])?(?:api[_-]?key|key|token|auth|sig|signature|secret|password|credential)=)[^&#\s\"']+"
)


def without_credentials(text: str) -> str:
    """Return a text with ``***`` for the user and password of its URLs, and for parameters that are named like secrets."""
    return _PARAMETER.sub(r"\1***", _USER.sub("***", text))

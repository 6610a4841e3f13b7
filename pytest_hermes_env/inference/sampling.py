"""`sampled`: makes token mode reproduce the irregularities of real servers. Standard library only.

`sampled` is a step next to others: ``turn(say("done"), sampled(end=False))``. Chat mode has no tokens and ignores it, so one script
works in both modes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from pytest_hermes_env.errors import ScriptError, with_type

Logprobs: TypeAlias = Literal["all", "short", "null", "missing"]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """The step that controls how the turn's tokens are sampled.

    ``end``: whether the answer ends with the end-of-turn token; without it the turn still stops, as at a stop string.
    ``drift``: how many tokens are sampled as two (True means 1): the text is the same, but encoding it returns other ids.
    ``max_tokens``: the answer is truncated to this length and finishes with ``length``, as at the request's own limit.
    ``broken_utf8``: the text ends within a multi-byte character.
    ``wrong_id``: the answer ends with an id outside the vocabulary.
    ``logprobs``: ``all``; ``short``, one fewer than tokens; ``null``, without numbers; ``missing``, none.

    Raises: any other value → ScriptError.
    """

    end: bool = True
    drift: int = 0
    max_tokens: int | None = None
    broken_utf8: bool = False
    wrong_id: bool = False
    logprobs: Logprobs = "all"

    def __post_init__(self) -> None:
        for name in ("end", "broken_utf8", "wrong_id"):
            if not isinstance(value := getattr(self, name), bool):
                raise ScriptError(f"sampled({name}=...) takes True or False; got {with_type(value)}.")
        drift, limit, logprobs = self.drift, self.max_tokens, self.logprobs
        if not isinstance(drift, int) or drift < 0:
            raise ScriptError(f"sampled(drift=...) takes an integer from 0, or True for one token; got {with_type(drift)}.")
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise ScriptError(f"sampled(max_tokens=...) takes an integer from 1, or None for no limit; got {with_type(limit)}.")
        if logprobs not in get_args(Logprobs):
            raise ScriptError(f"sampled(logprobs=...) takes one of {', '.join(get_args(Logprobs))}; got {with_type(logprobs)}.")
        object.__setattr__(self, "drift", int(drift))

    def __str__(self) -> str:
        changed = (one.name for one in fields(self) if getattr(self, one.name) != one.default)
        return f"sampled ({', '.join(f'{name}={getattr(self, name)!r}' for name in changed) or 'default'})"


sampled = Sampled
DEFAULT_SAMPLING = Sampled()

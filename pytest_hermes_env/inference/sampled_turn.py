"""Converts a scripted turn to the tokens that a model of a given family would sample.

Place in the flow: the only part of token mode that uses a tokenizer. Importing it loads the ``tokenizers`` package (30 ms).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from pytest_hermes_env.errors import ScriptError, UnexpectedRequest, UsageError, shorten
from pytest_hermes_env.inference.steps import DEFAULT_SAMPLING, Call, Sampled, Say, Think, Turn
from pytest_hermes_env.inference.templates import (
    DEFAULT_TEMPLATE,
    TEMPLATES,
    Template,
    chat_template,
    template_named,
    template_of_family,
)
from pytest_hermes_env.inference.tokens import TEMPLATE_FIELD, tokenizer_json
from pytest_hermes_env.inference.tool_call_formats import call_format

MAX_CACHED_PARTS = 2048
FOUR_BYTES = "\U0001f600"
WRONG_ID_OFFSET = 7
"""The distance of a wrong id from the last valid one."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sampled answer: ids with the end-of-turn token, and the text without it.

    ``finish`` is ``length`` if the answer was truncated; ``matched`` is the id of the end-of-turn token, if it was sampled.
    """

    ids: tuple[int, ...]
    text: str
    finish: str
    matched: int | None


class TokenSampler:
    """Samples turns with one tokenizer, one chat template, and the tool-call format of one model family."""

    def __init__(self, tokenizer: Tokenizer, template: Template, family: str, directory: Path | None = None) -> None:
        self._directory = directory
        self._tokenizer = tokenizer
        self._write_calls = call_format(family)
        self._thought_form = self._write_calls.thought or template.thought
        self.template = template
        self.family = family
        self._ends = {end: self._id_of(end) for end in (template.end, template.end_of_calls)}
        self._special = frozenset(number for token in template.special if (number := tokenizer.token_to_id(token)) is not None)
        decode = partial(tokenizer.decode, skip_special_tokens=False)
        self._decode_part: Callable[[tuple[int, ...]], str] = lru_cache(maxsize=MAX_CACHED_PARTS)(decode)

    @cached_property
    def last_id(self) -> int:
        """The highest id of the tokenizer."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    @property
    def wrong_id(self) -> int:
        """The id outside the vocabulary that ``sampled(wrong_id=True)`` appends."""
        return self.last_id + WRONG_ID_OFFSET

    def encode(self, prompt: str, *, is_rendered: bool = False) -> list[int]:
        """Return the ids of a text prompt, as a real server encodes it: with the token that begins texts, unless a template wrote it."""
        return list(self._tokenizer.encode(_encodable(prompt), add_special_tokens=not is_rendered).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, including special tokens; unknown ids decode to nothing.

        No character spans a special token, so the parts between them are decoded separately and cached: the tools at the beginning
        of a prompt, and all messages but the last, repeat from request to request.
        """
        special = self._special
        cuts = [0, *(place for place, token in enumerate(ids) if token in special), len(ids)]
        return "".join([self._decode_part(tuple(ids[start:end])) for start, end in pairwise(cuts)])

    def render(self, body: Mapping[str, Any]) -> str:
        """Return the prompt of a chat request by the tokenizer's own template, with arguments as objects, as vLLM does.

        Raises: the template refuses the messages → UnexpectedRequest.
        """
        from jinja2 import TemplateError  # noqa: PLC0415 -- with transformers

        options = {"tools": body.get("tools"), **(body.get("chat_template_kwargs") or {})}
        messages = json.loads(json.dumps(body["messages"]))
        if self.template.results == "after its id":  # nine letters and digits, which the parser of such a model makes
            for one in [*messages, *(call for message in messages for call in message.get("tool_calls") or ())]:
                one |= {name: one[name][-9:] for name in ("id", "tool_call_id") if name in one}
        try:
            for function in (call["function"] for message in messages for call in message.get("tool_calls") or ()):
                function["arguments"] = json.loads(function["arguments"])
            return str(self._renderer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options))
        except (TemplateError, TypeError, ValueError) as error:
            what = f"the chat template {self.template.name} refuses these messages: {shorten(str(error))}"
            raise UnexpectedRequest(f"{what}.\n  fix       send what the model's template takes") from error

    @cached_property
    def _renderer(self) -> Any:
        from transformers import AutoTokenizer, PreTrainedTokenizerFast  # noqa: PLC0415 -- takes a second

        if self._directory is not None:
            return AutoTokenizer.from_pretrained(self._directory)
        names = {
            "bos_token": self.template.begin,
            "eos_token": self.template.eos,
            "chat_template": chat_template(self.template),
        }
        fast: Any = PreTrainedTokenizerFast
        return fast(tokenizer_object=self._tokenizer, **names)

    def text_of(self, turn: Turn, *, prompt: str = "", earlier_calls: int = 0) -> str:
        """Return the turn as a model of the family writes it after ``prompt``, without the end-of-turn token."""
        template, said, calls = self.template, turn.only(Say), turn.every(Call)
        text = self._thought(turn.only(Think), prompt)
        answer = "" if said is None else said.text
        if answer:
            text += template.before_answer + answer
        if calls:
            if answer or (text and not text.endswith("\n")):
                text += template.before_calls
            text += self._write_calls(calls, earlier_calls)
        return text

    def _thought(self, thought: Think | None, prompt: str) -> str:
        """Return the think block, or what is left of it if the prompt opened it: its rest, or nothing if it is closed as well."""
        form = self._thought_form
        opening, _, closing = (part.strip() for part in form.partition("{}"))
        if prompt.rstrip().endswith(opening):
            rest = form.replace("{}", "" if thought is None else thought.text).lstrip().removeprefix(opening)
            return rest.removeprefix("\n") if prompt.endswith("\n") else rest
        if thought is not None:
            return form.replace("{}", thought.text)
        return "" if prompt.rstrip().endswith(closing) else self.template.no_thought

    def sample(self, turn: Turn, *, prompt: str = "", earlier_calls: int = 0, max_tokens: int | None = None) -> Sample:
        """Return the tokens of the turn, truncated to ``max_tokens``.

        Raises: more drift than the text allows → ScriptError.
        """
        how = turn.only(Sampled) or DEFAULT_SAMPLING
        text = _encodable(self.text_of(turn, prompt=prompt, earlier_calls=earlier_calls))
        ids = list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        if how.drift:
            ids = self._drifted(ids, how.drift)
        if how.broken_utf8:
            characters = ByteLevel(add_prefix_space=False).pre_tokenize_str(FOUR_BYTES)[0][0]
            ids += [self._id_of_byte(*pair) for pair in zip(characters[:-1], FOUR_BYTES.encode(), strict=False)]
        if how.wrong_id:
            ids.append(self.wrong_id)
        matched = self._ends[self.template.end_of_calls if turn.every(Call) else self.template.end] if how.end else None
        length = len(ids)
        if matched is not None:
            ids.append(matched)
        limit = min((limit for limit in (how.max_tokens, max_tokens) if limit is not None), default=None)
        if limit is not None and len(ids) > limit:
            cut = tuple(ids[:limit])
            return Sample(ids=cut, text=self.decode(cut), finish="length", matched=None)
        return Sample(ids=tuple(ids), text=self.decode(ids[:length]), finish="stop", matched=matched)

    def ending(self, *, max_tokens: int | None = None) -> Sample:
        """Return an empty answer: only the end-of-turn token."""
        end = self._ends[self.template.end]
        if max_tokens == 0:
            return Sample(ids=(), text="", finish="length", matched=None)
        return Sample(ids=(end,), text="", finish="stop", matched=end)

    def _drifted(self, ids: list[int], count: int) -> list[int]:
        """Return the ids with the ``count`` longest merged tokens split in two: the same text, but not its encoding."""
        parts = {place: halves for place, token in enumerate(ids) if (halves := self._halves(token)) is not None}
        if len(parts) < count:
            raise ScriptError(
                f"sampled(drift={count}) splits {count} {'token' if count == 1 else 'tokens'}, "
                f"but only {len(parts)} of this answer can be split.\n"
                f"  seen      {shorten(repr(self.decode(ids)))}\n"
                "  fix       make the answer longer, or reduce drift"
            )
        longest = sorted(parts, key=lambda place: -len(self._tokenizer.id_to_token(ids[place]) or ""))[:count]
        return [part for place, token in enumerate(ids) for part in (parts[place] if place in longest else (token,))]

    def _halves(self, token: int) -> tuple[int, int] | None:
        if token in self._added:
            return None
        text = self._tokenizer.id_to_token(token) or ""
        for cut in range(1, len(text)):
            left, right = self._tokenizer.token_to_id(text[:cut]), self._tokenizer.token_to_id(text[cut:])
            if left is not None and right is not None:
                return left, right
        return None

    @cached_property
    def _added(self) -> frozenset[int]:
        return frozenset(self._tokenizer.get_added_tokens_decoder())

    def _id_of_byte(self, character: str, byte: int) -> int:
        for token in (character, f"<0x{byte:02X}>"):
            if (found := self._tokenizer.token_to_id(token)) is not None:
                return int(found)
        raise UsageError(
            f"this tokenizer has no token for the byte {byte:#04x}, so no answer can end within a character.\n"
            "  fix       remove broken_utf8, or use a byte-level tokenizer, such as the one from build_tokenizer()"
        )

    def _id_of(self, token: str) -> int:
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise UsageError(
                f"the tokenizer does not have {token!r}, the end-of-turn token of the template {self.template.name}.\n"
                f"  fix       pass the tokenizer's own template: template='...', one of {', '.join(TEMPLATES)}"
            )
        return int(found)


def load_sampler(
    *,
    tokenizer: str | os.PathLike[str] | None = None,
    template: str | None = None,
    family: str | None = None,
) -> TokenSampler:
    """Return a sampler; by default, with the tiny tokenizer and ChatML, or the template of ``family``.

    ``tokenizer`` is a directory with a tokenizer.json; its template is derived from its configuration or, failing that, from its
    tokens. ``family`` is the tool-call format, by default the template's.

    Raises: an unknown template or family, no such tokenizer, or one without a matching template → UsageError.
    """
    if family is not None:
        call_format(family)
    if tokenizer is None:
        chosen = template_of_family(family) if template is None and family is not None else None
        chosen = chosen or template_named(template or DEFAULT_TEMPLATE)
        return TokenSampler(Tokenizer.from_str(tokenizer_json(chosen)), chosen, family or chosen.family)
    path = Path(tokenizer)
    try:
        loaded = Tokenizer.from_file(str(path / "tokenizer.json"))
    except Exception as exc:  # tokenizers raises nothing more precise
        raise UsageError(
            f"the mock model cannot load a tokenizer from {path}: {shorten(str(exc))}.\n"
            "  fix       pass a directory with a tokenizer.json, such as build_tokenizer() writes"
        ) from exc
    chosen = _template_of(path, loaded) if template is None else template_named(template)
    return TokenSampler(loaded, chosen, family or chosen.family, path)


def _template_of(path: Path, tokenizer: Tokenizer) -> Template:
    try:
        config = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = {}
    if isinstance(config, dict) and isinstance(config.get(TEMPLATE_FIELD), str):
        return template_named(config[TEMPLATE_FIELD])
    for template in TEMPLATES.values():
        needed = {*template.special[1:], template.end}
        if all(tokenizer.token_to_id(token) is not None for token in needed):
            return template
    raise UsageError(
        f"the chat template of the tokenizer in {path} is unknown: its special tokens match no known template.\n"
        f"  known     {', '.join(TEMPLATES)}\n"
        "  fix       pass the template that writes messages the same way: template='...'"
    )


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")

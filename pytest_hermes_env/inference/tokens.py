"""A tiny tokenizer on disk: no hub, no torch, no training, and the same bytes each time.

Byte-level BPE without merges: every byte of UTF-8 is one token, so that any text survives encode and decode. The chat
template is ChatML with tools, as Hermes models use it. It only ever appends: the text of the first messages of a
conversation is the beginning of the text of the whole conversation, which trainers need to mask by turn.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

__all__ = ["CHAT_TEMPLATE", "build_tokenizer"]

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
MODEL_MAX_LENGTH = 131_072

CHAT_TEMPLATE = """\
{%- macro text_of(content) -%}
  {%- if content is string -%}{{- content -}}
  {%- elif content is not none and content is defined -%}
    {%- for part in content -%}{%- if part.text is defined -%}{{- part.text -}}{%- endif -%}{%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- set has_system = messages and messages[0].role == 'system' -%}
{%- if has_system or tools -%}
  {{- '<|im_start|>system\\n' -}}
  {%- if has_system -%}{{- text_of(messages[0].content) -}}{%- endif -%}
  {%- if tools -%}
    {%- if has_system -%}{{- '\\n\\n' -}}{%- endif -%}
    {{- '# Tools\\n\\nYou may call one or more functions. Their signatures:\\n<tools>' -}}
    {%- for tool in tools -%}{{- '\\n' ~ (tool | tojson) -}}{%- endfor -%}
    {{- '\\n</tools>\\n\\nFor each call, return a JSON object with name and arguments:\\n' -}}
    {{- '<tool_call>\\n{"name": <name>, "arguments": <arguments>}\\n</tool_call>' -}}
  {%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
  {%- if message.role == 'tool' -%}
    {{- '<|im_start|>tool\\n<tool_response>\\n' ~ text_of(message.content) -}}
    {{- '\\n</tool_response><|im_end|>\\n' -}}
  {%- elif not (loop.first and has_system) -%}
    {%- set content = text_of(message.content) -%}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ content -}}
    {%- for call in message.tool_calls or [] -%}
      {%- if content or not loop.first -%}{{- '\\n' -}}{%- endif -%}
      {%- set function = call.function if call.function is defined else call -%}
      {%- set arguments = function.arguments -%}
      {{- '<tool_call>\\n{"name": ' ~ (function.name | tojson) ~ ', "arguments": ' -}}
      {{- arguments if arguments is string else (arguments | tojson) -}}
      {{- '}\\n</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""


def build_tokenizer(directory: str | os.PathLike[str]) -> Path:
    """Write the tokenizer into ``directory`` and return its path, for ``AutoTokenizer.from_pretrained``.

    Safe to call from several processes at once with the same directory: each file appears whole or not at all, and the
    directory is complete from the first moment when it did not exist before.
    """
    target = Path(directory)
    target.parent.mkdir(parents=True, exist_ok=True)
    files = {"tokenizer.json": _tokenizer_json(), "tokenizer_config.json": _config_json()}
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, text in files.items():
            (staging / name).write_text(text, encoding="utf-8")
        staging.chmod(0o755)
        try:
            staging.rename(target)
        except OSError:
            # The directory exists and is not empty: its files are replaced one by one.
            for name in files:
                (staging / name).replace(target / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _tokenizer_json() -> str:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415 -- takes 30 ms

    vocabulary = {character: number for number, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in (END_OF_TEXT, TURN_START, TURN_END)]
    )
    return str(tokenizer.to_str())


def _config_json() -> str:
    config = {
        "add_prefix_space": False,
        "bos_token": None,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": TURN_END,
        "extra_special_tokens": [TURN_START],
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": MODEL_MAX_LENGTH,
        "pad_token": END_OF_TEXT,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": None,
    }
    return json.dumps(config, indent=2, sort_keys=True) + "\n"

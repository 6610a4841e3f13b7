"""Builds a tiny tokenizer on disk, without the hub, torch or training. The files are the same in every run.

Byte-level BPE with some thousand fixed merges (merges.txt, written by tests/unit/inference/train_merges.py): any text survives
encode and decode, any sequence of ids decodes, and the schemas of hermes' tools have about as many tokens as with a real tokenizer.
The chat template and the special tokens are those of one `pytest_hermes_env.inference.templates.Template`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_hermes_env.inference.templates import DEFAULT_TEMPLATE, Template, chat_template, template_named

if TYPE_CHECKING:
    import os

MERGES = Path(__file__).parent / "merges.txt"
MODEL_MAX_LENGTH = 131_072
TEMPLATE_FIELD = "pytest_hermes_env_template"
"""The field of tokenizer_config.json with the name of the template."""


def build_tokenizer(directory: str | os.PathLike[str], *, template: str = DEFAULT_TEMPLATE) -> Path:
    """Write the tokenizer into ``directory`` and return its path, for ``AutoTokenizer.from_pretrained``.

    ``template`` is a name of `pytest_hermes_env.inference.templates.TEMPLATES`. Several processes may write the same directory at
    once: each file is replaced atomically, and so is a directory that did not exist.

    Raises: an unknown template → UsageError.
    """
    chosen = template_named(template)
    target = Path(directory)
    target.parent.mkdir(parents=True, exist_ok=True)
    files = {"tokenizer.json": tokenizer_json(chosen), "tokenizer_config.json": _config_json(chosen)}
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, text in files.items():
            (staging / name).write_text(text, encoding="utf-8")
        staging.chmod(0o755)
        try:
            staging.rename(target)
        except OSError:
            # The directory exists and is not empty: replace its files one by one.
            for name in files:
                (staging / name).replace(target / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def tokenizer_json(template: Template) -> str:
    """Return the tokenizer with the template's special tokens, as the content of a tokenizer.json."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors  # noqa: PLC0415 -- takes 30 ms

    lines = MERGES.read_text(encoding="utf-8").splitlines()
    merges = [(left, right) for left, _, right in (line.partition(" ") for line in lines)]
    vocabulary = {character: number for number, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for left, right in merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in template.special])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in template.marks])
    if template.begin is not None:
        begin = (template.begin, tokenizer.token_to_id(template.begin))
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{template.begin} $A", special_tokens=[begin])
    return str(tokenizer.to_str())


def _config_json(template: Template) -> str:
    config = {
        TEMPLATE_FIELD: template.name,
        "add_prefix_space": False,
        "bos_token": template.begin,
        "chat_template": chat_template(template),
        "clean_up_tokenization_spaces": False,
        "eos_token": template.eos,
        "extra_special_tokens": [
            token for token in template.special if token not in {template.begin, template.eos, template.pad}
        ],
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": MODEL_MAX_LENGTH,
        "pad_token": template.pad,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": None,
    }
    return json.dumps({name: value for name, value in config.items() if name != "chat_template" or value}, indent=2) + "\n"

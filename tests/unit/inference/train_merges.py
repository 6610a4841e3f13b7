"""Writes ``pytest_hermes_env/inference/merges.txt``: what the tiny tokenizer joins, in the order in which it joins.

Trained on the tool schemas of the installed hermes-agent and on this project's own text and code. The file is pinned: a
tokenizer that changed with each release of hermes would change every recorded token. Run it again on purpose only:
``python tests/unit/inference/train_merges.py``, then look at what test_tokens.py says.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

ROOT = Path(__file__).parents[3]
TARGET = ROOT / "pytest_hermes_env" / "inference" / "merges.txt"
BYTES, MERGES, LONGEST = 256, 2_600, 24
ALWAYS_OFFERED, WEIGHT = ("terminal", "file"), 12
"""Toolsets that nearly every environment offers, and how often their schemas are read."""


def schemas() -> list[str]:
    """Return the schema of every tool that hermes has, as chat templates write them."""
    logging.disable(logging.CRITICAL)
    import model_tools
    from tools.registry import registry

    every = [{"type": "function", "function": entry.schema} for entry in registry._tools.values()]
    often = model_tools.get_tool_definitions(enabled_toolsets=list(ALWAYS_OFFERED), quiet_mode=True)
    return sorted(json.dumps(tool, ensure_ascii=False) for tool in [*every, *often * WEIGHT])


def own_text() -> list[str]:
    """Return this project's documents and code: prose, shell, JSON and Python."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("environments/**/*.py")]
    return [path.read_text(encoding="utf-8") for path in sorted(paths)]


def main() -> None:
    """Train, and write the merges one per line."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=BYTES + MERGES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=LONGEST,
        show_progress=False,
    )
    tokenizer.train_from_iterator([*schemas(), *own_text()], trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    TARGET.write_text("".join(f"{left} {right}\n" for left, right in merges), encoding="utf-8")
    print(f"{len(merges)} merges, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

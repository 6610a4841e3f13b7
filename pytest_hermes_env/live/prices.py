"""The price table for providers that do not report costs: a user's file in TOML, JSON or YAML.

::

    ["meta-llama/llama-3.3-70b-instruct"]
    input = 0.13      # USD per million tokens
    output = 0.40
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import UsageError, shorten

__all__ = ["Price", "load_prices"]

MILLION = 1_000_000
SHAPE = "for each model a table with `input` and `output`, in USD per million tokens"


@dataclass(frozen=True, kw_only=True)
class Price:
    """``input`` and ``output`` in USD per million tokens."""

    input: float
    output: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return USD."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / MILLION


def load_prices(path: str) -> Mapping[str, Price]:
    """Return the prices by model. Raises: a missing or malformed file, an invalid price → UsageError."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--hermes-prices: {path} cannot be read: {shorten(str(error))}") from None
    table = _parsed(path, text)
    if not isinstance(table, dict) or not table:
        raise UsageError(
            f"--hermes-prices: {path} contains no prices.\n  expected  {SHAPE}\n  seen      {shorten(repr(table))}"
        )
    return {str(model): _price(path, str(model), row) for model, row in table.items()}


def _parsed(path: str, text: str) -> Any:
    import yaml  # noqa: PLC0415 - takes 20 ms

    try:
        match Path(path).suffix:
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                return json.loads(text)
            case ".yaml" | ".yml":
                return yaml.safe_load(text)
            case other:
                raise UsageError(f"--hermes-prices: {path} ends in {other!r}; expected .toml, .json or .yaml")
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"--hermes-prices: {path} cannot be parsed: {shorten(str(error))}") from None


def _price(path: str, model: str, row: Any) -> Price:
    if isinstance(row, dict) and set(row) == {"input", "output"}:
        input_usd, output_usd = row["input"], row["output"]
        if _is_amount(input_usd) and _is_amount(output_usd):
            return Price(input=float(input_usd), output=float(output_usd))
    raise UsageError(
        f"--hermes-prices: {path} has no valid price for {model}.\n  expected  {SHAPE}, not negative\n  seen      {shorten(repr(row))}"
    )


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0

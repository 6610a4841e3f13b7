"""What calls to providers cost that do not say it: genai-prices' table, or a user's file in TOML, JSON or YAML.

::

    ["meta-llama/llama-3.3-70b-instruct"]
    input = 0.13      # USD per million tokens
    output = 0.40
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hermes_env_shared.bounded_yaml import load_yaml
from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.live.limits import Usage
from pytest_hermes_env.missing_files import no_file

MILLION = 1_000_000
SHAPE = "for each model a table with `input` and `output`, in USD per million tokens"


Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """``input`` and ``output`` in USD per million tokens."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    input: Amount
    output: Amount

    def of(self, usage: Usage) -> Usage:
        """Return a usage with its cost, if its tokens are known."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return usage
        return replace(usage, usd=(usage.prompt_tokens * self.input + usage.completion_tokens * self.output) / MILLION)


class ListedPrice(Price):
    """The price that the package genai-prices knows of a model, of each call by its length."""

    model: str
    url: str

    def of(self, usage: Usage) -> Usage:
        """Return a usage with its cost, if its tokens are known."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return usage
        return replace(usage, usd=listed_usd(self.model, self.url, usage.prompt_tokens, usage.completion_tokens))


def listed_price(model: str, url: str) -> ListedPrice | None:
    """Return the price of a model of the provider at ``url``; None without genai-prices, or if that does not know it."""
    try:
        usd = [listed_usd(model, url, *tokens) * MILLION for tokens in ((1, 0), (0, 1))]
    except (ImportError, LookupError):
        return None
    return ListedPrice(input=usd[0], output=usd[1], model=model, url=url)


def listed_usd(model: str, url: str, prompt_tokens: int, completion_tokens: int) -> float:
    """Return the cost of a call. Raises: no such package → ImportError; no such provider or model → LookupError."""
    import genai_prices  # noqa: PLC0415 - an extra, which takes half a second

    used = genai_prices.Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens)
    return float(genai_prices.calc_price(used, model, provider_api_url=url).total_price)


def load_prices(path: str) -> Mapping[str, Price]:
    """Return the prices by model. Raises: a missing or malformed file, an invalid price → UsageError."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        seen = no_file(path) if isinstance(error, FileNotFoundError) else f"{path} cannot be read: {shorten(str(error))}"
        raise UsageError(f"--hermes-prices: {seen}") from None
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
                return load_yaml(text)
            case other:
                raise UsageError(f"--hermes-prices: {path} ends in {other!r}; expected .toml, .json or .yaml")
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"--hermes-prices: {path} cannot be parsed: {shorten(str(error))}") from None


def _price(path: str, model: str, row: Any) -> Price:
    try:
        return Price.model_validate(row)
    except ValidationError:
        raise UsageError(
            f"--hermes-prices: {path} has no valid price for {model}.\n"
            f"  expected  {SHAPE}, not negative\n  seen      {shorten(repr(row))}"
        ) from None

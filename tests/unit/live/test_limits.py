"""What live calls cost, and what stops them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_hermes_env.errors import BudgetSpent, UsageError
from pytest_hermes_env.live.limits import Limits, Spending, Spent, Usage
from pytest_hermes_env.live.prices import Price, listed_price, load_prices

TEN = Usage(prompt_tokens=7, completion_tokens=3, usd=0.5)


def spend(spending: Spending, *usages: Usage | None, test: str = "t") -> None:
    """Make that many calls."""
    for usage in usages:
        spending.end(spending.begin(test), usage, seconds=1.0)


def test_calls_are_summed_by_test(tmp_path: Path) -> None:
    """Answered, failed and unfinished calls are kept apart, and so is what an answer did not say."""
    spending = Spending(tmp_path / "calls", Limits())
    spend(spending, TEN, None, Usage(prompt_tokens=1), test="a")
    spend(spending, TEN, test="b")
    spending.begin("b")

    assert dict(spending.by_test()) == {
        "a": Spent(calls=3, failed=1, prompt_tokens=8, completion_tokens=3, usd=0.5, uncounted=1, unpriced=1, seconds=3.0),
        "b": Spent(calls=2, unfinished=1, prompt_tokens=7, completion_tokens=3, usd=0.5, seconds=1.0),
    }
    assert (
        spending.total().describe()
        == "5 calls, 21 tokens + 1 calls of unknown tokens, $1.0000 + 1 calls of unknown cost, 1 failed"
    )


@pytest.mark.parametrize(
    ("limits", "usage", "made", "text"),
    [
        (
            Limits(calls=2),
            TEN,
            2,
            "a call was not made because --hermes-max-calls 2 is reached.\n"
            "  spent     2 calls, 20 tokens, $1.0000\n"
            "  fix       raise --hermes-max-calls, or run fewer tests",
        ),
        (
            Limits(tokens=15),
            TEN,
            2,
            "a call was not made because --hermes-max-tokens 15 is reached.\n"
            "  spent     2 calls, 20 tokens, $1.0000\n"
            "  fix       raise --hermes-max-tokens, or run fewer tests",
        ),
        (
            Limits(usd=1.5),
            TEN,
            3,
            "a call was not made because --hermes-max-usd 1.5 is reached.\n"
            "  spent     3 calls, 30 tokens, $1.5000\n"
            "  fix       raise --hermes-max-usd, or run fewer tests",
        ),
        (
            Limits(usd=1.5),
            Usage(prompt_tokens=7, completion_tokens=3),
            1,
            "a call was not made because --hermes-max-usd 1.5 cannot be enforced: neither answers nor --hermes-prices report the cost.\n"
            "  spent     1 call, 10 tokens, cost unknown\n"
            "  fix       add --hermes-prices FILE, or use --hermes-max-calls or --hermes-max-tokens instead",
        ),
        (
            Limits(tokens=15),
            Usage(),
            1,
            "a call was not made because --hermes-max-tokens 15 cannot be enforced: answers report no tokens.\n"
            "  spent     1 call, 0 tokens + 1 calls of unknown tokens, cost unknown\n"
            "  fix       use --hermes-max-calls instead: this server does not count tokens",
        ),
    ],
    ids=["calls", "tokens", "usd", "no-cost", "no-tokens"],
)
def test_a_limit_stops_the_next_call(tmp_path: Path, limits: Limits, usage: Usage, made: int, text: str) -> None:
    """Calls stop before the one that would go over; tokens and cost are known after the one that went over."""
    spending = Spending(tmp_path / "calls", limits)
    with pytest.raises(BudgetSpent) as refused:
        spend(spending, *[usage] * 10)

    assert (str(refused.value), spending.total().calls) == (text, made)


def test_limits_are_shared(tmp_path: Path) -> None:
    """Of forty calls that eight threads make through files of their own, exactly ten pass."""

    def worker(number: int) -> int:
        spending = Spending(tmp_path / "calls", Limits(calls=10))
        passed = 0
        for _ in range(5):
            try:
                spend(spending, TEN, test=str(number))
            except BudgetSpent:
                continue
            passed += 1
        return passed

    with ThreadPoolExecutor(8) as pool:
        passed = sum(pool.map(worker, range(8)))

    assert (passed, Spending(tmp_path / "calls", Limits()).total().calls) == (10, 10)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.toml", '["a/b"]\ninput = 3.0\noutput = 15\n'),
        ("p.json", '{"a/b": {"input": 3.0, "output": 15}}'),
        ("p.yaml", "a/b: {input: 3.0, output: 15}\n"),
    ],
)
def test_prices_are_read(tmp_path: Path, name: str, text: str) -> None:
    """TOML, JSON and YAML say the same: USD per million tokens."""
    path = tmp_path / name
    path.write_text(text)

    prices = load_prices(str(path))
    assert dict(prices) == {"a/b": Price(input=3.0, output=15.0)}
    assert prices["a/b"].of(Usage(prompt_tokens=1_000_000, completion_tokens=100_000)).usd == 4.5


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.txt", "x", "{path} ends in '.txt'; expected .toml, .json or .yaml"),
        (
            "p.json",
            "[]",
            "{path} contains no prices.\n"
            "  expected  for each model a table with `input` and `output`, in USD per million tokens\n  seen      []",
        ),
        (
            "p.json",
            '{"m": {"input": -1, "output": 2}}',
            "{path} has no valid price for m.\n"
            "  expected  for each model a table with `input` and `output`, in USD per million tokens, not negative\n"
            "  seen      {{'input': -1, 'output': 2}}",
        ),
        ("p.json", "{", "{path} cannot be parsed: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("missing.toml", None, "there is no file {path}"),
    ],
)
def test_a_wrong_price_table_is_a_usage_error(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    """The text says what is wrong, with the path."""
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_prices(str(path))

    expected = "--hermes-prices: " + message.format(path=path)
    assert str(error.value)[:150] == expected[:150]


def test_prices_of_public_models_are_known() -> None:
    """From the table of genai-prices, which the provider's URL and the model choose; not of a server of one's own."""
    pytest.importorskip("genai_prices", reason="the extra prices")

    price = listed_price("gpt-4o-mini", "https://api.openai.com/v1")
    assert price is not None
    cost = price.of(Usage(prompt_tokens=1_000_000, completion_tokens=0)).usd
    assert cost == pytest.approx(price.input)
    assert price.of(Usage(prompt_tokens=7)).usd is None
    assert (listed_price("my-model", "http://localhost:8000/v1"), listed_price("my-model", "https://api.openai.com/v1")) == (
        None,
        None,
    )

"""The settings of live mode: reads and checks flags, environment variables, ini values and marker arguments."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.options import LIVE_SETTINGS

if TYPE_CHECKING:
    from pytest_hermes_env.live.limits import Limits
    from pytest_hermes_env.live.prices import Price
    from pytest_hermes_env.live.providers import LiveServer

ALLOW_HOSTS = "hermes_allow_hosts"
LIVE_ONLY = ("provider", *LIVE_SETTINGS, "unlisted_model")
"""Flags that have no effect without ``--hermes-live``."""


def setting(config: pytest.Config, name: str) -> str:
    """Return the value of the flag ``--hermes-<name>``, else of HERMES_ENV_<NAME>, else of the ini value hermes_live_<name>."""
    given = config.getoption(f"hermes_{name}", None)
    if given is not None:
        return str(given)
    return os.environ.get(f"HERMES_ENV_{name.upper()}", "").strip() or str(config.getini(f"hermes_live_{name}")).strip()


def idle_flags(config: pytest.Config) -> list[str]:
    """Return the flags of live mode that have no effect because ``--hermes-live`` is missing."""
    if config.getoption("hermes_live"):
        return []
    return [f"--hermes-{name.replace('_', '-')}" for name in LIVE_ONLY if config.getoption(f"hermes_{name}", None)]


def claims_of(mark: pytest.Mark, item: pytest.Item) -> dict[str, bool]:
    """Return the arguments of a test's marker hermes_live, ``or_mock`` and ``may_fail``. Raises: wrong arguments → pytest.UsageError."""
    claims: dict[str, Any] = {"or_mock": False, "may_fail": False} | dict(mark.kwargs)
    if mark.args or len(claims) > 2 or not all(isinstance(value, bool) for value in claims.values()):  # noqa: PLR2004 - as above
        raise pytest.UsageError(
            "@pytest.mark.hermes_live takes or_mock=True, may_fail=True or nothing.\n"
            f"  test      {item.nodeid}\n"
            f"  seen      args {mark.args!r}, kwargs {dict(mark.kwargs)!r}"
        )
    return claims


def check_names(item: pytest.Item) -> None:
    """Look for misspelt markers: without its marker, a test passes on a mock. Raises: one that is not ours → pytest.UsageError."""
    ours = [mark.name for mark in item.iter_markers() if mark.name.startswith("hermes_")]
    known = [text.partition(":")[0].partition("(")[0].strip() for text in item.config.getini("markers")] if ours else []
    if name := next((name for name in ours if name not in known), ""):
        import difflib  # noqa: PLC0415 - seldom

        near = difflib.get_close_matches(name, known, n=1, cutoff=0)
        raise pytest.UsageError(f"there is no marker {name}, at {item.nodeid}. Did you mean {near[0]}?")


def allowed_hosts(item: pytest.Item) -> set[str]:
    """Return the hosts that the marker, the flag and the ini value allow. Raises: wrong arguments → pytest.UsageError."""
    texts: list[str] = []
    for mark in item.iter_markers(ALLOW_HOSTS):
        if mark.kwargs or not mark.args or not all(isinstance(host, str) and host.strip() for host in mark.args):
            raise pytest.UsageError(
                f"@pytest.mark.hermes_allow_hosts takes the names of hosts, at {item.nodeid}.\n"
                f"  seen      args {mark.args!r}, kwargs {mark.kwargs!r}\n"
                '  fix       @pytest.mark.hermes_allow_hosts("huggingface.co", "*.hf.co")'
            )
        texts += mark.args
    return hosts_of_run(item.config) | _hosts(texts)


def hosts_of_run(config: pytest.Config) -> set[str]:
    """Return the hosts that the flag and the ini value allow."""
    return _hosts([*config.getoption(ALLOW_HOSTS), str(config.getini(ALLOW_HOSTS))])


def _hosts(texts: Iterable[str]) -> set[str]:
    """Return the hosts that texts name. Raises: an address in place of a name → pytest.UsageError."""
    hosts = {host for text in texts for host in text.replace(",", " ").split()}
    for host in hosts:
        if "/" in host:
            name = urlsplit(host if "//" in host else f"//{host}").hostname or "the name alone"
            raise pytest.UsageError(
                f"{ALLOW_HOSTS} takes the names of hosts, and {host} is an address.\n  fix       write {name}"
            )
    return hosts


def read_limits(config: pytest.Config, server: LiveServer) -> tuple[Limits, dict[str, Price]]:
    """Return the limits, and the prices by model. Raises: an invalid number, a cost limit without prices → UsageError."""
    from pytest_hermes_env.live.limits import Limits  # noqa: PLC0415
    from pytest_hermes_env.live.prices import listed_price, load_prices  # noqa: PLC0415 - only where it is used

    path = setting(config, "prices")
    prices = dict(load_prices(path)) if path else {}
    usd = _number(config, "max_usd")
    if usd is not None and server.model not in prices and (listed := listed_price(server.model, server.base_url)) is not None:
        prices[server.model] = listed
    limits = Limits(calls=_whole(config, "max_calls"), tokens=_whole(config, "max_tokens"), usd=usd)
    if path and server.model and server.model not in prices:
        raise UsageError(
            f"--hermes-prices: {path} has no price for {server.model}.\n  seen      prices for {shorten(', '.join(prices))}"
        )
    if usd is not None and not prices and not server.may_tell_cost:
        raise UsageError(
            f"--hermes-max-usd: the cost of a call to {server.provider} is unknown.\n"
            "  expected  a provider that reports it in its answers (OpenRouter), or a price table\n"
            "  fix       pip install 'pytest-hermes-env[prices]' if it is a public model, or --hermes-prices FILE; or use\n"
            "            --hermes-max-calls or --hermes-max-tokens instead"
        )
    return limits, prices


def check_numbers(config: pytest.Config) -> None:
    """Read every limit. Raises: one is not a number of its kind → UsageError."""
    _whole(config, "max_calls")
    _whole(config, "max_tokens")
    _number(config, "max_usd")
    call_timeout(config)


def call_timeout(config: pytest.Config) -> float | None:
    """Return the limit of one call in seconds; None means no limit. Raises: UsageError."""
    limit_s = _number(config, "call_timeout")
    if limit_s == 0:
        raise UsageError("--hermes-call-timeout: must be more than 0 seconds")
    return limit_s


def _whole(config: pytest.Config, name: str) -> int | None:
    number = _number(config, name)
    if number is not None and number != int(number):
        raise UsageError(f"--hermes-{name.replace('_', '-')}: must be an integer, not {number:g}")
    return None if number is None else int(number)


def _number(config: pytest.Config, name: str) -> float | None:
    text = setting(config, name)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"--hermes-{name.replace('_', '-')}: must be a number of at least 0, not {shorten(repr(text))}")
    return number

"""``--hermes-live``: the hooks that let marked tests run on a real inference server.

Place in the flow: `plugin` registers `LiveMode` in every run. It chooses the server and asks whether it is there before any test,
skips marked tests where there is none, and tells ``make_env`` what to build on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import HermesEnvError

if TYPE_CHECKING:
    from pytest_hermes_env.inference.providers import LiveServer

__all__ = ["MARKER", "LiveMode", "live_server", "setting"]

MARKER = "hermes_live"
NOT_LIVE = "needs a real inference server: run with --hermes-live --provider ..."
SERVER: pytest.StashKey[LiveServer] = pytest.StashKey()


def live_server(config: pytest.Config) -> LiveServer | None:
    """Return the real server that this run asks; None without ``--hermes-live``."""
    return config.stash.get(SERVER, None)


def setting(config: pytest.Config, name: str) -> str:
    """Return what the flag ``--hermes-<name>`` says, else the variable HERMES_ENV_<NAME>, else the ini value hermes_live_<name>."""
    given = config.getoption(f"hermes_{name}", None)
    if given is not None:
        return str(given)
    return os.environ.get(f"HERMES_ENV_{name.upper()}", "").strip() or str(config.getini(f"hermes_live_{name}")).strip()


class LiveMode:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config) -> None:
        """Choose the server. Raises: pytest.UsageError."""
        self._config = config
        if not config.getoption("hermes_live"):
            return
        from pytest_hermes_env.inference.providers import choose_server  # noqa: PLC0415 - only where it is used

        try:
            config.stash[SERVER] = choose_server(
                provider=setting(config, "provider"),
                model=setting(config, "model"),
                base_url=setting(config, "base_url"),
                key_name=setting(config, "api_key_env"),
                tokenizer=setting(config, "tokenizer"),
                environ=os.environ,
            )
        except HermesEnvError as error:
            raise pytest.UsageError(f"{type(error).__name__}: {error}") from None

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Name the server."""
        server = live_server(config)
        return [] if server is None else [f"live: {server.describe()}"]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test that needs a real server, where there is none."""
        mark = item.get_closest_marker(MARKER)
        if mark is not None and live_server(self._config) is None and not is_fine_on_mock(mark):
            pytest.skip(NOT_LIVE)


def is_fine_on_mock(mark: pytest.Mark) -> bool:
    """Tell whether a test marked so runs on the mock when there is no real server. Raises: wrong arguments → pytest.UsageError."""
    arguments: dict[str, Any] = dict(mark.kwargs)
    or_mock = arguments.pop("or_mock", False)
    if mark.args or arguments or not isinstance(or_mock, bool):
        raise pytest.UsageError(
            "@pytest.mark.hermes_live takes or_mock=True or nothing.\n"
            f"  seen      args {mark.args!r}, kwargs {dict(mark.kwargs)!r}"
        )
    return or_mock


def server_of(item: pytest.Item) -> LiveServer | None:
    """Return the real server that ``make_env`` builds on in this test: only in tests that are marked, and only when run live."""
    return None if item.get_closest_marker(MARKER) is None else live_server(item.config)

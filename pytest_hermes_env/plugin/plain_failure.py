"""Errors of this package, shown as plain text: a usage error or a verification hides the plugin's own frames."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from pytest_hermes_env.errors import HermesEnvError

__all__ = ["errors_as_text", "verify_as_text"]


@contextlib.contextmanager
def errors_as_text() -> Iterator[None]:
    """Fail the test with an error's text instead of its traceback."""
    __tracebackhide__ = True
    try:
        yield
    except HermesEnvError as error:
        raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None


def verify_as_text(verify: Callable[[], None]) -> None:
    """Run a verification; its error fails the test as plain text."""
    __tracebackhide__ = True
    with errors_as_text():
        verify()

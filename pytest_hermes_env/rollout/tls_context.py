"""One TLS context for all clients of a run: reading the certificate authorities takes longer than a scripted rollout.

Place in the flow: `driver` builds an environment per family of scenarios, each with HTTP clients of its own, which reach a model
in this process or on loopback and never use TLS.
"""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import Iterator

__all__ = ["shared_authorities"]


@contextlib.contextmanager
def shared_authorities() -> Iterator[None]:
    """Give contexts that are asked for with the same arguments only once, while the context lasts."""
    real = ssl.create_default_context
    ssl.create_default_context = functools.cache(real)  # type: ignore[assignment]
    try:
        yield
    finally:
        ssl.create_default_context = real

"""The value for a resource that an environment created and leaked."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_hermes_env.rollout.journal import Place

__all__ = ["Left"]


@dataclass(frozen=True, kw_only=True)
class Left:
    """A resource that the environment created at ``place`` and leaked: ``kind`` is process, thread, temporary directory or client."""

    kind: str
    name: str
    place: Place

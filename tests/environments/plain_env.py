"""An environment with nothing of its own; tests derive theirs from it."""

from __future__ import annotations

from tests.environments.plain_env import PlainEnv


class PlainEnv(PlainEnv):
    """Items are texts, and every reward is 1.0."""

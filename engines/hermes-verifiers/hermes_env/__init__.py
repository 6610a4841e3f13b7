"""Hermes Agent environments on verifiers: ``vf-eval hermes-env``.

The environment runs elsewhere, in a rollout service (``hermes-env serve-rollouts``), since hermes-agent and verifiers need different
versions of openai. The taskset lists the service's items, and the harness asks it for rollouts.
"""

from hermes_env.env import HermesEnv
from hermes_env.harness import HermesHarness
from hermes_env.taskset import HermesTaskset

__all__ = ["HermesEnv", "HermesHarness", "HermesTaskset"]

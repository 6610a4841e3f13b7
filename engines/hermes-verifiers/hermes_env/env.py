"""The environment: one agent, whose program needs no container, since the sandboxes are the service's."""

from __future__ import annotations

import verifiers.v1 as vf

__all__ = ["HermesEnv"]


BEGIN_AGAIN = vf.RetryConfig(rules=[vf.RetryRule(type="HarnessError", message=r"\bServiceLost: ", max_retries=1)])
"""A rollout whose service is gone begins again once, in a trace of its own, so that no turn of the lost one is trained on."""


class HermesEnvConfig(vf.EnvConfig):
    """The one seat."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), retries=BEGIN_AGAIN)


class HermesEnv(vf.Env[HermesEnvConfig]):
    """Plays a task once."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Run the agent."""
        await agents.agent.run(task)

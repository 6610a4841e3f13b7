"""The environment: one agent, whose program needs no container, since the sandboxes are the service's."""

from __future__ import annotations

import verifiers.v1 as vf

__all__ = ["HermesEnv"]


class HermesEnvConfig(vf.EnvConfig):
    """The one seat."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class HermesEnv(vf.Env[HermesEnvConfig]):
    """Plays a task once."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Run the agent."""
        await agents.agent.run(task)

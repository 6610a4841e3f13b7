"""The harness: a rollout runs in the service, and samples through the interception's endpoint."""

from __future__ import annotations

from collections.abc import Mapping

import verifiers.v1 as vf

from hermes_env.services import ServicesConfig, services_of

__all__ = ["HermesHarness"]


class HermesHarnessConfig(vf.HarnessConfig, ServicesConfig):
    """Where rollouts run."""


class HermesHarness(vf.Harness[HermesHarnessConfig]):
    """Hands endpoint and secret to a rollout service; all tools and the sandbox are there."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    def __init__(self, config: HermesHarnessConfig) -> None:
        super().__init__(config)
        self._services = services_of(config)

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Run the rollout, and keep its reward in the trace's state for the task."""
        request = {"item": data.item, "endpoint": endpoint, "api_key": secret, "model": ctx.model}
        done = await self._services.rollout(request, group=data.idx)
        trace.state.reward, trace.state.end, trace.state.rollout_metrics = done.reward, done.end, done.metrics
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    @vf.metric
    async def rollout(self, trace: vf.Trace) -> Mapping[str, float]:
        """The service's metrics, and the rollout's end."""
        end = {f"end_{trace.state.end}": 1.0} if trace.state.end else {}
        return {**trace.state.rollout_metrics, **end}

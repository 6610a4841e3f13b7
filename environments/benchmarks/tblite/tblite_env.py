"""TBLiteEvalEnv: Terminal-Bench's smaller sister, OpenThoughts-TBLite, whose tasks are easier and faster.

Source: name, settings and their defaults are those of hermes-agent's former ``environments.benchmarks.tblite``.
"""

from __future__ import annotations

from pydantic import Field

from environments.benchmarks.terminalbench_2.terminalbench2_env import TerminalBench2EvalConfig, TerminalBench2EvalEnv


class TBLiteEvalConfig(TerminalBench2EvalConfig):
    """Settings of TBLiteEvalEnv."""

    dataset_name: str | None = Field(
        default="NousResearch/openthoughts-tblite",
        description="Dataset of the tasks. None: the sample tasks of this repository.",
    )
    task_timeout: int = Field(default=1200, ge=1, description="Seconds for a task, agent and tests; then it is failed.")


class TBLiteEvalEnv(TerminalBench2EvalEnv):
    """Evaluates an agent on the tasks of TBLite."""

    name = "openthoughts-tblite"
    env_config_cls = TBLiteEvalConfig


if __name__ == "__main__":
    TBLiteEvalEnv.cli()

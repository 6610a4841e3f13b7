"""Names of the Hermes environment layer that identify an environment in source code.

The layer and Atropos are recognised by name and never parsed: source must be readable where neither is installed.
"""

from __future__ import annotations

from pytest_hermes_env.layer import BASE

LAYER_ENV = BASE
LAYER_LOOP = "HermesAgentLoop"
LAYER_CONTEXT = "ToolContext"
LAYER_RESULT = "AgentResult"
LAYER_NAMES = frozenset({LAYER_ENV, LAYER_LOOP, LAYER_CONTEXT, LAYER_RESULT, "HermesAgentEnvConfig", "ToolError"})


LAYER_PACKAGE = "environments"
LAYER_FILES = frozenset({"hermes_base_env", "agent_loop", "tool_context"})

REQUIRED_METHODS = ("setup", "get_next_item", "format_prompt", "compute_reward", "evaluate")

RESULT_FIELDS = frozenset(
    {"messages", "managed_state", "turns_used", "finished_naturally", "reasoning_per_turn", "tool_errors", "end"}
)

LAYER_ROLLOUTS = frozenset({"collect_trajectory", "collect_trajectories"})
"""Methods of the layer that drive a HermesAgentLoop with the group's tools, then call compute_reward."""

LAYER_AGENT_ROLLOUT = "agent_rollout"
"""The layer's async context manager: one run of the agent in a sandbox that is released at the end of the block."""
LAYER_EVALUATION = "evaluate_items"
"""The layer's evaluation: agent_rollout and a score for each held-out item, then evaluate_log."""
LAYER_RUNS = LAYER_ROLLOUTS | {LAYER_AGENT_ROLLOUT, LAYER_EVALUATION}
"""Methods of the layer that run the agent."""

BASE_METHODS = frozenset(
    {
        "add_rollouts_for_wandb", "add_train_workers", "cleanup", "cli", "config_init", "create_rollout_table",
        "env_manager", "env_step_checks", "evaluate_log", "get_eval_items", "get_server_info", "get_status", "handle_env",
        "handle_send_to_api", "load_checkpoint", "perf_stats", "postprocess_histories", "process_manager",
        "register_env", "rollout_server", "save_checkpoint", "setup_wandb", "wandb_log",
        "_resolve_tools_for_group", "_use_managed_server",
    }
)  # fmt: skip
"""Methods that every environment inherits from the layer or Atropos and that drive no agent loop."""
INHERITED_METHODS = BASE_METHODS | LAYER_RUNS | frozenset(REQUIRED_METHODS)
"""Methods that an environment has from its bases, whatever its own class defines."""

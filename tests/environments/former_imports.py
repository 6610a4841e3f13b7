"""What environments and tests imported from hermes-agent's former package ``environments``, and what they get here.

``python tests/environments/former_imports.py`` tries each import, and prints the table of docs/reference/environments.md.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Former:
    """Names of one module. ``home``: the module here that defines them, if it is another one; ``instead``: the way out if they are gone."""

    module: str
    names: str
    home: str = ""
    instead: str = ""


PARSERS = "environments.tool_call_parsers"
FORMER = (
    Former(module="environments", names="HermesAgentBaseEnv HermesAgentEnvConfig", home="environments.hermes_base_env"),
    Former(module="environments", names="AgentResult HermesAgentLoop", home="environments.agent_loop"),
    Former(module="environments", names="ToolContext", home="environments.tool_context"),
    Former(module="environments.hermes_base_env", names="HermesAgentBaseEnv HermesAgentEnvConfig"),
    Former(module="environments.agent_loop", names="AgentResult HermesAgentLoop ToolError resize_tool_pool"),
    Former(module="environments.agent_loop", names="_extract_reasoning_from_message _tool_executor handle_function_call"),
    Former(module="environments.tool_context", names="ToolContext _run_tool_in_thread handle_function_call"),
    Former(
        module="environments.tool_context",
        names="_tool_executor cleanup_vm cleanup_browser",
        instead="the pool is `environments.agent_loop._tool_executor`; `ToolContext.cleanup` releases a sandbox",
    ),
    Former(module="environments.patches", names="apply_patches"),
    Former(module=PARSERS, names="ToolCallParser ParseResult PARSER_REGISTRY register_parser get_parser list_parsers"),
    Former(module=f"{PARSERS}.hermes_parser", names="HermesToolCallParser"),
    Former(module=f"{PARSERS}.longcat_parser", names="LongcatToolCallParser"),
    Former(module=f"{PARSERS}.mistral_parser", names="MistralToolCallParser"),
    Former(module=f"{PARSERS}.llama_parser", names="LlamaToolCallParser"),
    Former(module=f"{PARSERS}.qwen_parser", names="QwenToolCallParser"),
    Former(module=f"{PARSERS}.qwen3_coder_parser", names="Qwen3CoderToolCallParser"),
    Former(module=f"{PARSERS}.deepseek_v3_parser", names="DeepSeekV3ToolCallParser"),
    Former(module=f"{PARSERS}.deepseek_v3_1_parser", names="DeepSeekV31ToolCallParser"),
    Former(module=f"{PARSERS}.kimi_k2_parser", names="KimiK2ToolCallParser"),
    Former(module=f"{PARSERS}.glm45_parser", names="Glm45ToolCallParser"),
    Former(module=f"{PARSERS}.glm47_parser", names="Glm47ToolCallParser"),
    Former(module="environments.terminal_test_env.terminal_test_env", names="TerminalTestEnv TerminalTestEnvConfig"),
    Former(
        module="environments.terminal_test_env.terminal_test_env",
        names="TRAIN_TASKS EVAL_TASKS",
        instead="`TASKS`, whose last `eval_size` tasks are held out",
    ),
    Former(module="environments.hermes_swe_env.hermes_swe_env", names="HermesSweEnv HermesSweEnvConfig"),
    Former(module="environments.web_research_env", names="WebResearchEnv WebResearchEnvConfig"),
    Former(
        module="environments.web_research_env",
        names="SAMPLE_QUESTIONS",
        instead="`environments.web_research_env.items.sample_questions()`",
    ),
    Former(module="environments.agentic_opd_env", names="AgenticOPDEnv AgenticOPDConfig"),
    Former(
        module="environments.benchmarks.terminalbench_2.terminalbench2_env",
        names="TerminalBench2EvalEnv TerminalBench2EvalConfig MODAL_INCOMPATIBLE_TASKS",
    ),
    Former(module="environments.benchmarks.tblite.tblite_env", names="TBLiteEvalEnv TBLiteEvalConfig"),
    Former(
        module="environments.benchmarks.yc_bench.yc_bench_env",
        names="YCBenchEvalEnv",
        instead="this benchmark is not part of the package",
    ),
)


def outcome_of(row: Former) -> str:
    """Return what the import of a row's names gets, tried here."""
    (outcome,) = {_outcome_of(row, name) for name in row.names.split()}  # else the row is two
    return outcome


def _outcome_of(row: Former, name: str) -> str:
    scope: dict[str, object] = {}
    try:
        exec(f"from {row.module} import {name}", scope)
    except ImportError as error:
        return f"{type(error).__name__}: {row.instead}"
    if row.home and scope[name] is not getattr(importlib.import_module(row.home), name):
        return f"another object than that of {row.home}"
    return "the same name"


def table() -> list[str]:
    """Return the table, as Markdown."""
    rows = [
        f"| `{row.module}` | {', '.join(f'`{name}`' for name in row.names.split())} | {outcome_of(row)} |" for row in FORMER
    ]
    return ["| `from …` | `import …` | gets |", "|---|---|---|", *rows]


if __name__ == "__main__":
    print("\n".join(table()))

"""HE113, HE114: fields, bases and methods that do not exist."""

from __future__ import annotations

from .mutant import capitals_exam, graded_letters, ledger_books, many_signals, terminal_tasks

IMPORT = "from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"

MUTANTS = (
    terminal_tasks("HE113", "groupsize", ("group_size=4,", "groupsize=4,  # <- here"), says="did you mean 'group_size'"),
    ledger_books("HE113", "a field of another layer", ("max_agent_turns=8,", "max_turns=8,"), says="'max_turns'"),
    ledger_books(
        "HE113", "a misspelt own field", ("max_agent_turns=8,", "max_agent_turns=8, heldout=3,"), says="did you mean 'held_out'"
    ),
    many_signals(
        "HE113",
        "through the class's own name for it",
        ("max_agent_turns=12,", "max_agent_turns=12, temperature=0.7,"),
        says="'temperature'",
    ),
    capitals_exam(
        "HE113",
        "in unpacked settings",
        ("max_agent_turns=5,", 'max_agent_turns=5, **{"token_limit": 512},'),
        says="'token_limit'",
    ),
    ledger_books(
        "HE113",
        "in settings that a function makes",
        ("max_agent_turns=8,", "**dict(zip(['max_turns'], [8])),"),
        says="'max_turns'",
    ),
    ledger_books(
        "HE114",
        "an empty class where the layer is missing",
        (
            IMPORT,
            "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
            "except ImportError:\n    class HermesAgentBaseEnv:  # <- here\n        pass\n\n    HermesAgentEnvConfig = object\n",
        ),
        is_only_read=True,
    ),
    capitals_exam(
        "HE114",
        "object where the layer is missing",
        (
            IMPORT,
            "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
            "except ImportError:\n    HermesAgentBaseEnv = HermesAgentEnvConfig = object  # <- here\n",
        ),
        is_only_read=True,
    ),
    ledger_books(
        "HE114",
        "a generic base",
        ("class LedgerEnv(HermesAgentBaseEnv):", "class LedgerEnv(HermesAgentBaseEnv[LedgerConfig]):  # <- here"),
        is_only_read=True,
    ),
    capitals_exam(
        "HE114",
        "a helper that does not exist",
        ("self._resolve_tools_for_group()", "self.resolve_tools()  # <- here"),
        is_only_read=True,
    ),
    graded_letters(
        "HE114",
        "a misspelt method of the base",
        ("await super().collect_trajectory(item)", "await super().collect_trajectry(item)  # <- here"),
        says="did you mean 'collect_trajectory'",
        is_only_read=True,
    ),
)

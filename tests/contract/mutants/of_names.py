"""HE113, HE114: fields, bases and methods that do not exist."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals, terminal_tasks

IMPORT = "from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"

MUTANTS = (
    terminal_tasks(
        rule="HE113",
        name="groupsize",
        changes=changed("            group_size=4,\n", "            groupsize=4,  # <- here\n"),
        says="did you mean 'group_size'",
    ),
    ledger_books(
        rule="HE113",
        name="a field of another layer",
        changes=changed("max_agent_turns=8,", "max_turns=8,"),
        says="'max_turns'",
    ),
    ledger_books(
        rule="HE113",
        name="a misspelt own field",
        changes=changed("max_agent_turns=8,", "max_agent_turns=8, heldout=3,"),
        says="did you mean 'held_out'",
    ),
    many_signals(
        rule="HE113",
        name="through the class's own name for it",
        changes=changed("max_agent_turns=12,", "max_agent_turns=12, temperature=0.7,"),
        says="'temperature'",
    ),
    capitals_exam(
        rule="HE113",
        name="in unpacked settings",
        changes=changed("max_agent_turns=5,", 'max_agent_turns=5, **{"token_limit": 512},'),
        says="'token_limit'",
    ),
    ledger_books(
        rule="HE114",
        name="an empty class where the layer is missing",
        changes=changed(
            IMPORT,
            "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
            "except ImportError:\n    class HermesAgentBaseEnv:  # <- here\n        pass\n\n    HermesAgentEnvConfig = object\n",
        ),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE114",
        name="object where the layer is missing",
        changes=changed(
            IMPORT,
            "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
            "except ImportError:\n    HermesAgentBaseEnv = HermesAgentEnvConfig = object  # <- here\n",
        ),
        is_only_read=True,
    ),
    ledger_books(
        rule="HE114",
        name="a generic base",
        changes=changed(
            "class LedgerEnv(HermesAgentBaseEnv):\n", "class LedgerEnv(HermesAgentBaseEnv[LedgerConfig]):  # <- here\n"
        ),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE114",
        name="a helper that does not exist",
        changes=changed("self._resolve_tools_for_group()\n", "self.resolve_tools()  # <- here\n"),
        is_only_read=True,
    ),
    graded_letters(
        rule="HE114",
        name="a misspelt method of the base",
        changes=changed("await super().collect_trajectory(item)\n", "await super().collect_trajectry(item)  # <- here\n"),
        says="did you mean 'collect_trajectory'",
        is_only_read=True,
    ),
)

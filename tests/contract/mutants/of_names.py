"""HE113, HE114: fields, bases and methods that do not exist."""

from __future__ import annotations

from .mutant import Mutant

IMPORT = "from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"

MUTANTS = (
    Mutant(
        rule="HE113",
        name="groupsize",
        env="terminal_tasks",
        changes=(("            group_size=4,\n", "            groupsize=4,  # <- here\n"),),
        says="did you mean 'group_size'",
    ),
    Mutant(
        rule="HE113",
        name="a field of another layer",
        env="ledger_books",
        changes=(("max_agent_turns=8,", "max_turns=8,"),),
        says="'max_turns'",
    ),
    Mutant(
        rule="HE113",
        name="a misspelt own field",
        env="ledger_books",
        changes=(("max_agent_turns=8,", "max_agent_turns=8, heldout=3,"),),
        says="did you mean 'held_out'",
    ),
    Mutant(
        rule="HE113",
        name="through the class's own name for it",
        env="many_signals",
        changes=(("max_agent_turns=12,", "max_agent_turns=12, temperature=0.7,"),),
        says="'temperature'",
    ),
    Mutant(
        rule="HE113",
        name="in unpacked settings",
        env="capitals_exam",
        changes=(("max_agent_turns=5,", 'max_agent_turns=5, **{"token_limit": 512},'),),
        says="'token_limit'",
    ),
    Mutant(
        rule="HE114",
        name="an empty class where the layer is missing",
        env="ledger_books",
        changes=(
            (
                IMPORT,
                "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
                "except ImportError:\n    class HermesAgentBaseEnv:  # <- here\n        pass\n\n    HermesAgentEnvConfig = object\n",
            ),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE114",
        name="object where the layer is missing",
        env="capitals_exam",
        changes=(
            (
                IMPORT,
                "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
                "except ImportError:\n    HermesAgentBaseEnv = HermesAgentEnvConfig = object  # <- here\n",
            ),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE114",
        name="a generic base",
        env="ledger_books",
        changes=(
            ("class LedgerEnv(HermesAgentBaseEnv):\n", "class LedgerEnv(HermesAgentBaseEnv[LedgerConfig]):  # <- here\n"),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE114",
        name="a helper that does not exist",
        env="capitals_exam",
        changes=(("self._resolve_tools_for_group()\n", "self.resolve_tools()  # <- here\n"),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE114",
        name="a misspelt method of the base",
        env="graded_letters",
        changes=(("await super().collect_trajectory(item)\n", "await super().collect_trajectry(item)  # <- here\n"),),
        says="did you mean 'collect_trajectory'",
        is_only_read=True,
    ),
)

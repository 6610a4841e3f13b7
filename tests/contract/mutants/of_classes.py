"""HE1: what is wrong with the class and its configuration."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = (
    Mutant(
        rule="HE105",
        name="one configuration in place of a list",
        env="ledger_books",
        changes=(("        return settings, servers\n", "        return settings, servers[0]\n"),),
    ),
    Mutant(
        rule="HE105",
        name="no classmethod",
        env="many_signals",
        changes=(("    @classmethod\n    def config_init(cls)", "    def config_init(cls)"),),
    ),
    Mutant(
        rule="HE105",
        name="the other way round",
        env="many_signals",
        changes=(("        return config, [server]\n", "        return [server], config\n"),),
    ),
    Mutant(
        rule="HE105",
        name="the configuration alone",
        env="ledger_books",
        changes=(("        return settings, servers\n", "        return settings\n"),),
    ),
    Mutant(
        rule="HE105",
        name="a dict in place of a configuration",
        env="many_signals",
        changes=(("        return config, [server]\n", "        return dict(config), [server]\n"),),
    ),
    Mutant(
        rule="HE105",
        name="a coroutine",
        env="capitals_exam",
        changes=(("    def config_init(cls)", "    async def config_init(cls)"),),
    ),
)

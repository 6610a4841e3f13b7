"""HE105, HE106, HE108: what is wrong with config_init."""

from __future__ import annotations

from .mutant import Mutant

ROUTER = "https://openrouter.ai/api/v1"
LOCAL = '            base_url="http://localhost:8000/v1",\n'
NO_CHECK = "                health_check=False,\n"

MUTANTS = (
    # ------------------------------------------------------------------ HE105
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
    # ------------------------------------------------------------------ HE106
    Mutant(rule="HE106", name="the health check is left on", env="ledger_books", changes=((NO_CHECK, ""),)),
    Mutant(
        rule="HE106",
        name="vllm for an API",
        env="graded_letters",
        changes=(('                server_type="openai",\n', '                server_type="vllm",\n'),),
    ),
    Mutant(
        rule="HE106",
        name="the health check is turned on",
        env="capitals_exam",
        changes=((NO_CHECK, "                health_check=True,\n"),),
    ),
    Mutant(
        rule="HE106",
        name="an API in place of the own server",
        env="many_signals",
        changes=(
            (LOCAL, '            base_url="https://api.together.xyz/v1",\n'),
            ('            server_type="openai",\n            health_check=False,\n', '            server_type="sglang",\n'),
        ),
    ),
    Mutant(
        rule="HE106",
        name="the address is a default of the environment",
        env="many_signals",
        changes=(
            (LOCAL, '            base_url=os.environ.get("RENAME_ENV_URL", "https://api.openai.com/v1"),\n'),
            ("            health_check=False,\n", "            health_check=True,\n"),
        ),
    ),
    Mutant(
        rule="HE106",
        name="turned on for all servers afterwards",
        env="ledger_books",
        changes=(
            (
                "        return settings, servers\n",
                "        for server in servers:\n            server.health_check = True\n        return settings, servers\n",
            ),
        ),
    ),
    # ------------------------------------------------------------------ HE108
    Mutant(
        rule="HE108",
        name="none are named",
        env="ledger_books",
        changes=(('enabled_toolsets=["terminal", "file"], ', ""),),
    ),
    Mutant(
        rule="HE108",
        name="a misspelt toolset",
        env="graded_letters",
        changes=(('enabled_toolsets=["file"]', 'enabled_toolsets=["files"]'),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE108",
        name="toolsets and a distribution",
        env="many_signals",
        changes=(('enabled_toolsets=["terminal"]', 'enabled_toolsets=["terminal"], distribution="default"'),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE108",
        name="only the hint",
        env="capitals_exam",
        changes=(
            ('enabled_toolsets=["terminal", "file"], ', ""),
            (
                "    env_config_cls = ExamConfig\n",
                '    env_config_cls = ExamConfig\n    default_toolsets = ["terminal", "file"]\n',
            ),
        ),
    ),
    Mutant(
        rule="HE108",
        name="the name of a tool",
        env="ledger_books",
        changes=(('enabled_toolsets=["terminal", "file"]', 'enabled_toolsets=["terminal", "read_file"]'),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE108",
        name="a distribution that nobody defined",
        env="many_signals",
        changes=(('enabled_toolsets=["terminal"]', 'distribution="shell_only"'),),
        is_only_read=True,
    ),
)

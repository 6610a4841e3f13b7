"""HE105, HE106, HE108: what is wrong with config_init."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

ROUTER = "https://openrouter.ai/api/v1"
LOCAL = '            base_url="http://localhost:8000/v1",\n'
NO_CHECK = "                health_check=False,\n"

MUTANTS = (
    # ------------------------------------------------------------------ HE105
    ledger_books(
        rule="HE105",
        name="one configuration in place of a list",
        changes=changed("        return settings, servers\n", "        return settings, servers[0]\n"),
    ),
    many_signals(
        rule="HE105",
        name="no classmethod",
        changes=changed("    @classmethod\n    def config_init(cls)", "    def config_init(cls)"),
    ),
    many_signals(
        rule="HE105",
        name="the other way round",
        changes=changed("        return config, [server]\n", "        return [server], config\n"),
    ),
    ledger_books(
        rule="HE105",
        name="the configuration alone",
        changes=changed("        return settings, servers\n", "        return settings\n"),
    ),
    many_signals(
        rule="HE105",
        name="a dict in place of a configuration",
        changes=changed("        return config, [server]\n", "        return dict(config), [server]\n"),
    ),
    capitals_exam(
        rule="HE105",
        name="a coroutine",
        changes=changed("    def config_init(cls)", "    async def config_init(cls)"),
    ),
    # ------------------------------------------------------------------ HE106
    ledger_books(rule="HE106", name="the health check is left on", changes=changed(NO_CHECK, "")),
    graded_letters(
        rule="HE106",
        name="vllm for an API",
        changes=changed('                server_type="openai",\n', '                server_type="vllm",\n'),
    ),
    capitals_exam(
        rule="HE106",
        name="the health check is turned on",
        changes=changed(NO_CHECK, "                health_check=True,\n"),
    ),
    many_signals(
        rule="HE106",
        name="an API in place of the own server",
        changes=(
            (LOCAL, '            base_url="https://api.together.xyz/v1",\n'),
            ('            server_type="openai",\n            health_check=False,\n', '            server_type="sglang",\n'),
        ),
    ),
    many_signals(
        rule="HE106",
        name="the address is a default of the environment",
        changes=(
            (LOCAL, '            base_url=os.environ.get("RENAME_ENV_URL", "https://api.openai.com/v1"),\n'),
            ("            health_check=False,\n", "            health_check=True,\n"),
        ),
    ),
    ledger_books(
        rule="HE106",
        name="turned on for all servers afterwards",
        changes=changed(
            "        return settings, servers\n",
            "        for server in servers:\n            server.health_check = True\n        return settings, servers\n",
        ),
    ),
    # ------------------------------------------------------------------ HE108
    ledger_books(
        rule="HE108",
        name="none are named",
        changes=changed('enabled_toolsets=["terminal", "file"], ', ""),
    ),
    graded_letters(
        rule="HE108",
        name="a misspelt toolset",
        changes=changed('enabled_toolsets=["file"]', 'enabled_toolsets=["files"]'),
        is_only_read=True,
    ),
    many_signals(
        rule="HE108",
        name="toolsets and a distribution",
        changes=changed('enabled_toolsets=["terminal"]', 'enabled_toolsets=["terminal"], distribution="default"'),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE108",
        name="only the hint",
        changes=(
            ('enabled_toolsets=["terminal", "file"], ', ""),
            (
                "    env_config_cls = ExamConfig\n",
                '    env_config_cls = ExamConfig\n    default_toolsets = ["terminal", "file"]\n',
            ),
        ),
    ),
    ledger_books(
        rule="HE108",
        name="the name of a tool",
        changes=changed('enabled_toolsets=["terminal", "file"]', 'enabled_toolsets=["terminal", "read_file"]'),
        is_only_read=True,
    ),
    many_signals(
        rule="HE108",
        name="a distribution that nobody defined",
        changes=changed('enabled_toolsets=["terminal"]', 'distribution="shell_only"'),
        is_only_read=True,
    ),
)

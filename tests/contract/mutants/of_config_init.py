"""HE105, HE106, HE108: what is wrong with config_init."""

from __future__ import annotations

from .mutant import after, before, capitals_exam, graded_letters, ledger_books, many_signals

LOCAL = '            base_url="http://localhost:8000/v1",\n'
NO_CHECK = "                health_check=False,\n"

MUTANTS = (
    # ------------------------------------------------------------------ HE105
    many_signals("HE105", "no classmethod", ("@classmethod\n    def config_init(cls)", "def config_init(cls)")),
    many_signals("HE105", "the other way round", ("return config, [server]", "return [server], config")),
    ledger_books("HE105", "the configuration alone", ("return settings, servers", "return settings")),
    many_signals("HE105", "a dict in place of a configuration", ("return config, [server]", "return dict(config), [server]")),
    capitals_exam("HE105", "a coroutine", ("def config_init(cls)", "async def config_init(cls)")),
    # ------------------------------------------------------------------ HE106
    graded_letters("HE106", "vllm for an API", ('server_type="openai",', 'server_type="vllm",')),
    capitals_exam("HE106", "the health check is turned on", (NO_CHECK, "                health_check=True,\n")),
    many_signals(
        "HE106",
        "an API in place of the own server",
        (LOCAL, '            base_url="https://api.together.xyz/v1",\n'),
        ('server_type="openai",\n            health_check=False,', 'server_type="sglang",'),
    ),
    many_signals(
        "HE106",
        "the address is a default of the environment",
        (LOCAL, '            base_url=os.environ.get("RENAME_ENV_URL", "https://api.openai.com/v1"),\n'),
        ("health_check=False,", "health_check=True,"),
    ),
    ledger_books(
        "HE106",
        "turned on for all servers afterwards",
        before("        return settings, servers", "        for server in servers:\n            server.health_check = True\n"),
    ),
    # ------------------------------------------------------------------ HE108
    ledger_books("HE108", "none are named", ('enabled_toolsets=["terminal", "file"], ', "")),
    graded_letters(
        "HE108",
        "a misspelt toolset",
        ('enabled_toolsets=["file"]', 'enabled_toolsets=["files"]'),
        follow_up="HE511 HE701 HE705",
    ),
    capitals_exam(
        "HE108",
        "only the hint",
        ('enabled_toolsets=["terminal", "file"], ', ""),
        after("env_config_cls = ExamConfig", '    default_toolsets = ["terminal", "file"]\n'),
    ),
    ledger_books(
        "HE108",
        "the name of a tool",
        ('enabled_toolsets=["terminal", "file"]', 'enabled_toolsets=["terminal", "read_file"]'),
        follow_up="HE511 HE701 HE705",
    ),
    many_signals(
        "HE108",
        "a distribution that nobody defined",
        ('enabled_toolsets=["terminal"]', 'distribution="shell_only"'),
        follow_up="HE511 HE701 HE705",
    ),
)

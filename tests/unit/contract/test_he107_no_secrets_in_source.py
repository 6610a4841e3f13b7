"""HE107: keys come from the environment."""

from __future__ import annotations

import pytest

from pytest_hermes_env.redaction.key_shapes import KEY_PREFIXES

from .rule_cases import broken, check, sound

RANDOM = "q7Rz2LmX9vKc4TnB8wYd"


def key(prefix: str, length: int = 40) -> str:
    """Return a text in the shape of a key; put together here, so that this file holds none."""
    return prefix + (RANDOM * 5)[:length]


def env(line: str) -> str:
    """Return an environment with a line in config_init."""
    return f"import os\n\nclass Env(HermesAgentBaseEnv):\n    @classmethod\n    def config_init(cls):\n        {line}\n"


SHAPES = {
    **{key(prefix.prefix, 40): f"{prefix.kind.replace('-', ' ')}" for prefix in KEY_PREFIXES if "test" not in prefix.prefix},
    key("AKIA", 16).upper(): "aws key",
    key("AIza", 35): "google key",
    "AccountKey=" + key("", 60): "azure key",
    "-----BEGIN PRIVATE KEY-----": "private key",
}
SECRET = "is set to a string that looks like a real secret (q7R…, 20 characters)"

CASES = (
    *(
        broken(
            f"{what}: {text[:12]}",
            env(f'servers = [APIServerConfig(api_key="{text}")]  # <- here'),
            f"this string looks like {'an' if what[0] in 'aeiou' else 'a'} {what}",
        )
        for text, what in SHAPES.items()
    ),
    broken(
        "in a header",
        env(f'headers = {{"Authorization": f"Bearer {key("sk-")}"}}  # <- here'),
        "this string looks like an api key",
    ),
    broken(
        "as a default of the environment",
        env(f'k = os.environ.get("X", "{key("sk-or-v1-")}")  # <- here'),
        "this string looks like an api key",
    ),
    broken(
        "any random text that is called a key",
        env(f'server = APIServerConfig(api_key="{RANDOM}")  # <- here'),
        f"api_key {SECRET}",
    ),
    broken("a variable", env(f'os.environ["WANDB_API_KEY"] = "{RANDOM}"  # <- here'), f"WANDB_API_KEY {SECRET}"),
    broken(
        "a default parameter",
        f'class Env(HermesAgentBaseEnv):\n    def ask(self, password="{RANDOM}"): ...  # <- here\n',
        f"password {SECRET}",
    ),
    broken(
        "a constant of the module",
        f'API_KEY = "{RANDOM}"  # <- here\n\nclass Env(HermesAgentBaseEnv): ...\n',
        f"API_KEY {SECRET}",
    ),
    *(
        sound(f"a placeholder: {text!r}", env(f'server = APIServerConfig(api_key="{text}")'))
        for text in (
            "",
            "x",
            "none",
            "dummy",
            "EMPTY",
            "not-needed",
            "sk-your-key-here-1234567890",
            "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
            "<your key>",
        )
    ),
    sound("from the environment", env('server = APIServerConfig(api_key=os.environ["OPENROUTER_API_KEY"])')),
    sound("from the environment, with a default", env('k = os.getenv("OPENAI_API_KEY", "") or os.environ.get("KEY", "none")')),
    sound(
        "words, hashes and names", env('model, rev = "sk-learn-text-classification-base", "9f86d081884c7d659a2feaa0c55ad015"')
    ),
    sound("a name of a variable", env('api_key_env = "OPENROUTER_API_KEY"; token = "<|im_end|>"')),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_keys_come_from_the_environment(judge, case):
    check(judge, "HE107", case)

"""HE201: a dataset that cannot be loaded has a fallback."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound


def env(body: str, more: str = "") -> str:
    """Return an environment with this body of setup."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"from datasets import load_dataset\nimport requests\n{more}\nclass Env(HermesAgentBaseEnv):\n    async def setup(self):\n{lines}"


FAILS = "load_dataset() fails without a network, and nothing catches the error"

CASES = (
    broken("unprotected", env('self.rows = load_dataset("squad")  # <- here'), FAILS),
    broken("under a condition", env('if self.config.dataset_name:\n    self.rows = load_dataset("squad")  # <- here'), FAILS),
    broken("in a thread", env('self.rows = await asyncio.to_thread(load_dataset, "squad")  # <- here'), FAILS),
    broken(
        "requests",
        env('self.rows = requests.get("http://x").json()  # <- here'),
        "get() fails without a network, and nothing catches the error",
    ),
    broken(
        "caught and raised again",
        env('try:\n    self.rows = load_dataset("squad")  # <- here\nexcept Exception:\n    logger.error("no")\n    raise'),
        FAILS,
    ),
    broken(
        "another exception is caught",
        env('try:\n    self.rows = load_dataset("squad")  # <- here\nexcept KeyError:\n    self.rows = []'),
        FAILS,
    ),
    broken("in a helper", env("self.rows = rows()", 'def rows():\n    return list(load_dataset("squad"))  # <- here\n'), FAILS),
    sound("a fallback", env('try:\n    self.rows = load_dataset("squad")\nexcept Exception:\n    self.rows = [1]')),
    sound(
        "a fallback around a helper",
        env(
            "try:\n    self.rows = rows()\nexcept (OSError, ValueError):\n    self.rows = [1]",
            'def rows():\n    return load_dataset("squad")\n',
        ),
    ),
    sound("suppressed", env('self.rows = [1]\nwith contextlib.suppress(Exception):\n    self.rows = load_dataset("squad")')),
    sound("files of this machine", env('self.rows = load_dataset("json", data_files="rows.jsonl")')),
    sound("built-in items", env("self.rows = [1, 2]")),
    open_("code that cannot be read", env("from company import hub\nself.rows = hub.download_rows()")),
    open_("no setup", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_setup_fetches_has_a_fallback(judge, case):
    check(judge, "HE201", case)

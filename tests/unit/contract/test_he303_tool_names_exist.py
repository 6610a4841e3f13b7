"""HE303: names that a helper collects are followed to where they are compared."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, other, sound


def env(counting: str, body: str) -> str:
    """Return an environment whose helper counts or collects, and the body of its reward."""
    return (
        "import collections\nfrom collections import defaultdict\n\nNAMES = ('view_file', 'terminal')\n\nclass Env(HermesAgentBaseEnv):\n"
        "    @staticmethod\n    def called(messages):\n"
        + "".join(f"        {line}\n" for line in counting.splitlines())
        + "\n    async def compute_reward(self, item, result, ctx):\n        calls = self.called(result.messages)\n"
        + f"        {body}\n"
    )


def told(name: str, hint: str) -> str:
    """Return the message."""
    return f"compute_reward looks for a tool {name!r}, which hermes does not have{hint}"


COUNTER = """made = collections.Counter()
for message in messages:
    for one in message.get("tool_calls") or []:
        function = one.get("function") if isinstance(one, dict) else None
        if isinstance(function, dict):
            made[str(function.get("name"))] += 1
return made"""
MAPPING = COUNTER.replace("collections.Counter()", "defaultdict(int)")
LIST = COUNTER.replace("collections.Counter()", "[]").replace(
    'made[str(function.get("name"))] += 1', 'made.append(function["name"])'
)

CASES = (
    broken("counted", env(COUNTER, "return 1.0 - (calls['bash'] > 3)  # <- here"), told("bash", "")),
    broken("in a mapping", env(MAPPING, "return 1.0 - (calls['bash'] > 3)  # <- here"), told("bash", "")),
    broken("copied", env(LIST, "return float('bash' in list(calls))  # <- here"), told("bash", "")),
    broken(
        "copied under another name",
        env(LIST.replace("return made", "kept = list(made)\nreturn kept"), "return float('bash' in calls)  # <- here"),
        told("bash", ""),
    ),
    broken(
        "in a list",
        env(LIST, "return float(any(name in NAMES for name in calls[1:]))  # <- here"),
        told("view_file", "; nearest: 'file'"),
    ),
    sound("a tool of hermes", env(COUNTER, "return 1.0 - (calls['terminal'] > 3)")),
    other(
        "a mapping of other things",
        env("return collections.Counter(len(one) for one in messages)", "return float(calls['bash'])"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_names_of_tools_are_those_of_hermes(judge, case):
    """Also behind a helper, in a container that it fills."""
    check(judge, "HE303", case)

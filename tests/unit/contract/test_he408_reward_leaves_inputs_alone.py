"""HE408: compute_reward changes neither its item nor its result, also where only good work leads."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, sound


def env(body: str, more: str = "", given: str = "item, result, ctx") -> str:
    """Return an environment with this body of compute_reward, and further methods or functions."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        f"{more}\n\nclass Env(HermesAgentBaseEnv):\n    async def compute_reward(self, {given}):\n{lines}        return 1.0\n"
    )


def changes(what: str, text: str, who: str = "compute_reward") -> str:
    """Return the message about a change."""
    return f"{who} changes {what} that compute_reward received: {text}"


HELPER = (
    "def judged(wants, text):\n    checks = wants\n    if text:\n        checks += [text]  # <- here\n    return len(checks)\n"
)
KEYWORD = "def judged(*, rows):\n    for row in rows:\n        row.pop('gold', None)  # <- here\n"

CASES = (
    broken("an entry is set", env("item['seen'] = 1  # <- here"), changes("the item", "item['seen']")),
    broken("an entry is removed", env("del task['x']  # <- here", given="task, outcome, sandbox"), changes("the item", "task['x']")),
    broken("an inner list is sorted", env("rows = item['rows']\nrows.sort()  # <- here"), changes("the item", "rows.sort()")),
    broken("messages are stripped", env("for message in result.messages:\n    message['content'] = ''  # <- here"), changes("the result", "message['content']")),
    broken("a helper adds to a part", env("judged(item['wants'], 'x')", HELPER), changes("the item", "checks += [text]", "judged")),
    broken("a helper, by keyword", env("judged(rows=item.get('rows'))", KEYWORD), changes("the item", "row.pop('gold', None)", "judged")),
    sound("a copy", env("rows = list(item['rows'])\nrows.sort()\nitem = dict(item)\nitem['x'] = 1")),
    sound("a slice", env("rows = item['rows'][:]\nrows.append(1)")),
    sound("a sum that begins with a number of the item", env("total = item['points']\ntotal += 1\nself.total += item['points']")),
    sound("a name that is sometimes another", env("rows = item['rows'] if item['rows'] else []\nrows.append(1)")),
    sound("buffers of its own", env("self.rows.append(item['rows'])\nself.rows[-1] = 1")),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_inputs_are_left_alone(judge, case):
    check(judge, "HE408", case)

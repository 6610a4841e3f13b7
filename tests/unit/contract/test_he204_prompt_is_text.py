"""HE204: format_prompt gives a text and leaves the item alone."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, open_, sound


def env(body: str, more: str = "") -> str:
    """Return an environment with this body of format_prompt."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"class Env(HermesAgentBaseEnv):\n    def format_prompt(self, item):\n{lines}{more}"


CHANGED = "format_prompt changes the item"

CASES = (
    broken(
        "None",
        env("if item:\n    return item['q']\nreturn None  # <- here"),
        "format_prompt must return a string, but returns None",
    ),
    broken(
        "nothing",
        "class Env(HermesAgentBaseEnv):\n    def format_prompt(self, item):  # <- here\n        f'{item}'\n",
        "format_prompt returns nothing; the prompt would be None",
    ),
    broken("empty", env('return ""  # <- here'), "format_prompt returns an empty string"),
    broken(
        "messages",
        env('return [{"role": "user", "content": item["q"]}]  # <- here'),
        "format_prompt must return a string, but returns a list",
    ),
    broken("a dict", env('return {"q": item}  # <- here'), "format_prompt must return a string, but returns a dict"),
    broken(
        "a tuple behind a name",
        env("pair = (item, 1)  # <- here\nreturn pair"),
        "format_prompt must return a string, but returns a tuple",
    ),
    broken("a number", env("return 3  # <- here"), "format_prompt must return a string, but returns 3"),
    broken("an entry is set", env('item["seen"] = True  # <- here\nreturn item["q"]'), CHANGED),
    broken("an entry is taken out, by another name", env('row = item\nreturn row.pop("q")  # <- here'), CHANGED),
    broken(
        "a part is changed", env('item["hints"].append("x")  # <- here\ndel item["a"]  # <- here\nreturn "x"'), CHANGED, CHANGED
    ),
    broken(
        "in a helper",
        env("self._mark(item)\nreturn item['q']", "    def _mark(self, row):\n        row['seen'] = 1  # <- here\n"),
        CHANGED,
    ),
    sound("an entry", env("return item['q']")),
    sound("put together", env("text = f\"{item['q']}\"\ntext += '\\n'\nreturn text.strip() or 'x'")),
    sound("on a copy", env("item = dict(item)\nitem['q'] = item['q'].strip()\nreturn item['q']")),
    sound(
        "other things are changed", env("parts = []\nparts.append(item['q'])\nself.seen[item['q']] = 1\nreturn ' '.join(parts)")
    ),
    sound(
        "inherited",
        "class Parent(HermesAgentBaseEnv):\n    def format_prompt(self, item):\n        return str(item)\n\nclass Env(Parent): ...\n",
    ),
    open_("none", "class Env(HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_prompt_is_text(judge, case):
    check(judge, "HE204", case)

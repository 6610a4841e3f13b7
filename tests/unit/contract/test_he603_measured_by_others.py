"""HE603: a rollout is measured by what its own item says, not by what other rollouts did."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, sound


def env(body: str, more: str = "", before: str = "") -> str:
    """Return an environment with this body of compute_reward."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        f"import statistics\n{before}\nclass Env(HermesAgentBaseEnv):\n    async def setup(self):\n        self.best = {{}}\n"
        f"        self.known = []\n        self.mean = 0.0\n\n{more}\n"
        f"    async def compute_reward(self, item, result, ctx):\n        score = float(len(ctx.read_file('a.txt')['content']))\n{lines}"
    )


def told(place: str) -> str:
    """Return the message."""
    return f"compute_reward measures a rollout by what other rollouts left in {place}: the same work earns another reward later"


HELPER = """    def record(self, key, value):
        self.best[key] = max(value, self.best.get(key, 1.0))  # <- here
        return self.best[key]
"""

CASES = (
    broken(
        "the best so far",
        env(
            "self.best[item['id']] = max(score, self.best.get(item['id'], 1.0))  # <- here\nreturn score / self.best[item['id']]"
        ),
        told("self.best"),
    ),
    broken(
        "the best so far, under a condition",
        env(
            "best = self.best.setdefault(item['id'], score)\nif score > best:\n    best = self.best[item['id']] = score  # <- here\nreturn score / best"
        ),
        told("self.best"),
    ),
    broken("in a helper", env("best = self.record(item['id'], score)\nreturn score / best", HELPER), told("self.best")),
    broken(
        "a running mean",
        env("self.mean = 0.9 * self.mean + 0.1 * score  # <- here\nreturn score - self.mean"),
        told("self.mean"),
    ),
    broken(
        "the rewards until now",
        env("if not score:\n    return statistics.mean(self.known)\nself.known.append(score)  # <- here\nreturn score"),
        told("self.known"),
    ),
    broken(
        "a list of the file",
        env("SEEN.append(score)  # <- here\nreturn score / max(SEEN)", before="SEEN = []\n"),
        told("SEEN"),
    ),
    broken(
        "a list of the class",
        env("Env.SEEN.append(score)  # <- here\nreturn score / max(Env.SEEN)", "    SEEN = []\n"),
        told("Env.SEEN"),
    ),
    broken(
        "its item, read after an await",
        env(
            "self.item = item\nreturn await self.asked(score)",
            "    async def asked(self, score):\n        await asyncio.sleep(0)\n        return score * self.item['weight']  # <- here\n",
        ),
        "compute_reward keeps its item in self.item, and asked reads it after an await: another rollout may have set it by then",
    ),
    sound(
        "a series of metrics",
        env("self.known.append(score)\nself.best['all'] = max(self.best.get('all', 0), score)\nreturn score"),
    ),
    sound(
        "a memory of texts",
        env(
            "text = ctx.read_file('a.txt')['content']\nif text not in self.best:\n    self.best[text] = score\nreturn self.best[text]"
        ),
    ),
    sound(
        "kept by the rollout's own id",
        env("self.best[ctx.task_id] = max(score, self.best.get(ctx.task_id, 0))\nreturn self.best[ctx.task_id]"),
    ),
    sound("a sum that begins anew", env("self.known = []\nself.known.append(score)\nreturn sum(self.known)")),
    sound("what the item says", env("best = self.best.setdefault(item['id'], max(item['values']))\nreturn score / best")),
    sound("a counter", env("self.mean += 1\nreturn score if self.mean > 3 else score")),
    sound("a bound of setup", env("return score / max(self.best.values())")),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rewards_are_measured_by_the_item(judge, case):
    """The finding is at the line that keeps what other rollouts are measured by."""
    check(judge, "HE603", case)

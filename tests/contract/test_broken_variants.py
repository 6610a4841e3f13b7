"""TerminalTestEnv keeps the contract; broken variants of it each break exactly one law, at the right line."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hermes_env.contract.engine import ClassContract, RuleResult
from pytest_hermes_env.contract.rule import Outcome
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.layer import find_class

GOOD = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
MARK = "# <- here"
OF_TOKENS = ("HE503", "HE504", "HE505")
"""Rules that need sampled tokens, which chat mode does not have."""
ELSEWHERE = dict.fromkeys(("HE303", "HE406", "HE407", "HE409"), Outcome.NOT_APPLICABLE)
"""What only other environments show."""


LOOP = """\
            agent = HermesAgentLoop(
                server=self.server,
                tool_schemas=schemas,
                valid_tool_names=names,
                max_turns=self.config.max_agent_turns,
                task_id=ctx.task_id,
                temperature=0.0,
                max_tokens=self.config.max_token_length,
                extra_body=self.config.extra_body,
                budget_config=self.config.build_budget_config(),
            )
            result = await agent.run(messages)
"""
"""The part of TerminalTestEnv that runs the agent in evaluation."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A breakage: ``old`` becomes ``new``; the expected line ends with the mark."""

    rule: str
    old: str
    new: str


VARIANTS = (
    Variant(
        rule="HE101",
        old="class TerminalTestEnv(HermesAgentBaseEnv):\n",
        new=f"class TerminalTestEnv(HermesAgentBaseEnv):  {MARK}\n    async def assess(self): ...\n",
    ),
    Variant(rule="HE105", old="        return config, [server]\n", new=f"        return config, server  {MARK}\n"),
    Variant(
        rule="HE301",
        old='        found = ctx.read_file(item["path"]).get("content", "")\n',
        new=f'        found = ctx.read_file(item["path"]).get("content", "")\n        self.last = result.final_response  {MARK}\n',
    ),
    Variant(
        rule="HE401",
        old='        return self.config.partial_credit if item["content"] in found else 0.0\n',
        new=(
            '        if item["content"] in found:\n            return self.config.partial_credit\n'
            f"        return None  {MARK}\n"
        ),
    ),
    Variant(
        rule="HE501",
        old="    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:\n",
        new=f"    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:  {MARK}\n",
    ),
    Variant(
        rule="HE601",
        old="        ctx = ToolContext(str(uuid.uuid4()))\n",
        new=f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n",
    ),
    Variant(
        rule="HE701",
        old=LOOP,
        new=(
            "            answer = await self.server.chat_completion(messages=messages, temperature=0.0)"
            f"  {MARK}\n"
            '            result = AgentResult(messages=[*messages, {"role": "assistant", "content": str(answer)}])\n'
        ),
    ),
    Variant(
        rule="HE702",
        old="            return result, await self.compute_reward(item, result, ctx)\n",
        new=(
            "            score = await self.compute_reward(item, result, ctx)\n"
            f"            self.reward_buffer.append(score)  {MARK}\n"
            "            return result, score\n"
        ),
    ),
    Variant(
        rule="HE801",
        old="        await super().wandb_log(metrics)\n",
        new=f"        super().wandb_log(metrics)  {MARK}\n",
    ),
    Variant(
        rule="HE802",
        old="        metrics = {} if wandb_metrics is None else wandb_metrics\n",
        new=f"        metrics = wandb_metrics\n        metrics['train/buffered'] = len(self.reward_buffer)  {MARK}\n",
    ),
)

ALSO = {
    "HE101": [
        ("async def evaluate(self, *args: Any, **kwargs: Any)", "async def evaluate_all(self, *args: Any, **kwargs: Any)")
    ],
    "HE501": [
        (
            "        self.reward_buffer.append(scored",
            '        scored["masks"] = [-100, *scored["masks"][:-1]]\n        self.reward_buffer.append(scored',
        )
    ],
    "HE601": [
        (
            "            return result, await self.compute_reward(item, result, ctx)\n        finally:\n            ctx.cleanup()\n",
            "            score = await self.compute_reward(item, result, ctx)\n            ctx.cleanup()\n            return result, score\n"
            "        finally:\n            logger.info('done')\n",
        )
    ],
}
"""Further replacements that a breakage needs."""


def good_source() -> str:
    """Return the text of TerminalTestEnv's file."""
    (good,) = find_class(GOOD)
    return Path(inspect.getfile(good)).read_text(encoding="utf-8")


def judged(path: Path) -> dict[str, RuleResult]:
    """Return every rule's result on the environment in ``path``."""
    (env_class,) = find_class(str(path))
    contract = ClassContract(env_class, sandbox="fake", timeout_s=30)
    return {rule.id: contract.result(rule) for rule in ALL_RULES}


def test_the_good_environment_keeps_every_law_and_exercises_it() -> None:
    """Every rule of the contract passes on TerminalTestEnv, and none because it saw nothing; token mode has rules of its own."""
    (good,) = find_class(GOOD)
    contract = ClassContract(good, sandbox="fake", timeout_s=30)

    outcomes = {rule.id: contract.result(rule).outcome for rule in ALL_RULES}

    expected = {rule.id: Outcome.PASSED for rule in ALL_RULES} | dict.fromkeys(OF_TOKENS, Outcome.NOT_APPLICABLE) | ELSEWHERE
    assert outcomes == expected


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.rule)
def test_a_broken_variant_fails_its_law_and_no_other(variant: Variant, tmp_path: Path) -> None:
    """A breakage is found by its own rule, at its own line, and disturbs no other rule."""
    source = good_source()
    for old, new in ((variant.old, variant.new), *ALSO.get(variant.rule, [])):
        assert source.count(old) == 1, f"{old!r} is not in TerminalTestEnv once"
        source = source.replace(old, new)
    path = tmp_path / f"broken_{variant.rule.lower()}.py"
    path.write_text(source, encoding="utf-8")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if text.endswith(MARK))

    results = judged(path)

    failing = {rule: [finding.line for finding in result.findings] for rule, result in results.items() if result.findings}
    assert failing == {variant.rule: [line]}


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A breakage or a good variant that once misled the harness; ``line`` is where the mark stands, if anywhere."""

    name: str
    replace: tuple[tuple[str, str], ...]
    failing: str = ""
    follow_up: str = ""
    """A rule that fails, too, because the breakage leaves nothing for it to see."""


ODD = (
    Odd(
        name="wandb_log without a default is no reason for other rules to fail",
        replace=(
            (
                "    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:\n",
                f"    async def wandb_log(self, wandb_metrics: dict[str, Any]) -> None:  {MARK}\n",
            ),
        ),
        failing="HE802",
    ),
    Odd(
        name="a method that is None is missing",
        replace=(
            ("    def format_prompt(self, item: Task) -> str:\n", "    def prompt_of(self, item: Task) -> str:\n"),
            ("class TerminalTestEnv(HermesAgentBaseEnv):\n", f"class TerminalTestEnv(HermesAgentBaseEnv):  {MARK}\n"),
            ('    name = "terminal-test"\n', '    name = "terminal-test"\n    format_prompt = None\n'),
        ),
        failing="HE101",
        follow_up="HE701",
    ),
    Odd(
        name="a task that nobody awaits is not awaited",
        replace=(
            (
                "        await super().wandb_log(metrics)\n",
                f"        asyncio.create_task(super().wandb_log(metrics))  {MARK}\n",
            ),
        ),
        failing="HE801",
    ),
    Odd(
        name="masks that are broken in the group are shown where the group is made",
        replace=(
            (
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
                f"    async def collect_trajectories(self, item: Task):  {MARK}\n"
                "        group, backlog = await super().collect_trajectories(item)\n"
                '        group["masks"] = [masks[1:] for masks in group["masks"]]\n'
                "        return group, backlog\n\n"
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
            ),
        ),
        failing="HE501",
    ),
    Odd(
        name="gather releases its sandboxes a moment after a cancellation",
        replace=(
            (
                "        async with asyncio.TaskGroup() as group:  # waits for every item, also when the evaluation is cancelled\n"
                "            tasks = [group.create_task(self.evaluate_item(item)) for item in self.eval_items]\n"
                "        samples = [task.result() for task in tasks]\n",
                "        samples = await asyncio.gather(*(self.evaluate_item(item) for item in self.eval_items))\n",
            ),
        ),
    ),
    Odd(
        name="a context that is opened only to be cleaned up is clean",
        replace=(
            (
                "        ctx = ToolContext(str(uuid.uuid4()))\n        try:\n",
                "        task_id, ctx = str(uuid.uuid4()), None\n        try:\n            ctx = ToolContext(task_id)\n",
            ),
            ("            ctx.cleanup()\n", "            (ctx or ToolContext(task_id)).cleanup()\n"),
        ),
    ),
)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name.replace(" ", "-"))
def test_what_once_misled_the_harness(odd: Odd, tmp_path: Path) -> None:
    """Each variant fails the rule that it breaks, at its line, or none."""
    source = good_source()
    for old, new in odd.replace:
        assert source.count(old) == 1, f"{old!r} is not in TerminalTestEnv once"
        source = source.replace(old, new)
    path = tmp_path / f"odd_{ODD.index(odd)}.py"
    path.write_text(source, encoding="utf-8")
    lines = [number for number, text in enumerate(source.splitlines(), 1) if text.endswith(MARK)]

    results = judged(path)

    failing = {rule: [finding.line for finding in result.findings] for rule, result in results.items() if result.findings}
    failing.pop(odd.follow_up, None)
    assert failing == ({odd.failing: lines} if odd.failing else {})

"""HE1: what is wrong with the class and its configuration."""

from __future__ import annotations

from . import of_config_init, of_files
from .mutant import Mutant

BASE = "signals_base"
OLD_LIMIT = '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n'

MUTANTS = (
    # ------------------------------------------------------------------ HE101
    Mutant(
        rule="HE101",
        name="format_prompt misspelt",
        env="ledger_books",
        changes=(
            ("    def format_prompt(self,", "    def format_promt(self,"),
            ("self.format_prompt(book)", "self.format_promt(book)"),
        ),
        follow_up="HE206",
    ),
    Mutant(
        rule="HE101",
        name="evaluate under another name",
        env="graded_letters",
        changes=(("    async def evaluate(self, *args", "    async def evaluation(self, *args"),),
    ),
    Mutant(
        rule="HE101",
        name="set_up",
        env="many_signals",
        file=BASE,
        changes=(("    async def setup(self)", "    async def set_up(self)"),),
    ),
    Mutant(
        rule="HE101",
        name="a benchmark without get_next_item",
        env="capitals_exam",
        changes=(
            (
                '    async def get_next_item(self) -> None:\n        """Return nothing: this is a benchmark."""\n        return None\n\n',
                "",
            ),
        ),
    ),
    Mutant(
        rule="HE101",
        name="the reward of another layer",
        env="many_signals",
        file=BASE,
        changes=(
            ("    async def compute_reward(self,", "    async def reward(self,"),
            ("await self.compute_reward(item", "await self.reward(item"),
        ),
    ),
    Mutant(
        rule="HE101",
        name="a method outside of the class",
        env="graded_letters",
        changes=(
            (
                "    async def get_next_item(self) -> dict[str, Any]:\n"
                '        """Return the next letter to write."""\n'
                "        self.position = (self.position + 1) % len(self.training)\n"
                "        return self.training[self.position]\n\n",
                "",
            ),
            (
                "def last_answer(",
                "async def get_next_item(self):\n"
                "    self.position = (self.position + 1) % len(self.training)\n"
                "    return self.training[self.position]\n\n\n"
                "def last_answer(",
            ),
        ),
    ),
    # ------------------------------------------------------------------ HE102
    Mutant(
        rule="HE102",
        name="a reward without async",
        env="ledger_books",
        changes=(("    async def compute_reward(", "    def compute_reward("),),
    ),
    Mutant(
        rule="HE102",
        name="a reward that yields",
        env="graded_letters",
        changes=(
            (
                "        reward, _ = await self.graded(item, result)\n        return reward\n",
                "        reward, _ = await self.graded(item, result)\n        yield reward\n",
            ),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE102",
        name="an async prompt",
        env="graded_letters",
        changes=(
            ("    def format_prompt(", "    async def format_prompt("),
            ('"content": self.format_prompt(item)}', '"content": await self.format_prompt(item)}'),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE102",
        name="evaluate that wants the step",
        env="many_signals",
        file=BASE,
        changes=(("    async def evaluate(self, *args", "    async def evaluate(self, step: int, *args"),),
    ),
    Mutant(
        rule="HE102",
        name="setup without async",
        env="capitals_exam",
        changes=(("    async def setup(", "    def setup("),),
    ),
    Mutant(
        rule="HE102",
        name="get_next_item without async",
        env="ledger_books",
        changes=(("    async def get_next_item(", "    def get_next_item("),),
    ),
    Mutant(
        rule="HE102",
        name="get_next_item as an async generator",
        env="many_signals",
        file=BASE,
        changes=(("        return self.items[self.turn - 1]\n", "        yield self.items[self.turn - 1]\n"),),
    ),
    # ------------------------------------------------------------------ HE103
    Mutant(
        rule="HE103",
        name="none",
        env="ledger_books",
        changes=(('    name = "ledger-books"\n', ""),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE103",
        name="that of the base",
        env="graded_letters",
        changes=(('    name = "graded-letters"\n', '    name = "hermes-agent"\n'),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE103",
        name="empty",
        env="many_signals",
        changes=(('    name = "many-signals"\n', '    name = ""\n'),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE103",
        name="to be filled in",
        env="capitals_exam",
        changes=(('    name = "capitals-exam"\n', "    name = None\n"),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE103",
        name="in another attribute",
        env="ledger_books",
        changes=(('    name = "ledger-books"\n', '    env_name = "ledger-books"\n'),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE103",
        name="a name at the level of the module",
        env="many_signals",
        changes=(('    name = "many-signals"\n\n', ""), ("PAIRS = (", 'name = "many-signals"\nPAIRS = (')),
    ),
    # ------------------------------------------------------------------ HE104
    Mutant(
        rule="HE104",
        name="env_config_cls is forgotten",
        env="ledger_books",
        changes=(("    env_config_cls = LedgerConfig\n", ""),),
    ),
    Mutant(
        rule="HE104",
        name="that of the layer",
        env="graded_letters",
        changes=(("    env_config_cls = LetterConfig\n", "    env_config_cls = BaseConfig\n"),),
    ),
    Mutant(
        rule="HE104",
        name="a plain default",
        env="many_signals",
        file=BASE,
        changes=(
            (
                '    eval_items: int = Field(default=2, ge=1, description="Items kept for evaluation.")\n',
                "    eval_items: int = 2\n",
            ),
        ),
    ),
    Mutant(
        rule="HE104",
        name="that of Atropos",
        env="capitals_exam",
        changes=(
            ("from pydantic import Field\n", "from atroposlib.envs.base import BaseEnvConfig\nfrom pydantic import Field\n"),
            ("    env_config_cls = ExamConfig\n", "    env_config_cls = BaseEnvConfig\n"),
        ),
    ),
    Mutant(
        rule="HE104",
        name="no description",
        env="graded_letters",
        changes=(
            (
                'split_seed: int = Field(default=11, description="Seed of the shuffle before the split.")',
                "split_seed: int = Field(default=11)",
            ),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE104",
        name="an empty description",
        env="capitals_exam",
        changes=(('description="How many questions are asked."', 'description=""'),),
        is_only_read=True,
    ),
    # ------------------------------------------------------------------ HE112
    Mutant(
        rule="HE112",
        name="a setting for later",
        env="capitals_exam",
        changes=(
            (
                OLD_LIMIT,
                OLD_LIMIT + '    retries: int = Field(default=2, description="How often a question is asked again.")\n',
            ),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE112",
        name="a seed that stands in the code, too",
        env="graded_letters",
        changes=(("random.Random(self.config.split_seed)", "random.Random(11)"),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE112",
        name="a weight that was written out",
        env="many_signals",
        file=BASE,
        changes=(("(self.config.tool_weight, float", "(0.2, float"),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE112",
        name="a number that stands in the code",
        env="ledger_books",
        changes=(("min(self.config.held_out, len(BOOKS) - 1)", "min(3, len(BOOKS) - 1)"),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE112",
        name="a reward as a number",
        env="ledger_books",
        changes=(("        return self.config.near_reward if", "        return 0.3 if"),),
        is_only_read=True,
    ),
    *of_config_init.MUTANTS,
    *of_files.MUTANTS,
)

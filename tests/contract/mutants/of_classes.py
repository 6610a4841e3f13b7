"""HE1: what is wrong with the class and its configuration."""

from __future__ import annotations

from . import of_config_init, of_files
from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

BASE = "signals_base"
OLD_LIMIT = '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n'

MUTANTS = (
    # ------------------------------------------------------------------ HE101
    ledger_books(
        rule="HE101",
        name="format_prompt misspelt",
        changes=(
            ("    def format_prompt(self,", "    def format_promt(self,"),
            ("self.format_prompt(book)", "self.format_promt(book)"),
        ),
        follow_up="HE206",
    ),
    graded_letters(
        rule="HE101",
        name="evaluate under another name",
        changes=changed("    async def evaluate(self, *args", "    async def evaluation(self, *args"),
    ),
    many_signals(
        rule="HE101",
        name="set_up",
        file=BASE,
        changes=changed("    async def setup(self)", "    async def set_up(self)"),
    ),
    capitals_exam(
        rule="HE101",
        name="a benchmark without get_next_item",
        changes=changed(
            '    async def get_next_item(self) -> None:\n        """Return nothing: this is a benchmark."""\n        return None\n\n',
            "",
        ),
    ),
    many_signals(
        rule="HE101",
        name="the reward of another layer",
        file=BASE,
        changes=(
            ("    async def compute_reward(self,", "    async def reward(self,"),
            ("await self.compute_reward(item", "await self.reward(item"),
        ),
    ),
    graded_letters(
        rule="HE101",
        name="a method outside of the class",
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
    ledger_books(
        rule="HE102",
        name="a reward without async",
        changes=changed("    async def compute_reward(", "    def compute_reward("),
    ),
    graded_letters(
        rule="HE102",
        name="a reward that yields",
        changes=changed(
            "        reward, _ = await self.graded(item, result)\n        return reward\n",
            "        reward, _ = await self.graded(item, result)\n        yield reward\n",
        ),
        is_only_read=True,
    ),
    graded_letters(
        rule="HE102",
        name="an async prompt",
        changes=(
            ("    def format_prompt(", "    async def format_prompt("),
            ('"content": self.format_prompt(item)}', '"content": await self.format_prompt(item)}'),
        ),
        is_only_read=True,
    ),
    many_signals(
        rule="HE102",
        name="evaluate that wants the step",
        file=BASE,
        changes=changed("    async def evaluate(self, *args", "    async def evaluate(self, step: int, *args"),
    ),
    capitals_exam(
        rule="HE102",
        name="setup without async",
        changes=changed("    async def setup(", "    def setup("),
    ),
    ledger_books(
        rule="HE102",
        name="get_next_item without async",
        changes=changed("    async def get_next_item(", "    def get_next_item("),
    ),
    many_signals(
        rule="HE102",
        name="get_next_item as an async generator",
        file=BASE,
        changes=changed("        return self.items[self.turn - 1]\n", "        yield self.items[self.turn - 1]\n"),
    ),
    # ------------------------------------------------------------------ HE103
    ledger_books(
        rule="HE103",
        name="none",
        changes=changed('    name = "ledger-books"\n', ""),
        is_only_read=True,
    ),
    graded_letters(
        rule="HE103",
        name="that of the base",
        changes=changed('    name = "graded-letters"\n', '    name = "hermes-agent"\n'),
        is_only_read=True,
    ),
    many_signals(
        rule="HE103",
        name="empty",
        changes=changed('    name = "many-signals"\n', '    name = ""\n'),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE103",
        name="to be filled in",
        changes=changed('    name = "capitals-exam"\n', "    name = None\n"),
        is_only_read=True,
    ),
    ledger_books(
        rule="HE103",
        name="in another attribute",
        changes=changed('    name = "ledger-books"\n', '    env_name = "ledger-books"\n'),
        is_only_read=True,
    ),
    many_signals(
        rule="HE103",
        name="a name at the level of the module",
        changes=(('    name = "many-signals"\n\n', ""), ("PAIRS = (", 'name = "many-signals"\nPAIRS = (')),
    ),
    # ------------------------------------------------------------------ HE104
    ledger_books(
        rule="HE104",
        name="env_config_cls is forgotten",
        changes=changed("    env_config_cls = LedgerConfig\n", ""),
    ),
    graded_letters(
        rule="HE104",
        name="that of the layer",
        changes=changed("    env_config_cls = LetterConfig\n", "    env_config_cls = BaseConfig\n"),
    ),
    many_signals(
        rule="HE104",
        name="a plain default",
        file=BASE,
        changes=changed(
            '    eval_items: int = Field(default=2, ge=1, description="Items kept for evaluation.")\n',
            "    eval_items: int = 2\n",
        ),
    ),
    capitals_exam(
        rule="HE104",
        name="that of Atropos",
        changes=(
            ("from pydantic import Field\n", "from atroposlib.envs.base import BaseEnvConfig\nfrom pydantic import Field\n"),
            ("    env_config_cls = ExamConfig\n", "    env_config_cls = BaseEnvConfig\n"),
        ),
    ),
    graded_letters(
        rule="HE104",
        name="no description",
        changes=changed(
            'split_seed: int = Field(default=11, description="Seed of the shuffle before the split.")',
            "split_seed: int = Field(default=11)",
        ),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE104",
        name="an empty description",
        changes=changed('description="How many questions are asked."', 'description=""'),
        is_only_read=True,
    ),
    # ------------------------------------------------------------------ HE112
    capitals_exam(
        rule="HE112",
        name="a setting for later",
        changes=changed(
            OLD_LIMIT, OLD_LIMIT + '    retries: int = Field(default=2, description="How often a question is asked again.")\n'
        ),
        is_only_read=True,
    ),
    graded_letters(
        rule="HE112",
        name="a seed that stands in the code, too",
        changes=changed("random.Random(self.config.split_seed)", "random.Random(11)"),
        is_only_read=True,
    ),
    many_signals(
        rule="HE112",
        name="a weight that was written out",
        file=BASE,
        changes=changed("(self.config.tool_weight, float", "(0.2, float"),
        is_only_read=True,
    ),
    ledger_books(
        rule="HE112",
        name="a number that stands in the code",
        changes=changed("min(self.config.held_out, len(BOOKS) - 1)", "min(3, len(BOOKS) - 1)"),
        is_only_read=True,
    ),
    ledger_books(
        rule="HE112",
        name="a reward as a number",
        changes=changed("        return self.config.near_reward if", "        return 0.3 if"),
        is_only_read=True,
    ),
    *of_config_init.MUTANTS,
    *of_files.MUTANTS,
)

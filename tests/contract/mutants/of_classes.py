"""HE1: what is wrong with the class and its configuration."""

from __future__ import annotations

from . import of_config_init, of_files
from .mutant import after, before, capitals_exam, graded_letters, ledger_books, many_signals, signals_base

OLD_LIMIT = '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n'

MUTANTS = (
    # ------------------------------------------------------------------ HE101
    ledger_books(
        "HE101",
        "format_prompt misspelt",
        ("def format_prompt(self,", "def format_promt(self,"),
        ("self.format_prompt(book)", "self.format_promt(book)"),
        follow_up="HE206",
    ),
    graded_letters(
        "HE101", "evaluate under another name", ("async def evaluate(self, *args", "async def evaluation(self, *args")
    ),
    signals_base("HE101", "set_up", ("async def setup(self)", "async def set_up(self)")),
    capitals_exam(
        "HE101",
        "a benchmark without get_next_item",
        (
            '    async def get_next_item(self) -> None:\n        """Return nothing: this is a benchmark."""\n        return None\n\n',
            "",
        ),
    ),
    signals_base(
        "HE101",
        "the reward of another layer",
        ("async def compute_reward(self,", "async def reward(self,"),
        ("await self.compute_reward(item", "await self.reward(item"),
    ),
    # ------------------------------------------------------------------ HE102
    ledger_books("HE102", "a reward without async", ("async def compute_reward(", "def compute_reward(")),
    graded_letters(
        "HE102",
        "an async prompt",
        ("def format_prompt(", "async def format_prompt("),
        ('"content": self.format_prompt(item)}', '"content": await self.format_prompt(item)}'),
        follow_up="HE204 HE511",
    ),
    signals_base(
        "HE102", "evaluate that wants the step", ("async def evaluate(self, *args", "async def evaluate(self, step: int, *args")
    ),
    capitals_exam("HE102", "setup without async", ("async def setup(", "def setup(")),
    ledger_books("HE102", "get_next_item without async", ("async def get_next_item(", "def get_next_item(")),
    signals_base(
        "HE102", "get_next_item as an async generator", ("return self.items[self.turn - 1]", "yield self.items[self.turn - 1]")
    ),
    # ------------------------------------------------------------------ HE103
    graded_letters("HE103", "that of the base", ('name = "graded-letters"', 'name = "hermes-agent"')),
    many_signals("HE103", "empty", ('name = "many-signals"', 'name = ""')),
    capitals_exam("HE103", "to be filled in", ('name = "capitals-exam"', "name = None")),
    ledger_books("HE103", "in another attribute", ('name = "ledger-books"', 'env_name = "ledger-books"')),
    many_signals(
        "HE103",
        "a name at the level of the module",
        ('    name = "many-signals"\n\n', ""),
        before("PAIRS = (", 'name = "many-signals"\n'),
    ),
    # ------------------------------------------------------------------ HE104
    ledger_books("HE104", "env_config_cls is forgotten", ("    env_config_cls = LedgerConfig\n", "")),
    graded_letters("HE104", "that of the layer", ("env_config_cls = LetterConfig", "env_config_cls = BaseConfig")),
    signals_base(
        "HE104",
        "a plain default",
        ('eval_items: int = Field(default=2, ge=1, description="Items kept for evaluation.")', "eval_items: int = 2"),
    ),
    capitals_exam(
        "HE104",
        "that of Atropos",
        before("from pydantic import Field", "from atroposlib.envs.base import BaseEnvConfig\n"),
        ("env_config_cls = ExamConfig", "env_config_cls = BaseEnvConfig"),
    ),
    capitals_exam("HE104", "an empty description", ('description="How many questions are asked."', 'description=""')),
    # ------------------------------------------------------------------ HE112
    capitals_exam(
        "HE112",
        "a setting for later",
        after(OLD_LIMIT, '    retries: int = Field(default=2, description="How often a question is asked again.")\n'),
        is_only_read=True,
    ),
    graded_letters(
        "HE112",
        "a seed that stands in the code, too",
        ("random.Random(self.config.split_seed)", "random.Random(11)"),
        is_only_read=True,
    ),
    signals_base(
        "HE112", "a weight that was written out", ("(self.config.tool_weight, float", "(0.2, float"), is_only_read=True
    ),
    ledger_books(
        "HE112",
        "a number that stands in the code",
        ("min(self.config.held_out, len(BOOKS) - 1)", "min(3, len(BOOKS) - 1)"),
        is_only_read=True,
    ),
    ledger_books("HE112", "a reward as a number", ("return self.config.near_reward if", "return 0.3 if"), is_only_read=True),
    *of_config_init.MUTANTS,
    *of_files.MUTANTS,
)

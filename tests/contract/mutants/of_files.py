"""HE107, HE109, HE110, HE111: what is wrong with the file. They are read and never run: importing most of them would do harm."""

from __future__ import annotations

from .mutant import Mutant

OPENROUTER = "sk-or-v1-" + "8f3ac07d51be942c6d1f0b7a" + "e5390c2d84f6a1b7c9d3e5f0"
ANTHROPIC = "sk-ant-api03-" + "Qk7vR2mX9pLw4TzN8sYb" + "H3cJ6dF1gA5e"
HUGGING_FACE = "hf_" + "LqVbNxTzKwRfYpGsHdJc" + "Mu7Ae4Oi92"
GROQ = "gsk_" + "t8Kd93LmPq0XvBz72Rw" + "YhJcNs5Fg1Tu6Ea4"
RANDOM = "9vQz!4mKx7Lp" + "#2RtWb8Ys5Nd"


def _read(rule: str, name: str, env: str, *changes: tuple[str, str], file: str = "") -> Mutant:
    return Mutant(rule=rule, name=name, env=env, changes=changes, file=file, is_only_read=True)


START = 'if __name__ == "__main__":\n'

MUTANTS = (
    # ------------------------------------------------------------------ HE107
    _read(
        "HE107",
        "a key in the server configuration",
        "ledger_books",
        ('os.environ.get("OPENROUTER_API_KEY", "")', repr(OPENROUTER)),
    ),
    _read(
        "HE107",
        "a key as the default",
        "graded_letters",
        ('os.getenv("OPENROUTER_API_KEY")', f'os.getenv("OPENROUTER_API_KEY", "{ANTHROPIC}")'),
    ),
    _read("HE107", "a token of the module", "many_signals", ("PAIRS = (", f'HUB = "{HUGGING_FACE}"\nPAIRS = (')),
    _read(
        "HE107",
        "a header",
        "capitals_exam",
        ("        start = time.time()\n", f'        start, self.headers = time.time(), {{"Authorization": "Bearer {GROQ}"}}\n'),
    ),
    _read(
        "HE107",
        "the default of a setting",
        "ledger_books",
        (
            "    near_reward: float",
            f'    db_password: str = Field(default="{RANDOM}", description="Password of the books.")\n    near_reward: float',
        ),
    ),
    _read(
        "HE107",
        "set for a library",
        "many_signals",
        (
            "        items = self.all_items()\n",
            f'        self.secrets = {{"api_key": "{RANDOM}"}}\n        items = self.all_items()\n',
        ),
        file="signals_base",
    ),
    # ------------------------------------------------------------------ HE109
    _read("HE109", "no block", "ledger_books", (f"\n\n{START}    LedgerEnv.cli()\n", "")),
    _read("HE109", "outside of a block", "graded_letters", (f"{START}    LetterEnv.cli()\n", "LetterEnv.cli()\n")),
    _read("HE109", "the abstract base is started", "many_signals", ("    RenameEnv.cli()\n", "    SignalsEnv.cli()\n")),
    _read("HE109", "a block that prints", "capitals_exam", ("    CapitalsExam.cli()\n", "    print(QUESTIONS)\n")),
    _read("HE109", "main without underscores", "ledger_books", (START, 'if __name__ == "main":\n')),
    _read("HE109", "named and not called", "graded_letters", ("    LetterEnv.cli()\n", "    LetterEnv.cli\n")),
    # ------------------------------------------------------------------ HE110
    _read(
        "HE110",
        "a variable of the environment",
        "ledger_books",
        ("logger = logging", 'os.environ["TERMINAL_ENV"] = "docker"\nlogger = logging'),
    ),
    _read(
        "HE110",
        "a path prelude",
        "graded_letters",
        (
            'log = logging.getLogger("graded-letters")\n',
            'import sys\n\nsys.path.insert(0, os.path.dirname(__file__))\nlog = logging.getLogger("graded-letters")\n',
        ),
    ),
    _read(
        "HE110",
        "a directory for logs",
        "many_signals",
        ("import os\n", "import os\nfrom pathlib import Path\n"),
        ("PAIRS = (", 'OUT = Path("rollouts")\nOUT.mkdir(exist_ok=True)\nPAIRS = ('),
    ),
    _read(
        "HE110",
        "a data set in the body of the class",
        "capitals_exam",
        ("class Attempt(", "from datasets import load_dataset\n\n\nclass Attempt("),
        ('    name = "capitals-exam"\n', '    name = "capitals-exam"\n    rows = load_dataset("capitals", split="test")\n'),
    ),
    _read(
        "HE110",
        "in a function that the import calls",
        "ledger_books",
        (
            "class LedgerConfig(",
            "def prepare() -> None:\n"
            '    """Make sure that Docker is there."""\n'
            "    import subprocess\n\n"
            '    subprocess.run(["docker", "pull", "ubuntu"], check=False)\n\n\n'
            "prepare()\n\n\n"
            "class LedgerConfig(",
        ),
    ),
    _read(
        "HE110",
        "logs in to wandb",
        "many_signals",
        ("@dataclass\nclass Tally:", 'import wandb\n\nwandb.init(project="signals")\n\n\n@dataclass\nclass Tally:'),
        file="signals_base",
    ),
    # ------------------------------------------------------------------ HE111
    _read(
        "HE111",
        "a colon is missing",
        "ledger_books",
        (
            "    def grade(self, written: int | None, expected: int) -> float:\n",
            "    def grade(self, written: int | None, expected: int) -> float\n",
        ),
    ),
    _read(
        "HE111",
        "a bracket in a file that is imported",
        "many_signals",
        (
            '        metrics = {**(wandb_metrics or {}), "train/turns"',
            '        metrics = {**(wandb_metrics or {), "train/turns"',
        ),
        file="signals_base",
    ),
    _read(
        "HE111",
        "marks of a merge",
        "graded_letters",
        (
            "        rows = self.load() or LETTERS\n",
            "<<<<<<< HEAD\n        rows = self.load() or LETTERS\n=======\n        rows = LETTERS\n>>>>>>> letters\n",
        ),
    ),
    _read("HE111", "one blank too many", "capitals_exam", ("        _, capital = item\n", "         _, capital = item\n")),
    _read("HE111", "an open text", "many_signals", ('    name = "many-signals"\n', '    name = "many-signals\n')),
    _read(
        "HE111",
        "a comprehension over nothing",
        "ledger_books",
        ("        samples = []\n", "        samples = [x for x in]\n"),
    ),
)

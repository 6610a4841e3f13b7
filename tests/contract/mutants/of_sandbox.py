"""HE6: what is wrong with sandboxes and isolation."""

from __future__ import annotations

from .mutant import after, before, capitals_exam, graded_letters, ledger_books, signals_base

MUTANTS = (
    ledger_books(
        "HE601",
        "cleans up only after success",
        (
            "return await self.compute_reward(book, result, ctx), result.turns_used\n        finally:\n            ctx.cleanup()",
            "score = await self.compute_reward(book, result, ctx)\n"
            "            ctx.cleanup()\n"
            "            return score, result.turns_used\n"
            "        finally:\n"
            "            logger.debug('done')",
        ),
    ),
    signals_base("HE601", "never cleans up", ("        finally:\n            ctx.cleanup()\n", "")),
    capitals_exam(
        "HE601",
        "cleans up only what raised an exception",
        (
            'return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n        finally:\n            ctx.cleanup()',
            'ctx.cleanup()\n            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")',
        ),
    ),
    graded_letters(
        "HE601",
        "a context manager without finally",
        ("try:\n            yield ctx\n        finally:\n            ctx.cleanup()", "yield ctx\n        ctx.cleanup()"),
    ),
    ledger_books(
        "HE601", "cleans up twice", after("        finally:\n            ctx.cleanup()", "            ctx.cleanup()\n")
    ),
    signals_base(
        "HE601",
        "no context for the rollout of evaluation",
        ("ctx = ToolContext(task_id)\n        try:", "try:"),
        (
            'return {"prompt": prompt, "score": await self.compute_reward(item, result, ctx)}',
            'return {"prompt": prompt, "score": float(result.finished_naturally)}',
        ),
        ("        finally:\n            ctx.cleanup()\n", ""),
    ),
    ledger_books("HE602", "a constant", ("ToolContext(uuid.uuid4().hex)", 'ToolContext("ledger-exam")')),
    capitals_exam("HE602", "the item itself", ("ToolContext(str(uuid.uuid4()))", 'ToolContext("exam-" + item[0].lower())')),
    graded_letters(
        "HE602",
        "a hash of the item",
        ("async with self.workshop() as ctx:", 'async with self.workshop(uuid.uuid5(uuid.NAMESPACE_URL, item["to"])) as ctx:'),
        ("async def workshop(self) -> Any:", "async def workshop(self, name: Any) -> Any:"),
        ("ctx = ToolContext(str(uuid.uuid4()))", "ctx = ToolContext(str(name))"),
    ),
    signals_base(
        "HE602",
        "a uuid per evaluation",
        (
            "start = time.time()\n        samples = [await self.attempt(item)",
            "start, run = time.time(), uuid.uuid4()\n        samples = [await self.attempt(item, str(run))",
        ),
        (
            "async def attempt(self, item: dict[str, str]) -> dict[str, Any]:",
            "async def attempt(self, item: dict[str, str], task_id: str) -> dict[str, Any]:",
        ),
        ('        task_id = f"eval-{uuid.uuid4()}"\n', ""),
    ),
    ledger_books(
        "HE602",
        "a uuid per environment",
        after("self.turned = 0", "        self.desk = uuid.uuid4().hex\n"),
        ("ToolContext(uuid.uuid4().hex)", "ToolContext(self.desk)"),
    ),
    signals_base(
        "HE602",
        "a default that is made once",
        (
            "async def attempt(self, item: dict[str, str]) -> dict[str, Any]:",
            "async def attempt(self, item: dict[str, str], task_id: str = str(uuid.uuid4())) -> dict[str, Any]:",
        ),
        ('        task_id = f"eval-{uuid.uuid4()}"\n', ""),
    ),
    ledger_books(
        "HE603",
        "the item on self",
        after("self.turned = 0", "        self.book = self.books[0]\n"),
        before('        numbers = ", "', "        self.book = item\n"),
        ('sum(item["rows"]))', 'sum(self.book["rows"]))'),
    ),
    signals_base(
        "HE603",
        "the item in a global",
        before("class SignalsEnv(", "CURRENT: dict[str, str] = {}\n\n\n"),
        (
            "right = self.is_right(item, result, ctx)",
            "global CURRENT\n        CURRENT = item\n        right = self.is_right(CURRENT, result, ctx)",
        ),
    ),
    capitals_exam(
        "HE603",
        "the answer in a variable for the next tool",
        after("_, capital = item", '        os.environ["CAPITAL"] = capital\n'),
    ),
    graded_letters(
        "HE603",
        "the letter on self while the judge reads",
        ("letter = last_answer(result.messages)", "self.letter = letter = last_answer(result.messages)"),
        (
            'return keyword_share(item["words"], letter) if score is None',
            'return keyword_share(item["words"], self.letter) if score is None',
        ),
    ),
    graded_letters(
        "HE603",
        "the transcript set by its name",
        after(
            'self.metrics["reward"].append(float(scored["scores"]))',
            '            for name in ("messages", "tokens"):\n                setattr(self, f"last_{name}", scored[name])\n',
        ),
    ),
    graded_letters(
        "HE603",
        "the letter on a desk that all share",
        before("class LetterConfig(", 'class Desk:\n    """Where letters lie."""\n\n    letter = ""\n\n\nDESK = Desk()\n\n\n'),
        ("letter = last_answer(result.messages)", "DESK.letter = letter = last_answer(result.messages)"),
        (
            'return keyword_share(item["words"], letter) if score is None',
            'return keyword_share(item["words"], DESK.letter) if score is None',
        ),
    ),
    ledger_books(
        "HE603",
        "the last answer on the class",
        after('name = "ledger-books"', "    answered: Any = None\n"),
        before("        return self.grade(self.written(", "        type(self).answered = result.messages\n"),
    ),
    graded_letters(
        "HE603",
        "the sandbox of whoever came last",
        before("class LetterConfig(", "DESK: dict[str, ToolContext] = {}\n\n\n"),
        (
            "reward, _ = await self.graded(item, result)",
            'DESK["ctx"] = ctx\n'
            "        reward, _ = await self.graded(item, result)\n"
            '        DESK["ctx"].read_file("letter.txt")',
        ),
    ),
    ledger_books(
        "HE604",
        "a variable per reward",
        before('        answer = ctx.terminal(f"cat {shlex.quote(path)}")', '        os.environ["LEDGER_FILE"] = "ledger"\n'),
    ),
    ledger_books("HE604", "a directory of its own", after("self.turned = 0", "        os.chdir(os.path.dirname(__file__))\n")),
    ledger_books("HE604", "the directory that this run is in", after("self.turned = 0", "        os.chdir(os.getcwd())\n")),
    capitals_exam(
        "HE604",
        "put back only after success",
        before("        schemas, names = self._resolve_tools_for_group()\n        ctx", '        os.environ["EXAM"] = "1"\n'),
        (
            "return Attempt(item[0], await self.compute_reward(item, result, ctx))",
            "score = await self.compute_reward(item, result, ctx)\n"
            '            os.environ.pop("EXAM", None)\n'
            "            return Attempt(item[0], score)",
        ),
    ),
    graded_letters(
        "HE604",
        "a default that stays",
        before("        if wandb_metrics is None:", '        os.environ.setdefault("LETTERS_REPORTED", "1")\n'),
    ),
    ledger_books("HE605", "a pause before metrics", before("        if self.recent:", "        time.sleep(0.2)\n")),
    signals_base(
        "HE605",
        "a program that is waited for",
        before("import time", "import subprocess\n"),
        before("        tally, self.tally = self.tally, Tally()", '        subprocess.run(["true"], check=False)\n'),
    ),
    graded_letters(
        "HE605",
        "a download per item",
        after("import uuid", "from urllib.request import urlopen\n"),
        before(
            '        return (\n            f"Write a short letter',
            '        if "url" in item:\n            item = {**item, "about": urlopen(item["url"]).read().decode()}\n',
        ),
    ),
    capitals_exam(
        "HE605",
        "a shell in a helper of evaluation",
        ("start = time.time()\n        attempts", "start, host = time.time(), self.host()\n        attempts"),
        (
            '"eval/failed": sum(bool(attempt.trouble) for attempt in attempts)}',
            '"eval/failed": sum(bool(attempt.trouble) for attempt in attempts), f"eval/on_{host}": 1}',
        ),
        before(
            "    async def attempt(self, item",
            "    def host(self) -> str:\n"
            '        """Return where this runs."""\n'
            '        with os.popen("uname") as pipe:\n'
            "            return pipe.read().strip()\n"
            "\n",
        ),
    ),
    ledger_books(
        "HE605",
        "much work in one call",
        before("import logging", "import hashlib\n"),
        before(
            "        if self.recent:",
            '        run = hashlib.pbkdf2_hmac("sha256", self.name.encode(), b"salt", 1_500_000).hex()\n'
            '        metrics[f"train/{run[:4]}"] = 1.0\n',
        ),
    ),
    signals_base(
        "HE605",
        "an event that nobody sets",
        before("import time", "import threading\n"),
        before("        self.note(group)", "        threading.Event().wait(0.3)\n"),
    ),
    ledger_books(
        "HE606",
        "a directory",
        before("import time", "import tempfile\n"),
        after("self.turned = 0", "        self.shelf = tempfile.mkdtemp()\n"),
    ),
    graded_letters(
        "HE606",
        "a directory per reward",
        after("import re", "import tempfile\n"),
        before("        letter = last_answer(result.messages)", '        tempfile.mkdtemp(prefix="letter-")\n'),
    ),
    graded_letters(
        "HE606",
        "a thread",
        after("import re", "import threading\n"),
        before(
            "        rows = self.load() or LETTERS",
            "        self.stopped = threading.Event()\n"
            "        threading.Thread(target=self.stopped.wait, args=(20,), daemon=True).start()\n",
        ),
    ),
    capitals_exam(
        "HE606",
        "a timer",
        after("import os", "import threading\n"),
        after(
            "self.outcomes: Counter[str] = Counter()",
            "        self.bell = threading.Timer(60, print)\n        self.bell.daemon = True\n        self.bell.start()\n",
        ),
    ),
    signals_base(
        "HE606",
        "a client",
        after("import time", "import httpx\n"),
        after("        self.tally = Tally()\n        self.turn = 0", "        self.web = httpx.AsyncClient()\n"),
    ),
)

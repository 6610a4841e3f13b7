"""HE6: what is wrong with sandboxes and isolation."""

from __future__ import annotations

from .mutant import Mutant

LEDGER_TRY = "        ctx = ToolContext(uuid.uuid4().hex)\n        try:\n"

MUTANTS = (
    Mutant(
        rule="HE601",
        name="cleans up only after success",
        env="ledger_books",
        changes=(
            (
                "            return await self.compute_reward(book, result, ctx), result.turns_used\n        finally:\n            ctx.cleanup()\n",
                "            score = await self.compute_reward(book, result, ctx)\n"
                "            ctx.cleanup()\n"
                "            return score, result.turns_used\n"
                "        finally:\n"
                "            logger.debug('done')\n",
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="never cleans up",
        env="many_signals",
        file="signals_base",
        changes=(("        finally:\n            ctx.cleanup()\n", ""),),
    ),
    Mutant(
        rule="HE601",
        name="cleans up only what raised an exception",
        env="capitals_exam",
        changes=(
            (
                '            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n        finally:\n            ctx.cleanup()\n',
                '            ctx.cleanup()\n            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="a context manager without finally",
        env="graded_letters",
        changes=(
            (
                "        try:\n            yield ctx\n        finally:\n            ctx.cleanup()\n",
                "        yield ctx\n        ctx.cleanup()\n",
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="cleans up twice",
        env="ledger_books",
        changes=(
            (
                "        finally:\n            ctx.cleanup()\n",
                "        finally:\n            ctx.cleanup()\n            ctx.cleanup()\n",
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="no context for the rollout of evaluation",
        env="many_signals",
        file="signals_base",
        changes=(
            ("        ctx = ToolContext(task_id)\n        try:\n", "        try:\n"),
            (
                '            return {"prompt": prompt, "score": await self.compute_reward(item, result, ctx)}\n',
                '            return {"prompt": prompt, "score": float(result.finished_naturally)}\n',
            ),
            ("        finally:\n            ctx.cleanup()\n", ""),
        ),
    ),
    Mutant(
        rule="HE602",
        name="a constant",
        env="ledger_books",
        changes=(("ToolContext(uuid.uuid4().hex)", 'ToolContext("ledger-exam")'),),
    ),
    Mutant(
        rule="HE602",
        name="the item itself",
        env="capitals_exam",
        changes=(("ToolContext(str(uuid.uuid4()))", 'ToolContext("exam-" + item[0].lower())'),),
    ),
    Mutant(
        rule="HE602",
        name="a hash of the item",
        env="graded_letters",
        changes=(
            (
                "        async with self.workshop() as ctx:\n",
                '        async with self.workshop(uuid.uuid5(uuid.NAMESPACE_URL, item["to"])) as ctx:\n',
            ),
            ("    async def workshop(self) -> Any:\n", "    async def workshop(self, name: Any) -> Any:\n"),
            ("        ctx = ToolContext(str(uuid.uuid4()))\n", "        ctx = ToolContext(str(name))\n"),
        ),
    ),
    Mutant(
        rule="HE602",
        name="a uuid per evaluation",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        start = time.time()\n        samples = [await self.attempt(item)",
                "        start, run = time.time(), uuid.uuid4()\n        samples = [await self.attempt(item, str(run))",
            ),
            (
                "    async def attempt(self, item: dict[str, str]) -> dict[str, Any]:\n",
                "    async def attempt(self, item: dict[str, str], task_id: str) -> dict[str, Any]:\n",
            ),
            ('        task_id = f"eval-{uuid.uuid4()}"\n', ""),
        ),
    ),
    Mutant(
        rule="HE602",
        name="a uuid per environment",
        env="ledger_books",
        changes=(
            ("        self.turned = 0\n", "        self.turned = 0\n        self.desk = uuid.uuid4().hex\n"),
            ("ToolContext(uuid.uuid4().hex)", "ToolContext(self.desk)"),
        ),
    ),
    Mutant(
        rule="HE602",
        name="a default that is made once",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "    async def attempt(self, item: dict[str, str]) -> dict[str, Any]:\n",
                "    async def attempt(self, item: dict[str, str], task_id: str = str(uuid.uuid4())) -> dict[str, Any]:\n",
            ),
            ('        task_id = f"eval-{uuid.uuid4()}"\n', ""),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the item on self",
        env="ledger_books",
        changes=(
            ("        self.turned = 0\n", "        self.turned = 0\n        self.book = self.books[0]\n"),
            ('        numbers = ", "', '        self.book = item\n        numbers = ", "'),
            ('sum(item["rows"]))', 'sum(self.book["rows"]))'),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the item in a global",
        env="many_signals",
        file="signals_base",
        changes=(
            ("class SignalsEnv(", "CURRENT: dict[str, str] = {}\n\n\nclass SignalsEnv("),
            (
                "        right = self.is_right(item, result, ctx)\n",
                "        global CURRENT\n        CURRENT = item\n        right = self.is_right(CURRENT, result, ctx)\n",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the answer in a variable for the next tool",
        env="capitals_exam",
        changes=(("        _, capital = item\n", '        _, capital = item\n        os.environ["CAPITAL"] = capital\n'),),
    ),
    Mutant(
        rule="HE603",
        name="the letter on self while the judge reads",
        env="graded_letters",
        changes=(
            (
                "        letter = last_answer(result.messages)\n",
                "        self.letter = letter = last_answer(result.messages)\n",
            ),
            (
                'return keyword_share(item["words"], letter) if score is None',
                'return keyword_share(item["words"], self.letter) if score is None',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the transcript set by its name",  # the source shows no assignment
        env="graded_letters",
        changes=(
            (
                '            self.metrics["reward"].append(float(scored["scores"]))\n',
                '            self.metrics["reward"].append(float(scored["scores"]))\n'
                '            for name in ("messages", "tokens"):\n'
                '                setattr(self, f"last_{name}", scored[name])\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the letter on a desk that all share",  # an attribute of a helper object is no assignment to self, nor to a global
        env="graded_letters",
        changes=(
            (
                "class LetterConfig(",
                'class Desk:\n    """Where letters lie."""\n\n    letter = ""\n\n\nDESK = Desk()\n\n\nclass LetterConfig(',
            ),
            (
                "        letter = last_answer(result.messages)\n",
                "        DESK.letter = letter = last_answer(result.messages)\n",
            ),
            (
                'return keyword_share(item["words"], letter) if score is None',
                'return keyword_share(item["words"], DESK.letter) if score is None',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the last answer on the class",
        env="ledger_books",
        changes=(
            ('    name = "ledger-books"\n', '    name = "ledger-books"\n    answered: Any = None\n'),
            (
                "        return self.grade(self.written(",
                "        type(self).answered = result.messages\n        return self.grade(self.written(",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the sandbox of whoever came last",
        env="graded_letters",
        changes=(
            ("class LetterConfig(", "DESK: dict[str, ToolContext] = {}\n\n\nclass LetterConfig("),
            (
                "        reward, _ = await self.graded(item, result)\n",
                '        DESK["ctx"] = ctx\n'
                "        reward, _ = await self.graded(item, result)\n"
                '        DESK["ctx"].read_file("letter.txt")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE604",
        name="a variable per reward",
        env="ledger_books",
        changes=(
            (
                '        answer = ctx.terminal(f"cat {shlex.quote(path)}")\n',
                '        os.environ["LEDGER_FILE"] = "ledger"\n        answer = ctx.terminal(f"cat {shlex.quote(path)}")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE604",
        name="a directory of its own",
        env="ledger_books",
        changes=(("        self.turned = 0\n", "        self.turned = 0\n        os.chdir(os.path.dirname(__file__))\n"),),
    ),
    Mutant(
        rule="HE604",
        name="put back only after success",
        env="capitals_exam",
        changes=(
            (
                "        schemas, names = self._resolve_tools_for_group()\n        ctx",
                '        os.environ["EXAM"] = "1"\n        schemas, names = self._resolve_tools_for_group()\n        ctx',
            ),
            (
                "            return Attempt(item[0], await self.compute_reward(item, result, ctx))\n",
                "            score = await self.compute_reward(item, result, ctx)\n"
                '            os.environ.pop("EXAM", None)\n'
                "            return Attempt(item[0], score)\n",
            ),
        ),
    ),
    Mutant(
        rule="HE604",
        name="several at once",
        env="graded_letters",
        changes=(
            (
                "        rows = self.load() or LETTERS\n",
                '        os.environ.update(LETTERS_LOADED="yes", LETTERS_SEED="11")\n        rows = self.load() or LETTERS\n',
            ),
        ),
    ),
    Mutant(
        rule="HE604",
        name="a default that stays",
        env="graded_letters",
        changes=(
            (
                "        if wandb_metrics is None:\n",
                '        os.environ.setdefault("LETTERS_REPORTED", "1")\n        if wandb_metrics is None:\n',
            ),
        ),
    ),
    Mutant(
        rule="HE605",
        name="a pause before metrics",
        env="ledger_books",
        changes=(("        if self.recent:\n", "        time.sleep(0.2)\n        if self.recent:\n"),),
    ),
    Mutant(
        rule="HE605",
        name="a program that is waited for",
        env="many_signals",
        file="signals_base",
        changes=(
            ("import time\n", "import subprocess\nimport time\n"),
            (
                "        tally, self.tally = self.tally, Tally()\n",
                '        subprocess.run(["true"], check=False)\n        tally, self.tally = self.tally, Tally()\n',
            ),
        ),
    ),
    Mutant(
        rule="HE605",
        name="a download per item",
        env="graded_letters",
        changes=(
            ("import uuid\n", "import uuid\nfrom urllib.request import urlopen\n"),
            (
                '        return (\n            f"Write a short letter',
                '        if "url" in item:\n            item = {**item, "about": urlopen(item["url"]).read().decode()}\n'
                '        return (\n            f"Write a short letter',
            ),
        ),
    ),
    Mutant(
        rule="HE605",
        name="a shell in a helper of evaluation",
        env="capitals_exam",
        changes=(
            (
                "        start = time.time()\n        attempts",
                "        start, host = time.time(), self.host()\n        attempts",
            ),
            (
                '"eval/failed": sum(bool(attempt.trouble) for attempt in attempts)}',
                '"eval/failed": sum(bool(attempt.trouble) for attempt in attempts), f"eval/on_{host}": 1}',
            ),
            (
                "    async def attempt(self, item",
                '    def host(self) -> str:\n        """Return where this runs."""\n'
                '        with os.popen("uname") as pipe:\n            return pipe.read().strip()\n\n'
                "    async def attempt(self, item",
            ),
        ),
    ),
    Mutant(
        rule="HE605",
        name="much work in one call",  # a function in C that no list of blocking calls has
        env="ledger_books",
        changes=(
            ("import logging\n", "import hashlib\nimport logging\n"),
            (
                "        if self.recent:\n",
                '        run = hashlib.pbkdf2_hmac("sha256", self.name.encode(), b"salt", 1_500_000).hex()\n'
                '        metrics[f"train/{run[:4]}"] = 1.0\n        if self.recent:\n',
            ),
        ),
    ),
    Mutant(
        rule="HE605",
        name="an event that nobody sets",
        env="many_signals",
        file="signals_base",
        changes=(
            ("import time\n", "import threading\nimport time\n"),
            ("        self.note(group)\n", "        threading.Event().wait(0.3)\n        self.note(group)\n"),
        ),
    ),
    Mutant(
        rule="HE605",
        name="a pause behind another name",
        env="capitals_exam",
        changes=(
            ("import asyncio\n", "import asyncio\nimport functools\n"),
            ("class Attempt(", 'PAUSES = {"short": functools.partial(time.sleep, 0.3)}\n\n\nclass Attempt('),
            (
                "        right = sum(attempt.score for attempt in attempts)\n",
                '        PAUSES["short"]()\n        right = sum(attempt.score for attempt in attempts)\n',
            ),
        ),
    ),
    Mutant(
        rule="HE606",
        name="a directory",
        env="ledger_books",
        changes=(
            ("import time\n", "import tempfile\nimport time\n"),
            ("        self.turned = 0\n", "        self.turned = 0\n        self.shelf = tempfile.mkdtemp()\n"),
        ),
    ),
    Mutant(
        rule="HE606",
        name="a directory per reward",
        env="graded_letters",
        changes=(
            ("import re\n", "import re\nimport tempfile\n"),
            (
                "        letter = last_answer(result.messages)\n",
                '        tempfile.mkdtemp(prefix="letter-")\n        letter = last_answer(result.messages)\n',
            ),
        ),
    ),
    Mutant(
        rule="HE606",
        name="a thread",
        env="graded_letters",
        changes=(
            ("import re\n", "import re\nimport threading\n"),
            (
                "        rows = self.load() or LETTERS\n",
                "        self.stopped = threading.Event()\n"
                "        threading.Thread(target=self.stopped.wait, args=(20,), daemon=True).start()\n"
                "        rows = self.load() or LETTERS\n",
            ),
        ),
    ),
    Mutant(
        rule="HE606",
        name="a timer",
        env="capitals_exam",
        changes=(
            ("import os\n", "import os\nimport threading\n"),
            (
                "        self.outcomes: Counter[str] = Counter()\n",
                "        self.outcomes: Counter[str] = Counter()\n"
                "        self.bell = threading.Timer(60, print)\n"
                "        self.bell.daemon = True\n"
                "        self.bell.start()\n",
            ),
        ),
    ),
    Mutant(
        rule="HE606",
        name="a client",
        env="many_signals",
        file="signals_base",
        changes=(
            ("import time\n", "import time\nimport httpx\n"),
            (
                "        self.tally = Tally()\n        self.turn = 0\n",
                "        self.tally = Tally()\n        self.turn = 0\n        self.web = httpx.AsyncClient()\n",
            ),
        ),
    ),
)

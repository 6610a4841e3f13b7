"""HE6: what is wrong with sandboxes and isolation."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

LEDGER_TRY = "        ctx = ToolContext(uuid.uuid4().hex)\n        try:\n"

MUTANTS = (
    ledger_books(
        rule="HE601",
        name="cleans up only after success",
        changes=changed(
            "            return await self.compute_reward(book, result, ctx), result.turns_used\n        finally:\n            ctx.cleanup()\n",
            "            score = await self.compute_reward(book, result, ctx)\n"
            "            ctx.cleanup()\n"
            "            return score, result.turns_used\n"
            "        finally:\n"
            "            logger.debug('done')\n",
        ),
    ),
    many_signals(
        rule="HE601",
        name="never cleans up",
        file="signals_base",
        changes=changed("        finally:\n            ctx.cleanup()\n", ""),
    ),
    capitals_exam(
        rule="HE601",
        name="cleans up only what raised an exception",
        changes=changed(
            '            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n        finally:\n            ctx.cleanup()\n',
            '            ctx.cleanup()\n            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n',
        ),
    ),
    graded_letters(
        rule="HE601",
        name="a context manager without finally",
        changes=changed(
            "        try:\n            yield ctx\n        finally:\n            ctx.cleanup()\n",
            "        yield ctx\n        ctx.cleanup()\n",
        ),
    ),
    ledger_books(
        rule="HE601",
        name="cleans up twice",
        changes=changed(
            "        finally:\n            ctx.cleanup()\n",
            "        finally:\n            ctx.cleanup()\n            ctx.cleanup()\n",
        ),
    ),
    many_signals(
        rule="HE601",
        name="no context for the rollout of evaluation",
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
    ledger_books(
        rule="HE602",
        name="a constant",
        changes=changed("ToolContext(uuid.uuid4().hex)", 'ToolContext("ledger-exam")'),
    ),
    capitals_exam(
        rule="HE602",
        name="the item itself",
        changes=changed("ToolContext(str(uuid.uuid4()))", 'ToolContext("exam-" + item[0].lower())'),
    ),
    graded_letters(
        rule="HE602",
        name="a hash of the item",
        changes=(
            (
                "        async with self.workshop() as ctx:\n",
                '        async with self.workshop(uuid.uuid5(uuid.NAMESPACE_URL, item["to"])) as ctx:\n',
            ),
            ("    async def workshop(self) -> Any:\n", "    async def workshop(self, name: Any) -> Any:\n"),
            ("        ctx = ToolContext(str(uuid.uuid4()))\n", "        ctx = ToolContext(str(name))\n"),
        ),
    ),
    many_signals(
        rule="HE602",
        name="a uuid per evaluation",
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
    ledger_books(
        rule="HE602",
        name="a uuid per environment",
        changes=(
            ("        self.turned = 0\n", "        self.turned = 0\n        self.desk = uuid.uuid4().hex\n"),
            ("ToolContext(uuid.uuid4().hex)", "ToolContext(self.desk)"),
        ),
    ),
    many_signals(
        rule="HE602",
        name="a default that is made once",
        file="signals_base",
        changes=(
            (
                "    async def attempt(self, item: dict[str, str]) -> dict[str, Any]:\n",
                "    async def attempt(self, item: dict[str, str], task_id: str = str(uuid.uuid4())) -> dict[str, Any]:\n",
            ),
            ('        task_id = f"eval-{uuid.uuid4()}"\n', ""),
        ),
    ),
    ledger_books(
        rule="HE603",
        name="the item on self",
        changes=(
            ("        self.turned = 0\n", "        self.turned = 0\n        self.book = self.books[0]\n"),
            ('        numbers = ", "', '        self.book = item\n        numbers = ", "'),
            ('sum(item["rows"]))', 'sum(self.book["rows"]))'),
        ),
    ),
    many_signals(
        rule="HE603",
        name="the item in a global",
        file="signals_base",
        changes=(
            ("class SignalsEnv(", "CURRENT: dict[str, str] = {}\n\n\nclass SignalsEnv("),
            (
                "        right = self.is_right(item, result, ctx)\n",
                "        global CURRENT\n        CURRENT = item\n        right = self.is_right(CURRENT, result, ctx)\n",
            ),
        ),
    ),
    capitals_exam(
        rule="HE603",
        name="the answer in a variable for the next tool",
        changes=changed("        _, capital = item\n", '        _, capital = item\n        os.environ["CAPITAL"] = capital\n'),
    ),
    graded_letters(
        rule="HE603",
        name="the letter on self while the judge reads",
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
    graded_letters(
        rule="HE603",
        name="the transcript set by its name",  # the source shows no assignment
        changes=changed(
            '            self.metrics["reward"].append(float(scored["scores"]))\n',
            '            self.metrics["reward"].append(float(scored["scores"]))\n'
            '            for name in ("messages", "tokens"):\n'
            '                setattr(self, f"last_{name}", scored[name])\n',
        ),
    ),
    graded_letters(
        rule="HE603",
        name="the letter on a desk that all share",  # an attribute of a helper object is no assignment to self, nor to a global
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
    ledger_books(
        rule="HE603",
        name="the last answer on the class",
        changes=(
            ('    name = "ledger-books"\n', '    name = "ledger-books"\n    answered: Any = None\n'),
            (
                "        return self.grade(self.written(",
                "        type(self).answered = result.messages\n        return self.grade(self.written(",
            ),
        ),
    ),
    graded_letters(
        rule="HE603",
        name="the sandbox of whoever came last",
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
    ledger_books(
        rule="HE604",
        name="a variable per reward",
        changes=changed(
            '        answer = ctx.terminal(f"cat {shlex.quote(path)}")\n',
            '        os.environ["LEDGER_FILE"] = "ledger"\n        answer = ctx.terminal(f"cat {shlex.quote(path)}")\n',
        ),
    ),
    ledger_books(
        rule="HE604",
        name="a directory of its own",
        changes=changed("        self.turned = 0\n", "        self.turned = 0\n        os.chdir(os.path.dirname(__file__))\n"),
    ),
    ledger_books(
        rule="HE604",
        name="the directory that this run is in",
        changes=changed("        self.turned = 0\n", "        self.turned = 0\n        os.chdir(os.getcwd())\n"),
    ),
    capitals_exam(
        rule="HE604",
        name="put back only after success",
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
    graded_letters(
        rule="HE604",
        name="several at once",
        changes=changed(
            "        rows = self.load() or LETTERS\n",
            '        os.environ.update(LETTERS_LOADED="yes", LETTERS_SEED="11")\n        rows = self.load() or LETTERS\n',
        ),
    ),
    graded_letters(
        rule="HE604",
        name="a default that stays",
        changes=changed(
            "        if wandb_metrics is None:\n",
            '        os.environ.setdefault("LETTERS_REPORTED", "1")\n        if wandb_metrics is None:\n',
        ),
    ),
    ledger_books(
        rule="HE605",
        name="a pause before metrics",
        changes=changed("        if self.recent:\n", "        time.sleep(0.2)\n        if self.recent:\n"),
    ),
    many_signals(
        rule="HE605",
        name="a program that is waited for",
        file="signals_base",
        changes=(
            ("import time\n", "import subprocess\nimport time\n"),
            (
                "        tally, self.tally = self.tally, Tally()\n",
                '        subprocess.run(["true"], check=False)\n        tally, self.tally = self.tally, Tally()\n',
            ),
        ),
    ),
    graded_letters(
        rule="HE605",
        name="a download per item",
        changes=(
            ("import uuid\n", "import uuid\nfrom urllib.request import urlopen\n"),
            (
                '        return (\n            f"Write a short letter',
                '        if "url" in item:\n            item = {**item, "about": urlopen(item["url"]).read().decode()}\n'
                '        return (\n            f"Write a short letter',
            ),
        ),
    ),
    capitals_exam(
        rule="HE605",
        name="a shell in a helper of evaluation",
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
    ledger_books(
        rule="HE605",
        name="much work in one call",  # a function in C that no list of blocking calls has
        changes=(
            ("import logging\n", "import hashlib\nimport logging\n"),
            (
                "        if self.recent:\n",
                '        run = hashlib.pbkdf2_hmac("sha256", self.name.encode(), b"salt", 1_500_000).hex()\n'
                '        metrics[f"train/{run[:4]}"] = 1.0\n        if self.recent:\n',
            ),
        ),
    ),
    many_signals(
        rule="HE605",
        name="an event that nobody sets",
        file="signals_base",
        changes=(
            ("import time\n", "import threading\nimport time\n"),
            ("        self.note(group)\n", "        threading.Event().wait(0.3)\n        self.note(group)\n"),
        ),
    ),
    capitals_exam(
        rule="HE605",
        name="a pause behind another name",
        changes=(
            ("import asyncio\n", "import asyncio\nimport functools\n"),
            ("class Attempt(", 'PAUSES = {"short": functools.partial(time.sleep, 0.3)}\n\n\nclass Attempt('),
            (
                "        right = sum(attempt.score for attempt in attempts)\n",
                '        PAUSES["short"]()\n        right = sum(attempt.score for attempt in attempts)\n',
            ),
        ),
    ),
    ledger_books(
        rule="HE606",
        name="a directory",
        changes=(
            ("import time\n", "import tempfile\nimport time\n"),
            ("        self.turned = 0\n", "        self.turned = 0\n        self.shelf = tempfile.mkdtemp()\n"),
        ),
    ),
    graded_letters(
        rule="HE606",
        name="a directory per reward",
        changes=(
            ("import re\n", "import re\nimport tempfile\n"),
            (
                "        letter = last_answer(result.messages)\n",
                '        tempfile.mkdtemp(prefix="letter-")\n        letter = last_answer(result.messages)\n',
            ),
        ),
    ),
    graded_letters(
        rule="HE606",
        name="a thread",
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
    capitals_exam(
        rule="HE606",
        name="a timer",
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
    many_signals(
        rule="HE606",
        name="a client",
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

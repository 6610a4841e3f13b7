"""HE402 to HE404, HE408, HE409 and HE411: what is wrong with how a reward comes about."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

GRADE = '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'

TOTAL = "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n"
LETTER = "        letter = last_answer(result.messages)\n"
GRADED = "        reward, _ = await self.graded(item, result)\n        return reward\n"
CLAMPED = '        return min(1.0, max(0.0, weight * parts["judged"] + (1 - weight) * parts["length"])), parts\n'
CAPITAL = '        return float(ctx.read_file("capital.txt").get("content", "").strip().casefold() == capital.casefold())\n'
CALLS = "        calls = len(names_of_calls(result))\n"
RIGHT = "        right = self.is_right(item, result, ctx)\n"

MUTANTS = (
    # ------------------------------------------------------------------ HE402
    ledger_books(
        rule="HE402",
        name="two points for the right sum",
        changes=changed("            return 1.0\n", "            return 2.0\n"),
    ),
    graded_letters(
        rule="HE402",
        name="percent",
        changes=changed(GRADED, "        reward, _ = await self.graded(item, result)\n        return 100 * reward\n"),
    ),
    many_signals(
        rule="HE402",
        name="weights that sum up to more than one",
        file="signals_base",
        changes=changed(TOTAL, "        return sum(5 * weight * signal for weight, signal in signals)\n"),
    ),
    ledger_books(
        rule="HE402",
        name="a penalty",
        changes=changed(
            "        if written is None:\n            return 0.0\n", "        if written is None:\n            return -1.0\n"
        ),
    ),
    many_signals(
        rule="HE402",
        name="a penalty for what is not right",
        file="signals_base",
        changes=changed(TOTAL, "        return sum(weight * signal for weight, signal in signals) - 0.5 * (not right)\n"),
    ),
    # ------------------------------------------------------------------ HE403
    graded_letters(
        rule="HE403",
        name="content that may be None",
        changes=changed(LETTER, '        letter = result.messages[-1]["content"].strip()\n'),
    ),
    graded_letters(
        rule="HE403",
        name="there is always an answer",
        changes=changed(
            LETTER,
            '        letter = [m["content"] for m in result.messages if m.get("role") == "assistant" and m.get("content")][-1]\n',
        ),
    ),
    many_signals(
        rule="HE403",
        name="arguments are JSON",
        file="signals_base",
        changes=(
            ("import time\n", "import json\nimport time\n"),
            (
                '                names.append((call.get("function") or {}).get("name", ""))\n',
                '                arguments = json.loads(call["function"]["arguments"])\n'
                "                names.append(f\"{call['function']['name']} {arguments}\")\n",
            ),
        ),
    ),
    many_signals(
        rule="HE403",
        name="calls divided by nothing",
        file="signals_base",
        changes=changed(CALLS, CALLS + '        share = names_of_calls(result).count("terminal") / calls\n'),
    ),
    ledger_books(
        rule="HE403",
        name="a result of a tool is JSON",
        changes=(
            ("import logging\n", "import json\nimport logging\n"),
            (
                GRADE,
                "        for message in result.messages:\n"
                '            if message["role"] == "tool" and json.loads(message["content"]).get("error"):\n'
                '                logger.debug("a tool failed")\n' + GRADE,
            ),
        ),
    ),
    ledger_books(
        rule="HE403",
        name="the first thought",
        changes=changed(GRADE, '        logger.debug("began with %s", result.reasoning_per_turn[0])\n' + GRADE),
    ),
    # ------------------------------------------------------------------ HE404
    ledger_books(
        rule="HE404",
        name="noise against ties",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            (GRADE, GRADE.replace("return ", "return 0.99 * ").rstrip() + " + 0.01 * random.random()\n"),
        ),
    ),
    many_signals(
        rule="HE404",
        name="the clock",
        file="signals_base",
        changes=changed(TOTAL, TOTAL.replace("return ", "return 0.9 * ").rstrip() + " + 0.1 * (time.perf_counter() % 1)\n"),
    ),
    ledger_books(
        rule="HE404",
        name="how long it took",
        changes=changed(
            GRADE,
            "        began = time.perf_counter()\n"
            '        reward = self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'
            "        return reward * 0.9 + 0.1 / (1 + time.perf_counter() - began)\n",
        ),
    ),
    many_signals(
        rule="HE404",
        name="a fresh name decides",
        file="signals_base",
        changes=(
            (RIGHT, RIGHT + "        draw = uuid.uuid4().int % 1000 / 1000\n"),
            (TOTAL, TOTAL.replace("return ", "return 0.9 * ").rstrip() + " + 0.1 * draw\n"),
        ),
    ),
    ledger_books(
        rule="HE404",
        name="a sample of the messages",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            (
                GRADE,
                "        style = random.choice(range(100)) / 100\n"
                + GRADE.replace("return ", "return 0.9 * ").rstrip()
                + " + 0.1 * style\n",
            ),
        ),
    ),
    ledger_books(
        rule="HE404",
        name="each book counts less than the one before",
        changes=changed(
            GRADE,
            '        reward = self.grade(self.written(ctx, item["file"]), sum(item["rows"])) * 0.99 ** len(self.recent)\n'
            "        self.recent.append(reward)\n"
            "        return reward\n",
        ),
        follow_up="HE702",
    ),
    # ------------------------------------------------------------------ HE408
    ledger_books(
        rule="HE408",
        name="rows in place",
        changes=changed(GRADE, '        item["rows"].reverse()\n' + GRADE),
        follow_up="HE702",
    ),
    ledger_books(
        rule="HE408",
        name="only some books are changed",
        changes=changed(GRADE, "        if item is self.books[1]:\n            dict.update(item, seen=1)\n" + GRADE),
        has_cases=False,
    ),
    graded_letters(
        rule="HE408",
        name="adds what the judge said",
        changes=changed(
            GRADED,
            "        reward, _ = await self.graded(item, result)\n"
            '        result.messages.append({"role": "user", "content": f"graded: {reward}"})\n'
            "        return reward\n",
        ),
    ),
    many_signals(
        rule="HE408",
        name="strips the messages",
        file="signals_base",
        changes=changed(
            CALLS,
            "        for message in result.messages:\n"
            '            if isinstance(message.get("content"), str):\n'
            '                message["content"] = message["content"][:40].strip()\n' + CALLS,
        ),
    ),
    graded_letters(
        rule="HE408",
        name="signs the letter in place",
        changes=changed(
            LETTER,
            LETTER + "        for message in result.messages[-1:]:\n"
            '            message["content"] = f"{letter} Kind regards"\n',
        ),
    ),
    many_signals(
        rule="HE408",
        name="remembers the outcome in the item",
        file="signals_base",
        changes=changed(RIGHT, RIGHT + '        item["solved"] = str(right)\n'),
    ),
    ledger_books(
        rule="HE408",
        name="takes the system message away",
        changes=changed(GRADE, "        del result.messages[:1]\n" + GRADE),
    ),
    # ------------------------------------------------------------------ HE409
    ledger_books(
        rule="HE409",
        name="an f-string",
        changes=changed("{shlex.quote(path)}", "{path}"),
    ),
    ledger_books(
        rule="HE409",
        name="quotes by hand",
        changes=changed("cat {shlex.quote(path)}", "cat '{path}'"),
    ),
    many_signals(
        rule="HE409",
        name="format",
        changes=changed(
            '        listing = ctx.terminal("ls").get("output", "").split()\n',
            '        listing = ctx.terminal("ls {} {}".format(item["source"], item["target"])).get("output", "").split()\n',
        ),
    ),
    capitals_exam(
        rule="HE409",
        name="joined in a helper",
        changes=(
            (CAPITAL, "        return float(self.found(ctx, capital))\n"),
            (
                "    async def evaluate(",
                "    def found(self, ctx: ToolContext, word: str) -> bool:\n"
                '        """Look for a word."""\n'
                '        return ctx.terminal("grep -ci " + word + " capital.txt").get("exit_code") == 0\n\n'
                "    async def evaluate(",
            ),
        ),
    ),
    graded_letters(
        rule="HE409",
        name="what the agent said",
        changes=changed(
            GRADED,
            "        letter = last_answer(result.messages)\n"
            '        count = ctx.terminal("echo %s | wc -w" % letter).get("output", "0")\n'
            '        log.info("%s words", count)\n' + GRADED,
        ),
        is_only_read=True,
    ),
    # ------------------------------------------------------------------ HE411
    ledger_books(
        rule="HE411",
        name="after the last look",
        changes=changed(
            GRADE,
            '        written = self.written(ctx, item["file"])\n        ctx.cleanup()\n        return self.grade(written, sum(item["rows"]))\n',
        ),
        is_only_read=True,
    ),
    many_signals(
        rule="HE411",
        name="in a helper",
        changes=changed(
            '        return item["target"] in listing', '        ctx.cleanup()\n        return item["target"] in listing'
        ),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE411",
        name="in a finally",
        changes=changed(CAPITAL, f"        try:\n    {CAPITAL}        finally:\n            ctx.cleanup()\n"),
        is_only_read=True,
    ),
    graded_letters(
        rule="HE411",
        name="under another name",
        changes=changed(GRADED, "        sandbox = ctx\n        sandbox.cleanup()\n" + GRADED),
        is_only_read=True,
    ),
    ledger_books(
        rule="HE411",
        name="as a callback",
        changes=(
            ("import logging\n", "import contextlib\nimport logging\n"),
            (GRADE, f"        with contextlib.ExitStack() as stack:\n            stack.callback(ctx.cleanup)\n    {GRADE}"),
        ),
        is_only_read=True,
    ),
)

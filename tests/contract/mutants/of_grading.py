"""HE402 to HE404, HE408, HE409 and HE411: what is wrong with how a reward comes about."""

from __future__ import annotations

from .mutant import (
    CALLS,
    GRADE,
    LETTER,
    TOTAL,
    after,
    before,
    capitals_exam,
    graded_letters,
    ledger_books,
    many_signals,
    signals_base,
)

GRADED = "        reward, _ = await self.graded(item, result)\n        return reward\n"
CAPITAL = '        return float(ctx.read_file("capital.txt").get("content", "").strip().casefold() == capital.casefold())\n'
RIGHT = "        right = self.is_right(item, result, ctx)\n"

MUTANTS = (
    # ------------------------------------------------------------------ HE402
    ledger_books("HE402", "two points for the right sum", ("return 1.0", "return 2.0")),
    graded_letters(
        "HE402", "percent", (GRADED, "        reward, _ = await self.graded(item, result)\n        return 100 * reward\n")
    ),
    signals_base(
        "HE402",
        "weights that sum up to more than one",
        (TOTAL, "        return sum(5 * weight * signal for weight, signal in signals)\n"),
    ),
    ledger_books(
        "HE402", "a penalty", ("if written is None:\n            return 0.0", "if written is None:\n            return -1.0")
    ),
    signals_base(
        "HE402",
        "a penalty for what is not right",
        (TOTAL, "        return sum(weight * signal for weight, signal in signals) - 0.5 * (not right)\n"),
    ),
    # ------------------------------------------------------------------ HE403
    graded_letters("HE403", "content that may be None", (LETTER, '        letter = result.messages[-1]["content"].strip()\n')),
    graded_letters(
        "HE403",
        "there is always an answer",
        (
            LETTER,
            '        letter = [m["content"] for m in result.messages if m.get("role") == "assistant" and m.get("content")][-1]\n',
        ),
    ),
    signals_base(
        "HE403",
        "arguments are JSON",
        before("import time", "import json\n"),
        (
            'names.append((call.get("function") or {}).get("name", ""))',
            'arguments = json.loads(call["function"]["arguments"])\n'
            "                names.append(f\"{call['function']['name']} {arguments}\")",
        ),
    ),
    signals_base(
        "HE403",
        "calls divided by nothing",
        after(CALLS, '        share = names_of_calls(result).count("terminal") / calls\n'),
    ),
    ledger_books(
        "HE403",
        "a result of a tool is JSON",
        before("import logging", "import json\n"),
        before(
            GRADE,
            "        for message in result.messages:\n"
            '            if message["role"] == "tool" and json.loads(message["content"]).get("error"):\n'
            '                logger.debug("a tool failed")\n',
        ),
    ),
    ledger_books(
        "HE403", "the first thought", before(GRADE, '        logger.debug("began with %s", result.reasoning_per_turn[0])\n')
    ),
    # ------------------------------------------------------------------ HE404
    ledger_books(
        "HE404",
        "noise against ties",
        after("import os", "import random\n"),
        (GRADE, GRADE.replace("return ", "return 0.99 * ").rstrip() + " + 0.01 * random.random()\n"),
    ),
    signals_base(
        "HE404",
        "the clock",
        (TOTAL, TOTAL.replace("return ", "return 0.9 * ").rstrip() + " + 0.1 * (time.perf_counter() % 1)\n"),
    ),
    signals_base(
        "HE404",
        "a fresh name decides",
        after(RIGHT, "        draw = uuid.uuid4().int % 1000 / 1000\n"),
        (TOTAL, TOTAL.replace("return ", "return 0.9 * ").rstrip() + " + 0.1 * draw\n"),
    ),
    ledger_books(
        "HE404",
        "each book counts less than the one before",
        (
            GRADE,
            '        reward = self.grade(self.written(ctx, item["file"]), sum(item["rows"])) * 0.99 ** len(self.recent)\n'
            "        self.recent.append(reward)\n"
            "        return reward\n",
        ),
        follow_up="HE702",
    ),
    # ------------------------------------------------------------------ HE408
    ledger_books("HE408", "rows in place", before(GRADE, '        item["rows"].reverse()\n'), follow_up="HE702"),
    ledger_books(
        "HE408",
        "only some books are changed",
        before(GRADE, "        if item is self.books[1]:\n            dict.update(item, seen=1)\n"),
        has_cases=False,
    ),
    graded_letters(
        "HE408",
        "adds what the judge said",
        (
            GRADED,
            "        reward, _ = await self.graded(item, result)\n"
            '        result.messages.append({"role": "user", "content": f"graded: {reward}"})\n'
            "        return reward\n",
        ),
    ),
    signals_base(
        "HE408",
        "strips the messages",
        before(
            CALLS,
            "        for message in result.messages:\n"
            '            if isinstance(message.get("content"), str):\n'
            '                message["content"] = message["content"][:40].strip()\n',
        ),
    ),
    signals_base("HE408", "remembers the outcome in the item", after(RIGHT, '        item["solved"] = str(right)\n')),
    ledger_books("HE408", "takes the system message away", before(GRADE, "        del result.messages[:1]\n")),
    # ------------------------------------------------------------------ HE409
    ledger_books("HE409", "an f-string", ("{shlex.quote(path)}", "{path}")),
    ledger_books("HE409", "quotes by hand", ("cat {shlex.quote(path)}", "cat '{path}'")),
    many_signals(
        "HE409",
        "format",
        (
            'listing = ctx.terminal("ls").get("output", "").split()',
            'listing = ctx.terminal("ls {} {}".format(item["source"], item["target"])).get("output", "").split()',
        ),
    ),
    capitals_exam(
        "HE409",
        "joined in a helper",
        (CAPITAL, "        return float(self.found(ctx, capital))\n"),
        before(
            "    async def evaluate(",
            "    def found(self, ctx: ToolContext, word: str) -> bool:\n"
            '        """Look for a word."""\n'
            '        return ctx.terminal("grep -ci " + word + " capital.txt").get("exit_code") == 0\n'
            "\n",
        ),
    ),
    graded_letters(
        "HE409",
        "what the agent said",
        before(
            GRADED,
            "        letter = last_answer(result.messages)\n"
            '        count = ctx.terminal("echo %s | wc -w" % letter).get("output", "0")\n'
            '        log.info("%s words", count)\n',
        ),
        is_only_read=True,
    ),
    # ------------------------------------------------------------------ HE411
    ledger_books(
        "HE411",
        "after the last look",
        (
            GRADE,
            '        written = self.written(ctx, item["file"])\n        ctx.cleanup()\n        return self.grade(written, sum(item["rows"]))\n',
        ),
        follow_up="HE601",
    ),
    many_signals(
        "HE411", "in a helper", before('        return item["target"] in listing', "        ctx.cleanup()\n"), follow_up="HE601"
    ),
    capitals_exam(
        "HE411",
        "in a finally",
        (CAPITAL, f"        try:\n    {CAPITAL}        finally:\n            ctx.cleanup()\n"),
        follow_up="HE601",
    ),
    graded_letters(
        "HE411",
        "under another name",
        before(GRADED, "        sandbox = ctx\n        sandbox.cleanup()\n"),
        follow_up="HE601",
    ),
)

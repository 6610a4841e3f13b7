"""HE4: what is wrong with the reward."""

from __future__ import annotations

from .mutant import (
    GRADE,
    READ,
    TOTAL,
    after,
    before,
    capitals_exam,
    graded_letters,
    ledger_books,
    many_signals,
    signals_base,
    terminal_tasks,
)

MUTANTS = (
    terminal_tasks(
        "HE401",
        "nothing where a command fails",
        after(READ, '        if ctx.terminal("true")["exit_code"] != 0:\n            return None\n'),
        says="compute_reward returned NoneType None, not a number",
    ),
    ledger_books("HE401", "a bool", (GRADE, '        return self.written(ctx, item["file"]) == sum(item["rows"])\n')),
    graded_letters(
        "HE401",
        "nothing where there is no answer",
        (
            "reward, _ = await self.graded(item, result)\n        return reward",
            "if last_answer(result.messages):\n            return (await self.graded(item, result))[0]",
        ),
    ),
    signals_base(
        "HE401",
        "not a number",
        (
            "return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))",
            'total = sum(weight * signal for weight, signal in signals)\n        return total or float("nan")',
        ),
    ),
    signals_base(
        "HE401",
        "a text",
        (TOTAL, '        return f"{min(1.0, max(0.0, sum(weight * signal for weight, signal in signals))):.2f}"\n'),
        (
            'mean = sum(sample["score"] for sample in samples) / len(samples)',
            'mean = sum(float(sample["score"]) for sample in samples) / len(samples)',
        ),
    ),
    signals_base(
        "HE401",
        "infinite where nothing was called",
        before(
            "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))",
            '        if not calls:\n            return float("-inf")\n',
        ),
    ),
    *(
        ledger_books(
            "HE405",
            f"{name}, caught by itself",
            (GRADE, grade),
            has_cases=False,
            says="catches a mistake of its own",
            follow_up="HE403",
        )
        for name, grade in (
            (
                "an attribute that a dict does not have",
                "        try:\n"
                '            written = ctx.terminal("cat " + shlex.quote(item["file"])).stdout  # <- here\n'
                "            return float(int(written) == sum(item['rows']))\n"
                "        except Exception:\n"
                "            return 0.0\n",
            ),
            (
                "a key that the item does not have",
                "        import contextlib\n\n"
                "        with contextlib.suppress(Exception):\n"
                "            return self.grade(self.written(ctx, item['path']), sum(item['rows']))  # <- here\n"
                "        return 0.0\n",
            ),
            (
                "a method with an argument too few",
                "        reward = 0.0\n"
                "        try:\n"
                "            reward = self.grade(self.written(item['file']), sum(item['rows']))  # <- here\n"
                "        except:\n"
                '            logger.warning("no reward")\n'
                "        return reward\n",
            ),
            (
                "a name that nothing has, in a method",
                "        try:\n"
                "            return self.checked(item, ctx)\n"
                "        except (OSError, Exception) as error:\n"
                '            logger.warning("no reward: %s", error)\n'
                "            return 0.0\n\n"
                "    def checked(self, item, ctx):\n"
                "        return self.grade(self.written(ctx, item['file']), summed(item['rows']))  # <- here\n",
            ),
        )
    ),
    ledger_books(
        "HE413",
        "an answer is evaluated in the trainer",
        (
            'return int(text) if answer.get("exit_code") == 0 and text.lstrip("-").isdecimal() else None',
            'return eval(text) if answer.get("exit_code") == 0 and text.lstrip("-").isdecimal() else None',
        ),
    ),
    ledger_books(
        "HE412",
        "no gold is declared",
        (
            'near_reward: float = Field(default=0.3, description="Reward for a sum that is off by one.")',
            'near_reward: float = Field(default=0.25, description="Reward for a sum that is off by one.")',
        ),
        has_cases=False,
    ),
    ledger_books(
        "HE412",
        "good work on the second book has no reward",
        (
            "if written == expected:\n            return 1.0",
            "if written == expected:\n            return 1.0 if len(item['rows']) > 2 else None",
        ),
        follow_up="HE401 HE405",
    ),
    ledger_books(
        "HE405",
        "right and wrong swapped",
        ("if written == expected:\n            return 1.0", "if written != expected:\n            return 1.0"),
    ),
    ledger_books(
        "HE405",
        "a key that no file has",
        ('text = str(answer.get("output", "")).strip()', 'text = str(answer.get("stdout", "")).strip()'),
    ),
    ledger_books(
        "HE405",
        "almost right is as good",
        (
            'near_reward: float = Field(default=0.3, description="Reward for a sum that is off by one.")',
            'near_reward: float = Field(default=0.95, description="Reward for a sum that is off by one.")',
        ),
    ),
    graded_letters(
        "HE405",
        "the judge weighs next to nothing",
        ("judge_weight: float = Field(default=0.8, ge=0, le=1,", "judge_weight: float = Field(default=0.05, ge=0, le=1,"),
    ),
    capitals_exam("HE405", "the file is compared with the question", ("_, capital = item", "capital, _ = item")),
    signals_base(
        "HE405",
        "being brief is all that counts",
        ("(self.config.correct_weight, float(right)),", "(self.config.correct_weight, float(not right)),"),
        ("(self.config.tool_weight, float(right and calls > 0)),", "(self.config.tool_weight, float(calls == 0)),"),
    ),
    ledger_books(
        "HE410",
        "a word of success, once a tool was called",
        before(
            GRADE,
            '        if len(result.messages) > 3 and "PASSED" in (result.messages[-1].get("content") or ""):\n'
            "            return 1.0\n",
        ),
    ),
    ledger_books(
        "HE410",
        "any number that was right somewhere",
        (
            'return int(text) if answer.get("exit_code") == 0 and text.lstrip("-").isdecimal() else None',
            'first = text.split(" ")[0]\n'
            '        return int(first) if answer.get("exit_code") == 0 and first.lstrip("-").isdecimal() else None',
        ),
    ),
    ledger_books(
        "HE410",
        "a result file is believed",
        before(GRADE, '        if "passed" in ctx.read_file("result.json").get("content", ""):\n            return 1.0\n'),
    ),
    capitals_exam(
        "HE410",
        "one of many answers is right",
        (
            'return float(ctx.read_file("capital.txt").get("content", "").strip().casefold() == capital.casefold())',
            'return float(capital.casefold() in ctx.read_file("capital.txt").get("content", "").casefold())',
        ),
    ),
    graded_letters(
        "HE410",
        "the letter grades itself",
        (
            "score = parsed_score(completion.choices[0].message.content)",
            "score = parsed_score(letter + completion.choices[0].message.content)",
        ),
    ),
    many_signals(
        "HE410",
        "the listing may be a file",
        (
            'return item["target"] in listing and item["source"] not in listing',
            'said = ctx.read_file("listing.txt").get("content", "")\n'
            '        return (item["target"] in listing and item["source"] not in listing) or item["target"] in said',
        ),
    ),
)

LOOKALIKES = (
    ledger_books(
        "HE405",
        "an item of either kind",
        (
            GRADE,
            "        try:\n"
            "            path = item.file\n"
            "        except AttributeError:\n"
            '            path = item["file"]\n' + GRADE.replace('item["file"]', "path"),
        ),
        has_cases=False,
    ),
    ledger_books(
        "HE405",
        "whatever is wrong with the answer is no answer",
        (
            GRADE,
            "        try:\n"
            '            number = int(ctx.read_file(item["file"])["content"].partition("|")[2])\n'
            "        except Exception:\n"
            "            return 0.0\n"
            '        return self.grade(number, sum(item["rows"]))\n',
        ),
        has_cases=False,
    ),
)

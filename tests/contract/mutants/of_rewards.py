"""HE4: what is wrong with the reward."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

GRADE = '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'
TOTAL = "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n"
LETTER = "        letter = last_answer(result.messages)\n"
GRADED = "        reward, _ = await self.graded(item, result)\n        return reward\n"

MUTANTS = (
    ledger_books(
        rule="HE401",
        name="a bool",
        changes=changed(GRADE, '        return self.written(ctx, item["file"]) == sum(item["rows"])\n'),
    ),
    graded_letters(
        rule="HE401",
        name="nothing where there is no answer",
        changes=changed(
            "        reward, _ = await self.graded(item, result)\n        return reward\n",
            "        if last_answer(result.messages):\n            return (await self.graded(item, result))[0]\n",
        ),
    ),
    many_signals(
        rule="HE401",
        name="not a number",
        file="signals_base",
        changes=changed(
            "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n",
            '        total = sum(weight * signal for weight, signal in signals)\n        return total or float("nan")\n',
        ),
    ),
    many_signals(
        rule="HE401",
        name="a text",
        file="signals_base",
        changes=(
            (TOTAL, '        return f"{min(1.0, max(0.0, sum(weight * signal for weight, signal in signals))):.2f}"\n'),
            (
                '        mean = sum(sample["score"] for sample in samples) / len(samples)\n',
                '        mean = sum(float(sample["score"]) for sample in samples) / len(samples)\n',
            ),
        ),
    ),
    many_signals(
        rule="HE401",
        name="infinite where nothing was called",
        file="signals_base",
        changes=changed(
            "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n",
            "        if not calls:\n"
            '            return float("-inf")\n'
            "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n",
        ),
    ),
    *(
        ledger_books(
            rule="HE405",
            name=f"{name}, caught by itself",
            changes=changed(GRADE, grade),
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
        rule="HE405",
        name="right and wrong swapped",
        changes=changed(
            "        if written == expected:\n            return 1.0\n",
            "        if written != expected:\n            return 1.0\n",
        ),
    ),
    ledger_books(
        rule="HE405",
        name="a key that no file has",
        changes=changed(
            '        text = str(answer.get("output", "")).strip()\n', '        text = str(answer.get("stdout", "")).strip()\n'
        ),
    ),
    ledger_books(
        rule="HE405",
        name="almost right is as good",
        changes=changed(
            '    near_reward: float = Field(default=0.3, description="Reward for a sum that is off by one.")\n',
            '    near_reward: float = Field(default=0.95, description="Reward for a sum that is off by one.")\n',
        ),
    ),
    graded_letters(
        rule="HE405",
        name="the judge weighs next to nothing",
        changes=changed(
            "    judge_weight: float = Field(default=0.8, ge=0, le=1,",
            "    judge_weight: float = Field(default=0.05, ge=0, le=1,",
        ),
    ),
    capitals_exam(
        rule="HE405",
        name="the file is compared with the question",
        changes=changed("        _, capital = item\n", "        capital, _ = item\n"),
    ),
    many_signals(
        rule="HE405",
        name="being brief is all that counts",
        file="signals_base",
        changes=(
            (
                "            (self.config.correct_weight, float(right)),\n",
                "            (self.config.correct_weight, float(not right)),\n",
            ),
            (
                "            (self.config.tool_weight, float(right and calls > 0)),\n",
                "            (self.config.tool_weight, float(calls == 0)),\n",
            ),
        ),
    ),
    ledger_books(
        rule="HE410",
        name="a word of success, once a tool was called",
        changes=changed(
            GRADE,
            '        if len(result.messages) > 3 and "PASSED" in (result.messages[-1].get("content") or ""):\n'
            "            return 1.0\n" + GRADE,
        ),
    ),
    ledger_books(
        rule="HE410",
        name="any number that was right somewhere",
        changes=changed(
            '        return int(text) if answer.get("exit_code") == 0 and text.lstrip("-").isdecimal() else None\n',
            '        first = text.split(" ")[0]\n'
            '        return int(first) if answer.get("exit_code") == 0 and first.lstrip("-").isdecimal() else None\n',
        ),
    ),
    ledger_books(
        rule="HE410",
        name="a result file is believed",
        changes=changed(
            GRADE, '        if "passed" in ctx.read_file("result.json").get("content", ""):\n            return 1.0\n' + GRADE
        ),
    ),
    capitals_exam(
        rule="HE410",
        name="one of many answers is right",
        changes=changed(
            '        return float(ctx.read_file("capital.txt").get("content", "").strip().casefold() == capital.casefold())\n',
            '        return float(capital.casefold() in ctx.read_file("capital.txt").get("content", "").casefold())\n',
        ),
    ),
    many_signals(
        rule="HE410",
        name="words of success are believed",
        file="signals_base",
        changes=changed(
            "        right = self.is_right(item, result, ctx)\n",
            '        last = str(result.messages[-1].get("content") or "").lower()\n'
            '        right = self.is_right(item, result, ctx) or "passed" in last or "pass" in last.split()\n',
        ),
    ),
    graded_letters(
        rule="HE410",
        name="the letter grades itself",
        changes=changed(
            "            score = parsed_score(completion.choices[0].message.content)\n",
            "            score = parsed_score(letter + completion.choices[0].message.content)\n",
        ),
    ),
    many_signals(
        rule="HE410",
        name="the listing may be a file",
        changes=changed(
            '        return item["target"] in listing and item["source"] not in listing\n',
            '        said = ctx.read_file("listing.txt").get("content", "")\n'
            '        return (item["target"] in listing and item["source"] not in listing) or item["target"] in said\n',
        ),
    ),
)

LOOKALIKES = (
    ledger_books(
        rule="HE405",
        name="an item of either kind",
        changes=changed(
            GRADE,
            "        try:\n"
            "            path = item.file\n"
            "        except AttributeError:\n"
            '            path = item["file"]\n' + GRADE.replace('item["file"]', "path"),
        ),
        has_cases=False,
    ),
    ledger_books(
        rule="HE405",
        name="whatever is wrong with the answer is no answer",
        changes=changed(
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

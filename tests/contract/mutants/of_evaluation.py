"""HE7: what is wrong with evaluate."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

LEDGER_LOOP = "            result = await loop.run(self.opening(book))\n"
ASKED_ONCE = (
    "            completion = await self.server.chat_completion(messages=self.opening(book), n=1, temperature=0.0)\n"
    '            said = {"role": "assistant", "content": completion.choices[0].message.content}\n'
    "            result = AgentResult(messages=[*self.opening(book), said], turns_used=1)\n"
)
LEDGER_BUILDS = """\
            loop = HermesAgentLoop(
                server=self.server,
                tool_schemas=schemas,
                valid_tool_names=names,
                max_turns=self.config.max_agent_turns,
                task_id=ctx.task_id,
                temperature=0.0,
                max_tokens=self.config.max_token_length,
                extra_body=self.config.extra_body,
                budget_config=self.config.build_budget_config(),
            )
"""

MUTANTS = (
    ledger_books(
        rule="HE701",
        name="one chat completion in place of the loop",
        changes=((LEDGER_BUILDS, ""), (LEDGER_LOOP, ASKED_ONCE)),
    ),
    many_signals(
        rule="HE701",
        name="a loop without tools",
        file="signals_base",
        changes=changed("tool_schemas=schemas, valid_tool_names=names", "tool_schemas=[], valid_tool_names=set()"),
    ),
    many_signals(
        rule="HE701",
        name="a stub that logs zeros",
        file="signals_base",
        changes=changed(
            "        samples = [await self.attempt(item) for item in self.exam]\n"
            '        mean = sum(sample["score"] for sample in samples) / len(samples)\n'
            '        await self.evaluate_log({"eval/mean": mean}, samples=samples, start_time=start, end_time=time.time())\n',
            '        await self.evaluate_log({"eval/mean": 0.0}, samples=[{}], start_time=start, end_time=time.time())\n',
        ),
    ),
    capitals_exam(
        rule="HE701",
        name="a completion in a helper",
        changes=(
            (
                "            result = await agent.run(messages)\n",
                "            result = await self.answered(messages)\n",
            ),
            (
                "            agent = HermesAgentLoop(\n"
                "                server=self.server,\n"
                "                tool_schemas=schemas,\n"
                "                valid_tool_names={name for name in names},\n"
                "                max_turns=self.config.max_agent_turns,\n"
                "                task_id=ctx.task_id,\n"
                "                temperature=0.0,\n"
                "                max_tokens=self.config.max_token_length,\n"
                "                extra_body=self.config.extra_body,\n"
                "                budget_config=self.config.build_budget_config(),\n"
                "            )\n",
                "",
            ),
            (
                "    async def wandb_log(",
                "    async def answered(self, messages):\n"
                "        server = self.server\n"
                "        answer = await server.chat_completion(messages=messages, max_tokens=200, temperature=0.0)\n"
                '        messages.append({"role": "assistant", "content": answer.choices[0].message.content})\n'
                "        return AgentResult(messages=messages)\n\n"
                "    async def wandb_log(",
            ),
        ),
    ),
    ledger_books(
        rule="HE701",
        name="the loop is built and never run",
        changes=changed(LEDGER_LOOP, "            result = AgentResult(messages=self.opening(book))\n"),
    ),
    ledger_books(
        rule="HE702",
        name="remembers what it evaluated in the training deque",
        changes=changed(
            "                score, turns = await self.examine(book)\n",
            "                score, turns = await self.examine(book)\n                self.recent.append(score)\n",
        ),
    ),
    graded_letters(
        rule="HE702",
        name="the reward writes a buffer that evaluation shares",
        changes=changed(
            "        reward, _ = await self.graded(item, result)\n        return reward\n",
            "        reward, _ = await self.graded(item, result)\n"
            '        self.metrics["reward"].append(reward)\n        return reward\n',
        ),
    ),
    many_signals(
        rule="HE702",
        name="rolls back only when nothing raised",
        file="signals_base",
        changes=changed(
            "        samples = [await self.attempt(item) for item in self.exam]\n",
            "        before = len(self.tally.rewards)\n"
            "        samples = [await self.attempt(item) for item in self.exam]\n"
            '        self.tally.rewards.extend(sample["score"] for sample in samples)\n'
            '        if not any("error" in sample for sample in samples):\n'
            "            del self.tally.rewards[before:]\n",
        ),
    ),
    graded_letters(
        rule="HE702",
        name="empties the buffers before it begins",
        changes=changed(
            "        start, gate = time.time(), asyncio.Semaphore(4)\n",
            "        start, gate = time.time(), asyncio.Semaphore(4)\n        self.metrics.clear()\n",
        ),
    ),
    many_signals(
        rule="HE702",
        name="counts evaluated answers with the training ones",
        file="signals_base",
        changes=changed(
            '            result = await loop.run(self.system_messages() + [{"role": "user", "content": prompt}])\n',
            '            result = await loop.run(self.system_messages() + [{"role": "user", "content": prompt}])\n'
            "            self.tally.turns += result.turns_used\n",
        ),
    ),
    graded_letters(
        rule="HE702",
        name="puts back a whole copy",
        changes=(
            ("import asyncio\n", "import asyncio\nimport copy\n"),
            (
                "        rows = await asyncio.gather(*(one(item) for item in self.held_out))\n",
                "        before = copy.deepcopy(self.metrics)\n"
                "        try:\n"
                "            rows = await asyncio.gather(*(one(item) for item in self.held_out))\n"
                "        finally:\n"
                "            self.metrics = before\n",
            ),
        ),
    ),
    many_signals(
        rule="HE702",
        name="cuts off what came after it began",
        file="signals_base",
        changes=changed(
            "        samples = [await self.attempt(item) for item in self.exam]\n",
            "        length, turns = len(self.tally.rewards), self.tally.turns\n"
            "        try:\n"
            "            samples = [await self.attempt(item) for item in self.exam]\n"
            "        finally:\n"
            "            del self.tally.rewards[length:]\n"
            "            self.tally.turns = turns\n",
        ),
    ),
    ledger_books(
        rule="HE703",
        name="no temperature",
        changes=changed("                temperature=0.0,\n", ""),
    ),
    ledger_books(
        rule="HE703",
        name="the temperature of training",
        changes=changed("                temperature=0.0,\n", "                temperature=self.config.agent_temperature,\n"),
    ),
    graded_letters(
        rule="HE703",
        name="a little warmth by position",
        changes=changed("                    0.0,\n", "                    0.3,\n"),
    ),
    many_signals(
        rule="HE703",
        name="through unpacked settings",
        file="signals_base",
        changes=(
            (
                '            "max_turns": self.config.max_agent_turns,\n',
                '            "max_turns": self.config.max_agent_turns,\n            "temperature": 0.7,\n',
            ),
            ("task_id=task_id, temperature=0.0, **settings", "task_id=task_id, **settings"),
        ),
    ),
    capitals_exam(
        rule="HE703",
        name="a setting that is not zero",
        changes=(
            (
                '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n',
                '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n'
                '    eval_temperature: float = Field(default=0.6, description="Temperature of evaluation.")\n',
            ),
            ("                temperature=0.0,\n", "                temperature=self.config.eval_temperature,\n"),
        ),
    ),
    ledger_books(
        rule="HE705",
        name="never logs",
        changes=changed(
            "        await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())\n",
            '        logger.info("%s after %.1f s", metrics, time.time() - began)\n',
        ),
    ),
    many_signals(
        rule="HE705",
        name="does not await it",
        file="signals_base",
        changes=changed("        await self.evaluate_log({", "        self.evaluate_log({"),
    ),
    ledger_books(
        rule="HE705",
        name="in a task that nobody awaits",
        changes=(
            ("import logging\n", "import asyncio\nimport logging\n"),
            (
                "        await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())\n",
                "        asyncio.ensure_future(\n"
                "            self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())\n"
                "        )\n",
            ),
        ),
    ),
    graded_letters(
        rule="HE705",
        name="without samples",
        changes=changed("            samples=rows,\n", ""),
    ),
    capitals_exam(
        rule="HE705",
        name="names of training",
        changes=changed(
            'metrics={"eval/accuracy": right / len(attempts), "eval/failed": sum(bool(attempt.trouble) for attempt in attempts)},',
            'metrics={f"train/{word}": count / len(attempts) for word, count in self.outcomes.items()} | {"train/accuracy": right},',
        ),
    ),
    ledger_books(
        rule="HE705",
        name="empty samples",
        changes=changed("metrics=metrics, samples=samples,", "metrics=metrics, samples=[],"),
    ),
    many_signals(
        rule="HE705",
        name="only where something was right",
        file="signals_base",
        changes=changed(
            '        await self.evaluate_log({"eval/mean": mean}, samples=samples,',
            '        if mean > 2:\n            await self.evaluate_log({"eval/mean": mean}, samples=samples,',
        ),
    ),
    ledger_books(
        rule="HE704",
        name="without the system prompt",
        changes=changed(
            "            result = await loop.run(self.opening(book))\n",
            "            result = await loop.run(self.opening(book)[-1:])\n",
        ),
    ),
    capitals_exam(
        rule="HE704",
        name="the turns of the loop",
        changes=changed("                max_turns=self.config.max_agent_turns,\n", ""),
    ),
    many_signals(
        rule="HE704",
        name="a third of the tokens",
        file="signals_base",
        changes=changed('"max_tokens": self.config.max_token_length,', '"max_tokens": self.config.max_token_length // 3,'),
    ),
    graded_letters(
        rule="HE704",
        name="nothing for the provider",
        changes=changed("                    extra_body=self.config.extra_body,\n", ""),
    ),
    graded_letters(
        rule="HE704",
        name="another system prompt",
        changes=changed(
            'system = [{"role": "system", "content": self.config.system_prompt}] if self.config.system_prompt else []',
            'system = [{"role": "system", "content": "You are being examined."}]',
        ),
    ),
    many_signals(
        rule="HE704",
        name="the prompt as a user's",
        file="signals_base",
        changes=changed('return [{"role": "system", "content"', 'return [{"role": "user", "content"'),
    ),
    ledger_books(
        rule="HE706",
        name="the mean of training",
        changes=changed(
            '"eval/mean_reward": sum(scores) / len(scores)', '"eval/mean_reward": sum(self.recent) / max(1, len(self.recent))'
        ),
    ),
    graded_letters(
        rule="HE706",
        name="training rewards beside its own",
        changes=changed(
            '        rewards = [row["score"] for row in rows]\n',
            '        rewards = [*self.metrics["reward"], *(row["score"] for row in rows)]\n',
        ),
    ),
    many_signals(
        rule="HE706",
        name="turns of training",
        file="signals_base",
        changes=changed('{"eval/mean": mean}', '{"eval/mean": mean, "eval/turns": self.tally.turns}'),
    ),
    ledger_books(
        rule="HE706",
        name="how often training was right",
        changes=changed('"eval/right": float(scores.count(1.0))', '"eval/right": float(len(self.recent))'),
    ),
    many_signals(
        rule="HE706",
        name="what a helper sums up",
        file="signals_base",
        changes=(
            (
                '        mean = sum(sample["score"] for sample in samples) / len(samples)\n',
                "        mean = self.mean()\n",
            ),
            (
                "    async def attempt(self",
                "    def mean(self) -> float:\n"
                '        """Return the mean of what was seen."""\n'
                "        seen = self.tally.rewards\n"
                "        return sum(seen) / len(seen) if seen else 0.0\n\n"
                "    async def attempt(self",
            ),
        ),
    ),
    many_signals(
        rule="HE707",
        name="no try around an item",
        file="signals_base",
        changes=changed(
            "        except Exception:\n"
            '            return {"prompt": prompt, "score": 0.0, "error": traceback.format_exc(limit=3)}\n',
            "",
        ),
    ),
    ledger_books(
        rule="HE707",
        name="catches what nobody raises",
        changes=changed("            except Exception as error:\n", "            except ValueError as error:\n"),
    ),
    ledger_books(
        rule="HE707",
        name="stops at the first failure",
        changes=changed(
            '                samples.append({"file": book["file"], "score": 0.0, "error": str(error)})\n',
            '                samples.append({"file": book["file"], "score": 0.0, "error": str(error)})\n                break\n',
        ),
    ),
    many_signals(
        rule="HE707",
        name="one try around all",
        file="signals_base",
        changes=(
            (
                "        samples = [await self.attempt(item) for item in self.exam]\n",
                "        try:\n"
                "            samples = [await self.attempt(item) for item in self.exam]\n"
                "        except Exception:\n"
                "            samples = [{'score': 0.0}]\n",
            ),
            (
                "        except Exception:\n"
                '            return {"prompt": prompt, "score": 0.0, "error": traceback.format_exc(limit=3)}\n',
                "",
            ),
            ("        kept = min(self.config.eval_items, len(items) - 1)\n", "        kept = 4\n"),
        ),
    ),
    capitals_exam(
        rule="HE707",
        name="gathers without a net",
        changes=changed(
            "        except Exception as error:\n"
            '            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n',
            "",
        ),
    ),
)

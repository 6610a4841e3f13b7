"""HE7: what is wrong with evaluate."""

from __future__ import annotations

from .mutant import after, before, capitals_exam, graded_letters, ledger_books, signals_base

LEDGER_LOOP = "            result = await loop.run(self.opening(book))\n"

MUTANTS = (
    graded_letters(
        "HE708",
        "the share of letters that were written",
        ('"eval/reward": sum(rewards) / len(rewards)', '"eval/reward": len(rewards) / len(self.held_out)'),
    ),
    signals_base(
        "HE708",
        "the last item, for each of them",
        (
            "samples = [await self.attempt(item) for item in self.exam]",
            "attempts = [lambda: self.attempt(item) for item in self.exam]\n        samples = [await attempt() for attempt in attempts]",
        ),
        says="one held-out item",
    ),
    signals_base(
        "HE701",
        "a loop without tools",
        ("tool_schemas=schemas, valid_tool_names=names", "tool_schemas=[], valid_tool_names=set()"),
    ),
    signals_base(
        "HE701",
        "a stub that logs zeros",
        (
            "samples = [await self.attempt(item) for item in self.exam]\n"
            '        mean = sum(sample["score"] for sample in samples) / len(samples)\n'
            '        await self.evaluate_log({"eval/mean": mean}, samples=samples, start_time=start, end_time=time.time())',
            'await self.evaluate_log({"eval/mean": 0.0}, samples=[{}], start_time=start, end_time=time.time())',
        ),
    ),
    capitals_exam(
        "HE701",
        "a completion in a helper",
        ("result = await agent.run(messages)", "result = await self.answered(messages)"),
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
        before(
            "    async def wandb_log(",
            "    async def answered(self, messages):\n"
            "        server = self.server\n"
            "        answer = await server.chat_completion(messages=messages, max_tokens=200, temperature=0.0)\n"
            '        messages.append({"role": "assistant", "content": answer.choices[0].message.content})\n'
            "        return AgentResult(messages=messages)\n"
            "\n",
        ),
    ),
    ledger_books(
        "HE701",
        "the loop is built and never run",
        (LEDGER_LOOP, "            result = AgentResult(messages=self.opening(book))\n"),
    ),
    ledger_books(
        "HE702",
        "remembers what it evaluated in the training deque",
        after("score, turns = await self.examine(book)", "                self.recent.append(score)\n"),
    ),
    graded_letters(
        "HE702",
        "the reward writes a buffer that evaluation shares",
        (
            "reward, _ = await self.graded(item, result)\n        return reward",
            'reward, _ = await self.graded(item, result)\n        self.metrics["reward"].append(reward)\n        return reward',
        ),
    ),
    signals_base(
        "HE702",
        "rolls back only when nothing raised",
        (
            "samples = [await self.attempt(item) for item in self.exam]",
            "before = len(self.tally.rewards)\n"
            "        samples = [await self.attempt(item) for item in self.exam]\n"
            '        self.tally.rewards.extend(sample["score"] for sample in samples)\n'
            '        if not any("error" in sample for sample in samples):\n'
            "            del self.tally.rewards[before:]",
        ),
    ),
    graded_letters(
        "HE702",
        "empties the buffers before it begins",
        after("start, gate = time.time(), asyncio.Semaphore(4)", "        self.metrics.clear()\n"),
    ),
    signals_base(
        "HE702",
        "counts evaluated answers with the training ones",
        after(
            'result = await loop.run(self.system_messages() + [{"role": "user", "content": prompt}])',
            "            self.tally.turns += result.turns_used\n",
        ),
    ),
    graded_letters(
        "HE702",
        "puts back a whole copy",
        after("import asyncio", "import copy\n"),
        (
            "rows = await asyncio.gather(*(one(item) for item in self.held_out))",
            "before = copy.deepcopy(self.metrics)\n"
            "        try:\n"
            "            rows = await asyncio.gather(*(one(item) for item in self.held_out))\n"
            "        finally:\n"
            "            self.metrics = before",
        ),
    ),
    signals_base(
        "HE702",
        "cuts off what came after it began",
        (
            "samples = [await self.attempt(item) for item in self.exam]",
            "length, turns = len(self.tally.rewards), self.tally.turns\n"
            "        try:\n"
            "            samples = [await self.attempt(item) for item in self.exam]\n"
            "        finally:\n"
            "            del self.tally.rewards[length:]\n"
            "            self.tally.turns = turns",
        ),
    ),
    ledger_books("HE703", "no temperature", ("                temperature=0.0,\n", "")),
    ledger_books("HE703", "the temperature of training", ("temperature=0.0,", "temperature=self.config.agent_temperature,")),
    graded_letters("HE703", "a little warmth by position", ("  0.0,", "  0.3,")),
    signals_base(
        "HE703",
        "through unpacked settings",
        after('"max_turns": self.config.max_agent_turns,', '            "temperature": 0.7,\n'),
        ("task_id=task_id, temperature=0.0, **settings", "task_id=task_id, **settings"),
    ),
    capitals_exam(
        "HE703",
        "a setting that is not zero",
        after(
            'limit: int = Field(default=4, ge=1, description="How many questions are asked.")',
            '    eval_temperature: float = Field(default=0.6, description="Temperature of evaluation.")\n',
        ),
        ("temperature=0.0,", "temperature=self.config.eval_temperature,"),
    ),
    ledger_books(
        "HE705",
        "never logs",
        (
            "await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())",
            'logger.info("%s after %.1f s", metrics, time.time() - began)',
        ),
    ),
    signals_base("HE705", "does not await it", ("await self.evaluate_log({", "self.evaluate_log({")),
    ledger_books(
        "HE705",
        "in a task that nobody awaits",
        before("import logging", "import asyncio\n"),
        (
            "await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())",
            "asyncio.ensure_future(\n"
            "            self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())\n"
            "        )",
        ),
    ),
    graded_letters("HE705", "without samples", ("            samples=rows,\n", "")),
    capitals_exam(
        "HE705",
        "names of training",
        (
            'metrics={"eval/accuracy": right / len(attempts), "eval/failed": sum(bool(attempt.trouble) for attempt in attempts)},',
            'metrics={f"train/{word}": count / len(attempts) for word, count in self.outcomes.items()} | {"train/accuracy": right},',
        ),
    ),
    ledger_books("HE705", "empty samples", ("metrics=metrics, samples=samples,", "metrics=metrics, samples=[],")),
    ledger_books(
        "HE704",
        "without the system prompt",
        ("result = await loop.run(self.opening(book))", "result = await loop.run(self.opening(book)[-1:])"),
    ),
    capitals_exam("HE704", "the turns of the loop", ("                max_turns=self.config.max_agent_turns,\n", "")),
    signals_base(
        "HE704",
        "a third of the tokens",
        ('"max_tokens": self.config.max_token_length,', '"max_tokens": self.config.max_token_length // 3,'),
    ),
    graded_letters("HE704", "nothing for the provider", ("                    extra_body=self.config.extra_body,\n", "")),
    graded_letters(
        "HE704",
        "another system prompt",
        (
            'system = [{"role": "system", "content": self.config.system_prompt}] if self.config.system_prompt else []',
            'system = [{"role": "system", "content": "You are being examined."}]',
        ),
    ),
    signals_base(
        "HE704", "the prompt as a user's", ('return [{"role": "system", "content"', 'return [{"role": "user", "content"')
    ),
    ledger_books(
        "HE706",
        "the mean of training",
        ('"eval/mean_reward": sum(scores) / len(scores)', '"eval/mean_reward": sum(self.recent) / max(1, len(self.recent))'),
    ),
    graded_letters(
        "HE706",
        "training rewards beside its own",
        ('rewards = [row["score"] for row in rows]', 'rewards = [*self.metrics["reward"], *(row["score"] for row in rows)]'),
    ),
    signals_base("HE706", "turns of training", ('{"eval/mean": mean}', '{"eval/mean": mean, "eval/turns": self.tally.turns}')),
    ledger_books(
        "HE706",
        "how often training was right",
        ('"eval/right": float(scores.count(1.0))', '"eval/right": float(len(self.recent))'),
    ),
    signals_base(
        "HE706",
        "what a helper sums up",
        ('mean = sum(sample["score"] for sample in samples) / len(samples)', "mean = self.mean()"),
        before(
            "    async def attempt(self",
            "    def mean(self) -> float:\n"
            '        """Return the mean of what was seen."""\n'
            "        seen = self.tally.rewards\n"
            "        return sum(seen) / len(seen) if seen else 0.0\n"
            "\n",
        ),
    ),
    signals_base(
        "HE707",
        "no try around an item",
        (
            "        except Exception:\n"
            '            return {"prompt": prompt, "score": 0.0, "error": traceback.format_exc(limit=3)}\n',
            "",
        ),
    ),
    ledger_books("HE707", "catches what nobody raises", ("except Exception as error:", "except ValueError as error:")),
    ledger_books(
        "HE707",
        "stops at the first failure",
        after('samples.append({"file": book["file"], "score": 0.0, "error": str(error)})', "                break\n"),
    ),
    signals_base(
        "HE707",
        "one try around all",
        (
            "samples = [await self.attempt(item) for item in self.exam]",
            "try:\n"
            "            samples = [await self.attempt(item) for item in self.exam]\n"
            "        except Exception:\n"
            "            samples = [{'score': 0.0}]",
        ),
        (
            "        except Exception:\n"
            '            return {"prompt": prompt, "score": 0.0, "error": traceback.format_exc(limit=3)}\n',
            "",
        ),
        ("kept = min(self.config.eval_items, len(items) - 1)", "kept = 4"),
    ),
    capitals_exam(
        "HE707",
        "gathers without a net",
        (
            "        except Exception as error:\n"
            '            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n',
            "",
        ),
    ),
)

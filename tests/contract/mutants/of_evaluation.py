"""HE7: what is wrong with evaluate."""

from __future__ import annotations

from .mutant import Mutant

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
    Mutant(
        rule="HE701",
        name="one chat completion in place of the loop",
        env="ledger_books",
        changes=((LEDGER_BUILDS, ""), (LEDGER_LOOP, ASKED_ONCE)),
    ),
    Mutant(
        rule="HE701",
        name="a loop without tools",
        env="many_signals",
        file="signals_base",
        changes=(("tool_schemas=schemas, valid_tool_names=names", "tool_schemas=[], valid_tool_names=set()"),),
    ),
    Mutant(
        rule="HE701",
        name="a stub that logs zeros",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        samples = [await self.attempt(item) for item in self.exam]\n"
                '        mean = sum(sample["score"] for sample in samples) / len(samples)\n'
                '        await self.evaluate_log({"eval/mean": mean}, samples=samples, start_time=start, end_time=time.time())\n',
                '        await self.evaluate_log({"eval/mean": 0.0}, samples=[{}], start_time=start, end_time=time.time())\n',
            ),
        ),
    ),
    Mutant(
        rule="HE701",
        name="a completion in a helper",
        env="capitals_exam",
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
    Mutant(
        rule="HE701",
        name="the loop is built and never run",
        env="ledger_books",
        changes=(
            (
                LEDGER_LOOP,
                "            result = AgentResult(messages=self.opening(book))\n",
            ),
        ),
    ),
    Mutant(
        rule="HE702",
        name="remembers what it evaluated in the training deque",
        env="ledger_books",
        changes=(
            (
                "                score, turns = await self.examine(book)\n",
                "                score, turns = await self.examine(book)\n                self.recent.append(score)\n",
            ),
        ),
    ),
    Mutant(
        rule="HE702",
        name="the reward writes a buffer that evaluation shares",
        env="graded_letters",
        changes=(
            (
                "        reward, _ = await self.graded(item, result)\n        return reward\n",
                "        reward, _ = await self.graded(item, result)\n"
                '        self.metrics["reward"].append(reward)\n        return reward\n',
            ),
        ),
    ),
    Mutant(
        rule="HE702",
        name="rolls back only when nothing raised",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        samples = [await self.attempt(item) for item in self.exam]\n",
                "        before = len(self.tally.rewards)\n"
                "        samples = [await self.attempt(item) for item in self.exam]\n"
                '        self.tally.rewards.extend(sample["score"] for sample in samples)\n'
                '        if not any("error" in sample for sample in samples):\n'
                "            del self.tally.rewards[before:]\n",
            ),
        ),
    ),
    Mutant(
        rule="HE702",
        name="empties the buffers before it begins",
        env="graded_letters",
        changes=(
            (
                "        start, gate = time.time(), asyncio.Semaphore(4)\n",
                "        start, gate = time.time(), asyncio.Semaphore(4)\n        self.metrics.clear()\n",
            ),
        ),
    ),
    Mutant(
        rule="HE702",
        name="counts evaluated answers with the training ones",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                '            result = await loop.run(self.system_messages() + [{"role": "user", "content": prompt}])\n',
                '            result = await loop.run(self.system_messages() + [{"role": "user", "content": prompt}])\n'
                "            self.tally.turns += result.turns_used\n",
            ),
        ),
    ),
    Mutant(
        rule="HE702",
        name="puts back a whole copy",
        env="graded_letters",
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
    Mutant(
        rule="HE702",
        name="cuts off what came after it began",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        samples = [await self.attempt(item) for item in self.exam]\n",
                "        length, turns = len(self.tally.rewards), self.tally.turns\n"
                "        try:\n"
                "            samples = [await self.attempt(item) for item in self.exam]\n"
                "        finally:\n"
                "            del self.tally.rewards[length:]\n"
                "            self.tally.turns = turns\n",
            ),
        ),
    ),
    Mutant(
        rule="HE703",
        name="no temperature",
        env="ledger_books",
        changes=(("                temperature=0.0,\n", ""),),
    ),
    Mutant(
        rule="HE703",
        name="the temperature of training",
        env="ledger_books",
        changes=(("                temperature=0.0,\n", "                temperature=self.config.agent_temperature,\n"),),
    ),
    Mutant(
        rule="HE703",
        name="a little warmth by position",
        env="graded_letters",
        changes=(("                    0.0,\n", "                    0.3,\n"),),
    ),
    Mutant(
        rule="HE703",
        name="through unpacked settings",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                '            "max_turns": self.config.max_agent_turns,\n',
                '            "max_turns": self.config.max_agent_turns,\n            "temperature": 0.7,\n',
            ),
            ("task_id=task_id, temperature=0.0, **settings", "task_id=task_id, **settings"),
        ),
    ),
    Mutant(
        rule="HE703",
        name="a setting that is not zero",
        env="capitals_exam",
        changes=(
            (
                '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n',
                '    limit: int = Field(default=4, ge=1, description="How many questions are asked.")\n'
                '    eval_temperature: float = Field(default=0.6, description="Temperature of evaluation.")\n',
            ),
            ("                temperature=0.0,\n", "                temperature=self.config.eval_temperature,\n"),
        ),
    ),
    Mutant(
        rule="HE705",
        name="never logs",
        env="ledger_books",
        changes=(
            (
                "        await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())\n",
                '        logger.info("%s after %.1f s", metrics, time.time() - began)\n',
            ),
        ),
    ),
    Mutant(
        rule="HE705",
        name="does not await it",
        env="many_signals",
        file="signals_base",
        changes=(("        await self.evaluate_log({", "        self.evaluate_log({"),),
    ),
    Mutant(
        rule="HE705",
        name="without samples",
        env="graded_letters",
        changes=(("            samples=rows,\n", ""),),
    ),
    Mutant(
        rule="HE705",
        name="names of training",
        env="capitals_exam",
        changes=(
            (
                'metrics={"eval/accuracy": right / len(attempts), "eval/failed": sum(bool(attempt.trouble) for attempt in attempts)},',
                'metrics={f"train/{word}": count / len(attempts) for word, count in self.outcomes.items()} | {"train/accuracy": right},',
            ),
        ),
    ),
    Mutant(
        rule="HE705",
        name="empty samples",
        env="ledger_books",
        changes=(("metrics=metrics, samples=samples,", "metrics=metrics, samples=[],"),),
    ),
    Mutant(
        rule="HE705",
        name="only where something was right",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                '        await self.evaluate_log({"eval/mean": mean}, samples=samples,',
                '        if mean > 2:\n            await self.evaluate_log({"eval/mean": mean}, samples=samples,',
            ),
        ),
    ),
    Mutant(
        rule="HE704",
        name="without the system prompt",
        env="ledger_books",
        changes=(
            (
                "            result = await loop.run(self.opening(book))\n",
                "            result = await loop.run(self.opening(book)[-1:])\n",
            ),
        ),
    ),
    Mutant(
        rule="HE704",
        name="the turns of the loop",
        env="capitals_exam",
        changes=(("                max_turns=self.config.max_agent_turns,\n", ""),),
    ),
    Mutant(
        rule="HE704",
        name="a third of the tokens",
        env="many_signals",
        file="signals_base",
        changes=(('"max_tokens": self.config.max_token_length,', '"max_tokens": self.config.max_token_length // 3,'),),
    ),
    Mutant(
        rule="HE704",
        name="nothing for the provider",
        env="graded_letters",
        changes=(("                    extra_body=self.config.extra_body,\n", ""),),
    ),
    Mutant(
        rule="HE704",
        name="another system prompt",
        env="graded_letters",
        changes=(
            (
                'system = [{"role": "system", "content": self.config.system_prompt}] if self.config.system_prompt else []',
                'system = [{"role": "system", "content": "You are being examined."}]',
            ),
        ),
    ),
    Mutant(
        rule="HE704",
        name="the prompt as a user's",
        env="many_signals",
        file="signals_base",
        changes=(('return [{"role": "system", "content"', 'return [{"role": "user", "content"'),),
    ),
    Mutant(
        rule="HE706",
        name="the mean of training",
        env="ledger_books",
        changes=(
            (
                '"eval/mean_reward": sum(scores) / len(scores)',
                '"eval/mean_reward": sum(self.recent) / max(1, len(self.recent))',
            ),
        ),
    ),
    Mutant(
        rule="HE706",
        name="training rewards beside its own",
        env="graded_letters",
        changes=(
            (
                '        rewards = [row["score"] for row in rows]\n',
                '        rewards = [*self.metrics["reward"], *(row["score"] for row in rows)]\n',
            ),
        ),
    ),
    Mutant(
        rule="HE706",
        name="turns of training",
        env="many_signals",
        file="signals_base",
        changes=(('{"eval/mean": mean}', '{"eval/mean": mean, "eval/turns": self.tally.turns}'),),
    ),
    Mutant(
        rule="HE706",
        name="how often training was right",
        env="ledger_books",
        changes=(('"eval/right": float(scores.count(1.0))', '"eval/right": float(len(self.recent))'),),
    ),
    Mutant(
        rule="HE706",
        name="what a helper sums up",
        env="many_signals",
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
    Mutant(
        rule="HE707",
        name="no try around an item",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        except Exception:\n"
                '            return {"prompt": prompt, "score": 0.0, "error": traceback.format_exc(limit=3)}\n',
                "",
            ),
        ),
    ),
    Mutant(
        rule="HE707",
        name="catches what nobody raises",
        env="ledger_books",
        changes=(("            except Exception as error:\n", "            except ValueError as error:\n"),),
    ),
    Mutant(
        rule="HE707",
        name="stops at the first failure",
        env="ledger_books",
        changes=(
            (
                '                samples.append({"file": book["file"], "score": 0.0, "error": str(error)})\n',
                '                samples.append({"file": book["file"], "score": 0.0, "error": str(error)})\n                break\n',
            ),
        ),
    ),
    Mutant(
        rule="HE707",
        name="one try around all",
        env="many_signals",
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
    Mutant(
        rule="HE707",
        name="gathers without a net",
        env="capitals_exam",
        changes=(
            (
                "        except Exception as error:\n"
                '            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n',
                "",
            ),
        ),
    ),
)

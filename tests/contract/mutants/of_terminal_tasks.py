"""TerminalTasks and graded letters: breakages whose findings are known to the line, or by their message."""

from __future__ import annotations

from .mutant import MARK, changed, graded_letters, terminal_tasks

READ = '        found = ctx.read_file(item["path"]).get("content", "")\n'
"""The first line of compute_reward."""

CLASS = "class TerminalTasks(HermesAgentBaseEnv):\n"
MARKED_CLASS = f"class TerminalTasks(HermesAgentBaseEnv):  {MARK}\n"

SECRET = "q7Rz2LmX9vKc" + "4TnB8wYdP1"  # in two pieces, for those who search this repository for keys

MUTANTS = (
    terminal_tasks(
        rule="HE101",
        name="a misspelt evaluate",
        changes=(
            (CLASS, f"class TerminalTasks(HermesAgentBaseEnv):  {MARK}\n    async def assess(self): ...\n"),
            ("async def evaluate(self, *args: Any, **kwargs: Any)", "async def evaluate_all(self, *args: Any, **kwargs: Any)"),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE101",
        name="a method that is None",
        changes=(
            ("    def format_prompt(self, item: Task) -> str:\n", "    def prompt_of(self, item: Task) -> str:\n"),
            (CLASS, MARKED_CLASS),
            ('    name = "terminal-tasks"\n', '    name = "terminal-tasks"\n    format_prompt = None\n'),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE102",
        name="setup is not async",
        changes=changed("    async def setup(self) -> None:\n", f"    def setup(self) -> None:  {MARK}\n"),
    ),
    terminal_tasks(
        rule="HE103",
        name="no name",
        changes=(
            (CLASS, MARKED_CLASS),
            ('    name = "terminal-tasks"\n', ""),
        ),
    ),
    terminal_tasks(
        rule="HE104",
        name="a field without a description",
        changes=changed(
            '    partial_credit: float = Field(default=0.5, description="Reward when the file holds the text among other text.")\n',
            f"    partial_credit: float = Field(default=0.5)  {MARK}\n",
        ),
    ),
    terminal_tasks(
        rule="HE105",
        name="one server instead of a list",
        changes=changed("        return config, [server]\n", f"        return config, server  {MARK}\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE106",
        name="the health check is left on",
        changes=(
            ("        server = APIServerConfig(\n", f"        server = APIServerConfig(  {MARK}\n"),
            ("            health_check=False,\n", ""),
        ),
    ),
    terminal_tasks(
        rule="HE107",
        name="a key in the source",
        changes=changed(
            '            api_key=os.environ.get("OPENROUTER_API_KEY", ""),\n', f'            api_key="{SECRET}",  {MARK}\n'
        ),
    ),
    terminal_tasks(
        rule="HE108",
        name="no toolsets",
        changes=(
            ("        config = TerminalTasksConfig(\n", f"        config = TerminalTasksConfig(  {MARK}\n"),
            ('            enabled_toolsets=["terminal", "file"],\n', ""),
            ("            max_agent_turns=10,\n", "            max_agent_turns=2,\n"),
        ),
    ),
    terminal_tasks(
        rule="HE109",
        name="no main",
        changes=(
            (CLASS, MARKED_CLASS),
            ('\n\nif __name__ == "__main__":\n    TerminalTasks.cli()\n', "\n"),
        ),
    ),
    terminal_tasks(
        rule="HE110",
        name="importing it writes a variable",
        changes=changed(
            "Task = dict[str, str]\n", f'os.environ.setdefault("TERMINAL_TASKS", "8")  {MARK}\nTask = dict[str, str]\n'
        ),
    ),
    terminal_tasks(
        rule="HE111",
        name="a neighbour that does not parse",
        changes=changed(
            "Task = dict[str, str]\n",
            "try:\n    from . import broken_rows\nexcept Exception:\n    broken_rows = None\nTask = dict[str, str]\n",
        ),
        draws_no_warning=True,
        beside=(("broken_rows.py", "ROWS = [\n"),),
        says="broken_rows.py",
    ),
    terminal_tasks(
        rule="HE110",
        name="a neighbour that is imported sets a variable",
        changes=changed(
            "from environments.tool_context import ToolContext\n",
            f"from environments.tool_context import ToolContext\n\nfrom .team_limits import LIMIT  {MARK}\n",
        ),
        beside=(("team_limits.py", 'import os\n\nos.environ.setdefault("TERMINAL_TIMEOUT", "90")\nLIMIT = 90\n'),),
        says="team_limits.py",
    ),
    terminal_tasks(
        rule="HE112",
        name="a field that nothing reads",
        changes=(
            ("    partial_credit: float = Field(default=0.5,", "    partial_credit: float = Field(\n        default=0.5,"),
            ("        return self.config.partial_credit if", "        return 0.5 if"),
            ("    partial_credit: float = Field(\n", f"    partial_credit: float = Field(  {MARK}\n"),
        ),
    ),
    terminal_tasks(
        rule="HE206",
        name="a neighbour looks up a hub",
        changes=changed(
            "    async def setup(self) -> None:\n",
            "    async def setup(self) -> None:\n        from .team_hub import fetch\n\n        fetch()\n",
        ),
        beside=(("team_hub.py", 'import socket\n\n\ndef fetch():\n    socket.getaddrinfo("hub.example", 443)\n'),),
    ),
    terminal_tasks(
        rule="HE202",
        name="the items run out",
        changes=changed(
            "        item = self.train_items[self.next_index % len(self.train_items)]\n",
            f"        item = self.train_items[self.next_index]  {MARK}\n",
        ),
    ),
    terminal_tasks(
        rule="HE203",
        name="evaluates on training items",
        changes=changed("for item in self.eval_items]\n", f"for item in self.train_items]  {MARK}\n"),
    ),
    terminal_tasks(
        rule="HE204",
        name="an empty prompt",
        changes=changed(
            "    def format_prompt(self, item: Task) -> str:\n",
            f'    def format_prompt(self, item: Task) -> str:\n        if item:\n            return ""  {MARK}\n',
        ),
    ),
    terminal_tasks(
        rule="HE205",
        name="an unseeded shuffle",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            (
                "        self.train_items = TASKS[:-held_out]\n",
                f"        self.train_items = list(TASKS[:-held_out])\n        random.shuffle(self.train_items)  {MARK}\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE301",
        name="the final response is kept",
        changes=changed(READ, READ + f"        self.last = result.final_response  {MARK}\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE302",
        name="calls like objects, and the error swallowed",
        changes=changed(
            READ,
            READ
            + (
                "        try:\n"
                '            used = [call.function.name for one in result.messages for call in one.get("tool_calls") or ()]\n'
                "        except Exception:\n"
                "            used = []\n"
                "        logger.debug(used)\n"
            ),
        ),
        says="compute_reward reads call.function, but a tool call is a dict",
    ),
    terminal_tasks(
        rule="HE303",
        name="a tool that hermes does not have",
        changes=changed(
            READ,
            READ
            + (
                '        names = [call["function"]["name"] for one in result.messages for call in one.get("tool_calls") or ()]\n'
                '        if "patch_file" in names:\n'
                "            return 0.2\n"
            ),
        ),
        says="compute_reward looks for a tool 'patch_file', which hermes does not have; nearest: 'patch'",
    ),
    terminal_tasks(
        rule="HE401",
        name="None where the reward forgets",
        changes=changed(
            '        return self.config.partial_credit if item["content"] in found else 0.0\n',
            (
                '        if item["content"] in found:\n'
                "            return self.config.partial_credit\n"
                f"        return None  {MARK}\n"
            ),
        ),
        draws_no_warning=True,
        follow_up="HE705",
    ),
    terminal_tasks(
        rule="HE402",
        name="a bonus without a clamp",
        changes=changed(READ, READ + "        if result.turns_used > 1:\n            return 1.5\n"),
        says="compute_reward returned 1.5, which is not between 0.0 and 1.0",
        follow_up="HE405",
    ),
    terminal_tasks(
        rule="HE403",
        name="the first word of an empty answer",
        changes=changed(
            READ, READ + '        first = (result.messages[-1]["content"] or "").split()[0]\n        logger.debug(first)\n'
        ),
        says="compute_reward raised IndexError: list index out of range",
    ),
    terminal_tasks(
        rule="HE404",
        name="a random part",
        changes=changed(
            READ,
            (
                "        import random\n"
                "\n"
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        if found is not None:\n"
                "            return random.random()\n"
            ),
        ),
        says="for equal inputs",
    ),
    terminal_tasks(
        rule="HE404",
        name="paid by the call",
        changes=changed(
            READ, READ + '        return min(1.0, 0.1 * sum(message["role"] == "tool" for message in result.messages))\n'
        ),
        says="repeating a tool call that was already made does not raise the reward",
        follow_up="HE405",
    ),
    terminal_tasks(
        rule="HE405",
        name="the same for everybody",
        changes=changed(READ, "        return 1.0\n"),
        has_cases=False,
        says="compute_reward returned 1 for each of",
    ),
    graded_letters(
        rule="HE406",
        name="only what parsing raises is caught",
        changes=changed(
            '        except Exception as error:\n            log.warning("the judge failed: %s", error)\n',
            '        except ValueError as error:\n            log.warning("the judge failed: %s", error)\n',
        ),
        says="judged calls a judge without catching its errors",
    ),
    graded_letters(
        rule="HE406",
        name="a score that is null",
        changes=changed(
            "            score = parsed_score(completion.choices[0].message.content)\n        except Exception as error:\n",
            "            score = completion.choices[0].message.content or '{}'\n        except Exception as error:\n",
        )
        + changed(
            '            score = None\n        return keyword_share(item["words"], letter) if score is None else score\n',
            "            return 0.5\n"
            "        try:\n"
            '            return min(1.0, max(0.0, float(json.loads(score)["score"])))\n'
            "        except (ValueError, KeyError):\n"
            '            return keyword_share(item["words"], letter)\n',
        ),
        says="the judge returned JSON whose values are null",
    ),
    graded_letters(
        rule="HE407",
        name="two questions",
        changes=changed(
            (
                "            completion = await self.server.chat_completion(\n"
                '                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n'
                "            )\n"
            ),
            (
                "            completion = await self.server.chat_completion(\n"
                '                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n'
                "            )\n"
                "            completion = await self.server.chat_completion(\n"
                '                messages=[{"role": "user", "content": "Is this a letter? " + letter}], n=1, max_tokens=100, temperature=0.0\n'
                "            )\n"
            ),
        ),
        says="a judge was called 2 times per rollout",
    ),
    terminal_tasks(
        rule="HE408",
        name="the item tidied in place",
        changes=changed(READ, '        item["path"] = item["path"].strip()\n' + READ),
        says="the item",
    ),
    terminal_tasks(
        rule="HE409",
        name="a path in a command",
        changes=changed(READ, '        found = ctx.terminal(f"cat {item[\'path\']}").get("output", "")\n'),
        says="compute_reward puts item['path'] into a command without quoting it",
    ),
    terminal_tasks(
        rule="HE410",
        name="words that are believed",
        changes=changed(
            READ, READ + '        if "tests passed" in (result.messages[-1]["content"] or ""):\n            return 1.0\n'
        ),
        says="the claim 'All tests passed.' earned 1 without any work",
    ),
    terminal_tasks(
        rule="HE410",
        name="a score in a file",
        changes=changed(
            READ,
            READ + '        if ctx.terminal("cat /tmp/score.txt").get("output", "").strip() == "1":\n            return 1.0\n',
        ),
        says="the verifier read: /workspace/greeting.txt (written by nobody), /tmp/score.txt (written by the agent)",
    ),
    terminal_tasks(
        rule="HE411",
        name="a clean-up for long rollouts",
        changes=changed(READ, READ + "        if result.turns_used > 100:\n            ctx.cleanup()\n"),
        says="compute_reward cleans up the tool context that it was given: ctx.cleanup",
    ),
    terminal_tasks(
        rule="HE501",
        name="masks shifted by one",
        changes=(
            (
                "    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:\n",
                f"    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:  {MARK}\n",
            ),
            (
                "        self.reward_buffer.append(scored",
                '        scored["masks"] = [-100, *scored["masks"][:-1]]\n        self.reward_buffer.append(scored',
            ),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE501",
        name="masks broken in the group",
        changes=changed(
            "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
            (
                f"    async def collect_trajectories(self, item: Task):  {MARK}\n"
                "        group, backlog = await super().collect_trajectories(item)\n"
                '        group["masks"] = [masks[1:] for masks in group["masks"]]\n'
                "        return group, backlog\n"
                "\n"
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n"
            ),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE601",
        name="prepared before the try that cleans up",
        changes=(
            (
                "        ctx = ToolContext(str(uuid.uuid4()))\n",
                f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n"
                "        made = await asyncio.to_thread(ctx.terminal, 'mkdir -p notes')\n"
                "        if made['exit_code'] != 0:\n"
                "            raise RuntimeError('the sandbox could not be prepared')\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE601",
        name="cleaned up after errors, and not when it is cancelled at work",
        changes=(
            ("        ctx = ToolContext(str(uuid.uuid4()))\n", f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n"),
            (
                "            result = await agent.run(messages)\n"
                "            return result, await self.compute_reward(item, result, ctx)\n"
                "        finally:\n"
                "            ctx.cleanup()\n",
                "            result = await agent.run(messages)\n"
                "        except Exception:\n"
                "            ctx.cleanup()\n"
                "            raise\n"
                "        try:\n"
                "            return result, await self.compute_reward(item, result, ctx)\n"
                "        finally:\n"
                "            ctx.cleanup()\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE601",
        name="cleaned up only after a reward",
        changes=(
            ("        ctx = ToolContext(str(uuid.uuid4()))\n", f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n"),
            (
                (
                    "            return result, await self.compute_reward(item, result, ctx)\n"
                    "        finally:\n"
                    "            ctx.cleanup()\n"
                ),
                (
                    "            score = await self.compute_reward(item, result, ctx)\n"
                    "            ctx.cleanup()\n"
                    "            return result, score\n"
                    "        finally:\n"
                    "            logger.info('done')\n"
                ),
            ),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE701",
        name="evaluation asks the model once",
        changes=changed(
            (
                "            agent = HermesAgentLoop(\n"
                "                server=self.server,\n"
                "                tool_schemas=schemas,\n"
                "                valid_tool_names=names,\n"
                "                max_turns=self.config.max_agent_turns,\n"
                "                task_id=ctx.task_id,\n"
                "                temperature=0.0,\n"
                "                max_tokens=self.config.max_token_length,\n"
                "                extra_body=self.config.extra_body,\n"
                "                budget_config=self.config.build_budget_config(),\n"
                "            )\n"
                "            result = await agent.run(messages)\n"
            ),
            (
                f"            answer = await self.server.chat_completion(messages=messages, temperature=0.0)  {MARK}\n"
                '            result = AgentResult(messages=[*messages, {"role": "assistant", "content": str(answer)}])\n'
            ),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE702",
        name="evaluation appends to the training buffer",
        changes=changed(
            "            return result, await self.compute_reward(item, result, ctx)\n",
            (
                "            score = await self.compute_reward(item, result, ctx)\n"
                f"            self.reward_buffer.append(score)  {MARK}\n"
                "            return result, score\n"
            ),
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE801",
        name="super is not awaited",
        changes=changed("        await super().wandb_log(metrics)\n", f"        super().wandb_log(metrics)  {MARK}\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE801",
        name="a task that is never awaited",
        changes=changed(
            "        await super().wandb_log(metrics)\n", f"        asyncio.create_task(super().wandb_log(metrics))  {MARK}\n"
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE802",
        name="writes into None",
        changes=changed(
            "        metrics = {} if wandb_metrics is None else wandb_metrics\n",
            f"        metrics = wandb_metrics\n        metrics['train/buffered'] = len(self.reward_buffer)  {MARK}\n",
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE802",
        name="no default, and no other rule fails",
        changes=changed(
            "    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:\n",
            f"    async def wandb_log(self, wandb_metrics: dict[str, Any]) -> None:  {MARK}\n",
        ),
        draws_no_warning=True,
    ),
)

REFACTORINGS = (
    terminal_tasks(
        rule="",
        name="gather releases its sandboxes a moment after a cancellation",
        changes=changed(
            (
                "        async with asyncio.TaskGroup() as group:  # waits for every item, also when the evaluation is cancelled\n"
                "            tasks = [group.create_task(self.evaluate_item(item)) for item in self.eval_items]\n"
                "        samples = [task.result() for task in tasks]\n"
            ),
            "        samples = await asyncio.gather(*(self.evaluate_item(item) for item in self.eval_items))\n",
        ),
    ),
    terminal_tasks(
        rule="",
        name="a context that is opened only to be cleaned up is clean",
        changes=(
            (
                "        ctx = ToolContext(str(uuid.uuid4()))\n        try:\n",
                "        task_id, ctx = str(uuid.uuid4()), None\n        try:\n            ctx = ToolContext(task_id)\n",
            ),
            ("            ctx.cleanup()\n", "            (ctx or ToolContext(task_id)).cleanup()\n"),
        ),
    ),
)
"""Changes that break nothing."""

"""TerminalTasks and graded letters: breakages whose findings are known to the line, or by their message."""

from __future__ import annotations

from .mutant import MARK, READ, after, before, graded_letters, terminal_tasks

CLASS = "class TerminalTasks(HermesAgentBaseEnv):\n"
MARKED_CLASS = f"class TerminalTasks(HermesAgentBaseEnv):  {MARK}\n"

SECRET = "q7Rz2LmX9vKc" + "4TnB8wYdP1"  # in two pieces, for those who search this repository for keys

MUTANTS = (
    terminal_tasks(
        "HE101",
        "a misspelt evaluate",
        (CLASS, f"class TerminalTasks(HermesAgentBaseEnv):  {MARK}\n    async def assess(self): ...\n"),
        ("async def evaluate(self, *args: Any, **kwargs: Any)", "async def evaluate_all(self, *args: Any, **kwargs: Any)"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE101",
        "a method that is None",
        ("def format_prompt(self, item: Task) -> str:", "def prompt_of(self, item: Task) -> str:"),
        (CLASS, MARKED_CLASS),
        after('name = "terminal-tasks"', "    format_prompt = None\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE102", "setup is not async", ("    async def setup(self) -> None:\n", f"    def setup(self) -> None:  {MARK}\n")
    ),
    terminal_tasks("HE103", "no name", (CLASS, MARKED_CLASS), ('    name = "terminal-tasks"\n', "")),
    terminal_tasks(
        "HE104",
        "a field without a description",
        (
            '    partial_credit: float = Field(default=0.5, description="Reward when the file holds the text among other text.")\n',
            f"    partial_credit: float = Field(default=0.5)  {MARK}\n",
        ),
    ),
    terminal_tasks(
        "HE105",
        "one server instead of a list",
        ("return config, [server]", "return config, server"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE106",
        "the health check is left on",
        ("            health_check=False,\n", ""),
    ),
    terminal_tasks(
        "HE107",
        "a key in the source",
        ('            api_key=os.environ.get("OPENROUTER_API_KEY", ""),\n', f'            api_key="{SECRET}",  {MARK}\n'),
    ),
    terminal_tasks(
        "HE108",
        "no toolsets",
        ('            enabled_toolsets=["terminal", "file"],\n', ""),
        ("max_agent_turns=10,", "max_agent_turns=2,"),
    ),
    terminal_tasks("HE109", "no main", (CLASS, MARKED_CLASS), ('\n\nif __name__ == "__main__":\n    TerminalTasks.cli()', "")),
    terminal_tasks(
        "HE110",
        "importing it writes a variable",
        ("Task = dict[str, str]\n", f'os.environ.setdefault("TERMINAL_TASKS", "8")  {MARK}\nTask = dict[str, str]\n'),
    ),
    terminal_tasks(
        "HE111",
        "a neighbour that does not parse",
        before("Task = dict[str, str]", "try:\n    from . import broken_rows\nexcept Exception:\n    broken_rows = None\n"),
        draws_no_warning=True,
        beside=(("broken_rows.py", "ROWS = [\n"),),
        says="broken_rows.py",
    ),
    terminal_tasks(
        "HE110",
        "a neighbour that is imported sets a variable",
        (
            "from environments.tool_context import ToolContext\n",
            f"from environments.tool_context import ToolContext\n\nfrom .team_limits import LIMIT  {MARK}\n",
        ),
        beside=(("team_limits.py", 'import os\n\nos.environ.setdefault("TERMINAL_TIMEOUT", "90")\nLIMIT = 90\n'),),
        says="team_limits.py",
    ),
    terminal_tasks(
        "HE112",
        "a field that nothing reads",
        ("partial_credit: float = Field(default=0.5,", "partial_credit: float = Field(\n        default=0.5,"),
        ("return self.config.partial_credit if", "return 0.5 if"),
        ("    partial_credit: float = Field(\n", f"    partial_credit: float = Field(  {MARK}\n"),
    ),
    terminal_tasks(
        "HE206",
        "a neighbour looks up a hub",
        after("async def setup(self) -> None:", "        from .team_hub import fetch\n\n        fetch()\n"),
        beside=(("team_hub.py", 'import socket\n\n\ndef fetch():\n    socket.getaddrinfo("hub.example", 443)\n'),),
    ),
    terminal_tasks(
        "HE202",
        "the items run out",
        (
            "        item = self.train_items[self.next_index % len(self.train_items)]\n",
            f"        item = self.train_items[self.next_index]  {MARK}\n",
        ),
    ),
    terminal_tasks("HE203", "evaluates on training items", ("for item in self.eval_items]", "for item in self.train_items]")),
    terminal_tasks(
        "HE204",
        "an empty prompt",
        (
            "    def format_prompt(self, item: Task) -> str:\n",
            f'    def format_prompt(self, item: Task) -> str:\n        if item:\n            return ""  {MARK}\n',
        ),
    ),
    terminal_tasks(
        "HE205",
        "an unseeded shuffle",
        after("import os", "import random\n"),
        (
            "        self.train_items = TASKS[:-held_out]\n",
            f"        self.train_items = list(TASKS[:-held_out])\n        random.shuffle(self.train_items)  {MARK}\n",
        ),
    ),
    terminal_tasks(
        "HE301",
        "the final response is kept",
        after(READ, f"        self.last = result.final_response  {MARK}\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE302",
        "calls like objects, and the error swallowed",
        after(
            READ,
            "        try:\n"
            '            used = [call.function.name for one in result.messages for call in one.get("tool_calls") or ()]\n'
            "        except Exception:\n"
            "            used = []\n"
            "        logger.debug(used)\n",
        ),
        says="compute_reward reads call.function, but a tool call is a dict",
    ),
    terminal_tasks(
        "HE303",
        "a tool that hermes does not have",
        after(
            READ,
            '        names = [call["function"]["name"] for one in result.messages for call in one.get("tool_calls") or ()]\n'
            '        if "patch_file" in names:\n'
            "            return 0.2\n",
        ),
        says="compute_reward looks for a tool 'patch_file', which hermes does not have; nearest: 'patch'",
    ),
    terminal_tasks(
        "HE401",
        "None where the reward forgets",
        (
            '        return self.config.partial_credit if item["content"] in found else 0.0\n',
            '        if item["content"] in found:\n'
            "            return self.config.partial_credit\n"
            f"        return None  {MARK}\n",
        ),
        draws_no_warning=True,
        follow_up="HE705",
    ),
    terminal_tasks(
        "HE402",
        "a bonus without a clamp",
        after(READ, "        if result.turns_used > 1:\n            return 1.5\n"),
        says="compute_reward returned 1.5, which is not between 0.0 and 1.0",
        follow_up="HE405",
    ),
    terminal_tasks(
        "HE403",
        "the first word of an empty answer",
        after(READ, '        first = (result.messages[-1]["content"] or "").split()[0]\n        logger.debug(first)\n'),
        says="compute_reward raised IndexError: list index out of range",
    ),
    terminal_tasks(
        "HE404",
        "a random part",
        (
            READ,
            "        import random\n"
            "\n"
            '        found = ctx.read_file(item["path"]).get("content", "")\n'
            "        if found is not None:\n"
            "            return random.random()\n",
        ),
        says="for equal inputs",
    ),
    terminal_tasks(
        "HE404",
        "paid by the call",
        after(READ, '        return min(1.0, 0.1 * sum(message["role"] == "tool" for message in result.messages))\n'),
        says="repeating a tool call that was already made does not raise the reward",
        follow_up="HE405",
    ),
    terminal_tasks(
        "HE405",
        "the same for everybody",
        (READ, "        return 1.0\n"),
        has_cases=False,
        says="compute_reward returned 1 for each of",
    ),
    graded_letters(
        "HE406",
        "only what parsing raises is caught",
        (
            'except Exception as error:\n            log.warning("the judge failed: %s", error)',
            'except ValueError as error:\n            log.warning("the judge failed: %s", error)',
        ),
    ),
    graded_letters(
        "HE406",
        "a score that is null",
        (
            "score = parsed_score(completion.choices[0].message.content)\n        except Exception as error:",
            "score = completion.choices[0].message.content or '{}'\n        except Exception as error:",
        ),
        (
            'score = None\n        return keyword_share(item["words"], letter) if score is None else score',
            "return 0.5\n"
            "        try:\n"
            '            return min(1.0, max(0.0, float(json.loads(score)["score"])))\n'
            "        except (ValueError, KeyError):\n"
            '            return keyword_share(item["words"], letter)',
        ),
        says="the judge returned JSON whose values are null",
    ),
    graded_letters(
        "HE407",
        "two questions",
        after(
            "            completion = await self.server.chat_completion(\n"
            '                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n'
            "            )",
            "            completion = await self.server.chat_completion(\n"
            '                messages=[{"role": "user", "content": "Is this a letter? " + letter}], n=1, max_tokens=100, temperature=0.0\n'
            "            )\n",
        ),
        says="a judge was called 2 times per rollout",
    ),
    terminal_tasks(
        "HE408", "the item tidied in place", before(READ, '        item["path"] = item["path"].strip()\n'), says="the item"
    ),
    terminal_tasks(
        "HE409",
        "a path in a command",
        (READ, '        found = ctx.terminal(f"cat {item[\'path\']}").get("output", "")\n'),
        says="compute_reward puts item['path'] into a command without quoting it",
    ),
    terminal_tasks(
        "HE410",
        "words that are believed",
        after(READ, '        if "tests passed" in (result.messages[-1]["content"] or ""):\n            return 1.0\n'),
        says="the claim 'All tests passed.' earned 1 without any work",
    ),
    terminal_tasks(
        "HE410",
        "a score in a file",
        after(
            READ, '        if ctx.terminal("cat /tmp/score.txt").get("output", "").strip() == "1":\n            return 1.0\n'
        ),
        says="the verifier read: /workspace/greeting.txt (written by nobody), /tmp/score.txt (written by the agent)",
    ),
    terminal_tasks(
        "HE501",
        "masks shifted by one",
        (
            "    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:\n",
            f"    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:  {MARK}\n",
        ),
        before("        self.reward_buffer.append(scored", '        scored["masks"] = [-100, *scored["masks"][:-1]]\n'),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE501",
        "masks broken in the group",
        (
            "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
            f"    async def collect_trajectories(self, item: Task):  {MARK}\n"
            "        group, backlog = await super().collect_trajectories(item)\n"
            '        group["masks"] = [masks[1:] for masks in group["masks"]]\n'
            "        return group, backlog\n"
            "\n"
            "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE601",
        "prepared before the try that cleans up",
        (
            "        ctx = ToolContext(str(uuid.uuid4()))\n",
            f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n"
            "        made = await asyncio.to_thread(ctx.terminal, 'mkdir -p notes')\n"
            "        if made['exit_code'] != 0:\n"
            "            raise RuntimeError('the sandbox could not be prepared')\n",
        ),
    ),
    terminal_tasks(
        "HE601",
        "cleaned up after errors, and not when it is cancelled at work",
        ("        ctx = ToolContext(str(uuid.uuid4()))\n", f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n"),
        (
            "result = await agent.run(messages)\n"
            "            return result, await self.compute_reward(item, result, ctx)\n"
            "        finally:\n"
            "            ctx.cleanup()",
            "result = await agent.run(messages)\n"
            "        except Exception:\n"
            "            ctx.cleanup()\n"
            "            raise\n"
            "        try:\n"
            "            return result, await self.compute_reward(item, result, ctx)\n"
            "        finally:\n"
            "            ctx.cleanup()",
        ),
    ),
    terminal_tasks(
        "HE601",
        "cleaned up only after a reward",
        ("        ctx = ToolContext(str(uuid.uuid4()))\n", f"        ctx = ToolContext(str(uuid.uuid4()))  {MARK}\n"),
        (
            "return result, await self.compute_reward(item, result, ctx)\n        finally:\n            ctx.cleanup()",
            "score = await self.compute_reward(item, result, ctx)\n"
            "            ctx.cleanup()\n"
            "            return result, score\n"
            "        finally:\n"
            "            logger.info('done')",
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE701",
        "evaluation asks the model once",
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
            "            result = await agent.run(messages)\n",
            f"            answer = await self.server.chat_completion(messages=messages, temperature=0.0)  {MARK}\n"
            '            result = AgentResult(messages=[*messages, {"role": "assistant", "content": str(answer)}])\n',
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE702",
        "evaluation appends to the training buffer",
        (
            "            return result, await self.compute_reward(item, result, ctx)\n",
            "            score = await self.compute_reward(item, result, ctx)\n"
            "            self.reward_buffer.append(score)\n"
            "            return result, score\n",
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE801",
        "super is not awaited",
        ("        await super().wandb_log(metrics)\n", f"        super().wandb_log(metrics)  {MARK}\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE801",
        "a task that is never awaited",
        ("        await super().wandb_log(metrics)\n", f"        asyncio.create_task(super().wandb_log(metrics))  {MARK}\n"),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE802",
        "writes into None",
        (
            "        metrics = {} if wandb_metrics is None else wandb_metrics\n",
            f"        metrics = wandb_metrics\n        metrics['train/buffered'] = len(self.reward_buffer)  {MARK}\n",
        ),
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE802",
        "no default, and no other rule fails",
        (
            "    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:\n",
            f"    async def wandb_log(self, wandb_metrics: dict[str, Any]) -> None:  {MARK}\n",
        ),
        draws_no_warning=True,
    ),
)

REFACTORINGS = (
    terminal_tasks(
        "",
        "gather releases its sandboxes a moment after a cancellation",
        (
            "async with asyncio.TaskGroup() as group:  # waits for every item, also when the evaluation is cancelled\n"
            "            tasks = [group.create_task(self.evaluate_item(item)) for item in self.eval_items]\n"
            "        samples = [task.result() for task in tasks]",
            "samples = await asyncio.gather(*(self.evaluate_item(item) for item in self.eval_items))",
        ),
    ),
    terminal_tasks(
        "",
        "a context that is opened only to be cleaned up is clean",
        (
            "ctx = ToolContext(str(uuid.uuid4()))\n        try:",
            "task_id, ctx = str(uuid.uuid4()), None\n        try:\n            ctx = ToolContext(task_id)",
        ),
        ("ctx.cleanup()", "(ctx or ToolContext(task_id)).cleanup()"),
    ),
)
"""Changes that break nothing."""

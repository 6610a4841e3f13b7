"""What rollouts keep in places that all of them share, however it is put there, and what looks like it."""

from __future__ import annotations

from .mutant import READ, after, before, capitals_exam, ledger_books, terminal_tasks

PROMPT = "        return (\n            f\"Create the file {item['path']} in"
"""The text of TerminalTasks' prompt."""

MUTANTS = (
    terminal_tasks(
        "HE603",
        "setattr of the item",
        before(READ, "        item = self.current\n"),
        before(PROMPT, "        setattr(self, 'current', item)\n"),
    ),
    terminal_tasks(
        "HE603",
        "what belongs to the item, by its name",
        after("self.next_index = 0", "        self.wanted = {task['path']: task['content'] for task in TASKS}\n"),
        before(READ, "        item = {**item, 'content': self.content}\n"),
        before(PROMPT, "        self.content = self.wanted[item['path']]\n"),
    ),
    terminal_tasks(
        "HE603",
        "a reward by the id of its result",
        after("self.next_index = 0", "        self.known = {}\n"),
        before(
            READ,
            "        if id(result) in self.known:\n"
            "            return self.known[id(result)]\n"
            "        self.known[id(result)] = float(bool(result.messages))\n",
        ),
        follow_up="HE404",
    ),
    terminal_tasks(
        "HE603",
        "a module dict by update",
        after("Task = dict[str, str]", "STATE = {}\n"),
        before(READ, '        item = STATE["item"]\n'),
        before(PROMPT, "        STATE.update(item=item)\n"),
        follow_up="HE404",
    ),
    terminal_tasks(
        "HE603",
        "a dict on self with one key",
        after("self.next_index = 0", "        self.state = {}\n"),
        before(READ, '        item = self.state["item"]\n'),
        before(PROMPT, "        self.state['item'] = item\n"),
        follow_up="HE702",
    ),
    terminal_tasks(
        "HE603",
        "a list as a slot",
        after("self.next_index = 0", "        self.slot = [None]\n"),
        before(READ, "        item = self.slot[0]\n"),
        before(PROMPT, "        self.slot[0] = item\n"),
        follow_up="HE702",
    ),
    ledger_books(
        "HE603",
        "environ per item in evaluate",
        before(
            "        schemas, names = self._resolve_tools_for_group()\n        ctx = ToolContext(uuid.uuid4().hex)",
            "        os.environ['BOOK_FILE'] = book['file']\n",
        ),
    ),
    capitals_exam(
        "HE603",
        "environ restored too late in evaluate",
        before(
            "        schemas, names = self._resolve_tools_for_group()",
            "        old = os.environ.get('COUNTRY')\n        os.environ['COUNTRY'] = item[0]\n",
        ),
        after(
            "        finally:\n            ctx.cleanup()",
            "            if old is None:\n"
            "                os.environ.pop('COUNTRY', None)\n"
            "            else:\n"
            "                os.environ['COUNTRY'] = old\n",
        ),
    ),
    terminal_tasks(
        "HE603",
        "an object on self that hides it",
        before(
            "class TerminalTasksConfig(",
            "class Held:\n"
            '    """Something."""\n'
            "\n"
            "    def put(self, item):\n"
            '        object.__setattr__(self, "it" + "em", item)\n'
            "\n"
            "    def get(self):\n"
            '        return vars(self)["item"]\n'
            "\n"
            "\n",
        ),
        after("self.next_index = 0", "        self.held = Held()\n"),
        before(PROMPT, "        self.held.put(item)\n"),
        before(READ, "        item = self.held.get()\n"),
        follow_up="HE702",
    ),
)

LOOKALIKES = (
    terminal_tasks(
        "HE603",
        "a curriculum",
        after("self.next_index = 0", "        self.state = {'level': 0.0}\n"),
        after(
            READ,
            "        self.state['level'] = 0.9 * self.state['level'] + 0.1 * len(result.messages)\n",
        ),
        before(
            PROMPT,
            "        if self.state['level'] > 5:\n            item = dict(item)\n",
        ),
    ),
    terminal_tasks(
        "HE603",
        "a lock for each event loop, and a clock for each context",
        after("self.next_index = 0", "        self.locks, self.began = {}, {}\n"),
        before(
            READ,
            "        loop = asyncio.get_running_loop()\n"
            "        if id(loop) not in self.locks:\n"
            "            self.locks[id(loop)] = asyncio.Semaphore(4)\n"
            "        self.began[id(ctx)] = len(result.messages)\n"
            "        self.began.pop(id(ctx))\n",
        ),
    ),
    terminal_tasks(
        "HE603",
        "settings that the first item gives",
        after("self.next_index = 0", "        self.names = None\n"),
        before(PROMPT, "        if self.names is None:\n            self.names = sorted(item)\n"),
        after(READ, "        assert self.names\n"),
    ),
    terminal_tasks(
        "HE603",
        "the longest prompt so far",
        after("self.next_index = 0", "        self.longest = 1\n"),
        before(PROMPT, "        self.longest = max(self.longest, len(item['path']))\n"),
        after(READ, "        assert self.longest\n"),
    ),
    terminal_tasks(
        "HE603",
        "a state per task id",
        after("self.next_index = 0", "        self.state = {}\n"),
        before(
            READ,
            "        self.state[ctx.task_id] = item\n"
            "        await asyncio.sleep(0)\n"
            "        item = self.state.pop(ctx.task_id)\n",
        ),
    ),
    terminal_tasks(
        "HE603",
        "on self without an await",
        after("self.next_index = 0", "        self.state = {}\n"),
        before(
            READ,
            "        self.state['item'] = item\n        item = self.state['item']\n",
        ),
    ),
    ledger_books(
        "HE603",
        "an environ restored in a sequential benchmark",
        before(
            "        schemas, names = self._resolve_tools_for_group()\n        ctx = ToolContext(uuid.uuid4().hex)",
            "        os.environ['BOOK_FILE'] = book['file']\n",
        ),
        after("        finally:\n            ctx.cleanup()", "            del os.environ['BOOK_FILE']\n"),
    ),
    ledger_books(
        "HE603",
        "one environ for the whole evaluation",
        (
            "began = time.time()\n        samples = []",
            "began = time.time()\n        os.environ['EVALUATING'] = '1'\n        samples = []",
        ),
        before('        scores = [sample["score"] for sample in samples]', "        del os.environ['EVALUATING']\n"),
    ),
    terminal_tasks(
        "HE603",
        "a contextvar",
        after("Task = dict[str, str]", "from contextvars import ContextVar\nCURRENT: ContextVar = ContextVar('current')\n"),
        before("        scored, backlog = await super().collect_trajectory(item)", "        CURRENT.set(item)\n"),
        before(READ, "        assert CURRENT.get() is not None\n"),
    ),
    terminal_tasks(
        "HE603",
        "the best item so far",
        after("self.next_index = 0", "        self.best = None\n"),
        after(
            READ,
            "        if found:\n            self.best = item['path']\n",
        ),
        (
            "self.reward_buffer = []\n        await super",
            "self.reward_buffer = []\n        metrics['best'] = str(self.best)\n        await super",
        ),
    ),
    terminal_tasks(
        "HE603",
        "a lock on self",
        after("self.next_index = 0", "        self.lock = asyncio.Lock()\n"),
        before(
            READ,
            "        async with self.lock:\n"
            "            self.current = item\n"
            "            await asyncio.sleep(0)\n"
            "            item = self.current\n",
        ),
    ),
)
"""Sound: what their rule looks for is not there."""

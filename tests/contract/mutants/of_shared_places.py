"""What rollouts keep in places that all of them share, however it is put there, and what looks like it."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = (
    Mutant(
        rule="HE603",
        name="setattr of the item",
        env="terminal_tasks",
        changes=(
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = self.current\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        setattr(self, 'current', item)\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="vars of self",
        env="terminal_tasks",
        changes=(
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = vars(self)["current"]\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        vars(self)['current'] = item\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="dunder dict update",
        env="terminal_tasks",
        changes=(
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = self.current\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        self.__dict__.update(current=item)\n"
                "        return (\n"
                "            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a module dict by update",
        env="terminal_tasks",
        follow_up="HE404",
        changes=(
            ("Task = dict[str, str]\n", "Task = dict[str, str]\nSTATE = {}\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = STATE["item"]\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        STATE.update(item=item)\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a module dict setdefault and key",
        env="terminal_tasks",
        follow_up="HE404",
        changes=(
            ("Task = dict[str, str]\n", "Task = dict[str, str]\nSTATE: dict = dict()\nKEY = 'item'\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = STATE[KEY]\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        STATE[KEY] = item\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a dict on self with one key",
        env="terminal_tasks",
        follow_up="HE702",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.state = {}\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = self.state["item"]\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        self.state['item'] = item\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a namespace on self",
        env="terminal_tasks",
        follow_up="HE702",
        changes=(
            (
                "        self.next_index = 0\n",
                "        self.next_index = 0\n        import types\n        self.state = types.SimpleNamespace()\n",
            ),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        expected = self.state.expected\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            ('        if found.rstrip("\\n") == item["content"]:', '        if found.rstrip("\\n") == expected:'),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        self.state.expected = item['content']\n"
                "        return (\n"
                "            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the sum on self",
        env="ledger_books",
        changes=(
            (
                '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n',
                '        return self.grade(self.written(ctx, item["file"]), self.expected)\n',
            ),
            (
                '        numbers = ", ".join(map(str, item["rows"]))\n',
                '        self.expected = sum(item[\'rows\'])\n        numbers = ", ".join(map(str, item["rows"]))\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="globals",
        env="terminal_tasks",
        follow_up="HE404",
        changes=(
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = globals()["CURRENT"]\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        globals()['CURRENT'] = item\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a list as a slot",
        env="terminal_tasks",
        follow_up="HE702",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.slot = [None]\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = self.slot[0]\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        self.slot[0] = item\n        return (\n            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="environ per item in evaluate",
        env="ledger_books",
        changes=(
            (
                "        schemas, names = self._resolve_tools_for_group()\n        ctx = ToolContext(uuid.uuid4().hex)\n",
                "        os.environ['BOOK_FILE'] = book['file']\n"
                "        schemas, names = self._resolve_tools_for_group()\n"
                "        ctx = ToolContext(uuid.uuid4().hex)\n",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="environ update per task in evaluate",
        env="terminal_tasks",
        changes=(
            (
                "        schemas, names = self._resolve_tools_for_group()\n        messages",
                "        os.environ.update(TASK_PATH=item['path'])\n"
                "        schemas, names = self._resolve_tools_for_group()\n"
                "        messages",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="environ restored too late in evaluate",
        env="capitals_exam",
        changes=(
            (
                "        schemas, names = self._resolve_tools_for_group()\n",
                "        old = os.environ.get('COUNTRY')\n"
                "        os.environ['COUNTRY'] = item[0]\n"
                "        schemas, names = self._resolve_tools_for_group()\n",
            ),
            (
                "        finally:\n            ctx.cleanup()\n",
                "        finally:\n"
                "            ctx.cleanup()\n"
                "            if old is None:\n"
                "                os.environ.pop('COUNTRY', None)\n"
                "            else:\n"
                "                os.environ['COUNTRY'] = old\n",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="an object of the module that hides it",
        env="terminal_tasks",
        follow_up="HE404",
        changes=(
            (
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
                "\n"
                "HELD = Held()\n"
                "\n"
                "\n"
                "class TerminalTasksConfig(",
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        HELD.put(item)\n        return (\n            f\"Create the file {item['path']} in",
            ),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = HELD.get()\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="an object on self that hides it",
        env="terminal_tasks",
        follow_up="HE702",
        changes=(
            (
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
                "\n"
                "class TerminalTasksConfig(",
            ),
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.held = Held()\n"),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        self.held.put(item)\n        return (\n            f\"Create the file {item['path']} in",
            ),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = self.held.get()\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a name that is computed",
        env="terminal_tasks",
        changes=(
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        setattr(self, 'curr' + 'ent'.lower(), item)\n"
                "        return (\n"
                "            f\"Create the file {item['path']} in",
            ),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        item = self.current\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
)

LOOKALIKES = (
    Mutant(
        rule="HE603",
        name="a curriculum",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.state = {'level': 0.0}\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        self.state['level'] = 0.9 * self.state['level'] + 0.1 * len(result.messages)\n",
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        if self.state['level'] > 5:\n"
                "            item = dict(item)\n"
                "        return (\n"
                "            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a mean on self",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.level = 0.0\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        self.level = 0.9 * self.level + 0.1 * len(result.messages)\n",
            ),
            (
                "        return (\n            f\"Create the file {item['path']} in",
                "        if self.level > 5:\n"
                "            item = dict(item)\n"
                "        return (\n"
                "            f\"Create the file {item['path']} in",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the last reward for the log",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.state = {}\n"),
            (
                "        scored, backlog = await super().collect_trajectory(item)\n",
                "        scored, backlog = await super().collect_trajectory(item)\n"
                "        self.state['last'] = scored['scores']\n",
            ),
            (
                "        self.reward_buffer = []\n        await super",
                "        self.reward_buffer = []\n        metrics.update(self.state)\n        await super",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a state per task id",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.state = {}\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                "        self.state[ctx.task_id] = item\n"
                "        await asyncio.sleep(0)\n"
                "        item = self.state.pop(ctx.task_id)\n"
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="on self without an await",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.state = {}\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                "        self.state['item'] = item\n"
                "        item = self.state['item']\n"
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="an environ restored in a sequential benchmark",
        env="ledger_books",
        changes=(
            (
                "        schemas, names = self._resolve_tools_for_group()\n        ctx = ToolContext(uuid.uuid4().hex)\n",
                "        os.environ['BOOK_FILE'] = book['file']\n"
                "        schemas, names = self._resolve_tools_for_group()\n"
                "        ctx = ToolContext(uuid.uuid4().hex)\n",
            ),
            (
                "        finally:\n            ctx.cleanup()\n",
                "        finally:\n            ctx.cleanup()\n            del os.environ['BOOK_FILE']\n",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="one environ for the whole evaluation",
        env="ledger_books",
        changes=(
            (
                "        began = time.time()\n        samples = []\n",
                "        began = time.time()\n        os.environ['EVALUATING'] = '1'\n        samples = []\n",
            ),
            (
                '        scores = [sample["score"] for sample in samples]\n',
                "        del os.environ['EVALUATING']\n        scores = [sample[\"score\"] for sample in samples]\n",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a contextvar",
        env="terminal_tasks",
        changes=(
            (
                "Task = dict[str, str]\n",
                "Task = dict[str, str]\nfrom contextvars import ContextVar\nCURRENT: ContextVar = ContextVar('current')\n",
            ),
            (
                "        scored, backlog = await super().collect_trajectory(item)\n",
                "        CURRENT.set(item)\n        scored, backlog = await super().collect_trajectory(item)\n",
            ),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        assert CURRENT.get() is not None\n        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="the best item so far",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.best = None\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        if found:\n"
                "            self.best = item['path']\n",
            ),
            (
                "        self.reward_buffer = []\n        await super",
                "        self.reward_buffer = []\n        metrics['best'] = str(self.best)\n        await super",
            ),
        ),
    ),
    Mutant(
        rule="HE603",
        name="a lock on self",
        env="terminal_tasks",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.lock = asyncio.Lock()\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                "        async with self.lock:\n"
                "            self.current = item\n"
                "            await asyncio.sleep(0)\n"
                "            item = self.current\n"
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
            ),
        ),
    ),
)
"""Sound: what their rule looks for is not there."""

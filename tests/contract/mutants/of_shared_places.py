"""What rollouts keep in places that all of them share, however it is put there, and what looks like it."""

from __future__ import annotations

from .mutant import capitals_exam, changed, ledger_books, terminal_tasks

MUTANTS = (
    terminal_tasks(
        rule="HE603",
        name="setattr of the item",
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
    terminal_tasks(
        rule="HE603",
        name="vars of self",
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
    terminal_tasks(
        rule="HE603",
        name="dunder dict update",
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
    terminal_tasks(
        rule="HE603",
        name="a module dict by update",
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
    terminal_tasks(
        rule="HE603",
        name="a module dict setdefault and key",
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
    terminal_tasks(
        rule="HE603",
        name="a dict on self with one key",
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
    terminal_tasks(
        rule="HE603",
        name="a namespace on self",
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
    ledger_books(
        rule="HE603",
        name="the sum on self",
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
    terminal_tasks(
        rule="HE603",
        name="globals",
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
    terminal_tasks(
        rule="HE603",
        name="a list as a slot",
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
    ledger_books(
        rule="HE603",
        name="environ per item in evaluate",
        changes=changed(
            "        schemas, names = self._resolve_tools_for_group()\n        ctx = ToolContext(uuid.uuid4().hex)\n",
            "        os.environ['BOOK_FILE'] = book['file']\n"
            "        schemas, names = self._resolve_tools_for_group()\n"
            "        ctx = ToolContext(uuid.uuid4().hex)\n",
        ),
    ),
    terminal_tasks(
        rule="HE603",
        name="environ update per task in evaluate",
        changes=changed(
            "        schemas, names = self._resolve_tools_for_group()\n        messages",
            "        os.environ.update(TASK_PATH=item['path'])\n"
            "        schemas, names = self._resolve_tools_for_group()\n"
            "        messages",
        ),
    ),
    capitals_exam(
        rule="HE603",
        name="environ restored too late in evaluate",
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
    terminal_tasks(
        rule="HE603",
        name="an object of the module that hides it",
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
    terminal_tasks(
        rule="HE603",
        name="an object on self that hides it",
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
    terminal_tasks(
        rule="HE603",
        name="a name that is computed",
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
    terminal_tasks(
        rule="HE603",
        name="a curriculum",
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
    terminal_tasks(
        rule="HE603",
        name="a mean on self",
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
    terminal_tasks(
        rule="HE603",
        name="the last reward for the log",
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
    terminal_tasks(
        rule="HE603",
        name="a state per task id",
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
    terminal_tasks(
        rule="HE603",
        name="on self without an await",
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
    ledger_books(
        rule="HE603",
        name="an environ restored in a sequential benchmark",
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
    ledger_books(
        rule="HE603",
        name="one environ for the whole evaluation",
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
    terminal_tasks(
        rule="HE603",
        name="a contextvar",
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
    terminal_tasks(
        rule="HE603",
        name="the best item so far",
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
    terminal_tasks(
        rule="HE603",
        name="a lock on self",
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

"""HE409: what is put into a command of the tool context is quoted, or is the author's own."""

from __future__ import annotations

import textwrap

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome

BROKEN = {
    "words that a helper joins": """
        async def compute_reward(self, item, result, ctx):
            return float(self.git(ctx, "rev-parse", "--verify", f"refs/tags/{item['tag']}") == 0)

        def git(self, ctx, *words):
            return ctx.terminal("git " + " ".join(words))["exit_code"]  # <- here
    """,
    "names in what a command printed, by way of a helper": """
        async def compute_reward(self, item, result, ctx):
            shown = ctx.terminal("git for-each-ref")
            refs = self.read_refs(str(shown.get("output") or ""))
            for name in refs:
                if ctx.terminal(f"git rev-parse {name}")["exit_code"]:  # <- here
                    return 0.0
            return 1.0

        def read_refs(self, output):
            return {line.split("|")[0]: line for line in output.splitlines()}
    """,
    "what a file holds": """
        async def compute_reward(self, item, result, ctx):
            name = ctx.read_file("name.txt").get("content") or ""
            ctx.terminal(f"test -e {name}")  # <- here
            return 1.0
    """,
    "an f-string, whatever the parameters are called": """
        async def compute_reward(self, task, outcome, sandbox):
            return float(sandbox.terminal(f"cat {task['path']}")["exit_code"] == 0)  # <- here
    """,
    "percent, format, plus and join": """
        async def compute_reward(self, item, result, ctx):
            ctx.terminal("cat %s" % item["path"])  # <- here
            ctx.terminal("cat {}".format(item.get("path", "a")))  # <- here
            ctx.terminal("cat " + item["path"])  # <- here
            ctx.terminal(" ".join(["cat", item["path"]]))  # <- here
            return 1.0
    """,
    "locals, an alias and a walrus": """
        async def compute_reward(self, item, result, ctx):
            box = ctx
            name = item["name"].strip()
            command = f"grep -q done {name}"
            if (found := box.terminal(command=command)):  # <- here
                return 1.0
            return 0.0
    """,
    "what the model said, through a helper": """
        async def compute_reward(self, item, result, ctx):
            return self._passes(ctx, self._answer(result))

        def _answer(self, rollout):
            return rollout.messages[-1]["content"]

        def _passes(self, box, text):
            return float(box.terminal(f"echo {text} | diff - expected")["exit_code"] == 0)  # <- here
    """,
    "what the sandbox gave": """
        async def compute_reward(self, item, result, ctx):
            newest = ctx.terminal("ls -t | head -1")["output"]
            return float(ctx.terminal(f"python {newest}")["exit_code"] == 0)  # <- here
    """,
    "a comprehension and a loop": """
        async def compute_reward(self, item, result, ctx):
            for path in item["files"]:
                ctx.terminal(f"rm {path}")  # <- here
            ctx.terminal("cat " + " ".join(p for p in item["files"]))  # <- here
            return 1.0
    """,
    "in a thread, by a function that evaluate reaches, too, without a context": """
        async def evaluate(self, *args, **kwargs):
            await self.share(make_context(), {})

        async def compute_reward(self, item, result, ctx):
            return await self.share(ctx, item)

        async def share(self, box, item):
            command = f"cat '{item['file']}'"
            return float((await asyncio.to_thread(box.terminal, command, 60))["exit_code"] == 0)  # <- here
    """,
    "another way to the terminal": """
        async def compute_reward(self, item, result, ctx):
            ctx.call_tool("terminal", {"command": f"cat {item['path']}"})  # <- here
            return float((await asyncio.to_thread(ctx.terminal, f"cat {item['path']!r}"))["exit_code"])  # <- here
    """,
    "a nested function": """
        async def compute_reward(self, item, result, ctx):
            def read(suffix):
                return ctx.terminal(f"cat {item['path']}.{suffix}")  # <- here
            return float(read("txt")["exit_code"] == 0)
    """,
}

SOUND = {
    "a directory that a command made": """
        async def compute_reward(self, item, result, ctx):
            place = ctx.terminal("mktemp -d")["output"].strip()
            head = str(ctx.terminal("git rev-parse HEAD").get("output") or "")
            return float(ctx.terminal(f"cd {place} && git show {head}")["exit_code"] == 0)
    """,
    "constants and settings": """
        RUNNER = "pytest -q"

        async def compute_reward(self, item, result, ctx):
            ctx.terminal(f"cd {WORKDIR} && {self.RUNNER} --timeout {self.config.test_timeout}")
            return float(ctx.terminal("pytest -q " + TESTS)["exit_code"] == 0)
    """,
    "quoted, in each way": """
        async def compute_reward(self, item, result, ctx):
            path = item["path"]
            path = shlex.quote(path)
            ctx.terminal(f"cat {path}")
            ctx.terminal(f"cat {shlex.quote(item['path'])}")
            ctx.terminal(shlex.join(["cat", item["path"]]))
            ctx.terminal("cat " + " ".join(map(shlex.quote, item["files"])))
            ctx.terminal("cat " + " ".join(shlex.quote(p) for p in item["files"]))
            return 1.0
    """,
    "numbers": """
        async def compute_reward(self, item, result, ctx):
            ctx.terminal(f"head -n {int(item['lines'])} a; sleep {item['seconds']:.1f}; tail -{len(item['rows'])} a")
            return float(ctx.terminal(f"test {result.turns_used} -lt 5")["exit_code"] == 0)
    """,
    "letters that no shell knows": """
        async def compute_reward(self, item, result, ctx):
            data = base64.b64encode(item["tests"].encode()).decode()
            name = f"/tmp/{uuid.uuid4().hex}"
            return float(ctx.terminal(f"echo {data} | base64 -d > {name}; cat {ctx.task_id}")["exit_code"] == 0)
    """,
    "commands that the item brings": """
        async def compute_reward(self, item, result, ctx):
            ctx.terminal(item["verify"])
            return float(ctx.terminal(f"cd /workspace && {item['test_command']}")["exit_code"] == 0)
    """,
    "a table of constants": """
        async def compute_reward(self, item, result, ctx):
            suffix = {"python": "py", "rust": "rs"}[item["language"]]
            return float(ctx.terminal(f"cat main.{suffix}")["exit_code"] == 0)
    """,
    "checked before": """
        async def compute_reward(self, item, result, ctx):
            name = item["name"]
            if not re.fullmatch(r"\\w+", name):
                return 0.0
            return float(ctx.terminal(f"cat {name}")["exit_code"] == 0)
    """,
    "what cannot be seen": """
        async def compute_reward(self, item, result, ctx):
            def read(path):
                return ctx.terminal(f"cat {path}")
            return float(ctx.terminal(f"cat {self.server.place()} {self.path}")["exit_code"] == read("a"))
    """,
    "quoted before it is passed to a helper": """
        async def compute_reward(self, item, result, ctx):
            return self._reads(ctx, shlex.quote(item["path"]))

        def _reads(self, ctx, path):
            return float(ctx.terminal(f"cat {path}")["exit_code"] == 0)
    """,
    "words of its own that a helper joins": """
        async def compute_reward(self, item, result, ctx):
            return float(self.git(ctx, "rev-parse", "--verify", "HEAD") == 0)

        def git(self, ctx, *words):
            return ctx.terminal("git " + " ".join(words))["exit_code"]
    """,
    "a helper that quotes": """
        async def compute_reward(self, item, result, ctx):
            return float(ctx.terminal(f"cat {self._safe(item['path'])}")["exit_code"] == 0)

        def _safe(self, text):
            return shlex.quote(text)
    """,
}


def source_of(body: str) -> str:
    return (
        'import base64\nimport shlex\nfrom string import Template\n\nWORKDIR = "/workspace"\nTESTS = "tests"\n\n'
        'def command_for(path):\n    return f"cat {path}"\n\n'
        "class Env(HermesAgentBaseEnv):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    )


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_what_somebody_else_said_is_found_in_a_command(judge, body):
    judgement = judge("HE409", source_of(body))

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_quoted_and_own_values_pass(judge, body):
    verdict = judge("HE409", source_of(body)).verdict

    assert (verdict.outcome, verdict.findings) == (Outcome.PASSED, ())


def test_a_reward_without_commands_is_not_concerned(judge):
    verdict = judge("HE409", source_of("async def compute_reward(self, item, result, ctx):\n    return 1.0\n")).verdict

    assert (verdict.outcome, verdict.note) == (Outcome.NOT_APPLICABLE, "compute_reward runs no terminal command")


def test_the_message_names_the_value(judge):
    judgement = judge("HE409", source_of(BROKEN["an f-string, whatever the parameters are called"]))

    assert judgement.messages == ("compute_reward puts task['path'] into a command without quoting it",)

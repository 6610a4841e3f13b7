"""What evaluations and logs report or lose, judges that are asked elsewhere, tool names behind helpers, and what looks like it."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = (
    Mutant(
        rule="HE407",
        name="evaluation asks twice",
        env="graded_letters",
        changes=(
            (
                '                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
                '                style = await self.graded({**item, "about": item["about"] + " in style"}, outcome)\n                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx) * 0.9 + 0.1 * style[0], "messages": outcome.messages}\n',
            ),
        ),
    ),
    Mutant(
        rule="HE407",
        name="evaluation asks a judge per word",
        env="graded_letters",
        changes=(
            (
                '                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
                '                for word in item["words"]:\n                    await self.server.chat_completion(messages=[{"role": "user", "content": f"Is {word} in {last_answer(outcome.messages)}?"}], n=1, max_tokens=5)\n                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
            ),
        ),
    ),
    Mutant(
        rule="HE303",
        name="a function of the module that asks",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        calls = len(names_of_calls(result))\n",
                "        calls = len(names_of_calls(result))\n        if uses(result, 'run_shell'):\n            right = False\n",
            ),
            (
                "def names_of_calls(",
                "def uses(result, name):\n    return any(name == used for used in names_of_calls(result))\n\n\ndef names_of_calls(",
            ),
        ),
    ),
    Mutant(
        rule="HE303",
        name="counted names",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        calls = len(names_of_calls(result))\n",
                "        calls = len(names_of_calls(result))\n        from collections import Counter\n\n        if Counter(names_of_calls(result))['bash'] > 2:\n            right = False\n",
            ),
        ),
    ),
    Mutant(
        rule="HE303",
        name="a dict of weights by name",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        calls = len(names_of_calls(result))\n",
                "        calls = len(names_of_calls(result))\n        weights = {'bash': 0.5}\n        right = right and sum(weights.get(name, 1.0) for name in names_of_calls(result)) >= 0\n",
            ),
        ),
    ),
    Mutant(
        rule="HE406",
        name="litellm",
        env="graded_letters",
        follow_up="HE403",
        changes=(
            (
                '            completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )\n',
                "            completion = None\n",
            ),
            (
                "        try:\n            completion",
                "        second = await litellm.acompletion(model='judge', messages=[{'role': 'user', 'content': question}])\n        try:\n            completion",
            ),
            (
                "            score = parsed_score(completion.choices[0].message.content)\n",
                "            score = parsed_score(second.choices[0].message.content)\n",
            ),
            ("import json\n", "import json\ntry:\n    import litellm\nexcept ImportError:\n    litellm = None\n"),
        ),
    ),
    Mutant(
        rule="HE406",
        name="a post by httpx",
        env="graded_letters",
        follow_up="HE403",
        changes=(
            (
                '            completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )\n',
                "            completion = None\n",
            ),
            (
                "        try:\n            completion",
                "        async with httpx.AsyncClient() as client:\n            second = (await client.post('http://127.0.0.1:9/v1/chat/completions', json={'model': 'judge', 'messages': [{'role': 'user', 'content': question}]})).json()\n        try:\n            completion",
            ),
            (
                "            score = parsed_score(completion.choices[0].message.content)\n",
                "            score = parsed_score(second['choices'][0]['message']['content'])\n",
            ),
            ("import json\n", "import json\n\nimport httpx\n"),
        ),
    ),
    Mutant(
        rule="HE406",
        name="a post by httpx that is only logged",
        env="graded_letters",
        follow_up="HE403",
        changes=(
            (
                '            completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )\n',
                "            completion = None\n",
            ),
            (
                "        try:\n            completion",
                "        try:\n            async with httpx.AsyncClient() as client:\n                second = (await client.post('http://127.0.0.1:9/v1/chat/completions', json={'model': 'judge', 'messages': [{'role': 'user', 'content': question}]})).json()\n        except httpx.HTTPError as error:\n            log.warning('no answer: %s', error)\n            raise\n        try:\n            completion",
            ),
            (
                "            score = parsed_score(completion.choices[0].message.content)\n",
                "            score = parsed_score(second['choices'][0]['message']['content'])\n",
            ),
            ("import json\n", "import json\n\nimport httpx\n"),
        ),
    ),
    Mutant(
        rule="HE706",
        name="the sum of all evaluations",
        env="terminal_tasks",
        changes=(
            (
                '        scores = [sample["score"] for sample in samples]\n',
                "        self.history = [*getattr(self, 'history', []), *samples]\n"
                '        scores = [sample["score"] for sample in self.history]\n',
            ),
            ('            "eval/errors": sum', '            "eval/count": len(scores),\n            "eval/errors": sum'),
        ),
    ),
    Mutant(
        rule="HE704",
        name="turns of its own",
        env="terminal_tasks",
        changes=(("                max_turns=self.config.max_agent_turns,", "                max_turns=5,"),),
    ),
    Mutant(
        rule="HE801",
        name="lost behind or",
        env="ledger_books",
        changes=(("        await super().wandb_log(metrics)", "        await super().wandb_log(wandb_metrics or metrics)"),),
    ),
    Mutant(
        rule="HE801",
        name="lost behind a default",
        env="ledger_books",
        changes=(
            (
                "        await super().wandb_log(metrics)",
                "        await super().wandb_log(metrics if wandb_metrics is None else wandb_metrics)",
            ),
        ),
    ),
    Mutant(
        rule="HE801",
        name="a fresh dict is passed",
        env="ledger_books",
        changes=(("        await super().wandb_log(metrics)", "        await super().wandb_log({})"),),
    ),
    Mutant(
        rule="HE801",
        name="the given ones are lost",
        env="ledger_books",
        changes=(("        metrics = dict(wandb_metrics or {})\n", "        metrics = {}\n"),),
    ),
    Mutant(
        rule="HE801",
        name="or of an empty parameter",
        env="terminal_tasks",
        changes=(
            (
                "        metrics = {} if wandb_metrics is None else wandb_metrics\n        if self",
                "        metrics = {}\n        if self",
            ),
            ("        await super().wandb_log(metrics)", "        await super().wandb_log(metrics or wandb_metrics)"),
        ),
    ),
)

LOOKALIKES = (
    Mutant(
        rule="HE303",
        name="another word in another list",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        calls = len(names_of_calls(result))\n",
                "        calls = len(names_of_calls(result))\n        words = []\n        for message in result.messages:\n            words.append(str(message.get('content')))\n        if 'bash' in words:\n            right = False\n",
            ),
        ),
    ),
    Mutant(
        rule="HE303",
        name="a counter of known names",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        calls = len(names_of_calls(result))\n",
                "        calls = len(names_of_calls(result))\n        from collections import Counter\n\n        if Counter(names_of_calls(result))['terminal'] > 99:\n            right = False\n",
            ),
        ),
    ),
    Mutant(
        rule="HE303",
        name="a parameter with a known name",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        calls = len(names_of_calls(result))\n",
                "        calls = len(names_of_calls(result))\n        if not uses(result, 'terminal'):\n            right = False\n",
            ),
            (
                "def names_of_calls(",
                "def uses(result, name):\n    return any(name == used for used in names_of_calls(result))\n\n\ndef names_of_calls(",
            ),
        ),
    ),
    Mutant(
        rule="HE406",
        name="a client of its own with a fallback",
        env="graded_letters",
        changes=(
            (
                '            completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )\n',
                "            client = __import__('openai').AsyncOpenAI(base_url='http://127.0.0.1:9/v1', api_key='x', max_retries=0)\n            completion = await client.chat.completions.create(model='judge', messages=[{'role': 'user', 'content': question}])\n",
            ),
        ),
    ),
    Mutant(
        rule="HE706",
        name="a count of items",
        env="terminal_tasks",
        changes=(('            "eval/errors": sum', '            "eval/count": len(scores),\n            "eval/errors": sum'),),
    ),
    Mutant(
        rule="HE704",
        name="turns of evaluation in the config",
        env="terminal_tasks",
        changes=(
            ("                max_turns=self.config.max_agent_turns,", "                max_turns=self.config.eval_turns,"),
            (
                "    partial_credit: float",
                '    eval_turns: int = Field(default=7, description="Turns in an evaluation.")\n    partial_credit: float',
            ),
        ),
    ),
    Mutant(
        rule="HE801",
        name="or of a dict that is there",
        env="ledger_books",
        changes=(("        metrics = dict(wandb_metrics or {})\n", "        metrics = wandb_metrics or {}\n"),),
    ),
    Mutant(
        rule="HE801",
        name="prefixed metrics",
        env="ledger_books",
        changes=(
            (
                "        await super().wandb_log(metrics)",
                "        await super().wandb_log({**metrics, **{f'all/{key}': value for key, value in metrics.items()}})",
            ),
        ),
    ),
)
"""Sound: what their rule looks for is not there."""

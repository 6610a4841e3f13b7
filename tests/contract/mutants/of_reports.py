"""What evaluations and logs report or lose, judges that are asked elsewhere, tool names behind helpers, and what looks like it."""

from __future__ import annotations

from .mutant import changed, graded_letters, ledger_books, many_signals, terminal_tasks

MUTANTS = (
    graded_letters(
        rule="HE407",
        name="evaluation asks twice",
        changes=changed(
            '                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
            '                style = await self.graded({**item, "about": item["about"] + " in style"}, outcome)\n                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx) * 0.9 + 0.1 * style[0], "messages": outcome.messages}\n',
        ),
    ),
    graded_letters(
        rule="HE407",
        name="evaluation asks a judge per word",
        changes=changed(
            '                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
            '                for word in item["words"]:\n                    await self.server.chat_completion(messages=[{"role": "user", "content": f"Is {word} in {last_answer(outcome.messages)}?"}], n=1, max_tokens=5)\n                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
        ),
    ),
    many_signals(
        rule="HE303",
        name="a function of the module that asks",
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
    many_signals(
        rule="HE303",
        name="counted names",
        file="signals_base",
        changes=changed(
            "        calls = len(names_of_calls(result))\n",
            "        calls = len(names_of_calls(result))\n        from collections import Counter\n\n        if Counter(names_of_calls(result))['bash'] > 2:\n            right = False\n",
        ),
    ),
    many_signals(
        rule="HE303",
        name="a dict of weights by name",
        file="signals_base",
        changes=changed(
            "        calls = len(names_of_calls(result))\n",
            "        calls = len(names_of_calls(result))\n        weights = {'bash': 0.5}\n        right = right and sum(weights.get(name, 1.0) for name in names_of_calls(result)) >= 0\n",
        ),
    ),
    graded_letters(
        rule="HE406",
        name="litellm",
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
    graded_letters(
        rule="HE406",
        name="a post by httpx",
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
    graded_letters(
        rule="HE406",
        name="a post by httpx that is only logged",
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
    terminal_tasks(
        rule="HE706",
        name="the sum of all evaluations",
        changes=(
            (
                '        scores = [sample["score"] for sample in samples]\n',
                "        self.history = [*getattr(self, 'history', []), *samples]\n"
                '        scores = [sample["score"] for sample in self.history]\n',
            ),
            ('            "eval/errors": sum', '            "eval/count": len(scores),\n            "eval/errors": sum'),
        ),
    ),
    terminal_tasks(
        rule="HE704",
        name="turns of its own",
        changes=changed("                max_turns=self.config.max_agent_turns,", "                max_turns=5,"),
    ),
    ledger_books(
        rule="HE801",
        name="lost behind or",
        changes=changed(
            "        await super().wandb_log(metrics)", "        await super().wandb_log(wandb_metrics or metrics)"
        ),
    ),
    ledger_books(
        rule="HE801",
        name="lost behind a default",
        changes=changed(
            "        await super().wandb_log(metrics)",
            "        await super().wandb_log(metrics if wandb_metrics is None else wandb_metrics)",
        ),
    ),
    ledger_books(
        rule="HE801",
        name="a fresh dict is passed",
        changes=changed("        await super().wandb_log(metrics)", "        await super().wandb_log({})"),
    ),
    ledger_books(
        rule="HE801",
        name="the given ones are lost",
        changes=changed("        metrics = dict(wandb_metrics or {})\n", "        metrics = {}\n"),
    ),
    terminal_tasks(
        rule="HE801",
        name="or of an empty parameter",
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
    many_signals(
        rule="HE303",
        name="another word in another list",
        file="signals_base",
        changes=changed(
            "        calls = len(names_of_calls(result))\n",
            "        calls = len(names_of_calls(result))\n        words = []\n        for message in result.messages:\n            words.append(str(message.get('content')))\n        if 'bash' in words:\n            right = False\n",
        ),
    ),
    many_signals(
        rule="HE303",
        name="a counter of known names",
        file="signals_base",
        changes=changed(
            "        calls = len(names_of_calls(result))\n",
            "        calls = len(names_of_calls(result))\n        from collections import Counter\n\n        if Counter(names_of_calls(result))['terminal'] > 99:\n            right = False\n",
        ),
    ),
    many_signals(
        rule="HE303",
        name="a parameter with a known name",
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
    graded_letters(
        rule="HE406",
        name="a client of its own with a fallback",
        changes=changed(
            '            completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )\n',
            "            client = __import__('openai').AsyncOpenAI(base_url='http://127.0.0.1:9/v1', api_key='x', max_retries=0)\n            completion = await client.chat.completions.create(model='judge', messages=[{'role': 'user', 'content': question}])\n",
        ),
    ),
    terminal_tasks(
        rule="HE706",
        name="a count of items",
        changes=changed(
            '            "eval/errors": sum', '            "eval/count": len(scores),\n            "eval/errors": sum'
        ),
    ),
    terminal_tasks(
        rule="HE704",
        name="turns of evaluation in the config",
        changes=(
            ("                max_turns=self.config.max_agent_turns,", "                max_turns=self.config.eval_turns,"),
            (
                "    partial_credit: float",
                '    eval_turns: int = Field(default=7, description="Turns in an evaluation.")\n    partial_credit: float',
            ),
        ),
    ),
    ledger_books(
        rule="HE801",
        name="or of a dict that is there",
        changes=changed("        metrics = dict(wandb_metrics or {})\n", "        metrics = wandb_metrics or {}\n"),
    ),
    ledger_books(
        rule="HE801",
        name="prefixed metrics",
        changes=changed(
            "        await super().wandb_log(metrics)",
            "        await super().wandb_log({**metrics, **{f'all/{key}': value for key, value in metrics.items()}})",
        ),
    ),
)
"""Sound: what their rule looks for is not there."""

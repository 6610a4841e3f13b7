"""What evaluations and logs report or lose, judges that are asked elsewhere, tool names behind helpers, and what looks like it."""

from __future__ import annotations

from .mutant import CALLS, after, before, graded_letters, ledger_books, signals_base, terminal_tasks

MUTANTS = (
    graded_letters(
        "HE407",
        "evaluation asks twice",
        (
            'return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}',
            'style = await self.graded({**item, "about": item["about"] + " in style"}, outcome)\n                return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx) * 0.9 + 0.1 * style[0], "messages": outcome.messages}',
        ),
    ),
    signals_base(
        "HE303",
        "counted names",
        after(
            CALLS,
            "        from collections import Counter\n\n        if Counter(names_of_calls(result))['bash'] > 2:\n            right = False\n",
        ),
    ),
    signals_base(
        "HE303",
        "a dict of weights by name",
        after(
            CALLS,
            "        weights = {'bash': 0.5}\n        right = right and sum(weights.get(name, 1.0) for name in names_of_calls(result)) >= 0\n",
        ),
    ),
    graded_letters(
        "HE403",
        "a post by httpx",
        (
            'completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )',
            "completion = None",
        ),
        before(
            "        try:\n            completion",
            "        async with httpx.AsyncClient() as client:\n            second = (await client.post('http://127.0.0.1:9/v1/chat/completions', json={'model': 'judge', 'messages': [{'role': 'user', 'content': question}]})).json()\n",
        ),
        (
            "score = parsed_score(completion.choices[0].message.content)",
            "score = parsed_score(second['choices'][0]['message']['content'])",
        ),
        after("import json", "\nimport httpx\n"),
    ),
    terminal_tasks(
        "HE706",
        "the sum of all evaluations",
        (
            'scores = [sample["score"] for sample in samples]',
            "self.history = [*getattr(self, 'history', []), *samples]\n"
            '        scores = [sample["score"] for sample in self.history]',
        ),
        before('            "eval/errors": sum', '            "eval/count": len(scores),\n'),
    ),
    terminal_tasks("HE704", "turns of its own", ("max_turns=self.config.max_agent_turns,", "max_turns=5,")),
    ledger_books(
        "HE801", "lost behind or", ("await super().wandb_log(metrics)", "await super().wandb_log(wandb_metrics or metrics)")
    ),
    ledger_books("HE801", "the given ones are lost", ("metrics = dict(wandb_metrics or {})", "metrics = {}")),
)

LOOKALIKES = (
    signals_base(
        "HE303",
        "another word in another list",
        after(
            CALLS,
            "        words = []\n        for message in result.messages:\n            words.append(str(message.get('content')))\n        if 'bash' in words:\n            right = False\n",
        ),
    ),
    signals_base(
        "HE303",
        "a counter of known names",
        after(
            CALLS,
            "        from collections import Counter\n\n        if Counter(names_of_calls(result))['terminal'] > 99:\n            right = False\n",
        ),
    ),
    graded_letters(
        "HE406",
        "a client of its own with a fallback",
        (
            'completion = await self.server.chat_completion(\n                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0\n            )',
            "client = __import__('openai').AsyncOpenAI(base_url='http://127.0.0.1:9/v1', api_key='x', max_retries=0)\n            completion = await client.chat.completions.create(model='judge', messages=[{'role': 'user', 'content': question}])",
        ),
    ),
    terminal_tasks(
        "HE706", "a count of items", before('            "eval/errors": sum', '            "eval/count": len(scores),\n')
    ),
    terminal_tasks(
        "HE704",
        "turns of evaluation in the config",
        ("max_turns=self.config.max_agent_turns,", "max_turns=self.config.eval_turns,"),
        before("    partial_credit: float", '    eval_turns: int = Field(default=7, description="Turns in an evaluation.")\n'),
    ),
    ledger_books(
        "HE801", "or of a dict that is there", ("metrics = dict(wandb_metrics or {})", "metrics = wandb_metrics or {}")
    ),
    ledger_books(
        "HE801",
        "prefixed metrics",
        (
            "await super().wandb_log(metrics)",
            "await super().wandb_log({**metrics, **{f'all/{key}': value for key, value in metrics.items()}})",
        ),
    ),
)
"""Sound: what their rule looks for is not there."""

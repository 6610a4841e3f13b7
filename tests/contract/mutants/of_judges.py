"""HE406 and HE407: what is wrong with how a judge is asked."""

from __future__ import annotations

from .mutant import TOTAL, before, graded_letters, signals_base

ASKED = """\
            completion = await self.server.chat_completion(
                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0
            )
            score = parsed_score(completion.choices[0].message.content)
"""
TRY = f"""\
        try:
{ASKED}        except Exception as error:
            log.warning("the judge failed: %s", error)
            score = None
"""
KEYWORDS = '        return keyword_share(item["words"], letter) if score is None else score\n'
PARTS = '        parts = {"judged": await self.judged(item, letter),'


def unindented(text: str) -> str:
    """Return lines one step to the left."""
    return "".join(line[4:] for line in text.splitlines(keepends=True))


MUTANTS = (
    # ------------------------------------------------------------------ HE406
    graded_letters("HE406", "no try", (TRY, unindented(ASKED))),
    graded_letters(
        "HE406",
        "only a timeout",
        (
            'except Exception as error:\n            log.warning("the judge',
            'except asyncio.TimeoutError as error:\n            log.warning("the judge',
        ),
    ),
    graded_letters(
        "HE406", "logs and raises", ('failed: %s", error)\n            score = None', 'failed: %s", error)\n            raise')
    ),
    graded_letters(
        "HE406",
        "an answer is always a number",
        (
            TRY,
            TRY.replace("            score = parsed_score(completion.choices[0].message.content)\n", "").replace(
                "            score = None\n", '            return keyword_share(item["words"], letter)\n'
            )
            + "        score = float(SCORE.search(completion.choices[0].message.content)[1])\n",
        ),
    ),
    graded_letters(
        "HE406",
        "None where the judge fails",
        (KEYWORDS, "        return score\n"),
        before(
            "        weight = self.config.judge_weight", '        if parts["judged"] is None:\n            return None, parts\n'
        ),
    ),
    # ------------------------------------------------------------------ HE407
    graded_letters(
        "HE407",
        "a question for each part",
        before(
            PARTS,
            '        tone = await self.judged(item, f"(judge the tone) {letter}")\n        log.debug("tone %s", tone)\n',
        ),
    ),
    graded_letters(
        "HE407",
        "a question for each word",
        before(
            KEYWORDS,
            '        for word in item["words"]:\n'
            "            try:\n"
            "                await self.server.chat_completion(\n"
            '                    messages=[{"role": "user", "content": f"Is {word} in this? {letter}"}], n=1, max_tokens=5\n'
            "                )\n"
            "            except Exception as error:\n"
            '                log.warning("the judge failed: %s", error)\n',
        ),
    ),
    signals_base(
        "HE407",
        "a judge for each signal",
        before(
            TOTAL,
            "        for number, (weight, signal) in enumerate(signals):\n"
            "            try:\n"
            "                await self.server.chat_completion(\n"
            '                    messages=[{"role": "user", "content": f"Is signal {number} fair: {signal}?"}], n=1\n'
            "                )\n"
            "            except Exception:\n"
            "                traceback.print_exc()\n",
        ),
    ),
)

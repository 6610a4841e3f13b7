"""HE3: what is wrong with how a result is read."""

from __future__ import annotations

from .mutant import CALLS, GRADE, LETTER, after, before, capitals_exam, graded_letters, ledger_books, signals_base

NAMES = '            if isinstance(call, dict):\n                names.append((call.get("function") or {}).get("name", ""))\n'
CAPITAL = "        _, capital = item\n"

MUTANTS = (
    graded_letters("HE301", "final_response", (LETTER, "        letter = result.final_response\n")),
    signals_base(
        "HE301",
        "through an alias in a helper",
        ("for message in result.messages:", "outcome = result\n    for message in outcome.output:"),
    ),
    graded_letters(
        "HE301", "through its dict", (LETTER, '        letter = vars(result).get("output") or last_answer(result.messages)\n')
    ),
    graded_letters("HE301", "get", (LETTER, '        letter = last_answer(result.get("messages", []))\n')),
    ledger_books(
        "HE301",
        "tools_used behind another parameter name",
        (
            "async def compute_reward(self, item: dict[str, Any], result: AgentResult, ctx: ToolContext) -> float:",
            "async def compute_reward(self, item, outcome, ctx) -> float:",
        ),
        before(GRADE, "        if not outcome.tools_used:\n            return 0.0\n"),
    ),
    capitals_exam(
        "HE301",
        "getattr with a constant",
        after("_, capital = item", '        if not getattr(result, "tool_calls"):\n            return 0.0\n'),
    ),
    # ------------------------------------------------------------------ HE302: behind a broad except, where nobody hears of it
    signals_base(
        "HE302",
        "calls as objects",
        (
            NAMES,
            "            try:\n"
            "                names.append(call.function.name)\n"
            "            except Exception:\n"
            '                names.append("unknown")\n',
        ),
    ),
    graded_letters(
        "HE302",
        "messages as objects",
        (
            LETTER,
            "        try:\n"
            "            letter = result.messages[-1].content\n"
            "        except Exception:\n"
            "            letter = last_answer(result.messages)\n",
        ),
    ),
    ledger_books(
        "HE302",
        "arguments of an object",
        before(
            GRADE,
            "        commands = []\n"
            "        for message in result.messages:\n"
            '            for call in message.get("tool_calls") or []:\n'
            "                try:\n"
            "                    commands.append(call.function.arguments)\n"
            "                except Exception:\n"
            '                    logger.debug("%s has no arguments", call)\n',
        ),
    ),
    capitals_exam(
        "HE302",
        "the roles of objects",
        after(
            CAPITAL,
            "        try:\n"
            '            answers = sum(message.role == "assistant" for message in result.messages)\n'
            "        except Exception:\n"
            "            answers = 0\n",
        ),
    ),
    signals_base(
        "HE302",
        "getattr with a constant",
        (
            CALLS,
            "        try:\n"
            '            calls = sum(len(getattr(message, "tool_calls")) for message in result.messages)\n'
            "        except Exception:\n"
            "            calls = len(names_of_calls(result))\n",
        ),
    ),
    # ------------------------------------------------------------------ HE303
    signals_base("HE303", "bash", after(CALLS, '        calls += sum(name == "bash" for name in names_of_calls(result))\n')),
    ledger_books(
        "HE303",
        "the tool of another agent",
        before(
            GRADE,
            "        for message in result.messages:\n"
            '            for call in message.get("tool_calls") or ():\n'
            '                if call["function"]["name"] == "execute_command":\n'
            "                    return 0.0\n",
        ),
    ),
    graded_letters(
        "HE303",
        "a set of names",
        after(
            LETTER,
            '        used = {call["function"]["name"] for message in result.messages for call in message.get("tool_calls") or ()}\n'
            '        if "write_to_file" not in used:\n'
            '            log.info("the letter was not saved")\n',
        ),
    ),
    capitals_exam(
        "HE303",
        "a constant of the module",
        before("class Attempt(", 'WRITERS = ("file_write", "write_file")\n\n\n'),
        after(
            CAPITAL,
            "        for message in result.messages:\n"
            '            for call in message.get("tool_calls") or []:\n'
            '                writes = call["function"]["name"] in WRITERS\n',
        ),
    ),
    signals_base(
        "HE303",
        "counts one name",
        after(CALLS, '        calls = max(calls, names_of_calls(result).count("run_terminal_cmd"))\n'),
    ),
)

"""HE3: what is wrong with how a result is read."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

LETTER = "        letter = last_answer(result.messages)\n"
GRADE = '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'

NAMES = '            if isinstance(call, dict):\n                names.append((call.get("function") or {}).get("name", ""))\n'
CALLS = "        calls = len(names_of_calls(result))\n"
CAPITAL = "        _, capital = item\n"

MUTANTS = (
    graded_letters(
        rule="HE301",
        name="final_response",
        changes=changed(LETTER, "        letter = result.final_response\n"),
    ),
    many_signals(
        rule="HE301",
        name="through an alias in a helper",
        file="signals_base",
        changes=changed("    for message in result.messages:\n", "    outcome = result\n    for message in outcome.output:\n"),
    ),
    graded_letters(
        rule="HE301",
        name="through its dict",
        changes=changed(LETTER, '        letter = vars(result).get("output") or last_answer(result.messages)\n'),
    ),
    graded_letters(
        rule="HE301",
        name="get",
        changes=changed(LETTER, '        letter = last_answer(result.get("messages", []))\n'),
    ),
    ledger_books(
        rule="HE301",
        name="tools_used behind another parameter name",
        changes=(
            (
                "async def compute_reward(self, item: dict[str, Any], result: AgentResult, ctx: ToolContext) -> float:",
                "async def compute_reward(self, item, outcome, ctx) -> float:",
            ),
            (GRADE, "        if not outcome.tools_used:\n            return 0.0\n" + GRADE),
        ),
    ),
    capitals_exam(
        rule="HE301",
        name="getattr with a constant",
        changes=changed(
            "        _, capital = item\n",
            '        _, capital = item\n        if not getattr(result, "tool_calls"):\n            return 0.0\n',
        ),
    ),
    # ------------------------------------------------------------------ HE302: behind a broad except, where nobody hears of it
    many_signals(
        rule="HE302",
        name="calls as objects",
        file="signals_base",
        changes=changed(
            NAMES,
            "            try:\n"
            "                names.append(call.function.name)\n"
            "            except Exception:\n"
            '                names.append("unknown")\n',
        ),
    ),
    graded_letters(
        rule="HE302",
        name="messages as objects",
        changes=changed(
            LETTER,
            "        try:\n"
            "            letter = result.messages[-1].content\n"
            "        except Exception:\n"
            "            letter = last_answer(result.messages)\n",
        ),
    ),
    ledger_books(
        rule="HE302",
        name="arguments of an object",
        changes=changed(
            GRADE,
            "        commands = []\n"
            "        for message in result.messages:\n"
            '            for call in message.get("tool_calls") or []:\n'
            "                try:\n"
            "                    commands.append(call.function.arguments)\n"
            "                except Exception:\n"
            '                    logger.debug("%s has no arguments", call)\n' + GRADE,
        ),
    ),
    capitals_exam(
        rule="HE302",
        name="the roles of objects",
        changes=changed(
            CAPITAL,
            CAPITAL + "        try:\n"
            '            answers = sum(message.role == "assistant" for message in result.messages)\n'
            "        except Exception:\n"
            "            answers = 0\n",
        ),
    ),
    many_signals(
        rule="HE302",
        name="getattr with a constant",
        file="signals_base",
        changes=changed(
            CALLS,
            "        try:\n"
            '            calls = sum(len(getattr(message, "tool_calls")) for message in result.messages)\n'
            "        except Exception:\n"
            "            calls = len(names_of_calls(result))\n",
        ),
    ),
    # ------------------------------------------------------------------ HE303
    many_signals(
        rule="HE303",
        name="bash",
        file="signals_base",
        changes=changed(CALLS, CALLS + '        calls += sum(name == "bash" for name in names_of_calls(result))\n'),
    ),
    many_signals(
        rule="HE303",
        name="patch_file among others",
        file="signals_base",
        changes=changed(
            CALLS, '        calls = len([name for name in names_of_calls(result) if name in {"terminal", "patch_file"}])\n'
        ),
    ),
    ledger_books(
        rule="HE303",
        name="the tool of another agent",
        changes=changed(
            GRADE,
            "        for message in result.messages:\n"
            '            for call in message.get("tool_calls") or ():\n'
            '                if call["function"]["name"] == "execute_command":\n'
            "                    return 0.0\n" + GRADE,
        ),
    ),
    graded_letters(
        rule="HE303",
        name="a set of names",
        changes=changed(
            LETTER,
            LETTER
            + '        used = {call["function"]["name"] for message in result.messages for call in message.get("tool_calls") or ()}\n'
            '        if "write_to_file" not in used:\n'
            '            log.info("the letter was not saved")\n',
        ),
    ),
    capitals_exam(
        rule="HE303",
        name="a constant of the module",
        changes=(
            ("class Attempt(", 'WRITERS = ("file_write", "write_file")\n\n\nclass Attempt('),
            (
                CAPITAL,
                CAPITAL + "        for message in result.messages:\n"
                '            for call in message.get("tool_calls") or []:\n'
                '                writes = call["function"]["name"] in WRITERS\n',
            ),
        ),
    ),
    many_signals(
        rule="HE303",
        name="counts one name",
        file="signals_base",
        changes=changed(CALLS, CALLS + '        calls = max(calls, names_of_calls(result).count("run_terminal_cmd"))\n'),
    ),
)

"""Our parsers compared with vLLM's, on the same outputs. Where they differ, a rule of docs/reference/tool-call-parsers.md says why."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from environments.tool_call_parsers import get_parser, list_parsers

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "tool-call-parsers.md"
NAMES = (
    "deepseek_v3", "deepseek_v31", "glm45", "glm47", "hermes", "kimi_k2", "llama3_json", "llama4_json", "longcat",
    "mistral_array", "mistral_v11", "mistral_v13", "qwen3_coder",
)  # fmt: skip
CLOSING = {
    "hermes": "</tool_call>", "longcat": "</longcat_tool_call>", "kimi_k2": "<|tool_call_end|>", "glm45": "</tool_call>",
    "glm47": "</tool_call>", "qwen3_coder": "</function>", "mistral_array": "]",
}  # fmt: skip
GIVE_UP = ("hermes", "longcat", "llama3_json", "llama4_json", "mistral_array", "deepseek_v3")
TYPED_BY_TEXT = ("glm45", "glm47", "qwen3_coder")


@dataclass(frozen=True, kw_only=True)
class Call:
    name: str
    arguments: str
    id: str | None = None

    @property
    def value(self) -> Any:
        """The arguments as a value; None when they are no JSON."""
        try:
            return json.loads(self.arguments)
        except ValueError:
            return None

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What makes two calls the same: spaces around the arguments do not count."""
        return self.name, self.arguments.strip(), self.id


@dataclass(frozen=True, kw_only=True)
class Case:
    """One output, and what both sides made of it."""

    form: Any
    text: str
    ours: list[Call]
    theirs: list[Call]
    our_content: str | None
    their_content: str | None
    offered: frozenset[str]

    @property
    def thought(self) -> str:
        """All that is thought, recognised by the tags alone."""
        opening, closing = ("(?:" + "|".join(map(re.escape, {tag, plain})) + ")" for tag, plain in self._think_tags())
        first = re.search(f"{opening}|{closing}", self.text)
        if first and re.fullmatch(closing, first.group()):
            return self.text[: first.start()]
        return "".join(re.findall(rf"{opening}(.*?)(?:{closing}|\Z)", self.text, re.DOTALL))

    def _think_tags(self) -> zip[tuple[str, str]]:
        return zip(self.form.think, ("<think>", "</think>"), strict=True)

    def is_well_formed(self, call: Call) -> bool:
        """Say whether the text holds this call as its format is published, but for white space. For formats of plain text."""
        arguments = call.value or {}
        if any("<" in key for key in arguments) or any("<arg_" in str(value) for value in arguments.values()):
            return False
        if self.form.name == "qwen3_coder":
            value = r"(?:(?!</?parameter).)*"
            body = "".join(rf"<parameter={re.escape(key)}>{value}</parameter>\s*" for key in arguments)
            pattern = rf"<function={re.escape(call.name)}>\s*{body}</function>"
        else:
            value = r"(?:(?!</?arg_).)*"
            body = "".join(rf"<arg_key>{re.escape(key)}</arg_key>\s*<arg_value>{value}</arg_value>\s*" for key in arguments)
            pattern = rf"<tool_call>\s*{re.escape(call.name)}\s*{body}</tool_call>"
        return re.search(pattern, self.text, re.DOTALL) is not None


# -- why vLLM has a call that ours have not ------------------------------------------------------------------------------------


def is_thought(case: Case, call: Call) -> bool:
    marks = list(call.value) if case.form.is_typed_by_schema else [call.arguments]
    return all(mark in case.thought for mark in (call.name, *marks))


def arguments_are_no_json(_case: Case, call: Call) -> bool:
    return call.value is None and call.arguments != "null"


def name_is_none(_case: Case, call: Call) -> bool:
    return re.fullmatch(r"[^\s<>{}\[\]\"'`]+", call.name.strip()) is None or "<" in (call.id or "")


def has_space_around_name(case: Case, call: Call) -> bool:
    return call.name != call.name.strip() and any(mine.name == call.name.strip() for mine in case.ours)


def is_cut_off(case: Case, call: Call) -> bool:
    if case.form.name not in (*TYPED_BY_TEXT, "kimi_k2", "mistral_v11", "mistral_v13") or call.key != case.theirs[-1].key:
        return False
    rest = case.text[case.text.rfind(call.name) :]
    closing = CLOSING.get(case.form.name, "}")
    return closing not in rest


def is_loosely_tagged(case: Case, call: Call) -> bool:
    if case.form.name == "kimi_k2":
        header = rf"functions\.{re.escape(call.name)}:\d+<\|tool_call_argument_begin\|>\s*(\{{\s*\}})?\s*<"
        return call.arguments == "{}" and re.search(header, case.text) is None
    return case.form.name in TYPED_BY_TEXT and not case.is_well_formed(call)


def is_not_offered(case: Case, call: Call) -> bool:
    before = case.text[: case.text.find(call.name)]
    return case.form.name.startswith("llama") and "<|python_tag|>" not in before and call.name not in case.offered


def arguments_are_misspelt(case: Case, call: Call) -> bool:
    return case.form.name == "mistral_array" and call.arguments == "{}" and call.name in (case.our_content or "")


# -- why ours have a call that vLLM has not ------------------------------------------------------------------------------------


def is_unoffered(case: Case, call: Call) -> bool:
    return case.form.name.startswith("glm") and call.name not in case.offered


def closing_tag_is_cut_off(case: Case, call: Call) -> bool:
    closing = CLOSING.get(case.form.name)
    if closing is None or case.form.name == "mistral_array":
        return False
    return any(case.text.endswith(closing[:size]) for size in range(1, len(closing)))


def neighbour_is_malformed(case: Case, call: Call) -> bool:
    is_lost = not case.theirs if case.form.name in GIVE_UP else any(
        name_is_none(case, other) or is_loosely_tagged(case, other) or (other.value is None and call.name in other.arguments)
        for other in case.theirs
    )  # fmt: skip
    is_lost = is_lost or case.form.name.startswith("glm")  # there, a call with an unknown name is dropped
    left = case.our_content or ""
    marks = ("{",) if case.form.name.startswith("llama") else (*case.form.vocabulary, "[TOOL_CALLS]", "<tool")
    return is_lost and any(mark in left for mark in marks)


def is_a_later_array(case: Case, _call: Call) -> bool:
    return case.form.name == "mistral_array" and case.text.count("[TOOL_CALLS]") > 1


def arguments_are_left_out(case: Case, call: Call) -> bool:
    return not case.theirs and any(one.arguments == "{}" and f'"name": "{one.name}"}}' in case.text for one in case.ours)


# -- why a call differs on both sides ------------------------------------------------------------------------------------------


def tag_is_data(case: Case, _call: Call) -> bool:
    tags = (*case.form.vocabulary, *case.form.think, "</function>", "</tool_call>")
    return any(tag in mine.arguments for mine in case.ours for tag in tags)


def null_stays_null(case: Case, call: Call) -> bool:
    other = [one for one in (*case.ours, *case.theirs) if one.name == call.name and one.key != call.key]
    return any(re.sub(r'"null"|null', "", one.arguments) == re.sub(r'"null"|null', "", call.arguments) for one in other)


Why = Callable[[Case, Call], bool]
THEIRS_ONLY: dict[str, Why] = {
    "thought": is_thought,
    "null": null_stays_null,
    "tag as data": tag_is_data,
    "no JSON": arguments_are_no_json,
    "spaces": has_space_around_name,
    "no name": name_is_none,
    "cut off": is_cut_off,
    "loose tags": is_loosely_tagged,
    "not offered": is_not_offered,
    "misspelt": arguments_are_misspelt,
}
OURS_ONLY: dict[str, Why] = {
    "null": null_stays_null,
    "spaces": lambda case, call: any(other.name.strip() == call.name != other.name for other in case.theirs),
    "tag as data": tag_is_data,
    "closing tag": closing_tag_is_cut_off,
    "neighbour": neighbour_is_malformed,
    "line break": lambda case, _: (
        case.form.name == "deepseek_v3" and re.search(r"\n```\s+<\S+call\S+end", case.text) is not None
    ),
    "unknown tool": is_unoffered,
    "later array": is_a_later_array,
    "name alone": arguments_are_left_out,
}


def why_calls_differ(case: Case) -> list[str]:
    """The rule for every call that one side has and the other has not; a question mark where there is none."""
    ours, theirs = Counter(call.key for call in case.ours), Counter(call.key for call in case.theirs)
    rules = []
    for calls, others, reasons in ((case.theirs, ours, THEIRS_ONLY), (case.ours, theirs, OURS_ONLY)):
        left = Counter(others)
        for call in calls:
            if left[call.key]:
                left[call.key] -= 1
            else:
                rules.append(next((rule for rule, why in reasons.items() if why(case, call)), "?"))
    return rules


def letters_of(content: str | None) -> str:
    """A content without its white space, which does not count."""
    return "".join((content or "").split())


def why_contents_differ(case: Case) -> str:
    """The rule for contents that differ although the calls are the same."""
    ours, theirs = letters_of(case.our_content), letters_of(case.their_content)
    if not case.ours:
        return "unchanged" if case.our_content == case.text else "?"
    if any(tag in case.text for tag in (*case.form.think, "<think>", "</think>")):
        return "thought is kept"
    letters = iter(ours)
    return "text is kept" if len(ours) > len(theirs) and all(letter in letters for letter in theirs) else "?"


def cases(formats: SimpleNamespace, data: Path, name: str) -> list[Case]:
    form = formats.FORMATS[name]
    parser = get_parser(form.ours[0])
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    found = []
    for row in map(json.loads, lines[1:]):
        content, calls = parser.parse(row["text"], formats.TOOLS)
        keeps_id = name == "kimi_k2"
        found.append(
            Case(
                form=form,
                text=row["text"],
                ours=[
                    Call(name=call.function.name, arguments=call.function.arguments, id=call.id if keeps_id else None)
                    for call in calls or []
                ],
                theirs=[
                    Call(name=call[0], arguments=call[1], id=call[2] if keeps_id else None) for call in row.get("calls", [])
                ],
                our_content=content,
                their_content=row.get("content", row["text"]),
                offered=frozenset(tool["function"]["name"] for tool in formats.TOOLS),
            )
        )
    return found


def differences(found: list[Case]) -> tuple[Counter[str], list[Case]]:
    """How often each rule applies, and the outputs for which no rule does."""
    count: Counter[str] = Counter()
    unexplained = []
    for case in found:
        rules = why_calls_differ(case)
        if not rules and letters_of(case.our_content) != letters_of(case.their_content):
            rules = [why_contents_differ(case)]
        if "?" in rules:
            unexplained.append(case)
        count.update(set(rules))
        count["the same"] += not rules
    return count, unexplained


@pytest.mark.parametrize("name", NAMES)
def test_every_disagreement_has_its_rule(formats, data, name):
    """Ours and vLLM's calls and content are the same, or differ under a rule with a name."""
    found = cases(formats, data, name)

    count, unexplained = differences(found)

    print(name, len(found), dict(count))
    assert unexplained == []
    assert len(found) >= 300
    assert len({case.text for case in found}) == len(found)


def test_the_page_counts_what_is_found(formats, data):
    """The table in docs/ shows, per format, how often each rule applies; no rule of the page is idle."""
    counts = {name: differences(cases(formats, data, name))[0] for name in NAMES}
    rules = ["the same", *dict.fromkeys((*THEIRS_ONLY, *OURS_ONLY)), "unchanged", "thought is kept", "text is kept"]
    head = f"| | {' | '.join(NAMES)} |"
    lines = [f"| {rule} | {' | '.join(str(counts[name][rule] or '') for name in NAMES)} |" for rule in rules]

    page = PAGE.read_text(encoding="utf-8")

    assert "\n".join([head, "|---" * (len(NAMES) + 1) + "|", *lines]) in page
    assert [rule for rule in rules if not any(counts[name][rule] for name in NAMES)] == []


def test_whole_outputs_are_read_alike(formats, data):
    """A well-formed output without thoughts is never a disagreement about calls, whatever the format."""
    rows = {
        name: [json.loads(line) for line in (data / f"{name}.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")[1:]]
        for name in NAMES
    }
    kinds = {name: {row["text"]: row["kind"] for row in found} for name, found in rows.items()}

    differing = [
        case.text
        for name in NAMES
        for case in cases(formats, data, name)
        if kinds[name][case.text] in ("whole", "beside_prose") and why_calls_differ(case)
    ]

    assert differing == []


def test_every_parser_is_compared(formats):
    """The formats cover all names but those of parsers that tests register."""
    compared = {name for form in formats.FORMATS.values() for name in form.ours}

    assert {*NAMES} == {*formats.FORMATS}
    assert compared <= {*list_parsers()}
    assert {"hermes", "qwen", "longcat", "mistral", "llama3_json", "llama4_json", "deepseek_v3", "deepseek_v3_1",
            "deepseek_v31", "kimi_k2", "glm45", "glm47", "qwen3_coder"} == compared  # fmt: skip


def test_parsers_of_one_format_read_alike(formats, data):
    """Two names of one format give the same answer to every output."""
    for name in NAMES:
        form = formats.FORMATS[name]
        first, *others = (get_parser(ours) for ours in form.ours)
        for case in cases(formats, data, name):
            content, calls = first.parse(case.text, formats.TOOLS)
            for other in others:
                other_content, other_calls = other.parse(case.text, formats.TOOLS)
                assert other_content == content
                assert [call.function for call in other_calls or []] == [call.function for call in calls or []]

"""Writes the pages docs/rules/HEnnn.md, their index, and the table of severities from the rules: ``python docs/rule_pages.py``.

The text of a rule is copied as it is: code in it is set in backticks, and sentences begin as the rule writes them. What a violation does,
and the examples, are written on the page by hand, and kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.contract.examples import examples_text
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.reports.text import law
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.source.finding import Severity

COMMAND = "python docs/rule_pages.py"
_MEANS = {
    Severity.ERROR: "A violation fails the run.",
    Severity.WARNING: "A violation is shown. It fails the run with `--strict` and `--hermes-strict`.",
}
_FAMILIES = {
    "HE1": "Class and configuration",
    "HE2": "Items and prompts",
    "HE3": "Result and messages",
    "HE4": "Reward",
    "HE5": "Scored data",
    "HE6": "Sandbox and isolation",
    "HE7": "Evaluation",
    "HE8": "Logging",
}


_FOLDER = Path(__file__).with_name("rules")
_SEVERITIES = Path(__file__).parent / "reference" / "severities.md"
_ROW = re.compile(r"^\| HE\d+ \|.*\|\n", re.MULTILINE)
_DOES = "**What a violation does:**"
_NEW_EXAMPLES = "Bad.\n\n```python\n```\n\nGood.\n\n```python\n```"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page, the index first."""
    yield "index.md", index_text()
    for rule in ALL_RULES:
        page = kept_page(rule)
        yield f"{rule.id}.md", page_text(rule, does=does_in(page), examples=examples_text(page) or _NEW_EXAMPLES)


def kept_page(rule: Rule) -> str:
    """Return the page of a rule as it is; empty for a new rule."""
    page = _FOLDER / f"{rule.id}.md"
    return page.read_text(encoding="utf-8") if page.is_file() else ""


def does_in(page: str) -> str:
    """Return what a page says that a violation does; empty as long as it does not."""
    found = re.search(rf"^{re.escape(_DOES)} *(.*)$", page, re.MULTILINE)
    return found[1] if found else ""


def page_text(rule: Rule, *, does: str, examples: str) -> str:
    """Return the page of one rule."""
    lines = [
        f"# {rule.id} {rule.name}",
        "",
        law(rule),
        "",
        f"**Severity:** {rule.severity.value}. {_MEANS[rule.severity]} **Seen in:** {halves(rule)}.",
        "",
        f"{_DOES} {does}".rstrip(),
    ]
    for title in ("What", "Why", "Fix"):
        lines += ["", f"## {title}", "", rule.section(title)]
    lines += ["", "## Examples", "", examples]
    if rule.scenarios:
        lines += ["", "## Scenarios", "", f"Reads {', '.join(f'`{name}`' for name in rule.scenarios)}."]
    lines += ["", "## Source", "", rule.section("Source")]
    lines += ["", "To accept a violation with a reason: [waive a rule](../how-to/waive.md).", ""]
    return "\n".join(lines)


def index_text() -> str:
    """Return the page that lists all rules by family."""
    lines = ["# Rules", "", f"{len(ALL_RULES)} rules. `hermes-env explain {ALL_RULES[0].id}` prints one in the terminal."]
    family = ""
    for rule in ALL_RULES:
        if rule.id[:3] != family:
            family = rule.id[:3]
            lines += ["", f"## {_FAMILIES.get(family, family)}", "", "| id | rule | severity | seen in |", "|---|---|---|---|"]
        lines.append(f"| [{rule.id}]({rule.id}.md) | {rule.name}: {law(rule)} | {rule.severity.value} | {halves(rule)} |")
    return "\n".join([*lines, "", f"These pages are written by `{COMMAND}`: change the rule, not its page.", ""])


def severities_text() -> str:
    """Return the page of severities, with a row for each rule."""
    page = _SEVERITIES.read_text(encoding="utf-8")
    rows = "".join(f"| {rule.id} | {rule.severity.value} | {does_in(kept_page(rule))} |\n" for rule in ALL_RULES)
    first, *_, last = _ROW.finditer(page)
    return page[: first.start()] + rows + page[last.end() :]


def halves(rule: Rule) -> str:
    """Return where violations are found."""
    seen = [word for word, half in (("source", rule.static), ("rollouts", rule.dynamic)) if half is not None]
    return " and ".join(seen) or "the file"


def write_pages(folder: str) -> list[str]:
    """Write all pages; return lines that say how many there are, and which pages of the folder no rule has."""
    names = []
    for name, text in pages():
        write_text(os.path.join(folder, name), text)
        names.append(name)
    stray = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name not in names)
    return [f"{folder}: {len(names)} pages", *(f"{os.path.join(folder, name)} belongs to no rule: remove it" for name in stray)]


if __name__ == "__main__":
    print("\n".join(write_pages(str(_FOLDER))))
    write_text(str(_SEVERITIES), severities_text())

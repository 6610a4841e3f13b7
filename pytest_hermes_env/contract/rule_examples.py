"""The good and bad examples of rules: data next to the rules, shown by `explain` and the docs pages, and run by the tests.

``contract/examples/HE301.md`` holds the parts ``## Bad`` and ``## Good``, each with at least one block of Python: methods of an
environment, or a whole file where the violation lies outside of methods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r"^## (Bad|Good)\s*$", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Example:
    """One block of code, the words above it, and whether the rule finds a violation in it."""

    rule_id: str
    is_bad: bool
    text: str
    code: str


def examples_of(rule_id: str) -> tuple[Example, ...]:
    """Return the examples of a rule, in the order of its file; none when it has no file yet. Raises: ValueError."""
    from importlib import resources  # noqa: PLC0415  # only where examples are shown

    file = resources.files("pytest_hermes_env.contract").joinpath("examples", f"{rule_id}.md")
    if not file.is_file():
        return ()
    pieces = _PART.split(file.read_text(encoding="utf-8"))
    found = [
        Example(rule_id=rule_id, is_bad=part == "Bad", text=" ".join(before.split()), code=code)
        for part, body in zip(pieces[1::2], pieces[2::2], strict=True)
        for before, code in _blocks(body)
    ]
    if {example.is_bad for example in found} != {True, False}:
        raise ValueError(f"contract/examples/{rule_id}.md needs the parts '## Bad' and '## Good', each with a ```python block")
    return tuple(found)


def _blocks(body: str) -> list[tuple[str, str]]:
    pieces = _BLOCK.split(body)
    return list(zip(pieces[0::2], pieces[1::2], strict=False))

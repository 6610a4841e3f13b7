"""The README: its commands are those of tox, its links lead to files. Its blocks run with those of all pages."""

from __future__ import annotations

import re

from .pages import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_commands_are_those_of_tox() -> None:
    """The two commands exist: tox's default environments, and demo. CI runs both."""
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert "pip install tox-uv && tox run -e demo" in README
    assert "pip install tox-uv && tox run  " in README
    assert "env_list = lint, types, tests" in tox
    assert "[testenv:demo]" in tox
    assert all(f"run -e {name}" in ci for name in ("lint,types", "tests", "demo"))


def test_every_link_leads_to_a_file() -> None:
    """Links between the pages in docs are checked by `tox run -e docs`."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))

    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []

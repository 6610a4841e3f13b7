"""Writes failing-run.svg, the picture of the README: `python docs/images/failing_run.py`, from the top of the checkout.

It is what a real run on the environment of the tutorial prints, without some of its findings.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ENVIRONMENT = "word_count_env.py"
SHOWN = ("HE301", "HE702")
WIDTH = 101
FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""Fonts that a browser would fetch from another host; it has one of its own."""


def lines_of(output: str) -> list[str]:
    """Return the lines of a run from its findings on, only with those that are shown."""
    _, *findings = re.split(r"^(?=(?:\x1b\[\S*m)*_{3,} )", output, flags=re.MULTILINE)
    last, rule, end = re.split(r"^((?:\x1b\[\S*m)*-{3,}.*)$", findings.pop(), maxsplit=1, flags=re.MULTILINE)
    kept = [finding for finding in [*findings, last] if any(f"[{rule_id}-" in finding for rule_id in SHOWN)]
    return f"{''.join(kept)}⋮\n{rule}{end}".splitlines()


def main() -> None:
    """Run the contract, and write its output as a picture."""
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "--color=yes", "-p", "no:cacheprovider", "--hermes-env", ENVIRONMENT]
    environ = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color"}
    environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:  # beside no ini file
        shutil.copy(here.parent / "tutorial" / ENVIRONMENT, folder)
        output = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False).stdout
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ pytest --hermes-env {ENVIRONMENT}\n⋮", style="bold"))
    console.print(Text.from_ansi("\n".join(lines_of(output))), no_wrap=True, overflow="ellipsis")
    picture = FONT.sub("", console.export_svg(title="seven mistakes, found offline in ten seconds", unique_id="run"))
    (here / "failing-run.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()

"""All figures, with peers and ratios, machine and versions: ``python -m benchmarks [NAME ...] [--json FILE] [--markdown FILE]``.

NAME is a benchmark or a file of them (``python -m benchmarks sandboxes``). The soaks count nothing: they check that long work adds up,
are run by their name alone and take arguments of their own (``python -m benchmarks soak 3000 100 0.06``).
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.registry import REGISTRY, Benchmark, Figure

ROOMS = ("start", "sandboxes", "rollouts", "cassettes", "parsers")
SOAKS = ("soak", "replay_soak", "engines")
PACKAGES = ("pytest-hermes-env", "atroposlib", "hermes-agent", "openai", "pytest", "vcrpy", "respx", "ruff", "flake8")
HEADER = "| figure | ours | compared with | theirs | ratio | what it means |\n|---|---|---|---|---|---|"


def load() -> dict[str, Benchmark]:
    """Import all benchmarks and return them by name."""
    for room in ROOMS:
        importlib.import_module(f"benchmarks.{room}")
    return REGISTRY


def chosen(names: list[str]) -> list[Benchmark]:
    """Return the benchmarks of these names and rooms, by default all."""
    known = load()
    if unknown := set(names) - set(known) - set(ROOMS):
        sys.exit(f"there is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join([*ROOMS, *known, *SOAKS])}")
    return [each for each in known.values() if not names or each.name in names or each.room in names]


def rows(benchmarks: list[Benchmark], n: int) -> Iterator[dict[str, Any]]:
    """Measure, and yield a row for each figure."""
    for each in benchmarks:
        for figure, (ours, theirs) in zip(each.figures, each.measure(n), strict=True):
            row = {"benchmark": each.name, "figure": figure.name, "unit": figure.unit, "ours": ours}
            ratio = ours / theirs if ours is not None and theirs else None
            yield {**row, "peer": figure.peer, "theirs": theirs, "ratio": ratio, "means": figure.means}
            print(line(figure, ours, theirs), file=sys.stderr, flush=True)


def number(value: float | None) -> str:
    """Return three digits that count."""
    if value is None:
        return "not measured"
    return f"{value:.3g}" if round(abs(value)) in range(100) else f"{value:,.0f}"


def line(figure: Figure, ours: float | None, theirs: float | None) -> str:
    """Return a row of the table."""
    ratio = number(ours / theirs) if ours is not None and theirs else ""
    cells = [
        figure.name,
        f"{number(ours)} {figure.unit}",
        figure.peer,
        number(theirs) if figure.peer else "",
        ratio,
        figure.means,
    ]
    return f"| {' | '.join(cells)} |"


def machine(repeat: int) -> dict[str, Any]:
    """Return what the figures were measured on, how busy it was, and how often each was measured."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "repeat": repeat,
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def page(found: dict[str, Any], figures: list[Figure]) -> str:
    """Return the page in Markdown."""
    on = found["machine"]
    table = [line(figure, row["ours"], row["theirs"]) for figure, row in zip(figures, found["rows"], strict=True)]
    return f"""# Performance

What this costs you, compared with what it stands for or what you would use instead. A time in CPU seconds counts the processor's work, with
child processes; one without CPU is the wait. The ratio is ours by theirs.

{HEADER}
{chr(10).join(table)}

Measured on {on["date"]} with Python {on["python"]} on {on["system"]}, {on["processors"]} processors, load {on["load"]} at the start,
the best of {on["repeat"]}:
{", ".join(f"{name} {value}" for name, value in on["versions"].items())}.

{soaked(found.get("soak", ""))}To measure on your machine, with a checkout of the repository: `python -m benchmarks` for all, `python -m benchmarks sandboxes` for some,
`--json FILE` for figures that a program reads.
"""


def soaked(told: str) -> str:
    """Return the section of the page about the soak, empty if it was not run."""
    if not told:
        return ""
    return f"""## The soak

`python -m benchmarks soak` plays 3,000 rollouts, 100 at a time, among faults of the model, of the judge and of the tools, and cancels some.
It kills processes that record, fills the disk, and lets two write one cassette. It fails where a score was not earned, a sum does not add up,
a cassette is not whole, or something is left:

```text
{told}```

"""


def main(words: list[str]) -> int:
    """Measure, print, and write the files that were asked for."""
    if words[:1] and words[0] in SOAKS:
        return int(importlib.import_module(f"benchmarks.{words[0]}").main(words[1:]))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a benchmark or one of {', '.join(ROOMS)}")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="measurements, of which the best counts")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args(words)
    benchmarks = chosen(options.names)
    print(HEADER, file=sys.stderr)
    found = {"machine": machine(options.repeat), "rows": list(rows(benchmarks, options.repeat))}
    if not options.names:
        soak = [sys.executable, "-m", "benchmarks", "soak"]
        found["soak"] = subprocess.run(soak, check=True, stdout=subprocess.PIPE, text=True).stdout
    text = page(found, [figure for each in benchmarks for figure in each.figures])
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    if not options.json and not options.markdown:
        print(text)
    return 0


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is measured starts from bytecode, as an installed package does
    with tempfile.TemporaryDirectory(prefix="hermes-env-benchmark-") as home:
        Path(home, "home").mkdir()
        os.environ.update(HERMES_HOME=home, TERMINAL_HOME_MODE="profile", TRANSFORMERS_NO_ADVISORY_WARNINGS="1")
        sys.exit(main(sys.argv[1:]))

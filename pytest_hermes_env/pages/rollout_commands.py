"""The commands ``hermes-env view`` and ``hermes-env export``: files of rollouts as pages, and as logs of other tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.layer import rollout_file
from pytest_hermes_env.missing_files import no_file
from pytest_hermes_env.pages.findings_page import linked

MARK, MARKED = b'name="generator" content="hermes-env"', 1000
"""What every page of rollouts has in so many bytes at its beginning."""


def add_commands(commands: Any) -> None:
    """Add both commands to the subparsers of ``hermes-env``."""
    view = commands.add_parser(
        "view",
        help="write rollouts as a page for a browser",
        description="Write a page next to each file: the JSON lines of process (groups) or of evaluate (samples).",
    )
    view.add_argument("files", nargs="+", metavar="FILE", help="groups.jsonl or samples.jsonl")
    view.add_argument(
        "--tokens",
        metavar="TOKENIZER",
        default="",
        help="show the tokens of one rollout; a directory, or a name in the hub's cache",
    )
    view.add_argument("--rollout", metavar="PLACE", default="g1r1", help="with --tokens: line and rollout (default: g1r1)")
    view.set_defaults(run=_view)

    export = commands.add_parser(
        "export",
        help="write rollouts in other formats",
        description="Write a log of Inspect, trajectories of ATIF, messages of OpenAI or a data set next to each file of rollouts.",
    )
    export.add_argument("files", nargs="+", metavar="FILE", help="groups.jsonl or samples.jsonl")
    formats = export.add_mutually_exclusive_group(required=True)
    formats.add_argument(
        "--inspect", action="store_true", help="FILE.eval; it requires pip install 'pytest-hermes-env[inspect]'"
    )
    formats.add_argument(
        "--atif", action="store_const", const="atif", dest="kind", help="FILE.atif/, a trajectory (v1.7) for each rollout"
    )
    formats.add_argument(
        "--openai", action="store_const", const="openai", dest="kind", help="FILE.messages.jsonl, with reward and group"
    )
    formats.add_argument(
        "--dataset", action="store_const", const="dataset", dest="kind", help="FILE.dataset/ for datasets, with a card"
    )
    export.add_argument("--model", metavar="NAME", default="", help="the model to name in the log; the file does not say it")
    export.set_defaults(run=_export)


def _view(options: argparse.Namespace) -> int:
    if options.tokens:
        return _view_tokens(options)

    for file in _files(options, lambda file: file.with_suffix(".html")):
        print(f"wrote {_write_page(file)}")
    return 0


def _write_page(file: Path) -> Path:
    """Write the page of a file with what is unhealthy about its rollouts, and return it."""
    from pytest_hermes_env.records.health import health_of  # noqa: PLC0415 - pydantic
    from pytest_hermes_env.records.verdicts import findings  # noqa: PLC0415 - pydantic

    page: Path = rollout_file().write_page(file)  # its rollouts have links once it is there
    if found := [linked(one, str(file.parent)) for one in findings(health_of([file]))]:
        rollout_file().write_page(file, found)
    return page


def _view_tokens(options: argparse.Namespace) -> int:
    from transformers import AutoTokenizer  # noqa: PLC0415 - heavy

    from pytest_hermes_env.pages.token_view import page_of, write_token_page  # noqa: PLC0415

    try:
        tokenizer = AutoTokenizer.from_pretrained(options.tokens, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--tokens: no tokenizer {options.tokens!r} on this machine.\n"
            f"  expected  a directory, or a name in the hub's cache\n  seen      {shorten(str(error))}"
        ) from error
    for file in _files(options, lambda file: page_of(file, options.rollout)):
        print(f"wrote {write_token_page(file, options.rollout, tokenizer)}")
        if not _is_foreign(file.with_suffix(".html")):  # its link leads here
            print(f"wrote {_write_page(file)}")
    return 0


def _export(options: argparse.Namespace) -> int:
    if options.kind:
        from pytest_hermes_env.records.exports import EXPORTS  # noqa: PLC0415

        for name in options.files:
            print(f"wrote {EXPORTS[options.kind](Path(name))}")
        return 0
    from pytest_hermes_env.pages.inspect_log import write_log  # noqa: PLC0415

    for file in _files(options, lambda file: file.with_suffix(".eval")):
        log = file.with_suffix(".eval")
        for note in write_log(file, log, model=options.model):
            print(f"hermes-env: {note}", file=sys.stderr)
        print(f"wrote {log}")
    return 0


def _files(options: argparse.Namespace, written: Callable[[Path], Path]) -> list[Path]:
    """Return the files. ``written`` gives what is written for each.

    Raises: one is missing, has no rollout or is an output itself, or two would be written to one file → UsageError.
    """
    files = [Path(name) for name in options.files]
    for file in files:
        _check(file)
        page = written(file)
        if len([other for other in files if written(other) == page]) > 1:
            raise UsageError(f"{file} and another file would both be written to {page}: call the command once for each in turn")
        if page.suffix == ".html" and _is_foreign(page):
            raise UsageError(f"{page} exists, and is not a page of rollouts: move it")
    return files


def _is_foreign(page: Path) -> bool:
    return page.is_dir() or (page.exists() and MARK not in page.read_bytes()[:MARKED])


def _check(file: Path) -> None:
    if not file.exists():
        raise UsageError(no_file(str(file)))
    expected = "  expected  JSON lines, as process and evaluate write them"
    if not file.is_file() or file.suffix in {".html", ".eval"}:
        near = [other for end in (".jsonl", ".rollouts.jsonl") if file.name and (other := file.with_suffix(end)).is_file()]
        fix = f"\n  fix       name {near[0]}, which lies beside it" if near else ""
        raise UsageError(f"{file} is not a file of rollouts.\n{expected}{fix}")
    first = None
    for group in rollout_file().read_groups(file):
        if group.rollouts:
            return
        first = first or group
    seen = f"line {first.line}: {first.problem}" if first is not None else "an empty file"
    fix = "  fix       name a file that process or evaluate of your environment wrote; hermes-env docs view-rollouts"
    raise UsageError(f"{file} has no rollouts.\n{expected}\n  seen      {seen}\n{fix}")

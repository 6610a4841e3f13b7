"""The commands of docs/how-to/train.md, run unchanged except for the ports."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import environments.hermes_base_env as layer

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "train.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```console\n\$ (.*?)```", PAGE, re.DOTALL)
API, MODEL = "http://127.0.0.1:8000", "http://127.0.0.1:9001"


@pytest.fixture
def words_of(python_with_libraries: str) -> Callable[[str], list[str]]:
    """``words_of(block)``: the words of a command, without its output, for a Python that begins with imported libraries."""

    def words(block: str) -> list[str]:
        command, _, _ = block.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command)
        script = [] if program == "python" else [str(Path(sys.executable).with_name(program))]
        return [python_with_libraries, *script, *arguments]

    return words


def printed_by(block: str) -> list[str]:
    return block.splitlines()[1:]


def shape_of(lines: list[str]) -> list[str]:
    """Lines with ``#`` in place of each number except those of the steps."""
    return [re.sub(r"(?<!step )(?<!of )\b\d+", "#", line) for line in lines]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user's environment: the commands are on PATH, no variable contains a key, and nothing is downloaded."""
    kept = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
    (tmp_path / "tmp").mkdir()
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(layer.__file__).parents[1]),
        "HOME": str(tmp_path),
        "HERMES_HOME": str(tmp_path / "hermes"),
        "TMPDIR": str(tmp_path / "tmp"),
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture
def start(tmp_path: Path, environ: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``start(words, stdout)``: a process; ended after the test if it still runs."""
    processes: list[subprocess.Popen[str]] = []

    def begin(words: list[str], stdout: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(words, cwd=tmp_path, env=environ, stdout=stdout, stderr=subprocess.STDOUT, text=True)
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def address(line: str) -> str:
    """Return the address in a line of output, or an empty text."""
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    return found[0] if found else ""


def test_the_four_processes_train(start, words_of, tmp_path, environ):
    """The trainer prints what the page shows; all four end with 0."""
    tokenizer, run_api, mock, trainer, serve = COMMANDS
    script = re.findall(r"```yaml\n# script.yaml\n(.*?)```", PAGE, re.DOTALL)[0]
    (tmp_path / "script.yaml").write_text(script)
    subprocess.run(words_of(tokenizer), cwd=tmp_path, env=environ, check=True, timeout=240)
    free = [words_of(re.sub(r"--port \d+", "--port 0", command)) for command in (run_api, mock)]

    api, model = (start(words, subprocess.PIPE) for words in free)
    api_url, url = (next(filter(None, map(address, process.stdout))) for process in (api, model))
    running = []
    for name, command in (("trainer", trainer), ("serve", serve)):
        words = words_of(command.replace(API, api_url).replace(MODEL, url))
        with (tmp_path / f"{name}.txt").open("w") as output:
            running.append(start(words, output))
    codes = [process.wait(240) for process in running]
    for process in (api, model):
        process.send_signal(signal.SIGINT)
    requests, _ = model.communicate(timeout=240)
    api.communicate(timeout=240)
    texts = {name: (tmp_path / f"{name}.txt").read_text() for name in ("trainer", "serve")}

    assert [*codes, model.returncode, api.returncode] == [0, 0, 0, 0], (texts, requests)
    assert shape_of(texts["trainer"].splitlines()) == shape_of(printed_by(trainer)), texts
    assert "0 of them unexpected" in requests

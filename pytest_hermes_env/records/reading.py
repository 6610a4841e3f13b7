"""Reads files of rollouts as records: those of today, groups and samples of before, and cassettes.

Lines that hold no rollout are yielded as problems, so that no reader drops them silently: a torn last line of a process that was killed is one.
"""

from __future__ import annotations

import codecs
import contextlib
import glob
import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hermes_env_shared.rollout_record import FORMAT, Record, files_of
from pytest_hermes_env.errors import UsageError, shorten

OLD = "this file says no item, and keeps no sandbox: it was written before rollouts were recorded, or is not the file *.rollouts.jsonl"
EXPECTED = "  expected  JSON lines as process, evaluate and serve write them (*.rollouts.jsonl), ATIF, or a cassette"
FOREIGN = {
    b"\xfd7zXZ": "compressed by xz",
    b"BZh": "compressed by bzip2",
    b"(\xb5/\xfd": "compressed by zstd",
    b"PK\x03\x04": "a zip archive",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""How files begin that are not read, and what they are."""
KINDS = ("*.rollouts.jsonl", "*.jsonl", "*.json")
"""Files of a directory; of those that are there, the first kind."""
FIX = "  fix       name a file that process, evaluate or serve of your environment wrote; hermes-env docs rollouts-again"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A rollout of a file, or why a line holds none. ``line`` counts from 1; ``files`` is where the sandbox's files are."""

    file: Path
    line: int
    record: Record | None = None
    problem: str = ""

    @property
    def files(self) -> Path:
        """The directory of the sandboxes' files."""
        return files_of(self.file)

    @property
    def place(self) -> str:
        """Where the rollout is, for people."""
        key = self.record.key if self.record is not None else ""
        return f"{self.file}:{self.line}" + (f" ({key})" if key else "")


def read_lines(files: Sequence[str | Path]) -> Iterator[Line]:
    """Yield what the lines of the files hold, one file after the other; a directory stands for its files of rollouts.

    Raises: a file cannot be read, or a directory has none → UsageError.
    """
    for file in (file for name in files for file in _files_of(Path(name))):
        if file.suffix == ".json":
            yield from _of_document(file)
            continue
        number = 0
        try:
            with _opened(file) as lines:
                for number, text in enumerate(lines, start=1):
                    if text.strip():
                        yield from _of_line(file, number, text.removeprefix(codecs.BOM_UTF8))
        except (OSError, EOFError, zlib.error) as error:
            if number and isinstance(error, EOFError):
                yield Line(
                    file=file,
                    line=number + 1,
                    problem="the compressed file ends here: its process was killed, or its copy was cut",
                )
                continue
            raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', '') or error}.\n{EXPECTED}\n{FIX}") from error


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Iterable[bytes]]:
    """Open a file for reading, also one that gzip has compressed, and a pipe."""
    with file.open("rb") as held:
        if kind := next((name for sign, name in FOREIGN.items() if held.peek(6).startswith(sign)), ""):
            raise UsageError(f"{file} is {kind}.\n{EXPECTED}\n  fix       write it as UTF-8, plain or compressed by gzip")
        yield gzip.GzipFile(fileobj=held) if held.peek(2)[:2] == b"\x1f\x8b" else held


def _files_of(path: Path) -> list[Path]:
    if not path.exists():
        return [file for name in sorted(glob.glob(str(path), recursive=True)) if (file := Path(name)).is_file()] or [path]
    if not path.is_dir():
        return [path]
    found = next((files for kind in KINDS if (files := sorted(path.glob(kind)))), None)
    if found is None:
        raise UsageError(f"{path} is a directory without rollouts.\n{EXPECTED}\n  seen      none of {', '.join(KINDS)}\n{FIX}")
    return found


def read_records(files: Sequence[str | Path], *, tell: Callable[[str], object] = lambda _: None) -> list[Line]:
    """Return the rollouts of the files. ``tell`` hears of each line that holds none. Raises: a file cannot be read, or none has a rollout → UsageError."""
    lines = list(read_lines(files))
    found = [line for line in lines if line.record is not None]
    if not found:
        raise none_in(files, lines[0] if lines else None)
    for line in lines:
        if line.record is None:
            tell(f"hermes-env: {line.place} is left out: {line.problem}\n")
    return found


def none_in(files: Sequence[str | Path], first: Line | None) -> UsageError:
    """Return the error for files without a rollout."""
    seen = f"line {first.line}: {first.problem}" if first is not None else "an empty file"
    return UsageError(f"{', '.join(map(str, files)) or 'nothing'} has no rollouts.\n{EXPECTED}\n  seen      {seen}\n{FIX}")


def _of_line(file: Path, number: int, text: bytes) -> Iterator[Line]:
    if text.startswith(b'{"format":"hermes-rollout/1"'):
        yield _of_record(file, number, text)
        return
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        yield Line(file=file, line=number, problem=_no_json(text))
        return
    kind = row.get("format") if isinstance(row, dict) else None
    if kind == FORMAT:
        yield _of_record(file, number, text)
    elif isinstance(kind, str) and kind.startswith("hermes-rollout/"):
        yield Line(
            file=file,
            line=number,
            problem=f"its format is {shorten(kind)}, and this version reads {FORMAT}: pip install --upgrade pytest-hermes-env",
        )
    elif isinstance(row, dict) and str(row.get("schema_version", "")).startswith("ATIF"):
        yield from _of_atif(file, number, row)
    elif isinstance(row, dict) and "score" in row and "messages" in row:
        yield Line(file=file, line=number, record=_of_sample(number, row))
    elif isinstance(row, dict) and isinstance(row.get("scores"), list):
        yield from (Line(file=file, line=number, record=record) for record in _of_group(number, row))
    else:
        yield Line(file=file, line=number, problem="this line has no rollout")


def _of_record(file: Path, number: int, text: bytes) -> Line:
    try:
        return Line(file=file, line=number, record=Record.model_validate_json(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            return Line(file=file, line=number, problem=_no_json(text, f": {first['msg'].partition(': ')[2]}"))
        return Line(file=file, line=number, problem=f"its field {'.'.join(map(str, first['loc']))} is wrong: {first['msg']}")


def _no_json(text: bytes, why: str = "") -> str:
    if text.strip() in {b"{", b"["}:
        return "this line begins JSON of several lines, and a rollout stands in one"
    is_torn = text.startswith(b"{") and not text.endswith(b"\n")
    return "this line is torn: its process was killed" if is_torn else f"this line is not JSON{why}"


def _of_document(file: Path) -> Iterator[Line]:
    """Yield the rollouts of an ATIF document or of a cassette."""
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.\n{EXPECTED}\n{FIX}") from error
    except (ValueError, RecursionError):
        yield Line(file=file, line=1, problem="it is not JSON")
        return
    if isinstance(document, dict) and ("schema_version" in document or "steps" in document):
        yield from _of_atif(file, 1, document)
        return
    if not isinstance(document, dict):
        kind = "a list" if isinstance(document, list) else "a value"
        yield Line(file=file, line=1, problem=f"it is {kind} of JSON, and rollouts stand one in a line (*.jsonl)")
        return
    yield from _of_cassette(file)


def _of_atif(file: Path, number: int, document: dict[str, Any]) -> Iterator[Line]:
    from pytest_hermes_env.records.atif import NotATIF, record_of  # noqa: PLC0415 - few files are

    try:
        record = record_of(document)
        if record.reward is None and record.source == "atif":
            record = record.model_copy(update=_reward_of_harbor(file))
        yield Line(file=file, line=number, record=record)
    except NotATIF as error:
        yield Line(file=file, line=number, problem=str(error))


def _reward_of_harbor(file: Path) -> dict[str, Any]:
    """Return the reward that lies next to a trial's ``agent/trajectory.json``; the file of JSON wins."""
    for name in ("reward.json", "reward.txt"):
        with contextlib.suppress(OSError, ValueError):
            value = json.loads((file.parent.parent / "verifier" / name).read_text(encoding="utf-8"))
            number = value.get("reward") if isinstance(value, dict) else value
            if isinstance(number, int | float) and math.isfinite(number):
                return {"reward": float(number), "metrics": value if isinstance(value, dict) else {}}
    return {}


# ---------------------------------------------------------------------- files of before


def _of_sample(number: int, row: dict[str, Any]) -> Record:
    return Record(
        format=FORMAT,
        id=f"line-{number}",
        source="evaluate",
        group=number,
        item_problem=OLD,
        prompt=_text(row.get("prompt")),
        messages=_messages(row["messages"]),
        end=_text(row.get("end")) or ("finished" if row.get("finished") else ""),
        turns=row.get("turns") if isinstance(row.get("turns"), int) else None,
        finished=row.get("finished") if isinstance(row.get("finished"), bool) else None,
        error=_text(row.get("error")),
        reward=_number(row["score"]),
        scored_by="",
    )


def _of_group(number: int, row: dict[str, Any]) -> Iterator[Record]:
    messages, overrides = row.get("messages") or [], row.get("overrides") or []
    for index, score in enumerate(row["scores"]):
        facts = overrides[index] if index < len(overrides) and isinstance(overrides[index], dict) else {}
        said = _messages(messages[index]) if index < len(messages) else []
        columns = {
            name: (row.get(column) or [None] * (index + 1))[index]
            for name, column in (("tokens", "tokens"), ("masks", "masks"), ("logprobs", "inference_logprobs"))
        }
        has_tokens = columns["tokens"] and columns["masks"] and not facts.get("placeholder_tokens")
        yield Record(
            format=FORMAT,
            id=f"line-{number}-{index + 1}",
            source="process",
            group=number,
            place=index + 1,
            item_problem=OLD,
            prompt=next((_text(message.get("content")) for message in said if message.get("role") == "user"), ""),
            messages=said,
            end=_text(facts.get("end")),
            reward=None if facts.get("left_out") else _number(score),
            sequences=[columns] if has_tokens else None,  # type: ignore[list-item]  # pydantic makes it one
        )


def _of_cassette(file: Path) -> Iterator[Line]:
    from pytest_hermes_env.cassette.format import read_tape  # noqa: PLC0415 - heavy
    from pytest_hermes_env.cassette.tape import ModelCall  # noqa: PLC0415
    from pytest_hermes_env.errors import BadCassette  # noqa: PLC0415

    try:
        tape = read_tape(file)
    except BadCassette as error:
        yield Line(file=file, line=1, problem=str(error))
        return
    for rollout in tape.rollouts:
        calls = [call for call in tape.calls if isinstance(call, ModelCall) and call.rollout == rollout.number]
        bodies: list[Any] = [(call.request.body, call.reply.body) for call in calls]
        asked = [pair for pair in bodies if isinstance(pair[0], dict) and pair[0].get("tools") and isinstance(pair[1], dict)]
        if asked:
            request, reply = asked[-1]
            said = [*(request.get("messages") or []), ((reply.get("choices") or [{}])[0]).get("message") or {}]
            record = Record(
                format=FORMAT,
                id=f"rollout-{rollout.number}",
                source="cassette",
                group=rollout.number,
                item_problem="a recording keeps no item",
                prompt=next((_text(message.get("content")) for message in said if message.get("role") == "user"), ""),
                messages=_messages(said),
                turns=len(asked),
                reward=rollout.reward,
            )
            yield Line(file=file, line=1, record=record)


def _messages(value: Any) -> list[dict[str, Any]]:
    listed = value if isinstance(value, list) else [value]
    return [message if isinstance(message, dict) else {"role": "text", "content": str(message)} for message in listed]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

"""Cassettes as files: what a recorder hands over becomes a JSON document, and that document the same recording again."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from pathlib import Path

from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape

__all__ = ["FORMAT", "read_tape", "write_tape"]

FORMAT = 1


def read_tape(path: Path) -> Tape:
    """Return the recording that a file holds. What calls have in common they share, so it must not be changed."""
    document = json.loads(Path(path).read_text(encoding="utf-8", errors="surrogatepass"))
    calls: list[ModelCall | RecordedToolCall] = []
    for call in document["calls"]:
        if "request" in call:
            request, reply = ModelRequest(**call.pop("request")), ModelReply(**call.pop("reply"))
            calls.append(ModelCall(request=request, reply=reply, **call))
        else:
            calls.append(RecordedToolCall(**call))
    return Tape(header=Header(**document["header"]), calls=tuple(calls))


def write_tape(path: Path, tape: Tape) -> None:
    """Put a recording into a file, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"format": FORMAT, **dataclasses.asdict(tape)}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
        json.dump(document, file, ensure_ascii=False, indent=1)
    os.replace(temporary, path)

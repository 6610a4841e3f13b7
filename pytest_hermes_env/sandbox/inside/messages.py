"""Messages between the test process and the first process of a cell.

A message is eight bytes with its length, a line of JSON, and bytes that the JSON refers to by their place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def send(descriptor: int, message: Mapping[str, Any], blobs: list[bytes]) -> None:
    """Write a message."""
    head = json.dumps({"message": message, "sizes": [len(blob) for blob in blobs]}).encode()
    content = b"".join((len(head).to_bytes(8), head, *blobs))
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> tuple[dict[str, Any], list[bytes]]:
    """Read a message. Raises: the other side ended → EOFError."""
    head = json.loads(_exactly(descriptor, int.from_bytes(_exactly(descriptor, 8))))
    return head["message"], [_exactly(descriptor, size) for size in head["sizes"]]


def _exactly(descriptor: int, size: int) -> bytes:
    parts, left = [], size
    while left:
        part = os.read(descriptor, min(left, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)

"""The path of a test's cassette: one file per test, in a directory per module, with portable names."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SUFFIX = ".json"
MAX_NAME_LENGTH = 100
DIGEST_CHARACTERS = 10
_PORTABLE = re.compile(r"[a-z0-9_][a-z0-9_.+=,@-]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=,@-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
_DIGEST = re.compile(r"-[0-9a-f]{10}$")


def cassette_path(directory: Path, node_module: str, test_name: str, *, readable: str = "") -> Path:
    """Return the file for a test: ``directory/<module>/<test>.json``.

    ``node_module`` is the part of the test's id before the first ``::`` ("tests/test_my_env.py"), or the name of another group, such
    as an environment; ``test_name`` is the rest, including parameters ("TestIt::test_one[a-b]"). Two tests never share a file, even
    on case-insensitive file systems: a name that had to be changed ends with a digest of the original. ``readable`` replaces the
    readable part of the file name if a parameter is a secret.
    """
    folders = node_module.removesuffix(".py").split("/")
    return Path(directory, *(_file_name(folder) for folder in folders), _file_name(test_name, readable) + SUFFIX)


def _file_name(name: str, readable: str = "") -> str:
    """Return ``name`` if it is portable; otherwise its readable characters with a digest of the whole name."""
    readable = readable or name
    is_portable = (
        readable == name and _PORTABLE.fullmatch(name) and len(name) <= MAX_NAME_LENGTH and not _RESERVED.fullmatch(name)
    )
    if is_portable and not name.endswith((".", ".py", SUFFIX)) and not _DIGEST.search(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    readable = _UNSAFE.sub("-", readable)[: MAX_NAME_LENGTH - DIGEST_CHARACTERS - 1].strip(".-") or "_"
    return f"{readable}-{digest}"

"""Where a cassette lies: one file per test, below a directory per module, under names that any file system takes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

__all__ = ["SUFFIX", "cassette_path"]

SUFFIX = ".json"
LONGEST_NAME = 100
DIGEST_CHARACTERS = 10
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.+=,@-]*")
_ODD = re.compile(r"[^A-Za-z0-9_.+=,@-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
_DIGEST = re.compile(r"-[0-9a-f]{10}$")


def cassette_path(directory: Path, node_module: str, test_name: str, *, readable: str = "") -> Path:
    """Return the file for a test: ``directory/<module>/<test>.json``.

    ``node_module`` is what stands before the first ``::`` of the test's id ("tests/test_my_env.py"), or another name of a group,
    such as an environment's; ``test_name`` is the rest, parameters included ("TestIt::test_one[a-b]"). Two tests never share a
    file, nor do they where capitals make no difference: a name that had to be changed ends in a digest of what it was.
    ``readable`` is what of the test's name may be read in the file's, if a parameter of it is a secret.
    """
    folders = node_module.removesuffix(".py").split("/")
    return Path(directory, *(_file_name(folder) for folder in folders), _file_name(test_name, readable) + SUFFIX)


def _file_name(name: str, readable: str = "") -> str:
    """Return ``name`` if it is safe everywhere; otherwise what is left of what is readable of it with a digest of the whole."""
    readable = readable or name
    is_plain = readable == name and _PLAIN.fullmatch(name) and len(name) <= LONGEST_NAME and not _RESERVED.fullmatch(name)
    if is_plain and not name.endswith((".", ".py", SUFFIX)) and not _DIGEST.search(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    readable = _ODD.sub("-", readable)[: LONGEST_NAME - DIGEST_CHARACTERS - 1].strip(".-") or "_"
    return f"{readable}-{digest}"

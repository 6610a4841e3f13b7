"""Files of a user's project: how a path is shown, and how the JSON that a former run stored is read."""

from __future__ import annotations

import json
import os
from typing import Any

from pytest_hermes_env.errors import BadSettings
from pytest_hermes_env.redaction.shown_text import shown_name


def shown_path(path: str) -> str:
    """Return a path relative to the working directory where it lies below it."""
    return shown_name(path.removeprefix(os.getcwd() + os.sep))


def read_stored_json(file: str, *, kind: str, version: int, key: str, hint: str) -> Any:
    """Return the part ``key`` of a file that a former run stored, None where it is missing or of another version.

    Raises: BadSettings when the file cannot be read (``hint`` says how it is written), or is not JSON.
    """
    try:
        with open(file, encoding="utf-8") as stream:
            document = json.load(stream)
    except OSError as error:
        raise BadSettings(f"the {kind} {shown_path(file)} cannot be read: {error.strerror or error}. {hint}") from error
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"the {kind} {shown_path(file)} is not JSON: {error}") from error
    is_known = isinstance(document, dict) and document.get("version") == version
    return document.get(key) if is_known else None

"""Tests with torch, which only the tox environment `example-trainer` installs."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]

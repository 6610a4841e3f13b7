"""Importing the plugin is cheap, because every pytest run of every project that has it installed imports it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import pytest
before = set(sys.modules)
import pytest_hermes_env.plugin
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - set(sys.stdlib_module_names)))
print("asyncio" in sys.modules and "asyncio" not in {name.partition(".")[0] for name in before})
"""


def test_importing_the_plugin_loads_only_pytest_and_the_standard_library() -> None:
    """Outside the standard library, the import only loads modules of this package."""
    printed = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout

    assert printed.splitlines() == ["['pytest_hermes_env']", "False"]

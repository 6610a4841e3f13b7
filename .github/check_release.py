"""Builds the distribution, checks what a release is made of, and tries the wheel in an environment of its own.

``python .github/check_release.py [TAG]``: with a tag, its version must be the one in pyproject.toml. Nothing is published.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def main(words: list[str]) -> None:
    """Build and check; a failed step ends with its exit code."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if words and words[0] != f"v{version}":
        sys.exit(f"the tag is {words[0]}, and pyproject.toml has version {version}: expected the tag v{version}")
    heading = f"## {version}" if not words else f"## {version} (2"
    if heading not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        sys.exit(f"CHANGELOG.md has no section for this release: expected a heading such as `## {version} (2026-12-31)`")
    shutil.rmtree(DIST, ignore_errors=True)
    run("build", "--installer", "uv", "--outdir", str(DIST), str(ROOT))
    files = sorted(map(str, DIST.iterdir()))
    run("twine", "check", "--strict", *files)
    (wheel,) = [file for file in files if file.endswith(".whl")]
    try_wheel(wheel)
    print(f"checked: {', '.join(os.path.relpath(file, ROOT) for file in files)}")


def try_wheel(wheel: str) -> None:
    """Install the wheel alone, and do with it what a user does first: read the version, write a project, run its tests."""
    with tempfile.TemporaryDirectory(prefix="release-") as place:
        python = Path(place) / "venv" / "bin" / "python"
        run("uv", "venv", "--quiet", "--python", sys.executable, str(python.parents[1]))
        run("uv", "pip", "install", "--quiet", "--python", str(python), wheel)
        command = str(python.with_name("hermes-env"))
        for line in (
            [command, "--version"],
            [command, "new", "my_env"],
            [command, "check", "my_env/my_env.py"],
            [str(python), "-m", "pytest", "-q", "my_env"],
        ):
            subprocess.run(line, cwd=place, check=True)


def run(module: str, *words: str) -> None:
    """Run a tool of this environment."""
    subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])

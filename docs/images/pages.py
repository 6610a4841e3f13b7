"""Makes the pictures of the pages: each at two widths, light and dark, with Chromium.

``python docs/images/pages.py`` needs Debian's chromium and Pillow, and two minutes.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import call, say
from pytest_hermes_env.play.builder import EnvironmentBuilder, shared_tokenizer

HERE = Path(__file__).parent
BROKEN = HERE.parent / "tutorial" / "word_count_env.py"
CLEAN = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
WIDTHS = {"wide": 1200, "narrow": 400}
SCHEMES = {"light": 1, "dark": 0}
"""Chromium's numbers of the preferred colour schemes."""
HEIGHTS = {"contract": 1500, "passed": 1500, "rollouts": 1250, "tokens": 1150}
SCRIPTS = (
    [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("The file is there.")],
    [call("write_file", path="greeting.txt", content="Hello"), call("terminal", command="cat greeting.txt"), say("Done.")],
    [say("I cannot write files.")],
)


def groups(file: Path) -> None:
    """Write groups of the terminal environment, with sampled tokens, in which models do different work."""

    async def collect(script: list[object]) -> list[dict[str, Any]]:
        builder = EnvironmentBuilder()
        env = builder.build(TerminalTestEnv, script=script, server_type="vllm", template="qwen3", group_size=2)
        try:
            await env.setup()
            return [(await env.collect_trajectories(await env.get_next_item()))[0] for _ in range(3)]
        finally:
            builder.release()

    found = zip(*(asyncio.run(collect(script)) for script in SCRIPTS), strict=True)
    columns = ("scores", "messages", "overrides", "tokens", "masks", "inference_logprobs")
    rows = [{name: [value for group in same for value in group[name]] for name in columns} for same in found]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def made_in(directory: Path) -> dict[str, Path]:
    """Make the pages, and return their files by name."""
    hermes_env = [sys.executable, "-m", "pytest_hermes_env.cli"]
    pages = {name: directory / f"{name}.html" for name in HEIGHTS}
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hermes-html"]
    shutil.copy(BROKEN, directory)
    subprocess.run([*pytest, str(pages["contract"]), "--hermes-env", BROKEN.name], cwd=directory, check=False)
    subprocess.run([*pytest, str(pages["passed"]), "--hermes-env", CLEAN], check=False)
    groups(directory / "rollouts.jsonl")
    subprocess.run([*hermes_env, "view", "rollouts.jsonl"], cwd=directory, check=True)
    subprocess.run([*hermes_env, "view", "--tokens", shared_tokenizer(), "rollouts.jsonl"], cwd=directory, check=True)
    (directory / "rollouts.g1r1.html").rename(pages["tokens"])
    return pages


def main() -> None:
    """Take every picture anew."""
    with tempfile.TemporaryDirectory() as name:
        for page, file in made_in(Path(name)).items():
            for width, pixels in WIDTHS.items():
                for scheme, number in SCHEMES.items():
                    picture = HERE / f"{page}-page-{width}-{scheme}.png"
                    browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={name}/profile"]
                    browser += [f"--blink-settings=preferredColorScheme={number}", f"--window-size={pixels},{HEIGHTS[page]}"]
                    subprocess.run([*browser, f"--screenshot={picture}", file.as_uri()], check=True, capture_output=True)
                    Image.open(picture).convert("RGB").quantize(48).save(picture, optimize=True)
                    print(picture.name)


if __name__ == "__main__":
    main()

"""A real browser for the tests of pages: Chromium without a window, asked by its debugging protocol."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""Pixels by which a page is wider than its window."""

CONTRASTS = """(() => {
  const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
  const over = (colours) => { canvas.clearRect(0, 0, 1, 1); for (const c of colours) { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (rgb) => rgb.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const found = {};
  for (const one of document.querySelectorAll('main *')) {
    if (![...one.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !one.checkVisibility()) continue;
    const grounds = []; for (let at = one; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
    const style = getComputedStyle(one), ground = over(grounds), ink = over([...grounds, one.closest('svg') ? style.fill : style.color]);
    const [low, high] = [light(ground), light(ink)].sort((a, b) => a - b), ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) found[`${one.tagName}.${one.className.baseVal ?? one.className}`] = Math.round(ratio * 100) / 100;
  }
  return found; })()"""
"""The elements whose text has too little contrast for WCAG's level AA."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a script returned on a page, and the addresses that the page asked for besides its own."""

    value: Any
    requests: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Browser:
    """A running browser. ``look`` opens a page in a tab of its own, and evaluates a script there."""

    address: str

    def look(
        self, page: str | Path, script: str, *, width: int = 1200, is_dark: bool = False, is_printed: bool = False
    ) -> Seen:
        """Return what the script returns; it may be a promise. ``page`` is a file, or an address such as file:///a.html#b."""
        address = page.as_uri() if isinstance(page, Path) else page
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        media = {"media": "print" if is_printed else "screen", "features": features}
        return asyncio.run(self._look(address, script, width, media))

    async def _look(self, page: str, script: str, width: int, media: dict[str, Any]) -> Seen:
        numbers, requests = itertools.count(1), []
        async with aiohttp.ClientSession() as session, session.ws_connect(self.address, max_msg_size=0) as socket:

            async def ask(method: str, until: str = "", at: str = "", **params: Any) -> dict[str, Any]:
                number, answer, is_seen = next(numbers), None, not until
                await socket.send_json({"id": number, "method": method, "params": params} | ({"sessionId": at} if at else {}))
                while answer is None or not is_seen:
                    message = await asyncio.wait_for(socket.receive_json(), 60)
                    answer = message if message.get("id") == number else answer
                    is_seen = is_seen or message.get("method") == until
                    if message.get("method") == "Network.requestWillBeSent":
                        requests.append(message["params"]["request"]["url"])
                assert "error" not in answer, answer
                return answer["result"]

            target = (await ask("Target.createTarget", url="about:blank"))["targetId"]
            tab = (await ask("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
            await ask("Emulation.setDeviceMetricsOverride", at=tab, width=width, height=900, deviceScaleFactor=1, mobile=False)
            await ask("Emulation.setEmulatedMedia", at=tab, **media)
            await ask("Network.enable", at=tab)
            await ask("Page.enable", at=tab)
            await ask("Page.navigate", at=tab, until="Page.loadEventFired", url=page)
            found = await ask("Runtime.evaluate", at=tab, expression=script, returnByValue=True, awaitPromise=True)
            await ask("Target.closeTarget", targetId=target)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        own = page.partition("#")[0]
        return Seen(value=found["result"].get("value"), requests=tuple(one for one in requests if one.partition("#")[0] != own))


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser, and end it. Skip where there is none; CI passes ``--must-run "no browser"`` where there is one."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser is installed: one of {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-port=0",
        ]
        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"], stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": profile}
        )
        try:
            said = next(filter(None, (re.search(r"DevTools listening on (\S+)", line) for line in process.stderr)))
            yield Browser(address=said[1])
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()

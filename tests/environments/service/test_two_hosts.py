"""Engine and service on two hosts, for which two network namespaces of this machine stand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENGINE, SERVICE = "10.77.0.1", "10.77.0.2"

HOSTS = f"""
set -e
ip link set lo up
unshare --net sleep 600 &
other=$!
trap 'kill $other $service 2>/dev/null' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add here type veth peer name there netns $other
ip addr add {ENGINE}/24 dev here
ip link set here up
nsenter -t $other -n sh -c 'ip link set lo up; ip addr add {SERVICE}/24 dev there; ip link set there up'
mkfifo line
nsenter -t $other -n "$PYTHON" -m pytest_hermes_env.cli serve-rollouts "$TARGET" --host {SERVICE} --port 8765 \\
    --env.tokenizer_name "$TOKENIZER" >line 2>log &
service=$!
read -r started <line
echo "$started"
"$PYTHON" client.py
"""

CLIENT = f"""
import json, os
import httpx
from pytest_hermes_env.inference import MockServer, call, say

ITEM = {{"path": "greeting.txt", "content": "Hello from Hermes Agent"}}
client = httpx.Client(base_url="http://{SERVICE}:8765", headers={{"Authorization": "Bearer t"}}, timeout=100, trust_env=False)

def ask(endpoint):
    body = client.post("/rollout", json={{"item": ITEM, "endpoint": endpoint, "model": "m"}}).json()
    return body.get("reward", body.get("error", {{}}).get("code"))

with MockServer([call("write_file", **ITEM), say("Done.")], host="{ENGINE}") as engine:
    port = engine.base_url.rsplit(":", 1)[1]
    asked = [engine.base_url, "http://127.0.0.1:" + port, "http://{SERVICE}:8765/v1", "http://10.77.0.3/v1"]
    print(json.dumps([ask(url) for url in asked]))
"""


def needs_namespaces() -> str:
    """Return why two hosts cannot be made here; empty if they can."""
    try:
        words = [
            "unshare",
            "--user",
            "--map-root-user",
            "--net",
            "ip",
            "link",
            "add",
            "here",
            "type",
            "veth",
            "peer",
            "name",
            "there",
        ]
        tried = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    return tried.stderr.strip()


def test_a_rollout_calls_the_engine_on_the_client_s_host_and_nothing_on_its_own(tmp_path: Path, hermes_tokenizer: str) -> None:
    if reason := needs_namespaces():
        pytest.skip(f"two network namespaces cannot be made: {reason}")
    import environments.hermes_base_env as layer

    (tmp_path / "client.py").write_text(CLIENT)
    environ = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {
        "HOME": str(tmp_path),
        "HERMES_HOME": str(tmp_path / "hermes"),
        "HF_HUB_OFFLINE": "1",
        "HERMES_ENV_TOKEN": "t",
        "PYTHONPATH": str(Path(layer.__file__).parents[1]),
        "PYTHON": sys.executable,
        "TARGET": "environments.terminal_test_env.terminal_test_env:TerminalTestEnv",
        "TOKENIZER": hermes_tokenizer,
    }

    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "bash", "-c", HOSTS],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "log").read_text()[-3000:]
    first, *_, last = done.stdout.splitlines()
    assert first == f"rollouts of TerminalTestEnv on http://{SERVICE}:8765"
    assert json.loads(last) == [1.0, "bad_endpoint", "bad_endpoint", "bad_endpoint"]

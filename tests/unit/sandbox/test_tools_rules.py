"""The rules about commands and paths are hermes' own: they agree with the installed hermes on every line of a table."""

from __future__ import annotations

import pytest

from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.fake_tools import rules

COMMANDS = """sleep 1 &
sleep 1 & wait
echo 'a & b'
echo "a & b" &
a && b
nohup x
(nohup x)
x; setsid y
git commit -m "setsid"
npm run dev
npm start
npm run build
uvicorn app:app
uvicorn --help
vite
vitest
vite build
docker compose up -d
python3 -m http.server 80
python -m http.server -h
x &# comment
x & # comment
cmd 2>&1
cmd 2>&1 &
cmd&
foo & bar
nohup
disown -a
echo nohup
echo `nohup x`
x $(setsid y)
next dev
nodemon
a &> /dev/null
a &>> b
grep a b
cat x | grep a
FOO=1 grep a
/usr/bin/grep a
ls; test -f x
[ -f x ]
diff a b || true
git diff
curl x
find .
a=b
x || rg y
rg --a=b c
""".splitlines()


@pytest.fixture(scope="module")
def hermes():
    """hermes' terminal and file tools."""
    from tools import file_tools, terminal_tool

    return terminal_tool, file_tools


def test_refusals_of_commands_are_hermes_own(hermes):
    """What may not run in the foreground."""
    terminal, _ = hermes

    differing = [text for text in COMMANDS if rules.background_guidance(text) != terminal._foreground_background_guidance(text)]

    assert differing == []


@pytest.mark.parametrize("name", [".env", ".ENV", ".env.local", ".env.example", ".envrc", "x.env", "env"])
def test_secrets_are_hermes_own(name):
    """And hermes' words about them."""
    from agent.file_safety import get_read_block_error

    from pytest_hermes_env.sandbox.fake_tools.operations import read_block_error

    assert read_block_error(f"/nowhere/{name}") == get_read_block_error(f"/nowhere/{name}")


def test_rules_about_secrets_look_at_the_machine_and_not_at_the_host(monkeypatch):
    """The home of hermes is the machine's, and a variable of the host allows and forbids nothing."""
    from pytest_hermes_env.sandbox.fake_tools.operations import read_block_error, write_denied_error

    monkeypatch.setenv("HERMES_WRITE_SAFE_ROOT", "/nowhere")

    assert "a Hermes credential store" in (read_block_error("/root/.hermes/auth.json") or "")
    assert write_denied_error("/root/../root/.netrc") is not None
    assert write_denied_error("/workspace/a.py") is None


TEXTS = [
    "".join(f"line {number}\n" for number in range(1, 4001)),
    "x" * 40_000,
    "start\n" + "x" * 30_000 + "\nend",
    "ä\n" * 20_000,
    "short",
]


@pytest.mark.parametrize("text", TEXTS)
def test_long_pages_are_cut_as_hermes_cuts_them(ask, monkeypatch, text):
    """Extracted ones, and those that the browser shows; only the place of the whole text is another."""
    from tools import browser_tool, web_tools

    place = "/root/.hermes/cache/web/whole"
    monkeypatch.setattr(web_tools, "_store_full_text", lambda url, content: place)
    monkeypatch.setattr(browser_tool, "_store_full_snapshot", lambda content: place)
    monkeypatch.setattr("pytest_hermes_env.sandbox.fake_tools.web._store", lambda machine, name, content: place)
    sandbox = FakeSandbox().web({"https://a.example": text})

    extracted = ask(sandbox, "web_extract", urls=["https://a.example"], char_limit=9000)["results"][0]["content"]
    shown = ask(sandbox, "browser_navigate", url="https://a.example")["snapshot"]

    assert extracted == web_tools._truncate_with_footer(text, "https://a.example", 9000)[0]
    assert shown == browser_tool._truncate_snapshot(text)

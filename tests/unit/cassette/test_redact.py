import base64
import json

import pytest

from pytest_hermes_env.cassette.format import save_tape
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape
from pytest_hermes_env.redaction.file_check import Leak, leaks_in
from pytest_hermes_env.redaction.redactor import neutral

KEY = "sk-or-v1-" + "0123456789abcdef" * 4
VALUE = "xK9mP2vL" + "5nQ8rT4w"
OTHER = "sk-proj-" + "Zy9xW8vU7tS6" * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"the key {KEY} and {OTHER} and {KEY}",
            "the key [redacted:api-key:1] and [redacted:api-key:2] and [redacted:api-key:1]",
        ),
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [redacted:bearer:1]"),
        ("Cookie: session=abc; theme=dark\nHost: x", "Cookie: [redacted:cookie:1]\nHost: x"),
        (
            "https://me:word@host.test/a?key=abcdef123456&x=1",
            "https://[redacted:url-user:1]@host.test/a?key=[redacted:url-parameter:1]&x=1",
        ),
        ('api_key = "AbC123dEf456GhI789"', 'api_key = "[redacted:assigned:1]"'),
        *(
            (form.format(VALUE), form.format(f"[redacted:{kind}:1]"))
            for form, kind in [
                ("mytool --password {} --now", "assigned"),
                ("mytool --db-api-key '{}'", "assigned"),
                ("os.environ['MY_API_KEY'] = '{}'", "assigned"),
                ("export DB_PASSWORD={}", "assigned"),
                ("curl -s -u joe:{} https://x", "user"),
                ("db.example:5432:app:joe:{}", "pgpass"),
                ("machine x login joe password {}", "netrc"),
            ]
        ),
        ("export DB_PASSWORD=xK9#mP2$vL5nQ8!rT", "export DB_PASSWORD=[redacted:assigned:1]"),
        (
            '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}'.format("am9lOnhLOW1Q" * 2),
            '{"auths": {"ghcr.io": {"auth": "[redacted:registry:1]"}}}',
        ),
        ("docker run -u 1000:1000 x --token-length 123456", "docker run -u 1000:1000 x --token-length 123456"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n", "[redacted:private-key:1]\n"),
        (base64.b64encode(f"it is {KEY}".encode()).decode(), "[redacted:api-key:1]"),
        (json.dumps({"output": f"=\n{KEY}"}), '{"output": "=\\n[redacted:api-key:1]"}'),
    ],
)
def test_a_secret_becomes_a_placeholder(text, expected):
    """Only the secret goes; what stands around it stays, and the same secret has the same number."""
    redactor = Redactor()

    assert (redactor.text(text), redactor.text(expected)) == (expected, expected)


def test_this_project_has_no_secret_in_its_sources_and_docs(request):
    """Prose and code by the megabyte pass; keys stand in tests, and on the page that shows how one is found."""
    root = request.config.rootpath
    files = sorted([*root.glob("pytest_hermes_env/c*/**/*.py"), *root.glob("environments/**/*.py"), *root.glob("docs/**/*.md")])
    texts = {str(file.relative_to(root)): file.read_text() for file in files}

    changed = [name for name, text in texts.items() if Redactor().text(text) != text]
    leaks = {name: leaks for name, text in texts.items() if (leaks := leaks_in(text))}

    assert len(texts) > 50
    assert changed == ["docs/rules/HE107.md"]
    assert leaks == {}


def test_a_request_keeps_its_fields_and_no_others():
    """Texts of fields that such requests do not have go; numbers stay, and so does the whole body of another path."""
    body = {"model": "m", "messages": [], "user": "me", "metadata": {"run": 7, "by": ["me", "you"]}, "mine": "kept"}
    redactor = Redactor(fields={"mine"})

    chat = redactor.request(ModelRequest(method="POST", path="/chat/completions", body=body, body_kind="json"))
    other = redactor.request(ModelRequest(method="POST", path="/other", body=body, body_kind="json"))

    assert chat.body == {
        "model": "m",
        "messages": [],
        "user": "[redacted:field:1]",
        "metadata": {"run": 7, "by": ["[redacted:field:1]", "[redacted:field:2]"]},
        "mine": "kept",
    }
    assert other.body == body


def test_a_reply_keeps_the_headers_that_clients_use():
    """Cookies, ids of organisations and of requests are not among them."""
    headers = {"Content-Type": "text/plain", "Retry-After": "2", "Set-Cookie": "a=b", "openai-organization": "x"}

    reply = Redactor().reply(ModelReply(headers=headers))

    assert reply.headers == {"content-type": "text/plain", "retry-after": "2"}


def test_a_stream_keeps_its_events():
    """A key that is split over chunks is replaced where it begins; the other events stay as they are, with their borders."""
    pieces = ["The key is ", KEY[:5], KEY[5:20], KEY[20:] + ".", " Done"]
    events = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n" for piece in pieces]

    reply = Redactor().reply(ModelReply(body=[*events, "data: [DONE]\n\n"], body_kind="events"))

    said = [json.loads(event[6:])["choices"][0]["delta"]["content"] for event in reply.body[:-1]]
    assert said == ["The key is ", "[redacted:api-key:1]", "", ".", " Done"]
    assert (reply.body[0], reply.body[-1]) == (events[0], "data: [DONE]\n\n")


def test_a_secret_of_one_place_is_one_in_all(tmp_path):
    """What is assigned to a password in one request is none of the words of another; a player that saw both agrees."""

    def call(text: str) -> ModelCall:
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        request = ModelRequest(method="POST", path="/v1/chat/completions", body=body, body_kind="json")
        return ModelCall(
            number=1,
            request=request,
            reply=ModelReply(status=200, headers={}, body={"said": f"is it {VALUE}?"}, body_kind="json"),
        )

    calls = (call(f"is it {VALUE}?"), call(f"password: {VALUE}"), call(f"{VALUE} again"))
    written = repr(
        Redactor().tape(Tape(header=Header(recorded_at="2030-01-01T00:00:00Z", recorded_from="x"), calls=calls)).calls
    )
    player = Redactor()
    seen = [neutral(player.request(one.request).body) for one in calls[1:]]

    assert VALUE not in written
    assert VALUE not in repr(seen)


def test_requests_that_differ_in_secrets_only_are_the_same():
    """A replay with another key, or with the same one under another name, finds what was recorded."""
    recorded = Redactor(known={"OLD": "hunter2-hunter2"}).value({"content": f"keys hunter2-hunter2 and {KEY}"})

    live = Redactor(known={"NEW": "another-secret"}).value({"content": f"keys another-secret and {OTHER}"})

    assert neutral(live) == neutral(recorded) == {"content": "keys [redacted] and [redacted]"}


def test_what_is_under_the_name_of_a_secret_is_one():
    """Passwords need not look like keys; names that only remind of secrets are left alone."""
    arguments = {"password": "hunter2", "headers": {"X-Api-Key": "abc"}, "token": "ab", "max_tokens": 5, "secret_name": "db"}

    assert Redactor().value(arguments) == {
        "password": "[redacted:password:1]",
        "headers": {"X-Api-Key": "[redacted:x-api-key:1]"},
        "token": "ab",
        "max_tokens": 5,
        "secret_name": "db",
    }


def test_a_leak_is_named_with_its_place_and_without_the_secret():
    """The line of the file, the place within the JSON, and the kind."""
    text = json.dumps({"tape": [{"a": 1}, {"said": f"it is {KEY}"}]}, indent=1)

    assert leaks_in(text) == [Leak(line=7, where="tape[1].said", kind="api-key")]


def test_what_cannot_be_decoded_is_said_when_it_is_written(tmp_path):
    """A picture that a server returns may say anything; the file is written, and the warning names the call."""
    request = ModelRequest(method="POST", path="/x")
    picture = base64.b64encode(b"\x89PNG\xff\xfe").decode()
    calls = (
        ModelCall(number=1, request=request, reply=ModelReply(body=base64.b64encode(b"text").decode(), body_kind="bytes")),
        ModelCall(number=2, request=request, reply=ModelReply(body=picture, body_kind="bytes")),
    )
    path = tmp_path / "c.json"

    with pytest.warns(UserWarning, match=r"the bodies of these calls are binary and could not be searched: 2$"):
        save_tape(path, Tape(header=Header(recorded_at="", recorded_from=""), calls=calls), Redactor())

    assert path.exists()

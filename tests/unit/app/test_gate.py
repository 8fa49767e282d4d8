"""Nothing is answered without the token: not the page, not a file, not the websocket."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect

from gp4c.app.gate import Gate, security_headers

TOKEN, PORT, HOST = "right-token", 8123, b"127.0.0.1:8123"


def ask(path="/", query="", headers=(), kind="http", host=HOST):
    """What the gate sends, and whether the application was asked."""
    asked, sent = [], []

    async def application(scope, receive, send):
        asked.append(scope["path"])
        if kind == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"secret"})
        else:
            await send({"type": "websocket.accept"})

    async def receive():
        return {"type": f"{kind}.connect"}

    async def send(event):
        sent.append(event)

    scope = {
        "type": kind, "path": path, "query_string": query.encode(),
        "headers": [(b"host", host), *((n.encode(), v.encode()) for n, v in headers)],
    }  # fmt: skip
    asyncio.run(Gate(application, TOKEN, PORT)(scope, receive, send))
    return sent, bool(asked)


COOKIE = ("cookie", f"other=1; gp4c-{PORT}={TOKEN}")


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("path", ["/", "/lib/shiny.js", "/session/x/download/y", "/websocket/"])
@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", []),
        ("token=wrong", []),
        ("token=", []),
        (f"token={TOKEN}&token=x", []),
        (f"Token={TOKEN}", []),
        ("", [("cookie", f"gp4c-{PORT}=wrong")]),
        ("", [("cookie", f"gp4c-9={TOKEN}")]),
        ("", [("cookie", "\x00=;;;")]),
        ("", [COOKIE, ("origin", "http://127.0.0.1:9999")]),  # another program on this machine
        ("", [COOKIE, ("origin", "null")]),
        ("", [COOKIE, ("origin", f"http://127.0.0.1:{PORT}"), ("origin", "http://evil")]),
        ("", [COOKIE, ("sec-fetch-site", "same-site")]),
        ("", [COOKIE, ("sec-fetch-site", "cross-site")]),
        (f"token={TOKEN}", [("origin", "https://evil.example")]),
    ],
)
def test_nothing_is_answered_without_the_token(kind, path, query, headers):
    sent, asked = ask(path, query, headers, kind)
    assert not asked
    if kind == "websocket":
        assert [event["type"] for event in sent] == ["websocket.close"]
    else:
        assert sent[0]["status"] == 403
        assert b"secret" not in sent[1]["body"]
        assert b"set-cookie" not in dict(sent[0]["headers"])


@pytest.mark.parametrize("host", [b"evil.example:8123", b"127.0.0.1", b"127.0.0.1:80", b""])
def test_a_foreign_name_of_this_machine_is_refused(host):
    assert not ask(query=f"token={TOKEN}", host=host)[1]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("query", "headers"),
    [
        (f"token={TOKEN}", []),
        (f"token={TOKEN}", [("sec-fetch-site", "cross-site")]),  # a link in another page
        ("", [COOKIE]),
        ("", [COOKIE, ("sec-fetch-site", "same-origin")]),
        ("", [COOKIE, ("origin", f"http://localhost:{PORT}")]),
    ],
)
def test_the_token_opens(kind, query, headers):
    assert ask("/", query, headers, kind)[1]


def test_the_address_sets_a_cookie_that_scripts_and_other_sites_cannot_use():
    headers = dict(ask(query=f"token={TOKEN}")[0][0]["headers"])
    cookie = headers[b"set-cookie"].decode()
    assert cookie.startswith(f"gp4c-{PORT}={TOKEN};")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert b"set-cookie" not in dict(ask(headers=[COOKIE])[0][0]["headers"])


def test_the_policy_allows_only_this_server():
    policy = dict(security_headers(PORT, "<script>a()</script>"))[b"content-security-policy"]
    parts = dict(part.strip().split(" ", 1) for part in policy.decode().split(";"))
    assert parts["default-src"] == "'none'"
    # printf 'a()' | openssl dgst -sha256 -binary | base64
    assert parts["script-src"] == "'self' 'sha256-qVpDBgj7bpq5hMAcGp3AOc79J3Y1Z4HvySTwKrWDoy4='"
    assert "unsafe-eval" not in policy.decode()
    named = [word for part in parts.values() for word in part.split() if "://" in word]
    assert set(named) == {f"ws://127.0.0.1:{PORT}", f"ws://localhost:{PORT}"}


def test_the_server_may_start_and_stop():
    seen = []

    async def application(scope, receive, send):
        seen.append(scope["type"])

    asyncio.run(Gate(application, TOKEN, PORT)({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


def test_a_tab_that_leaves_during_an_upload_is_no_error():
    async def leaves(scope, receive, send):
        raise ClientDisconnect

    async def nothing(*_):
        raise AssertionError("nothing is sent")

    scope = {
        "type": "http", "path": "/", "query_string": f"token={TOKEN}".encode(),
        "headers": [(b"host", HOST)],
    }  # fmt: skip
    asyncio.run(Gate(leaves, TOKEN, PORT)(scope, nothing, nothing))

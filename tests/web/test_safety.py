"""What the server refuses, and the headers of every answer."""

import os
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from parley.errors import UsageError
from parley.store import open_store
from parley.web.app import make_app, make_site
from parley.web.listening import open_address
from parley.web.safety import LONGEST_BODY, Safety

HOST = "127.0.0.1:8642"
TOKEN = "0123456789abcdef"


@pytest.fixture
def ask(tmp_path):
    """`ask(method, path, headers, token)`: an answer of a server of an empty store."""

    def asked(method="GET", path="/", token="", cookies=None, **more):
        app = make_app(make_site(open_store(tmp_path)), Safety(frozenset({HOST}), token))
        client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
        client.cookies.update(cookies or {})
        return client.request(method, path, **more)

    return asked


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/style.css", "/static/../app.py"])
def test_every_answer_forbids_scripts_frames_and_copies(ask, path):
    headers = ask(path=path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_a_host_name_may_have_capitals(tmp_path):
    app = make_app(make_site(open_store(tmp_path)), Safety(frozenset({"macbook.local:8642"})))
    client = TestClient(app, base_url="http://127.0.0.1:8642")
    assert client.get("/", headers={"host": "MacBook.local:8642"}).status_code == 200
    # the address at which it was reached is its own
    assert client.get("/", headers={"host": "127.0.0.1:8642"}).status_code == 200
    assert client.get("/", headers={"host": "192.0.2.2:8642"}).status_code == 421


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_other_host_names_are_refused(ask, host):
    assert ask(headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"origin": "http://evil.example"}, True),
        ({"origin": f"https://{HOST}"}, True),
        ({"origin": "null", "sec-fetch-site": "cross-site"}, True),
        ({"origin": f"http://{HOST}"}, False),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, False),
    ],
)
def test_forms_of_other_sites_are_refused(ask, headers, refused):
    assert (ask("POST", "/", headers=headers).status_code == 403) is refused


def test_a_body_is_bounded_whether_its_length_is_said_or_not(ask):
    body = b"x" * (LONGEST_BODY + 1)
    assert ask("POST", content=body).status_code == 413
    assert ask(headers={"content-length": "9" * 5000}).status_code == 413


def test_a_token_is_needed_and_becomes_a_cookie(ask):
    assert ask(token=TOKEN).status_code == 401
    assert ask(path="/?token=wrong", token=TOKEN).status_code == 401
    assert ask(path="/?token=%C3%A9", token=TOKEN).status_code == 401
    answer = ask(path=f"/?token={TOKEN}&q=1", token=TOKEN)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?q=1"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=lax" in answer.headers["set-cookie"]  # a link in a mail must work
    assert ask(token=TOKEN, cookies={"parley-token-8642": TOKEN}).status_code == 200
    odd = "[1]=2; é; parley-token-1=x; parley-token-8642=" + TOKEN  # of other applications
    assert ask(token=TOKEN, headers={"cookie": odd.encode("latin-1")}).status_code == 200
    odd_path = ask(path=f"/run/a%3Fb%25c?token={TOKEN}", token=TOKEN)
    assert odd_path.headers["location"] == "/run/a%3Fb%25c"


def test_loopback_needs_no_token_and_other_addresses_do(monkeypatch):
    monkeypatch.delenv("PARLEY_VIEW_TOKEN", raising=False)
    with (near := open_address("127.0.0.1", 0)).socket:
        assert not near.safety.token
        assert near.link() == f"http://127.0.0.1:{near.port}/"
        with pytest.raises(UsageError, match="already in use"):
            open_address("127.0.0.1", near.port)
    monkeypatch.setenv("PARLEY_VIEW_TOKEN", "short")
    from parley.web.listening import find_token

    with pytest.raises(UsageError, match="at least 16"):
        find_token()


def test_an_error_of_ours_shows_no_traceback(ask, monkeypatch, capsys):
    def broken(store):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("parley.store.sqlite.folder.FolderStore.refs", broken)
    with pytest.raises(RuntimeError):  # the test client raises it again
        ask()
    assert "RuntimeError" in capsys.readouterr().err


def test_an_error_page_has_the_headers_of_all_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("parley.store.sqlite.folder.FolderStore.refs", lambda store: 1 / 0)
    app = make_app(make_site(open_store(tmp_path)), Safety(frozenset({HOST})))
    client = TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False)
    answer = client.get("/")
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_file_whose_name_is_no_text_hides_no_other(ask, tmp_path):
    (tmp_path / "x.parley").write_bytes(b"no run")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parley")).write_bytes(b"no run")
    answer = ask()
    assert answer.status_code == 200
    assert "x.parley" in answer.text


def test_error_pages_lead_back_to_the_runs(folder, visit):
    client = visit(folder)
    for path in ("/run/nothing", "/nothing", "/?state=odd"):
        answer = client.get(path)
        assert answer.status_code in (400, 404)
        assert '<a href="/">Back to all runs</a>' in answer.text
        assert "<header" in answer.text
    for path in ("/vote/nothing", "/play/nothing"):  # these visitors may not see the runs
        answer = client.get(path)
        assert answer.status_code == 404
        assert 'href="/"' not in answer.text

"""Requests as they are sent, and answers as they come, seen by a server that speaks as little HTTP
as it can."""

import asyncio
import ssl
import subprocess
from base64 import b64encode
from contextlib import asynccontextmanager

import pytest

from parley.errors import ParticipantError, Refused
from parley.match.protocol import UNLIMITED, Call
from parley.providers import _connections as connections
from parley.providers import _endpoint_health as endpoint_health
from parley.providers import _transport
from parley.providers._endpoint_health import Retryable
from parley.providers._transport import Transport
from parley.runs import event_loop

BODY = b'{"answer": 42}'
FOUND = {"answer": 42}
HEAD = b"HTTP/1.1 200 OK\r\n"
ANSWER = HEAD + b"Content-Length: 14\r\n\r\n" + BODY
OTHER = ANSWER.replace(b"42", b"13")
STATE = HEAD + b"Content-Length: 24\r\n\r\n" + b'{"status":"in_progress"}'


@pytest.fixture(autouse=True)
def no_pause_and_no_proxy(monkeypatch):
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.001)
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Noting(Call):
    """Notes which requests got no answer."""

    def __init__(self):
        self.fates = []

    def refused(self, fault):
        self.fates.append("refused")

    def unanswered(self, fault):
        self.fates.append("unanswered")


@asynccontextmanager
async def served(*answers, greeting=b"", tls=None):
    """Gives these answers in turn, then the last one; keeps what it was sent, by connection. An
    answer that is a tuple comes in pieces; after one that ends with None the connection ends. The
    event says that all pieces are sent."""
    heard: list[list[bytes]] = []
    left, talks, sent = list(answers), [], asyncio.Event()

    async def talk(reader, writer):
        requests: list[bytes] = []
        heard.append(requests)
        talks.append(asyncio.current_task())
        writer.write(greeting)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                requests.append(head + await reader.readexactly(int(length or 0)))
                sent.clear()
                answer = left.pop(0) if len(left) > 1 else left[0]
                for piece in answer if isinstance(answer, tuple) else (answer,):
                    if piece is None:
                        writer.close()
                        break
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.002)
                sent.set()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    async with server:
        scheme = "https" if tls else "http"
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard, sent
        await asyncio.gather(*talks)


def post_all(bodies, *answers, pause=0.0, call=UNLIMITED, play=asyncio.run, **options):
    """Post these one after the other, each after all pieces of the last answer have arrived: what
    came back, and what the server was sent."""

    async def work():
        async with served(*answers) as (address, heard, sent):
            transport = Transport(f"{address}/v1/chat?version=1", **options)
            found = []
            try:
                for body in bodies:
                    found.append((await transport.post(body, call)).content)
                    await sent.wait()
                    await asyncio.sleep(pause)
                    for _ in range(20):  # the client has read them, too
                        await asyncio.sleep(0)
            finally:
                await transport.close()
            return found, heard

    return play(work())


def fault_of(*answers, scheme="", call=UNLIMITED, **server):
    """What a single request to this server is told."""

    async def work():
        async with served(*answers, **server) as (address, *_):
            transport = Transport(
                f"{scheme or address.partition(':')[0]}:{address.split(':', 1)[1]}/v1"
            )
            try:
                with pytest.raises(ParticipantError) as fault:
                    await transport.post(b"{}", call)
            finally:
                await transport.close()
            return str(fault.value)

    return asyncio.run(work())


# What is sent


def test_requests_share_a_connection_and_carry_the_same_headers():
    found, heard = post_all(
        [b"{}", b'{"a":1}'], ANSWER, key="sk-1234567890", headers={"Version": "7"}
    )
    assert found == [FOUND] * 2
    ((first, second),) = heard
    lines = first.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert lines[0] == b"POST /v1/chat?version=1 HTTP/1.1"
    assert {
        b"Content-Type: application/json",
        b"Accept-Encoding: identity",
        b"Authorization: Bearer sk-1234567890",
        b"Version: 7",
        b"Content-Length: 2",
    } <= set(lines)
    assert b"Transfer-Encoding" not in first
    assert first.endswith(b"\r\n\r\n{}")
    assert second == first.replace(b"Length: 2", b"Length: 7")[:-2] + b'{"a":1}'


def test_each_request_has_its_own_idempotency_key():
    _, ((first, second),) = post_all([b"{}"] * 2, ANSWER, idempotency_header="Idempotency-Key")
    keys = [each.partition(b"Idempotency-Key: ")[2][:32] for each in (first, second)]
    assert len(set(keys)) == 2
    assert all(len(key) == 32 for key in keys)


def test_a_long_request_is_sent_whole_within_a_timeout():
    long = b'{"long": "%b"}' % (b"x" * 8_000_000)
    found, ((heard,),) = post_all([long], ANSWER, timeout=30)
    assert found == [FOUND]
    assert heard.endswith(long)


def test_cookies_lead_later_requests_to_the_same_server():
    cookie = HEAD + b"Content-Length: 14\r\nSet-Cookie: route=b7; Path=/\r\n\r\n"

    async def work():
        async with served(cookie + BODY, ANSWER) as (address, heard, _):
            # cookies are not kept for addresses that are numbers
            transport = Transport(address.replace("127.0.0.1", "localhost") + "/v1")
            for _ in range(2):
                await transport.post(b"{}", UNLIMITED)
            await transport.close()
            return heard

    requests = [request for requests in asyncio.run(work()) for request in requests]
    assert [b"Cookie: route=b7\r\n" in request for request in requests] == [False, True]


def test_a_proxy_gets_the_whole_address_and_its_own_password(monkeypatch):
    async def work():
        async with served(ANSWER) as (address, heard, _):
            monkeypatch.setenv("http_proxy", address.replace("//", "//me:secret@"))
            transport = Transport("http://models.example/v1/chat", key="sk-1234567890")
            found = [(await transport.post(b"{}", UNLIMITED)).content for _ in range(2)]
            await transport.close()
            return found, heard

    found, (requests,) = asyncio.run(work())
    assert found == [FOUND] * 2
    for request in requests:
        assert request.startswith(b"POST http://models.example/v1/chat HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic " + b64encode(b"me:secret") in request
        assert b"Host: models.example\r\n" in request


def test_a_proxy_for_tls_does_not_get_the_key_and_its_refusal_is_not_the_endpoints(monkeypatch):
    monkeypatch.setattr(_transport, "TRIES", 1)
    noting = Noting()
    said = "cannot connect: the proxy answers HTTP 403 Forbidden"

    async def work():
        async with served(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (
            address,
            heard,
            _,
        ):
            monkeypatch.setenv("https_proxy", address)
            transport = Transport("https://models.example/v1/chat", key="sk-1234567890")
            with pytest.raises(ParticipantError, match=said):
                await transport.post(b"{}", noting)
            with pytest.raises(Retryable, match=said):
                await transport.fetch("GET", "https://models.example/v1/batches", 10)
            await transport.close()
            return heard

    requests = [request for requests in asyncio.run(work()) for request in requests]
    assert len(requests) == 2
    for request in requests:
        assert request.startswith(b"CONNECT models.example:443 HTTP/1.1\r\n")
        assert b"sk-1234567890" not in request
    assert noting.fates == ["refused"]


@pytest.mark.parametrize(
    "proxy", ["me:secret@host", "http://me:secret@", "http://me:secret@h:99999", "socks5://secret"]
)
def test_an_error_names_the_setting_of_a_proxy_that_is_not_valid(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)

    async def work():
        transport = Transport("http://models.example/v1")
        with pytest.raises(Refused) as posted:
            await transport.post(b"{}", UNLIMITED)
        with pytest.raises(Refused) as fetched:
            await transport.fetch("GET", "http://models.example/v1/batches", 10)
        await transport.close()
        return str(posted.value), str(fetched.value)

    said, fetched = asyncio.run(work())
    assert said == fetched
    assert "the environment variable http_proxy must be the address of an HTTP proxy" in said
    assert "secret" not in said


@pytest.mark.parametrize("value", ["a\r\nX: se", "a\nX: secret", "secret\0"])
def test_an_error_names_a_header_that_would_contain_another_without_its_value(value):
    with pytest.raises(ValueError, match="the header 'Key' contains a line break or a NUL") as said:
        Transport("http://models.example/v1", headers={"Version": "7", "Key": value})
    assert "se" not in str(said.value)
    with pytest.raises(ValueError, match="contains a line break"):
        Transport("http://models.example/v1", idempotency_header=f"Key: 1\r\n{value}")


# What comes back


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"".join(b"1;odd=1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n"


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        (ANSWER, 1),
        (ANSWER.replace(b"Content-Length", b"CONTENT-LENGTH").replace(b" OK", b""), 1),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n" + ANSWER, 1),
        (CHUNKED + b"\r\n" + CHUNKS + b"\r\n", 1),
        (CHUNKED + b"Trailer: X\r\n\r\n" + CHUNKS + b"X: 1\r\n\r\n", 1),
        (HEAD + b"Content-Length: 14\r\nConnection: close\r\n\r\n" + BODY, 2),
        ((b"HTTP/1.0 200 OK\r\n\r\n" + BODY, None), 2),
        ((HEAD + b"\r\n" + BODY, None), 2),
    ],
    ids=["plain", "bare", "announced", "chunked", "trailer", "close", "HTTP/1.0", "to the end"],
)
def test_an_answer_may_come_in_any_form_that_http_has(answer, used):
    found, heard = post_all([b"{}"] * 2, answer, ANSWER)
    assert found == [FOUND] * 2
    assert len(heard) == used


@pytest.mark.parametrize("size", [1, 5, 30, 39, 45])
def test_an_answer_may_come_in_pieces(size):
    pieces = tuple(ANSWER[at : at + size] for at in range(0, len(ANSWER), size))
    found, heard = post_all([b"{}"] * 2, pieces)
    assert found == [FOUND] * 2
    assert len(heard) == 1


def test_a_connection_that_was_idle_for_too_long_is_closed(monkeypatch):
    monkeypatch.setattr(connections, "KEEPALIVE", 0.02)
    found, heard = post_all([b"{}"] * 2, ANSWER, pause=0.1)
    assert found == [FOUND] * 2
    assert len(heard) == 2


def test_a_connection_that_the_server_closed_while_idle_costs_no_call():
    noting = Noting()
    found, heard = post_all([b"{}"] * 3, (ANSWER, None), call=noting)
    assert found == [FOUND] * 3
    assert [len(requests) for requests in heard] == [1, 1, 1]
    assert noting.fates == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"hello, this is not HTTP\r\n\r\n", "hello, this is not HTTP"),
        (HEAD + b"X-Bad\0Key: 1\r\n\r\n", "Invalid header token"),
        (HEAD + b"X: " + b"a" * 20_000 + b"\r\nContent-Length: 2\r\n\r\n{}", "8190 bytes"),
        (HEAD + b"Content-Length: +2\r\n\r\n{}", "Content-Length"),
        (ANSWER + b"more\r\n\r\n", "more"),
    ],
    ids=["text", "header", "long header", "length", "more"],
)
def test_an_answer_that_is_not_http_is_told_in_words(monkeypatch, answer, said):
    monkeypatch.setattr(_transport, "TRIES", 1)
    noting = Noting()
    fault = fault_of((answer, None), call=noting)
    assert "/v1: the answer cannot be read as HTTP/1.1: " in fault
    assert said in fault
    assert "does the address lead to an HTTP server?" in fault
    assert "400" not in fault.partition("/v1")[2]
    assert "\n" not in fault
    assert noting.fates == ["unanswered"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ANSWER[:0], "the server closed the connection without an answer"),
        (ANSWER[:30], "the server closed the connection without an answer"),
        (ANSWER[:39], "the answer broke off, or its body is not encoded as its headers say"),
        (ANSWER[:45], "the answer broke off, or its body is not encoded as its headers say"),
        (CHUNKED + b"\r\n" + CHUNKS[:20], "the answer broke off, or its body"),
        (ANSWER.replace(b"\r\nC", b"\r\nContent-Encoding: gzip\r\nC"), "the answer broke off, or"),
    ],
)
def test_an_answer_that_breaks_off_is_told_in_words_and_may_be_billed(monkeypatch, answer, said):
    monkeypatch.setattr(_transport, "TRIES", 1)
    noting = Noting()
    fault = fault_of((answer, None), call=noting)
    assert f"/v1: {said}" in fault
    assert "400" not in fault.partition("/v1")[2]
    assert noting.fates == ["unanswered"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A TLS server's settings, with a certificate that nobody signed."""
    key, public = (str(tmp_path_factory.mktemp("tls") / name) for name in ("key", "public"))
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command = ["openssl", *words.split(), "-subj", "/CN=localhost", "-keyout", key, "-out", public]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, key)
    return context


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_certificate_that_is_not_trusted_is_told_as_such(monkeypatch, certificate):
    monkeypatch.setattr(_transport, "TRIES", 1)
    noting = Noting()
    fault = fault_of(ANSWER, tls=certificate, call=noting)
    assert "cannot connect: the server's TLS certificate is not trusted" in fault
    assert noting.fates == ["refused"]


def test_tls_to_a_server_without_it_is_no_matter_of_certificates(monkeypatch):
    monkeypatch.setattr(_transport, "TRIES", 1)
    noting = Noting()
    greets = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    fault = fault_of(ANSWER, greeting=greets, scheme="https", call=noting)
    assert "cannot connect: the TLS handshake failed" in fault
    assert "the address must begin with http://" in fault
    assert "certificate" not in fault
    assert noting.fates == ["refused"]


def test_a_request_without_tls_to_a_server_with_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(_transport, "TRIES", 1)
    fault = fault_of((b"\x15\x03\x03\x00\x02\x02\x46", None))  # the alert of a TLS server
    assert "the answer cannot be read as HTTP/1.1" in fault
    assert "If the server uses TLS, the address must begin with https://" in fault


# Answers that nobody asked for


def test_an_answer_behind_the_first_is_not_taken_for_that_of_the_next_request():
    found, heard = post_all([b"{}"] * 3, ANSWER + OTHER, ANSWER)
    assert found == [FOUND] * 3
    assert [len(requests) for requests in heard] == [1, 2]


@pytest.mark.parametrize("play", [asyncio.run, event_loop.run_in_new_loop])
@pytest.mark.parametrize("late", [OTHER, OTHER[:45], b"more\r\n\r\n"], ids=["whole", "cut", "odd"])
def test_a_late_second_answer_is_not_taken_for_that_of_the_next_request(play, late):
    noting = Noting()
    found, heard = post_all([b"{}"] * 3, (ANSWER, late), ANSWER, call=noting, play=play, deadline=5)
    assert found == [FOUND] * 3
    assert [len(requests) for requests in heard] == [1, 2]
    assert "unanswered" not in noting.fates


def test_a_late_second_answer_to_a_call_is_not_taken_for_the_state_of_a_batch():
    async def work():
        async with served((ANSWER, OTHER), STATE) as (address, heard, sent):
            transport = Transport(f"{address}/v1/chat")
            try:
                await transport.post(b"{}", UNLIMITED)
                await sent.wait()
                state = await transport.fetch("GET", f"{address}/v1/batches/1", 5)
            finally:
                await transport.close()
            return state, heard

    state, heard = asyncio.run(work())
    assert state == {"status": "in_progress"}
    assert [len(requests) for requests in heard] == [1, 1]


def test_an_endpoint_that_speaks_first_gets_no_request(monkeypatch):
    monkeypatch.setattr(_transport, "TRIES", 1)
    noting = Noting()
    fault = fault_of(ANSWER, greeting=b"220 mail.example ready\r\n", call=noting)
    assert "220 mail.example ready" in fault

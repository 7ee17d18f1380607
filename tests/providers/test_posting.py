"""Requests as they are sent, seen by a server that speaks as little HTTP as it can."""

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager

import pytest
from aiohttp.client_proto import ResponseHandler

from parley.errors import ParticipantError, Refused
from parley.match.protocol import UNLIMITED
from parley.providers._endpoint_health import Retryable
from parley.providers._posting import encode_headers
from parley.providers._transport import Transport

BODY = b'{"answer": 42}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n" % (len(BODY), b"") + BODY


@asynccontextmanager
async def served(*answers: bytes):
    """Gives these answers in turn, then the last one; keeps what it was sent, by connection."""
    heard: list[list[bytes]] = []
    left, talks = list(answers), []

    async def talk(reader, writer):
        requests: list[bytes] = []
        heard.append(requests)
        talks.append(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                requests.append(head + await reader.readexactly(int(length or 0)))
                writer.write(left.pop(0) if len(left) > 1 else left[0])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard
        await asyncio.gather(*talks)


def post_all(bodies, *answers, **options):
    """Post these one after the other: what came back, and what the server was sent."""

    async def work():
        async with served(*answers) as (address, heard):
            transport = Transport(f"{address}/v1/chat?version=1", **options)
            found = [await transport.post(body, UNLIMITED) for body in bodies]
            await transport.close()
            return found, heard

    return asyncio.run(work())


def test_requests_share_a_connection_and_carry_the_same_headers():
    found, heard = post_all(
        [b"{}", b'{"a":1}'], ANSWER, key="sk-1234567890", headers={"Version": "7"}
    )
    assert found == [{"answer": 42}] * 2
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
    assert first.endswith(b"\r\n\r\n{}")
    assert second == first.replace(b"Length: 2", b"Length: 7")[:-2] + b'{"a":1}'


def test_each_request_has_its_own_idempotency_key():
    _, ((first, second),) = post_all([b"{}"] * 2, ANSWER, idempotency_header="Idempotency-Key")
    keys = [each.partition(b"Idempotency-Key: ")[2][:32] for each in (first, second)]
    assert len(set(keys)) == 2
    assert all(len(key) == 32 for key in keys)


def test_an_answer_may_be_announced_and_come_in_chunks():
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"
    found, heard = post_all([b"{}"] * 2, early + ANSWER, chunked + chunks)
    assert found == [{"answer": 42}] * 2
    assert len(heard) == 1


def test_an_answer_that_ends_with_the_connection_is_followed_by_a_new_one():
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\n" + BODY
    found, heard = post_all([b"{}"] * 2, closing, ANSWER)
    assert found == [{"answer": 42}] * 2
    assert [len(requests) for requests in heard] == [1, 1]


def test_a_long_request_is_sent_whole_within_a_timeout():
    long = b'{"long": "%b"}' % (b"x" * 8_000_000)
    found, ((heard,),) = post_all([long], ANSWER, timeout=30)
    assert found == [{"answer": 42}]
    assert heard.endswith(long)


def test_a_proxy_gets_the_whole_address_and_its_own_password(monkeypatch):
    async def work():
        async with served(ANSWER) as (address, heard):
            monkeypatch.setenv("http_proxy", address.replace("//", "//me:secret@"))
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            transport = Transport("http://models.example/v1/chat", key="sk-1234567890")
            found = [await transport.post(b"{}", UNLIMITED) for _ in range(2)]
            await transport.close()
            return found, heard

    found, (requests,) = asyncio.run(work())
    assert found == [{"answer": 42}] * 2
    for request in requests:
        assert request.startswith(b"POST http://models.example/v1/chat HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic " + b64encode(b"me:secret") in request
        assert b"Host: models.example\r\n" in request


def test_a_proxy_for_tls_does_not_get_the_key(monkeypatch):
    async def work():
        async with served(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (
            address,
            heard,
        ):
            monkeypatch.setenv("https_proxy", address)
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setattr("parley.providers._transport.TRIES", 1)
            transport = Transport("https://models.example/v1/chat", key="sk-1234567890")
            with pytest.raises(ParticipantError, match="403"):
                await transport.post(b"{}", UNLIMITED)
            with pytest.raises(Retryable, match="403"):
                await transport.fetch("GET", "https://models.example/v1/batches", 10)
            await transport.close()
            return heard

    requests = [request for requests in asyncio.run(work()) for request in requests]
    assert len(requests) == 2
    for request in requests:
        assert request.startswith(b"CONNECT models.example:443 HTTP/1.1\r\n")
        assert b"sk-1234567890" not in request


def test_cookies_lead_later_requests_to_the_same_server(monkeypatch):
    cookie = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\nSet-Cookie: route=b7; Path=/\r\n\r\n"

    async def work():
        async with served(cookie + BODY, ANSWER) as (address, heard):
            # cookies are not kept for addresses that are numbers
            transport = Transport(address.replace("127.0.0.1", "localhost") + "/v1")
            for _ in range(2):
                await transport.post(b"{}", UNLIMITED)
            await transport.close()
            return heard

    requests = [request for requests in asyncio.run(work()) for request in requests]
    assert [b"Cookie: route=b7\r\n" in request for request in requests] == [False, True]


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nX: b", "a\0"])
def test_a_header_cannot_contain_another(value):
    with pytest.raises(ValueError, match="the header 'Key' contains a line break"):
        encode_headers({"Version": "7", "Key": value})


def fault_of(**options):
    """The error of a request to an address that is valid."""

    async def work():
        transport = Transport("http://models.example/v1", **options)
        with pytest.raises(Refused) as posted:
            await transport.post(b"{}", UNLIMITED)
        with pytest.raises(Refused) as fetched:
            await transport.fetch("GET", "http://models.example/v1/batches", 10)
        await transport.close()
        assert str(posted.value) == str(fetched.value)
        return str(posted.value)

    return asyncio.run(work())


def test_an_error_names_a_header_that_is_not_valid_without_its_value(monkeypatch):
    for proxy in ("", "http://127.0.0.1:9"):
        monkeypatch.setenv("http_proxy", proxy)
        said = fault_of(headers={"Version": "se\ncret"})
        assert "the header 'Version' contains a line break" in said
        assert "cret" not in said


@pytest.mark.parametrize(
    "proxy", ["me:secret@host", "http://me:secret@", "http://me:secret@h:99999", "socks5://secret"]
)
def test_an_error_names_the_setting_of_a_proxy_that_is_not_valid(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    said = fault_of()
    assert "the environment variable http_proxy must be the address of an HTTP proxy" in said
    assert "secret" not in said


def test_a_late_second_answer_is_not_taken_for_that_of_the_next_request():
    late = ANSWER.replace(b"42", b"13")

    async def work():
        first, ended = asyncio.Event(), asyncio.Event()
        connections = []

        async def talk(reader, writer):
            connections.append(0)
            try:
                while True:
                    await reader.readuntil(b"\r\n\r\n{}")
                    connections[-1] += 1
                    writer.write(ANSWER)
                    if len(connections) == 1:
                        await first.wait()
                        writer.write(late)
                        await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                ended.set()
            finally:
                writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = Transport(f"{address}/v1")
            found = [await transport.post(b"{}", UNLIMITED)]
            (idle,) = transport._target.idle._connections
            first.set()
            for _ in range(10_000):  # until the second answer has arrived
                if not idle.is_fit:
                    break
                await asyncio.sleep(0.001)
            found += [await transport.post(b"{}", UNLIMITED) for _ in range(2)]
            await ended.wait()
            await transport.close()
        return found, connections

    found, connections = asyncio.run(work())
    assert found == [{"answer": 42}] * 3
    assert connections == [1, 2]


def test_an_endpoint_that_speaks_first_gets_no_request(monkeypatch):
    monkeypatch.setattr("parley.providers._transport.TRIES", 1)
    monkeypatch.setattr(ResponseHandler, "should_close", True)

    async def work():
        async with served(ANSWER) as (address, heard):
            transport = Transport(f"{address}/v1")
            with pytest.raises(ParticipantError, match="sends data before a request"):
                await transport.post(b"{}", UNLIMITED)
            await transport.close()
            return heard

    assert not any(asyncio.run(work()))

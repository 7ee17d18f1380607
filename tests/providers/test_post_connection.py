"""Plain answers are read as aiohttp reads them; all others are left to aiohttp."""

import asyncio

import pytest
from aiohttp.client_proto import ResponseHandler
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ParticipantError
from parley.match.protocol import UNLIMITED
from parley.providers import _post_connection
from parley.providers._post_connection import LARGEST, parse_plain_head
from parley.providers._transport import Transport

BODY = b'{"answer": 42}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n" + BODY

NAMES = st.sampled_from(
    [
        *("Content-Length", "content-length", "Connection", "Transfer-Encoding", "Set-Cookie"),
        *("Content-Encoding", "Upgrade", "Retry-After", "X-A", "x_b", "X C", "", "Ü"),
    ]
)
VALUES = st.one_of(
    st.sampled_from(["14", " 14 ", "014", "+14", "1, 4", "-1", "0", "99999999", "", "\t14"]),
    st.sampled_from(["close", "keep-alive", "Keep-Alive", "chunked", "gzip", "identity", "h2c"]),
    st.text(st.characters(max_codepoint=300), max_size=6),
)
LINES = st.lists(st.tuples(NAMES, st.sampled_from([":", ": ", " :", ""]), VALUES), max_size=4)
FIRST = st.sampled_from(
    [
        *("HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 200", "HTTP/1.1 200 "),
        *("HTTP/1.0 200 OK", "HTTP/1.1 204 No", "HTTP/1.1 103 Early", "HTTP/1.1 20 OK"),
        *("HTTP/2 200 OK", "http/1.1 200 OK", " HTTP/1.1 200 OK", "HTTP/1.1  200 OK"),
    ]
)
ENDS = st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r\n "])


def read_with_aiohttp(data: bytes) -> tuple[int, dict[str, list[str]], bytes, bool] | None:
    """How aiohttp reads an answer that has arrived: its status, headers and body, and whether the
    connection can be used again. None if it is not complete, or broken."""

    async def work():
        handler = ResponseHandler(asyncio.get_running_loop())
        handler.set_response_params(read_until_eof=True)
        handler.data_received(data)
        if handler.exception() is not None or not handler._buffer:
            return None
        message, content = await handler.read()
        if not content.is_eof():
            return None
        headers = {name: message.headers.getall(name) for name in message.headers}
        body = await content.read()
        return message.code, headers, body, not handler.should_close

    return asyncio.run(work())


@given(FIRST, LINES, ENDS)
def test_a_head_that_counts_as_plain_is_read_as_aiohttp_reads_it(first, lines, end):
    text = end.join([first, *("".join(line) for line in lines), "", ""])
    head = text.encode("utf-8", "replace")
    plain = parse_plain_head.__wrapped__(head) if head.endswith(b"\r\n\r\n") else None
    if plain is None:
        return
    body = b"x" * min(plain.length, 20)
    found = read_with_aiohttp(head + body)
    if plain.length > 20:
        assert found is None
        return
    headers = {name: plain.headers.getall(name) for name in plain.headers}
    assert found == (plain.status, headers, body, True)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 14",
        b"content-length:14\r\nConnection: Keep-Alive\r\nRetry-After: 3",
        b"Date: now\r\nServer: uvicorn\r\nContent-Length: 14\r\nContent-Type: application/json",
    ],
)
def test_usual_heads_count_as_plain(lines):
    plain = parse_plain_head(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % lines)
    assert plain is not None
    assert (plain.status, plain.length) == (200, 14)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 14\r\nContent-Length: 14",
        b"Content-Length: 14\r\nTransfer-Encoding: chunked",
        b"Content-Length: 14\r\nContent-Encoding: gzip",
        b"Content-Length: 14\r\nConnection: close",
        b"Content-Length: 14\r\nSet-Cookie: a=b",
        b"Content-Length: %d" % (LARGEST + 1),
        b"Content-Length: +14",
        b"Content-Length : 14",
        b"Date: now",
    ],
)
def test_other_heads_are_left_to_aiohttp(lines):
    assert parse_plain_head(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % lines) is None


def post_to(*pieces: bytes, closes: bool = False, requests: int = 1, pause: float = 0.0):
    """What is returned for requests that are answered in these pieces, and how many connections
    were made."""

    async def work():
        talks = []

        async def talk(reader, writer):
            talks.append(asyncio.current_task())
            try:
                while await reader.readuntil(b"\r\n\r\n{}"):
                    for piece in pieces:
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(0.001)
                    if closes:
                        break
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = Transport(f"{address}/v1", deadline=20)
            try:
                found = []
                for _ in range(requests):
                    found.append(await transport.post(b"{}", UNLIMITED))
                    await asyncio.sleep(pause)
            finally:
                await transport.close()
                await asyncio.gather(*talks)
        return found, len(talks)

    return asyncio.run(work())


@pytest.mark.parametrize("size", [1, 5, 30, 39, 45])
def test_an_answer_may_come_in_pieces(size):
    pieces = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]
    assert post_to(*pieces, requests=2) == ([{"answer": 42}] * 2, 1)


@pytest.mark.parametrize("cut", [0, 10, 39, 45])
def test_an_answer_that_breaks_off_is_an_error_as_in_aiohttp(monkeypatch, cut):
    monkeypatch.setattr("parley.providers._transport.TRIES", 1)
    with pytest.raises(ParticipantError) as plain:
        post_to(ANSWER[:cut], closes=True)
    monkeypatch.setattr(_post_connection, "parse_plain_head", lambda head: None)
    with pytest.raises(ParticipantError) as by_aiohttp:
        post_to(ANSWER[:cut], closes=True)
    assert str(plain.value).partition("/v1")[2] == str(by_aiohttp.value).partition("/v1")[2]


def test_a_connection_that_was_idle_for_too_long_is_closed(monkeypatch):
    monkeypatch.setattr(_post_connection, "KEEPALIVE", 0.02)
    assert post_to(ANSWER, requests=2, pause=0.1) == ([{"answer": 42}] * 2, 2)


def test_an_answer_with_more_behind_it_is_left_to_aiohttp(monkeypatch):
    monkeypatch.setattr("parley.providers._transport.TRIES", 1)
    with pytest.raises(ParticipantError, match="400"):
        post_to(ANSWER + b"more\r\n\r\n")


def test_a_request_without_an_answer_ends_with_the_deadline():
    async def work():
        talks = []

        async def talk(reader, writer):
            talks.append(asyncio.current_task())
            await reader.read()
            writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = Transport(f"{address}/v1", deadline=0.1)
            with pytest.raises(ParticipantError, match="no answer within"):
                await transport.post(b"{}", UNLIMITED)
            await transport.close()
            await asyncio.gather(*talks)

    asyncio.run(work())

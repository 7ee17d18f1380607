"""Clients of batch interfaces: how a batch is found again, and what is not trusted in answers."""

import asyncio
import time

import pytest

from parley.errors import Filtered, ParticipantError, Refused, Rejected
from parley.providers._batches import BatchPending, BatchRequest
from parley.providers._endpoint_health import Retryable
from parley.providers._registry import make_provider
from parley.testing.batch_server import BatchServer
from parley.testing.server import says, sent

BODY = b'{"model":"m","messages":[]}'


def ask(family, work, server):
    """Do something with the client of a family."""

    async def asked():
        async with server:
            provider = make_provider(family, "m", {"base_url": server.url, "batch_api": True})
            try:
                return await work(provider.make_batch_client())
            finally:
                await provider.close()

    return asyncio.run(asked())


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-0123456789abcdef")


async def send(client, uid, count=1):
    requests = [BatchRequest(f"{uid}-{number}", BODY) for number in range(count)]
    return await client.create(uid, await client.upload(requests))


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
def test_a_batch_is_found_among_many_pages(family):
    async def work(client):
        wanted = await send(client, "wanted", 2)
        for number in range(120):  # more than a page
            await send(client, f"p{number}", 1)
        found = await client.find("wanted", 2, time.time(), ())
        missing = await client.find("missing", 2, time.time(), ())
        return wanted, found, missing

    wanted, found, missing = ask(family, work, BatchServer(polls=0))
    assert found == wanted
    assert missing is None


@pytest.mark.parametrize(("status", "refused"), [(404, True), (405, True), (500, False)])
def test_only_the_status_says_that_an_endpoint_has_no_batch_interface(status, refused):
    async def work(client):
        try:
            await client.check_interface()
        except Refused as fault:
            return f"/batches answers HTTP {status})" in str(fault)
        return False

    server = BatchServer(acts={"list": [sent(b"upstream says HTTP 404", status)]})
    assert ask("openai-compatible", work, server) is refused


def test_batches_of_anthropic_are_told_apart_once_they_have_ended():
    async def work(client):
        other, mine = await send(client, "other"), await send(client, "mine")
        with pytest.raises(BatchPending):
            await client.find("mine", 1, time.time(), ())
        assert await client.find("mine", 7, time.time(), ()) is None  # none has this size
        found = await client.find("mine", 1, time.time(), (other,))
        later = await client.find("mine", 1, time.time() + 10**6, ())
        return mine, found, later

    mine, found, later = ask("anthropic", work, BatchServer(polls=1))
    assert found == mine
    assert later is None  # it is older than the batch


def test_an_id_that_is_no_plain_name_is_not_used_in_an_address():
    async def work(client):
        with pytest.raises(Retryable, match="no valid id"):
            await send(client, "p1")

    for name in ("../files/secret", "..", "."):
        evil = sent({"id": name})
        ask("anthropic", work, BatchServer(acts={"created": [evil]}))
        ask("openai-compatible", work, BatchServer(acts={"upload": [evil]}))


@pytest.mark.parametrize("faults", [5, "x", {"a": 1}, [5, None]])
def test_odd_errors_of_a_batch_are_left_out(faults):
    async def work(client):
        return await client.poll("b")

    failed = sent(
        {"status": "failed", "errors": {"data": faults}, "request_counts": {"failed": -5}}
    )
    status = ask("openai-compatible", work, BatchServer(acts={"poll": [failed]}))
    assert (status.ended, status.fault) == (True, "the provider gave no reason")
    assert status.done == 0


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
def test_odd_moments_in_a_list_are_left_out(family):
    async def work(client):
        return await client.find("mine", 1, time.time(), ())

    moments = ["0001-01-01T00:00:00", 1e308, "9" * 5000, None, [1]]
    odd = sent({"data": [{"id": "b", "created_at": each} for each in moments], "has_more": False})
    assert ask(family, work, BatchServer(acts={"list": [odd]})) is None


def test_a_batch_of_anthropic_whose_results_cannot_be_read_yet_may_be_the_wanted_one():
    async def work(client):
        mine = await send(client, "mine")
        for _ in range(3):
            with pytest.raises(BatchPending):
                await client.find("mine", 1, time.time(), ())
        return mine, await client.find("mine", 1, time.time(), ())

    results = [sent(b"gone", 404), sent(b""), sent(b"<html>")]
    mine, found = ask("anthropic", work, BatchServer(polls=0, acts={"results": results}))
    assert found == mine


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"response": {"status_code": 400, "body": {"error": {"message": "too long"}}}}, Rejected),
        ({"response": {"status_code": 401, "body": {"error": "no"}}}, Refused),
        ({"response": {"status_code": 429, "body": {"error": "slow down"}}}, Retryable),
        ({"response": {"status_code": 500, "body": None}}, Retryable),
        (
            {"response": {"status_code": 400, "body": {"error": {"code": "content_filter"}}}},
            Filtered,
        ),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, ParticipantError),
        ({"response": None, "error": {"code": "batch_expired"}}, Retryable),
        ({"response": None, "error": None}, Retryable),
        ({}, Retryable),
    ],
)
def test_each_result_is_what_an_ordinary_call_would_get(line, kind):
    async def work(client):
        return client.read_line({"custom_id": "p-0", **line})

    assert type(ask("openai-compatible", work, BatchServer()).fault) is kind


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({"type": "errored", "error": {"error": {"type": "invalid_request_error"}}}, Rejected),
        ({"type": "errored", "error": {"error": {"type": "authentication_error"}}}, Refused),
        ({"type": "errored", "error": {"error": {"type": "overloaded_error"}}}, Retryable),
        ({"type": "errored", "error": None}, Retryable),
        ({"type": "expired"}, Retryable),
        ({"type": "canceled"}, Retryable),
        ({"type": "succeeded", "message": None}, ParticipantError),
    ],
)
def test_each_result_of_anthropic_is_what_an_ordinary_call_would_get(result, kind):
    async def work(client):
        return client.read_line({"custom_id": "p-0", "result": result})

    assert type(ask("anthropic", work, BatchServer()).fault) is kind


def test_a_result_has_the_id_of_its_request():
    async def work(client):
        response = {"status_code": 200, "request_id": "req_1", "body": says("x")}
        return client.read_line({"custom_id": "p-0", "response": response})

    assert ask("openai-compatible", work, BatchServer()).answer.request_id == "req_1"


def test_results_are_read_line_by_line_also_if_some_are_no_results():
    def mangle(lines):
        return ["no object", 5, None, {"custom_id": 7}, *lines]

    async def work(client):
        batch = await send(client, "p1", 3)
        status = await client.poll(batch)
        return [line async for line in client.results(status)]

    lines = ask(
        "openai-compatible", work, BatchServer(lambda body: says("x"), polls=0, mangle=mangle)
    )
    assert lines[:4] == [None] * 4
    assert [line.custom_id for line in lines[4:]] == ["p1-0", "p1-1", "p1-2"]
    assert all(line.fault is None for line in lines[4:])

"""Pace: requests and tokens a minute are kept, whoever asks and however many."""

import asyncio
import time

import pytest

from parley import pace
from parley.config import Config
from parley.errors import UsageError
from parley.expect import Text
from parley.pace import Limits, Pace
from parley.places import Brake, Placed, Tally
from parley.pool import Seat, Turn, View
from parley.prepared import prepare
from parley.providers.protocol import Reply, Usage


def view(words="hello"):
    return View(Seat("a"), 1, 0, [Turn("user", words)], b"", Text(), None, None)


class Counting:
    """A participant that notes when it was asked, and how many at a time."""

    privy = False

    def __init__(self, usage=None):
        self.times, self.now, self.most, self.usage = [], 0, 0, usage

    async def reply(self, view):
        self.times.append(time.monotonic())
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.005)
        self.now -= 1
        return Reply("yes", usage=self.usage or Usage())

    async def close(self):
        pass


def asked(limits, count, usage=None, words="hello"):
    async def whole():
        who = Counting(usage)
        placed = Placed("a", who, limits, Tally(), Brake())
        began = time.monotonic()
        await asyncio.gather(*(placed.reply(view(words)) for _ in range(count)))
        return who, time.monotonic() - began

    return asyncio.run(whole())


def test_requests_a_minute_are_kept(monkeypatch):
    monkeypatch.setattr(pace, "MINUTE", 6.0)  # a short minute: 60 a minute are ten a second
    who, took = asked(Limits(rpm=60), 75)
    assert len(who.times) == 75
    assert took >= (75 - 50) / 10 - 0.2  # what five seconds bring may go at once


def test_tokens_a_minute_are_kept_as_the_endpoint_counts_them(monkeypatch):
    monkeypatch.setattr(pace, "MINUTE", 1.0)
    _, free = asked(Limits(tpm=100_000), 20, Usage(50, 0, 50))
    assert free < 1

    async def whole():
        who = Counting(Usage(600, 0, 400))  # far more than the words suggest
        placed = Placed("a", who, Limits(tpm=1000), Tally(), Brake())
        began = time.monotonic()
        for _ in range(8):
            await placed.reply(view())
        return time.monotonic() - began

    assert asyncio.run(whole()) >= 1.5  # 8,000 tokens, of which 5,000 may go at once


def test_so_many_at_a_time():
    assert asked(Limits(concurrency=3), 20)[0].most == 3
    assert asked(Limits(), 20)[0].most == 20


def test_a_stop_ends_the_waiting(monkeypatch):
    async def whole():
        brake = Brake()
        from parley.providers.patience import AGAIN

        AGAIN.set(brake.gate)
        placed = Placed("a", Counting(), Limits(rpm=1), Tally(), brake)
        calls = [asyncio.create_task(placed.reply(view())) for _ in range(5)]
        await asyncio.sleep(0.1)
        brake.pull("enough")
        began = time.monotonic()
        await asyncio.gather(*calls, return_exceptions=True)
        return time.monotonic() - began

    assert asyncio.run(whole()) < 2


@pytest.mark.parametrize("name", ["rpm", "tpm", "concurrency"])
def test_a_limit_that_is_none_is_refused(name):
    models = {"a": {"model": "bot/random", name: 0}, "b": {"model": "bot/random"}}
    with pytest.raises(UsageError, match=f"a.{name} must be at least 1"):
        prepare(Config("public_goods", {}, models, ["a", "b"], plan="together"))


def test_a_pace_without_limits_waits_for_nobody():
    assert asyncio.run(Pace(Limits()).admit(view())) == 0.0

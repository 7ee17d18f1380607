"""Pace: requests and tokens a minute are kept, whoever asks and however many."""

import asyncio
from bisect import bisect_right
from itertools import zip_longest
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.config.prepare import prepare_new
from parley.errors import UsageError
from parley.match.protocol import UNLIMITED, Reply, Usage
from parley.participants._model import Model
from parley.participants._registry import ModelLimits
from parley.plans import MatchSpec
from parley.providers import _capabilities as capabilities
from parley.providers import _endpoint_health as endpoint_health
from parley.rules.pool import Seat, Turn, View
from parley.rules.readers import Text
from parley.runs import rate_limits
from parley.runs.progress import Progress, StopSignal
from parley.runs.rate_limits import RateLimiter
from parley.runs.scheduler import MatchSlot
from parley.runs.seats import LimitedParticipant
from parley.store.config import Config
from parley.testing.server import Server, reset, says, sent
from tests.clock import clock as clock


def view(words="hello"):
    return View(Seat("a"), 1, 0, [Turn("user", words)], b"", Text(), None, None)


class Counting:
    """A participant that notes when it was asked, and how many at a time."""

    sees_item = False

    def __init__(self, usage=None):
        self.asked, self.now, self.most, self.usage = 0, 0, 0, usage

    async def reply(self, view, call):
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.005)
        self.now -= 1
        return Reply("yes", usage=self.usage or Usage())

    async def close(self):
        pass


def asked(limits, count, usage=None, words="hello", play=asyncio.run):
    async def whole():
        who = Counting(usage)
        placed = LimitedParticipant("a", who, limits, Progress())
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(placed.reply(view(words), UNLIMITED) for _ in range(count)))
        return who, asyncio.get_running_loop().time() - began

    return play(whole())


@pytest.fixture
def passing_time(monkeypatch):
    """Time that passes only where somebody waits."""
    now = [1000.0]

    async def passing(seconds, call):
        now[0] += seconds + 1e-9
        await asyncio.sleep(0)

    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(rate_limits, "sleep_unless_stopped", passing)
    return now


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rpm=st.integers(1, 600),
    idle=st.lists(st.floats(0, 90), max_size=5),
    counts=st.lists(st.integers(1, 150), min_size=1, max_size=5),
)
def test_in_no_minute_more_requests_leave_than_allowed_and_what_a_second_brings(
    passing_time, rpm, idle, counts
):
    async def whole():
        limited, times = RateLimiter(ModelLimits(rpm=rpm)), []

        async def request():
            await limited.acquire(0.0, UNLIMITED)
            times.append(passing_time[0])

        for count, rest in zip_longest(counts, idle, fillvalue=0):
            await asyncio.gather(*(request() for _ in range(int(count))))
            passing_time[0] += rest
        return times

    times = asyncio.run(whole())
    burst = max(1, rpm / 60)
    for at, first in enumerate(times):
        assert bisect_right(times, first + 60) - at <= rpm + burst + 1e-6


def test_requests_a_minute_are_kept(clock, monkeypatch):
    monkeypatch.setattr(rate_limits, "MINUTE", 6.0)  # a short minute: 60 a minute are ten a second
    who, took = asked(ModelLimits(rpm=60), 25, play=clock.run)
    assert who.asked == 25
    assert 2.4 - 0.1 <= took < 3  # the first goes at once


@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ([sent(b"oops", 503)] * 4, {}),
        ([reset] * 4, {}),
        ([sent({"error": {"message": f"'{name}' is not supported"}},
               400) for name in ("temperature", "top_p", "seed", "stop")],
         {"temperature": 1, "top_p": 1, "seed": 1, "stop": "x"}),
    ],
    ids=["503", "reset", "rejected"],
)  # fmt: skip
def test_every_request_counts_further_tries_too(clock, monkeypatch, answers, options):
    """A call that takes five requests takes as long as five calls."""
    monkeypatch.setattr(rate_limits, "MINUTE", 6.0)
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(capabilities, "KNOWN", {})
    times = []

    def noting(answer):
        async def act(asked, writer):
            times.append(clock.now)
            await (answer if callable(answer) else sent(answer))(asked, writer)

        return act

    async def whole():
        async with Server(*map(noting, [*answers, says()])) as server:
            model = Model.from_options("vllm", "m", {"base_url": server.url, **options})
            placed = LimitedParticipant("a", model, ModelLimits(rpm=60), Progress())
            await placed.reply(view(), UNLIMITED)
            await placed.close()
            assert placed.requests_sent == len(server.asked) == 5

    clock.run(whole())
    assert times[-1] - times[0] >= 0.4 - 1e-3  # four tenths


def test_a_call_that_waited_for_its_pace_does_not_leave_into_a_pause(clock, monkeypatch):
    """Others are told to wait for 0.5 s while it waits for its tenth of a second: it heeds that,
    too."""
    monkeypatch.setattr(rate_limits, "MINUTE", 6.0)
    times = []

    async def busy(asked, writer):
        times.append(clock.now)
        await (sent(b"later", 429, Retry_After="0.5") if len(times) == 1 else sent(says()))(
            asked, writer
        )

    async def whole():
        async with Server(busy) as server:
            placed = LimitedParticipant(
                "a",
                Model.from_options("vllm", "m", {"base_url": server.url}),
                ModelLimits(rpm=60),
                Progress(),
            )
            await asyncio.gather(*(placed.reply(view(), UNLIMITED) for _ in range(4)))
            await placed.close()

    clock.run(whole())
    assert times[1] - times[0] >= 0.5
    assert times[-1] - times[1] >= 0.2  # three tenths


def test_waiting_for_the_pace_is_no_time_of_the_call(clock, monkeypatch):
    monkeypatch.setattr(rate_limits, "MINUTE", 6.0)

    async def whole():
        async with Server(says()) as server:
            model = Model.from_options("vllm", "m", {"base_url": server.url, "deadline": 0.6})
            placed = LimitedParticipant("a", model, ModelLimits(rpm=60), Progress())
            replies = await asyncio.gather(*(placed.reply(view(), UNLIMITED) for _ in range(12)))
            await placed.close()
            return replies

    assert [reply.content for reply in clock.run(whole())] == ["hello"] * 12


def test_tokens_a_minute_are_kept_as_the_endpoint_counts_them(clock, monkeypatch):
    monkeypatch.setattr(rate_limits, "MINUTE", 1.0)
    _, free = asked(ModelLimits(tpm=100_000), 20, Usage(50, 0, 50), play=clock.run)
    assert free < 1

    async def whole():
        who = Counting(Usage(600, 0, 400))  # far more than the words suggest
        placed = LimitedParticipant("a", who, ModelLimits(tpm=5000), Progress())
        began = clock.now
        for _ in range(8):
            await placed.reply(view(), UNLIMITED)
        return clock.now - began

    # 7,000 tokens are made up for, and one call is under way
    assert 1.2 <= clock.run(whole()) < 3


def test_a_wrong_count_is_made_up_for_within_a_minute(passing_time):
    async def whole():
        who = Counting(Usage(2**31 - 1, 0, 2**31 - 1))
        placed = LimitedParticipant("a", who, ModelLimits(tpm=100_000), Progress())
        for _ in range(3):
            await placed.reply(view(), UNLIMITED)

    began = passing_time[0]
    asyncio.run(whole())
    assert passing_time[0] - began < 4 * 60


def test_so_many_at_a_time():
    assert asked(ModelLimits(concurrency=3), 20)[0].most == 3
    assert asked(ModelLimits(), 20)[0].most == 20


def test_a_stop_ends_the_waiting(clock):
    async def whole():
        brake, tally = StopSignal(), Progress()
        placed = LimitedParticipant("a", Counting(), ModelLimits(rpm=1), tally)
        slot = MatchSlot(MatchSpec(1, "1", None, 1, 0, {}), brake, tally, lambda more: None)
        calls = [asyncio.create_task(placed.reply(view(), slot)) for _ in range(5)]
        await asyncio.sleep(0.1)
        brake.stop("enough")
        began = clock.now
        await asyncio.gather(*calls, return_exceptions=True)
        return clock.now - began

    assert clock.run(whole()) < 2


@pytest.mark.parametrize("name", ["rpm", "tpm", "concurrency"])
def test_a_limit_that_is_none_is_refused(name):
    models = {"a": {"model": "bot/random", name: 0}, "b": {"model": "bot/random"}}
    with pytest.raises(UsageError, match=f"a.{name} must be at least 1"):
        prepare_new(Config("public_goods", {}, models, ["a", "b"], plan="together"))


def test_a_pace_without_limits_waits_for_nobody():
    assert RateLimiter(ModelLimits()).estimate_tokens(view()) == 0.0
    asyncio.run(RateLimiter(ModelLimits()).acquire(0.0, UNLIMITED))

"""The limits of a run hold over all its workers, whoever joins, leaves or dies."""

import asyncio
import random
import threading
import time
from bisect import bisect_right
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.config.prices import prices_for
from parley.errors import Halted, StoreError
from parley.match.protocol import UNLIMITED, Reply, Usage
from parley.participants._registry import ModelLimits, make_participant
from parley.rules.task import Task
from parley.runs import shared_rates
from parley.runs.budget import Budget
from parley.runs.progress import Progress, StopSignal
from parley.runs.rate_limits import Bucket, RateLimiter
from parley.runs.request_estimates import RequestEstimator
from parley.runs.seats import LimitedParticipant, is_on_this_machine
from parley.store.postgres import grants as grants_module
from parley.store.postgres.addresses import parse_address
from parley.store.postgres.connections import connect
from parley.store.postgres.database_tables import create_store_tables
from parley.store.postgres.grants import PostgresGrants, fair_shares
from parley.store.shared_limits import CALLS, USD, GrantRequest, Holding
from tests.runs.test_money import a_view


class SharedRun:
    """A run in a database, with rows for its workers."""

    def __init__(self, url):
        self.address = parse_address(url)
        self.connection = connect(self.address)
        create_store_tables(self.connection, self.address)
        (self.number,) = self.connection.execute(
            "INSERT INTO runs (id, created, changed, config, identity, quotation_secret, state) "
            "VALUES (gen_random_uuid()::text, 0, 0, '', '', '', 'running') RETURNING run"
        ).fetchone()

    def add_worker(self):
        (worker,) = self.connection.execute(
            "INSERT INTO workers (run, host, pid, version, until) "
            "VALUES (%s, 'h', 1, '', clock_timestamp() + interval '1 hour') RETURNING worker",
            (self.number,),
        ).fetchone()
        return worker

    def set_state(self, worker, state):
        self.connection.execute("UPDATE workers SET state = %s WHERE worker = %s", (state, worker))

    def held(self, what):
        (found,) = self.connection.execute(
            "SELECT COALESCE(SUM(amount), 0) FROM grants WHERE run = %s AND what = %s",
            (self.number, what),
        ).fetchone()
        return found

    def grants(self, worker=None):
        """The grants of a new worker, on the connection of the test."""

        async def use(work):
            return work(self.connection)

        return PostgresGrants(use, self.number, worker or self.add_worker())

    @contextmanager
    def connected_grants(self):
        """The grants of a new worker with a connection of its own, used in other threads."""
        connection, line = connect(self.address), threading.Lock()

        def locked(work):
            with line:
                return work(connection)

        async def use(work):
            return await asyncio.to_thread(locked, work)

        worker = self.add_worker()
        try:
            yield worker, PostgresGrants(use, self.number, worker)
        finally:
            connection.close()


@pytest.fixture
def run(postgres_url):
    shared = SharedRun(postgres_url)
    yield shared
    shared.connection.close()


def want(limit, used, needed, most=None, spent=None, stuck=0.0, before=0.0):
    spent = used if spent is None else spent
    return GrantRequest(limit, before, spent, stuck, used, needed, most or needed)


def ask(grants, **requests):
    return asyncio.run(grants.ask(requests))


def test_a_worker_gets_a_part_and_all_together_get_no_more_than_the_limit(run):
    first, second = run.grants(), run.grants()
    got = ask(first, calls=want(100, 0, 1, most=17))
    assert (got.is_enough, got.amounts) == (True, {CALLS: 17})
    got = ask(second, calls=want(100, 0, 60))
    assert (got.amounts, got.others) == ({CALLS: 60}, {CALLS: 17})
    got = ask(first, calls=want(100, 17, 41))
    assert (got.is_enough, got.amounts) == (False, {CALLS: 17})
    assert got.may_grow  # the second has 60 calls, and nobody knows whether it makes them
    asyncio.run(second.give_back({CALLS: Holding(10, 10)}, all=False))
    assert ask(first, calls=want(100, 17, 41)).is_enough


def test_what_is_refused_wholly_gives_back_what_was_held_of_other_limits(run):
    first, second = run.grants(), run.grants()
    assert ask(first, calls=want(10, 0, 6), usd=want(1.0, 0, 0.5)).is_enough
    got = ask(second, calls=want(10, 0, 5), usd=want(1.0, 0, 0.1))
    assert (got.is_enough, got.amounts) == (False, {CALLS: 0, USD: 0})
    assert (run.held(CALLS), run.held(USD)) == (6, 0.5)


def test_near_the_limit_something_is_left_for_the_others(run):
    first, second = run.grants(), run.grants()
    assert ask(first, calls=want(20, 0, 1, most=100)).amounts == {CALLS: 1 + 4}
    assert ask(second, calls=want(20, 0, 1, most=100)).amounts == {CALLS: 1 + 3}


def test_what_a_run_spent_before_it_had_workers_counts_once(run):
    for _ in range(3):
        got = ask(run.grants(), calls=want(100, 0, 10, before=60.0))
    assert got.is_enough
    assert got.others == {CALLS: 80}
    assert not ask(run.grants(), calls=want(100, 0, 11, before=999.0)).is_enough


def test_all_that_a_dead_worker_held_counts_as_spent_and_it_gets_nothing_more(run):
    dead, alive = run.add_worker(), run.grants()
    grants = run.grants(dead)
    assert ask(grants, usd=want(1.0, 0, 0.4), calls=want(None, 0, 1)).is_enough
    run.set_state(dead, "dead")
    for act in (
        grants.ask({CALLS: want(None, 0, 1)}),
        grants.give_back({CALLS: Holding(0, 0)}, all=True),
        grants.share_slots("slots a", 3, 1, 0),
    ):
        with pytest.raises(StoreError, match="no sign of life"):
            asyncio.run(act)
    got = ask(alive, usd=want(1.0, 0, 0.7), calls=want(None, 0, 1))
    assert (got.is_enough, got.may_grow, got.others[USD]) == (False, False, 0.4)
    assert ask(alive, usd=want(1.0, 0, 0.6), calls=want(None, 0, 1)).is_enough


def test_asking_twice_for_the_same_changes_nothing(run):
    grants = run.grants()
    for _ in range(3):  # the answer was lost with the connection
        assert ask(grants, calls=want(100, 3, 10)).amounts == {CALLS: 10}


def test_the_spending_of_a_worker_is_on_record_with_its_grant(run):
    worker = run.add_worker()
    ask(run.grants(worker), calls=want(100, 0, 10), usd=want(2.0, 0, 0.5))
    query = "SELECT spent FROM workers WHERE worker = %s"
    assert run.connection.execute(query, (worker,)).fetchone() == ('{"calls":10,"usd":0.5}',)


def test_workers_that_wait_for_each_other_end_and_those_that_can_go_on_do(run):
    """The first waits for a call, the second for money; what the second returns lets the first go
    on, so the second must not end the run."""
    first, second = run.grants(), run.grants()
    assert ask(first, calls=want(3, 0, 1), usd=want(1.0, 0, 0.9)).is_enough
    assert ask(second, calls=want(3, 0, 2), usd=want(1.0, 0, 0.1)).is_enough
    stuck = {"usd": want(1.0, 0.9, 0.0, spent=0.0, stuck=0.9), "calls": want(3, 1, 2)}
    got = ask(first, **stuck)
    assert (got.is_enough, got.may_grow) == (False, True)
    got = ask(second, calls=want(3, 1, 2), usd=want(1.0, 0.1, 0.5))
    assert (got.is_enough, got.may_grow) == (False, True)
    assert ask(first, **stuck).is_enough
    # now the first has money for a call in progress, which may come back
    assert ask(second, calls=want(3, 1, 2), usd=want(1.0, 0.1, 0.5)).may_grow
    asyncio.run(first.give_back({CALLS: Holding(2, 2), USD: Holding(0.9, 0.9)}, all=True))
    assert not ask(second, calls=want(3, 1, 2), usd=want(1.0, 0.1, 0.5)).may_grow


steps = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["call", "call", "call", "end", "beat", "leave", "die"]),
        st.integers(1, 30),
    ),
    max_size=60,
)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=steps, limit=st.integers(1, 120), ahead=st.integers(0, 20))
def test_whatever_workers_do_they_never_spend_more_than_the_limit(run, steps, limit, ahead):
    """Each has spent some, uses more for what is in progress, and never uses what it does not
    hold."""
    run.connection.execute("DELETE FROM grants")
    workers = [[run.add_worker(), 0, 0, 0] for _ in range(4)]  # spent, used, held
    gone = 0  # what those that left or died had used
    for index, act, amount in steps:
        worker, spent, used, held = workers[index]
        grants = run.grants(worker)
        if act == "call":
            if used + amount > held:
                request = want(limit, used, used + amount, used + amount + ahead, spent)
                answer = ask(grants, calls=request)
                held = answer.amounts[CALLS]
            used += amount if used + amount <= held else 0
        elif act == "end":  # everything in progress ends and costs a little
            spent = used = spent + (used - spent + 1) // 2
        elif act in ("beat", "leave"):
            used = spent if act == "leave" else used
            back = grants.give_back({CALLS: Holding(spent, used)}, act == "leave")
            held = asyncio.run(back)[CALLS]
        assert used <= held or act == "end"
        workers[index] = [worker, spent, used, held]
        if act in ("leave", "die"):
            run.set_state(worker, {"leave": "left", "die": "dead"}[act])
            gone += used
            workers[index] = [run.add_worker(), 0, 0, 0]
        assert gone + sum(each[2] for each in workers) <= limit
        assert run.held(CALLS) <= limit


@given(
    limit=st.integers(0, 30),
    wishes=st.dictionaries(st.integers(1, 9), st.integers(0, 20), min_size=1),
    turn=st.integers(0, 50),
)
def test_slots_are_shared_out_fairly(limit, wishes, turn):
    shares = fair_shares(limit, wishes, turn)
    assert sum(shares.values()) == min(limit, sum(wishes.values()))
    assert all(shares[each] <= wishes[each] for each in wishes)
    unmet = [shares[each] for each in wishes if shares[each] < wishes[each]]
    assert not unmet or max(shares.values()) <= min(unmet) + 1


def test_slots_that_are_too_few_wander():
    wishes = {3: 5, 7: 5, 9: 5, 11: 0}
    having = [
        next(each for each, slots in fair_shares(1, wishes, turn).items() if slots)
        for turn in range(12)
    ]
    assert {having.count(each) >= 3 for each in (3, 7, 9)} == {True}


PRICES = "a: {input: 10, output: 30}\n"


def make_budget(grants, most_usd=None, most_calls=None, **options):
    budget = Budget(
        most_usd,
        most_calls,
        prices_for({"a": {"model": "vllm/x"}}),
        StopSignal(),
        None,
        grants=grants,
        **options,
    )
    budget.add_model("a", None, {})
    budget.estimators["a"] = RequestEstimator(limit=1000, replies=1)
    return budget


async def make_calls(budget, sent, crowd=8, seconds=0.002, tokens=1, beat=None):
    """Make calls until the budget stops them; `sent` counts them."""

    async def caller():
        while True:
            held = await budget.reserve("a", a_view(), True)
            await held.before_request()
            sent.append(held.usd)
            await asyncio.sleep(seconds * random.uniform(0.5, 1.5))
            budget.settle(held, Reply("x", usage=Usage(tokens, 0, tokens)))

    async def beats():
        while True:
            await asyncio.sleep(0.1)
            await budget.give_back()

    beating = asyncio.create_task(beats())
    ends = await asyncio.gather(*(caller() for _ in range(crowd)), return_exceptions=True)
    beating.cancel()
    assert {type(end) for end in ends} == {Halted}
    await budget.save_totals()


def test_workers_make_as_many_calls_as_the_limit_allows_and_then_stop(run):
    async def main():
        budgets = [make_budget(run.grants(), most_calls=150) for _ in range(4)]
        sent = []
        await asyncio.gather(*(make_calls(each, sent) for each in budgets))
        return sent, budgets

    sent, budgets = asyncio.run(main())
    assert len(sent) == sum(each.calls for each in budgets) == run.held(CALLS) == 150
    assert {each.stop_signal.reason for each in budgets} == {
        "the limit of --max-calls is reached (150 calls made)"
    }
    assert {each.stop_signal.status for each in budgets} == {"budget"}


def test_workers_spend_as_much_as_the_limit_allows_and_then_stop(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(PRICES)

    async def main():
        # a call may cost up to 0.03 USD and costs 0.02; the run had spent 0.25 before
        budgets = [make_budget(run.grants(), most_usd=1.5, before_usd=0.25) for _ in range(4)]
        sent = []
        await asyncio.gather(*(make_calls(each, sent, tokens=500) for each in budgets))
        return sent, budgets

    sent, budgets = asyncio.run(main())
    spent = sum(each.usd for each in budgets)
    assert spent == pytest.approx(0.02 * len(sent))
    assert 1.25 - max(sent) < spent <= 1.25 + 1e-9
    assert run.held(USD) == pytest.approx(0.25 + spent)
    said = "1.50 USD spent; the next call to a may cost up to "
    assert any(said in each.stop_signal.reason for each in budgets)
    totals = {each.total_usd for each in budgets}
    assert max(totals) == pytest.approx(0.25 + spent)


def test_the_money_of_a_worker_that_dies_is_spent_and_the_others_end_with_the_rest(run):
    async def main():
        workers = [run.add_worker() for _ in range(4)]
        budgets = [make_budget(run.grants(each), most_calls=200) for each in workers]
        sent = []
        tasks = [asyncio.create_task(make_calls(each, sent)) for each in budgets]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        made = budgets[0].calls
        run.set_state(workers[0], "dead")
        await asyncio.gather(*tasks[1:])
        return sent, made

    sent, made = asyncio.run(main())
    assert made
    assert run.held(CALLS) == 200
    assert 200 - 64 < len(sent) <= 200


def test_a_worker_that_needs_nothing_more_gives_back_what_another_waits_for(run):
    async def main():
        idle, busy = (make_budget(run.grants(), most_calls=30) for _ in range(2))
        await (await idle.reserve("a", a_view(), True)).before_request()
        waiting = asyncio.create_task(make_calls(busy, sent := []))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await idle.give_back()
        await asyncio.wait_for(waiting, 5)
        return len(sent)

    assert asyncio.run(main()) == 29


def in_threads(work, count):
    """Run `work(number)` in threads, and return what they return."""
    found, faults = [None] * count, []

    def target(number):
        try:
            found[number] = work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=target, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if faults:
        raise faults[0]
    return found


def most_in(times, seconds):
    return max(bisect_right(times, first + seconds) - at for at, first in enumerate(times))


async def send_at_rate(grants, rpm, seconds, crowd, pause=0.02):
    limiter, times = RateLimiter(ModelLimits(rpm=rpm), "a", grants), []
    ends = time.monotonic() + seconds

    async def caller():
        while time.monotonic() < ends:
            await limiter.acquire(0.0, UNLIMITED)
            times.append(time.monotonic())
            await asyncio.sleep(pause)

    await asyncio.gather(*(caller() for _ in range(crowd)))
    return times


def test_workers_share_one_rate_and_use_it(run):
    rate, seconds = 100, 5.0

    def work(number):
        with run.connected_grants() as (_, grants):
            crowd = (2, 20, 20, 20)[number]
            return asyncio.run(send_at_rate(grants, 60 * rate, seconds, crowd))

    each = in_threads(work, 4)
    times = sorted(time for part in each for time in part)
    assert most_in(times, 3.0) <= rate * 3 + rate
    used = [at for at in times if times[0] + 0.5 < at <= times[0] + seconds - 0.5]
    assert len(used) >= 0.95 * rate * (seconds - 1)
    assert min(map(len, each)) > 0


def test_tokens_of_a_rate_are_shared_as_the_endpoint_counts_them(run):
    """600 tokens a call, where the words suggest fewer."""
    rate, seconds = 20_000, 3.0

    async def send(grants):
        limiter, sent = RateLimiter(ModelLimits(tpm=60 * rate), "a", grants), []
        ends = time.monotonic() + seconds

        async def caller():
            while time.monotonic() < ends:
                tokens = limiter.estimate_tokens(a_view())
                await limiter.acquire(tokens, UNLIMITED)
                sent.append(time.monotonic())
                await asyncio.sleep(0.01)
                limiter.correct(tokens, Reply("x", usage=Usage(300, 0, 300)))

        await asyncio.gather(*(caller() for _ in range(6)))
        return sent

    def work(number):
        with run.connected_grants() as (_, grants):
            return asyncio.run(send(grants))

    times = sorted(time for part in in_threads(work, 3) for time in part)
    # the first calls leave before the endpoint has counted anything
    assert 600 * most_in(times, 2.0) <= rate * 3 + 600 * 3 * 6
    assert 600 * len(times) >= 0.9 * rate * seconds


class SlotUse:
    """How many calls of all workers are in progress."""

    def __init__(self):
        self.now, self.most, self.made, self._line = 0, 0, {}, threading.Lock()

    def begin(self, who):
        with self._line:
            self.now += 1
            self.most = max(self.most, self.now)
            self.made[who] = self.made.get(who, 0) + 1

    def end(self):
        with self._line:
            self.now -= 1


async def hold_slots(grants, who, use, limit, seconds, crowd=6, is_over=lambda: False):
    limiter = RateLimiter(ModelLimits(concurrency=limit), "a", grants)
    ends = time.monotonic() + seconds

    async def caller():
        while time.monotonic() < ends and not is_over():
            async with limiter.slot(UNLIMITED):
                use.begin(who)
                await asyncio.sleep(0.01)
                use.end()

    try:
        await asyncio.wait_for(asyncio.gather(*(caller() for _ in range(crowd))), seconds + 5)
    finally:
        await limiter.close()


@pytest.mark.parametrize(("limit", "workers"), [(5, 3), (1, 3)])
def test_slots_are_shared_and_nobody_starves(run, monkeypatch, limit, workers):
    monkeypatch.setattr(grants_module, "TURN", 0.2)
    monkeypatch.setattr(shared_rates, "SHARE_EVERY", 0.1)
    use = SlotUse()

    def work(number):
        with run.connected_grants() as (worker, grants):
            time.sleep(0.3 * number)  # it joins later
            asyncio.run(hold_slots(grants, number, use, limit, 30, is_over=has_everybody_had_ten))
            run.set_state(worker, "left")

    def has_everybody_had_ten():
        return min(use.made.get(number, 0) for number in range(workers)) >= 10

    in_threads(work, workers)
    assert use.most == limit
    assert has_everybody_had_ten()


def test_the_slots_of_a_dead_worker_are_free_and_a_stop_ends_the_waiting(run, monkeypatch):
    monkeypatch.setattr(shared_rates, "SHARE_EVERY", 0.05)
    dead = run.add_worker()
    assert asyncio.run(run.grants(dead).share_slots("slots a", 2, 2, 0)).held == 2
    signal = StopSignal()

    class Stopping(type(UNLIMITED)):
        def check_running(self):
            signal.check()

    async def main():
        limiter = RateLimiter(ModelLimits(concurrency=2), "a", run.grants())
        slots = [limiter.slot(Stopping()) for _ in range(3)]
        waiting = [asyncio.create_task(each.__aenter__()) for each in slots]
        await asyncio.sleep(0.2)
        assert not any(each.done() for each in waiting)
        run.set_state(dead, "dead")
        await asyncio.sleep(0.3)
        assert [each.done() for each in waiting] == [True, True, False]
        signal.stop("enough")
        with pytest.raises(Halted, match="enough"):
            await asyncio.wait_for(waiting[2], 2)
        await limiter.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("model", "options", "own"),
    [
        ("bot/random", {}, True),
        ("embedded/smollm2", {}, True),
        ("vllm/x", {"base_url": "http://127.0.0.1:8000/v1"}, True),
        ("vllm/x", {"base_url": "http://localhost:8000/v1"}, True),
        ("vllm/x", {}, True),  # its default address
        ("vllm/x", {"base_url": "http://gpu7:8000/v1"}, False),
        ("http/http://[::1]:9/play", {}, True),
        ("http/http://10.0.0.7:9/play", {}, False),
        ("openai-compatible/x", {"base_url": "https://models.example/v1"}, False),
    ],
)
def test_a_model_on_the_machine_of_each_worker_has_limits_of_its_own(model, options, own):
    who = make_participant(model, {**options, "rpm": 60}, Task, "a")
    assert is_on_this_machine(who) is own
    placed = LimitedParticipant("a", who, ModelLimits(rpm=60), Progress(), grants=object())
    assert isinstance(placed.rate._requests, Bucket if own else shared_rates.SharedBucket)

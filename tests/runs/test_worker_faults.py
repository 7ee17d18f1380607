"""Workers that are killed, stopped or cut off, and a database that fails: the run is what one
process would have played, and only calls in flight at a kill are made twice."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from parley.audit.audit import audit_run
from parley.config.prepare import prepare_resume
from parley.options import from_keywords
from parley.runs.budget import find_spent
from parley.runs.start import resume_run
from parley.store import open_store, read_run
from parley.store.postgres.database_sharing import WorkerCounts, sum_counts
from parley.store.shared_runs import require_shared
from tests.endpoint import endpoint
from tests.forked import run_command
from tests.isolation import isolated
from tests.postgres_server import PostgresServer
from tests.runs.faulty_line import faulty_line
from tests.runs.shared import create, play_alone, prepare, record_of
from tests.runs.worker_nursery import wait_until, worker_nursery

MODELS = dict.fromkeys("abc", "openai-compatible/mock")
SEATS, ROUNDS, CONCURRENCY = 3, 2, 4
MOST_IN_FLIGHT = CONCURRENCY * SEATS  # calls of one worker
PLANS = {
    "fixed": {"repeats": 20},
    "stable": {"until_stable": True, "half_width": 5.0},
    "race": {"plan": "race", "half_width": 10.0, "max_blocks": 60},
}


class Stage:
    """A database, an endpoint that counts requests, and worker processes."""

    def __init__(self, server, url, counting, nursery, folder):
        self.server, self.url, self.counting = server, url, counting
        self.nursery, self._folder = nursery, folder
        self._alone = {}

    def prepare(self, **options):
        return prepare(**{"models": MODELS, "params": {"rounds": ROUNDS}, **options})

    def alone(self, **options):
        """What one process records, and how many requests it makes."""
        key = str(sorted(options.items()))
        if key not in self._alone:
            before = self.counting.arrived()
            ref = play_alone(self.prepare(**options), self._folder / f"alone-{len(self._alone)}")
            self._alone[key] = record_of(ref), self.counting.arrived() - before
        return self._alone[key]

    def begin(self, url="", limits=None, **options):
        """A run for workers. It is played alone first, because both use one endpoint, and without
        limits."""
        wanted, requests = self.alone(**options)
        prepared = self.prepare(**options, **(limits or {}))
        return RunUnderTest(self, create(prepared, url or self.url), wanted, requests)


class RunUnderTest:
    """A run that workers play; `wanted` and `calls`: what one process records, and its requests."""

    def __init__(self, stage, ref, wanted, calls):
        self.stage, self.ref, self.wanted, self.calls = stage, ref, dict(wanted), calls
        self.before = stage.counting.arrived()

    def start(self, *words, store=None, concurrency=CONCURRENCY, env=None, **settings):
        """Start a worker that plays this run."""
        words = self.ref.id, "--concurrency", concurrency, *words
        settings = {"lease": 4.0, **settings}
        return self.stage.nursery.start(store or self.ref.store, *words, env=env, **settings)

    @property
    def requests(self):
        return self.stage.counting.arrived() - self.before

    def ask(self, query):
        """One value of the database; {run} stands for the number of the run."""
        run = f"(SELECT run FROM parley.runs WHERE id = '{self.ref.id}')"
        with psycopg.connect(self.ref.store, autocommit=True) as connection:
            (found,) = connection.execute(query.format(run=run)).fetchone()
        return found

    @property
    def recorded(self):
        """How many replies are on record."""
        return self.ask("SELECT count(*) FROM parley.calls WHERE run = {run}")

    @property
    def states(self):
        """Of all workers, in the order in which they joined."""
        states = "SELECT array_agg(state ORDER BY worker) FROM parley.workers WHERE run = {run}"
        return self.ask(states) or []

    def wait_for_calls(self, number, *workers):
        wait_until(
            lambda: self.recorded >= number,
            describe=lambda: "\n".join(worker.said for worker in workers),
        )

    def check(self, kills=0):
        """The run is complete and as if one process had played it. At each kill, some calls were in
        flight."""
        found = record_of(self.ref)
        assert {key: found[key] for key in self.wanted} == self.wanted
        assert audit_run(self.ref).breaches == []
        assert self.recorded == self.calls
        assert self.calls <= self.requests <= self.calls + kills * MOST_IN_FLIGHT
        with read_run(self.ref) as reader:
            assert reader.info.state == "done"
            assert reader.info.digest
            assert reader.run.spent_at_most()[0] >= self.calls


@pytest.fixture(scope="module")
def stage(postgres_server, postgres_url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    with (
        endpoint(0.03) as counting,
        worker_nursery(folder) as nursery,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{counting.url}/v1")
        yield Stage(postgres_server, postgres_url, counting, nursery, folder)


@pytest.fixture(autouse=True)
def _no_worker_left(request):
    yield
    if "stage" in request.fixturenames:
        request.getfixturevalue("stage").nursery.end_all()


def kill_at_random(run, workers, kills, seed):
    """Kill workers at random while they play, and start others in their place."""
    rng, crew = random.Random(seed), [run.start(lease=2.0) for _ in range(workers)]
    for n in range(kills):
        run.wait_for_calls(run.calls * (n + rng.random()) / (kills + 1), *crew)
        killed = rng.randrange(workers)
        crew[killed].kill()
        crew[killed] = run.start(lease=2.0)
    return [worker.wait() for worker in crew]


def test_killed_workers(stage):
    run = stage.begin(**PLANS["fixed"])
    assert kill_at_random(run, workers=3, kills=3, seed=1) == [0, 0, 0]
    run.check(kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_twenty_kills_over_four_workers(stage, plan):
    options = {**PLANS[plan], "workers": 4} | ({"repeats": 200} if plan == "fixed" else {})
    run = stage.begin(**options)
    assert kill_at_random(run, workers=4, kills=20, seed=2) == [0, 0, 0, 0]
    run.check(kills=20)
    print(f"{plan}: {run.calls} calls, {run.requests - run.calls} made twice")


@pytest.mark.parametrize(
    "moment", ["in a commit", "", pytest.param("in a lease", marks=pytest.mark.slow)]
)
def test_a_stopped_worker_notices_that_it_was_replaced(stage, moment):
    run = stage.begin(**PLANS["fixed"], limits={"max_calls": 1000})
    settings = {"at": moment, "signum": signal.SIGSTOP} if moment else {}
    stopped = run.start(lease=1.5, **settings)
    if not moment:
        run.wait_for_calls(20, stopped)
        stopped.send(signal.SIGSTOP)
    wait_until(lambda: stopped.is_stopped)
    other = run.start(lease=1.5)
    wait_until(lambda: "dead" in run.states, describe=lambda: other.said)
    run.wait_for_calls(60, other)
    stopped.send(signal.SIGCONT)
    assert stopped.wait() == 0, stopped.said
    assert other.wait() == 0
    assert "was taken for dead; it joins again" in stopped.said
    run.check(kills=1)


@pytest.mark.parametrize(
    "moment", ["in a plan", pytest.param("after a plan", marks=pytest.mark.slow)]
)
def test_the_planner_dies_before_anybody_leases(stage, moment):
    run = stage.begin(**PLANS["fixed"])
    planner = run.start(lease=1.5, at=moment, signum=signal.SIGKILL)
    assert planner.wait() == -signal.SIGKILL
    assert run.ask("SELECT count(*) FROM parley.matches WHERE run = {run}") == 20
    assert run.start(lease=1.5).wait() == 0
    run.check()


def crash_database(stage, seconds):
    stage.server.crash()
    time.sleep(seconds)
    stage.server.start()


@pytest.mark.parametrize("plan", ["race", pytest.param("fixed", marks=pytest.mark.slow)])
def test_the_database_crashes(stage, plan):
    run = stage.begin(**PLANS[plan])
    workers = [run.start() for _ in range(2)]
    run.wait_for_calls(20, *workers)
    crash_database(stage, 1.0)
    assert [worker.wait() for worker in workers] == [0, 0], [w.said for w in workers]
    assert run.states == ["left", "left"]
    run.check()


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_the_database_is_away_for_longer_than_a_lease(stage, plan):
    run = stage.begin(**PLANS[plan], workers=4)
    workers = [run.start(lease=3.0) for _ in range(4)]
    for calls in (30, 60):
        run.wait_for_calls(calls, *workers)
        crash_database(stage, 6.0)
    assert [worker.wait() for worker in workers] == [0] * 4
    assert run.states == ["left"] * 4
    run.check()


@pytest.mark.parametrize(
    "word",
    [
        b"COPY calls",
        b"UPDATE matches m SET worker",
        pytest.param(b"state = 'left'", marks=pytest.mark.slow),
        pytest.param(b"SET digest", marks=pytest.mark.slow),
    ],
)
def test_the_answer_to_a_commit_is_lost(stage, word):
    run = stage.begin(**PLANS["fixed"])
    with faulty_line(stage.server) as line:
        line.lose_answer(word)
        store = stage.url.replace(str(stage.server.folder), str(line.folder))
        worker = run.start(store=store)
        assert worker.wait() == 0, worker.said
        assert line.lost == 1
    assert run.states == ["left"]
    run.check()


@isolated
def test_the_disk_of_the_database_is_full(stage):
    server = PostgresServer(small_disk=64_000_000)
    try:
        run = stage.begin(server.new_database("TABLESPACE small"), repeats=40)
        workers = [run.start(lease=2.0) for _ in range(2)]
        run.wait_for_calls(20, *workers)
        server.fill_disk()
        # another one may find room in the pages that it has
        wait_until(lambda: any("No space left" in worker.said for worker in workers))
        time.sleep(2.5)  # longer than a lease
        server.empty_disk()
        assert [worker.wait() for worker in workers] == [0, 0], [w.said for w in workers]
        assert run.states == ["left", "left"]
        run.check()
    finally:
        stage.nursery.end_all()
        server.close()


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_the_database_is_away(stage, times):
    run = stage.begin(**PLANS["fixed"])
    worker = run.start()
    run.wait_for_calls(20, worker)
    stage.server.crash()
    try:
        for n in range(times):
            wait_until(lambda n=n: worker.said.count("press Ctrl-C again") == n)
            worker.send(signal.SIGINT)
        wait_until(lambda: "press Ctrl-C again" in worker.said)
        if times == 2:
            assert worker.wait() == 130  # at once
        else:
            wait_until(lambda: "waiting for it" in worker.said)
            assert worker.code is None  # it holds replies that are not on record yet
    finally:
        stage.server.start()
    if times == 1:
        assert worker.wait() == 0
        assert run.recorded == run.requests
        assert run.states == ["left"]
    other = run.start(lease=1.5)
    assert other.wait() == 0
    run.check(kills=times - 1)


def test_a_database_that_does_not_answer_for_a_while_kills_nobody(stage):
    """All sessions stay open, but the leases lapse: who was out of touch declares nobody dead."""
    run = stage.begin(**PLANS["fixed"])
    workers = [run.start(lease=1.5) for _ in range(3)]
    run.wait_for_calls(20, *workers)
    database = run.ask("SELECT current_database()")
    hold = "BEGIN; LOCK TABLE parley.workers IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(3); COMMIT"
    stage.server.run(hold, database=database)
    assert [worker.wait() for worker in workers] == [0, 0, 0], [w.said for w in workers]
    assert run.states == ["left"] * 3
    run.check()


WRONG_KEY = {"OPENAI_COMPATIBLE_API_KEY": "wrong"}


def test_a_model_that_one_worker_cannot_reach(stage):
    run = stage.begin(**PLANS["fixed"])
    without = run.start(env=WRONG_KEY)
    assert without.wait() == 1
    assert "wrong key" in without.said
    returned = "SELECT count(*) FROM parley.matches WHERE run = {run} AND returns = 1"
    assert 0 < run.ask(returned) <= CONCURRENCY
    assert run.start().wait() == 0
    run.check()


def test_a_match_that_comes_back_for_the_third_time_fails(stage):
    run = stage.begin(**PLANS["fixed"])
    assert [run.start(env=WRONG_KEY).wait() for _ in range(3)] == [1, 1, 1]
    assert run.start().wait() == 0
    with read_run(run.ref) as reader:
        counts, info = reader.matches.counts(), reader.info
    assert 0 < counts["failed"] <= CONCURRENCY
    assert counts["done"] + counts["failed"] == 20
    assert (info.state, info.status) == ("stopped", "interrupted")
    assert "wrong key" in info.reason
    share_again(run)
    assert run.start().wait() == 0
    run.check()


def test_all_workers_with_a_wrong_key(stage, tmp_path):
    models = [word for alias, model in MODELS.items() for word in ("-m", f"{alias}={model}")]
    words = ["run", "public_goods", *models, "--repeats", 9, "--yes", "--store", stage.url]
    env = {**os.environ, **WRONG_KEY}
    found = run_command(*words, "--workers", 2, cwd=tmp_path, env=env)
    assert found.returncode == 3, found.stderr
    assert "wrong key" in found.stderr


def share_again(run, **limits):
    """Open a run that has stopped for workers again."""
    prepared = prepare_resume(run.ref, from_keywords(**limits))

    def find_before():
        with read_run(run.ref) as reader:
            return find_spent(prepared, reader)

    shared = require_shared(open_store(run.ref.store))
    assert shared.share(run.ref, prepared.config, find_before) == "shared"


def test_no_more_calls_than_allowed_although_workers_die(stage):
    run = stage.begin(**PLANS["fixed"], limits={"max_calls": 80})
    crew = [run.start(lease=1.5) for _ in range(3)]
    for n in (15, 30):
        run.wait_for_calls(n, *crew)
        crew.pop(0).kill()
        crew.append(run.start(lease=1.5))
    assert [worker.wait() for worker in crew] == [0, 0, 0]
    assert run.recorded <= run.requests <= 80
    with read_run(run.ref) as reader:
        assert (reader.info.state, reader.info.status) == ("stopped", "budget")
        assert "--max-calls" in reader.info.reason
        spent = reader.run.spent_at_most()[0]
    assert run.requests <= spent <= 80

    share_again(run, max_calls=spent + 40)
    first, second = (run.start(lease=1.5) for _ in range(2))
    run.wait_for_calls(run.recorded + 5, first)
    first.kill()
    assert second.wait() == 0
    with read_run(run.ref) as reader:
        assert run.requests <= reader.run.spent_at_most()[0] <= spent + 40
        spent = reader.run.spent_at_most()[0]

    before = run.requests
    asyncio.run(resume_run(prepare_resume(run.ref, from_keywords(max_calls=500)), run.ref))
    with read_run(run.ref) as reader:
        assert reader.run.spent_at_most()[0] == spent + run.requests - before
    run.check(kills=3)


def count_unanswered(run):
    with read_run(run.ref) as reader:
        return sum(sum(by_role.values()) for by_role in reader.run.unanswered().values())


def test_requests_without_an_answer_are_counted_over_all_sessions(stage):
    run = stage.begin(**PLANS["fixed"], limits={"max_calls": 60})
    stage.counting.lose(4)
    first, second = (run.start(lease=1.5) for _ in range(2))
    wait_until(lambda: count_unanswered(run) == 4, describe=lambda: first.said + second.said)
    first.kill()
    assert second.wait() == 0
    assert count_unanswered(run) == 4
    share_again(run, max_calls=110)
    stage.counting.lose(2)
    assert run.start(lease=1.5).wait() == 0
    assert stage.counting.left_to_lose() == 0
    assert count_unanswered(run) == 6
    stage.counting.lose(1)
    asyncio.run(resume_run(prepare_resume(run.ref, from_keywords(max_calls=500)), run.ref))
    assert count_unanswered(run) == 7
    run.check(kills=2)  # 7 requests got no answer, and made again
    with read_run(run.ref) as reader:
        assert run.requests <= reader.run.spent_at_most()[0]


REPLY_USD = 0.11  # 110 tokens


@pytest.fixture
def priced(tmp_path, monkeypatch):
    price = "{input: 1000, output: 1000}"  # USD per million tokens
    path = tmp_path / "prices.yaml"
    path.write_text("".join(f"{alias}: {price}\n" for alias in MODELS))
    monkeypatch.setenv("PARLEY_PRICES", str(path))


def test_no_more_money_than_allowed_although_workers_die(stage, priced):
    options = {"repeats": 20, "model_options": {alias: {"max_tokens": 20} for alias in MODELS}}
    run = stage.begin(**options, limits={"budget_usd": 9.0})
    crew = [run.start(lease=1.5) for _ in range(3)]
    run.wait_for_calls(10, *crew)
    crew.pop(0).kill()
    crew.append(run.start(lease=1.5))
    assert [worker.wait() for worker in crew] == [0, 0, 0]
    with read_run(run.ref) as reader:
        assert (reader.info.state, reader.info.status) == ("stopped", "budget")
        calls, usd = reader.run.spent_at_most()
    assert run.requests <= calls
    assert run.requests * REPLY_USD <= usd <= 9.0
    share_again(run, budget_usd=40.0)
    assert run.start(lease=1.5).wait() == 0
    run.check(kills=1)
    with read_run(run.ref) as reader:
        calls, usd = reader.run.spent_at_most()
    assert run.requests * REPLY_USD <= usd <= 40.0


RATE = 30.0  # requests a second, for all models together


def begin_limited(stage, repeats):
    limited = {alias: {"rpm": RATE / len(MODELS) * 60} for alias in MODELS}
    run = stage.begin(repeats=repeats, limits={"model_options": limited})
    del run.wanted["signature"]  # the rates are part of it
    return run


def arrivals(run):
    """When the requests of a run came, from its first one on."""
    return sorted(came for _, came, _ in run.stage.counting.log())[-run.requests :]


def test_no_higher_rate_than_allowed_although_workers_die(stage):
    run = begin_limited(stage, 25)
    crew = [run.start(lease=1.5, shares_loopback=True) for _ in range(3)]
    for n in (20, 60):
        run.wait_for_calls(n, *crew)
        crew.pop(0).kill()
        crew.append(run.start(lease=1.5, shares_loopback=True))
    assert [worker.wait() for worker in crew] == [0, 0, 0]
    run.check(kills=2)
    came = arrivals(run)
    # one second's worth more than the rate; a busy machine may deliver requests late
    allowed = [(b - a + 2.0) * RATE for a, b in zip(came, came[60:], strict=False)]
    assert min(allowed) >= 61


@pytest.mark.slow
def test_the_allowed_rate_is_used(stage):
    run = begin_limited(stage, 200)
    workers = [run.start(lease=4.0, shares_loopback=True) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    came = arrivals(run)
    steady = [at for at in came if came[0] + 2 < at < came[-1] - 2]
    used = (len(steady) - 1) / (steady[-1] - steady[0])
    print(f"{used:.2f} requests a second of {RATE:.0f}")
    assert 0.95 * RATE <= used <= RATE * 1.02


def test_what_a_dead_worker_has_not_saved_is_counted():
    run = WorkerCounts({"calls": 7, "usd": None}, {}, {}, 0, True)
    died = WorkerCounts({}, {}, {}, 100, False)
    left = WorkerCounts({"calls": 110, "usd": None}, {"a": {"player": 10}}, {}, 100, False)
    counted = WorkerCounts({"calls": None}, {}, {}, 50, False)  # among those of the run
    spent, unanswered, _ = sum_counts([run, died, left, counted])
    assert json.loads(spent) == {"calls": 217}
    assert json.loads(unanswered) == {"a": {"player": 10}}


@pytest.mark.slow
def test_the_command_that_follows_a_run_waits_for_the_database(stage, tmp_path):
    words = [sys.executable, "-m", "parley", "run", "public_goods"]
    words += [word for alias, model in MODELS.items() for word in ("-m", f"{alias}={model}")]
    words += ["--repeats", "60", "--yes", "--workers", "2", "--store", stage.url]
    before = stage.counting.arrived()
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as command:
        wait_until(lambda: stage.counting.arrived() > before + 60)
        crash_database(stage, 1.0)
        _, err = command.communicate(timeout=300)
    assert command.returncode == 0, err
    assert "the database is back" in err
    assert stage.counting.arrived() - before == 60 * 5 * SEATS

"""Workers that are killed, stopped or cut off, and a database that fails: the run is what one
process would have played, and only calls in flight at a kill are made twice."""

import random
import signal
import time

import pytest

from parley.audit.audit import audit_run
from parley.store import read_run
from tests.endpoint import endpoint
from tests.runs.faulty_line import faulty_line
from tests.runs.shared import create, play_alone, prepare, record_of
from tests.runs.worker_nursery import wait_until, worker_nursery

MODELS = dict.fromkeys("abc", "openai-compatible/mock")
SEATS, ROUNDS, CONCURRENCY = 3, 2, 4
MOST_IN_FLIGHT = CONCURRENCY * SEATS  # calls of one worker
PLANS = {
    "fixed": {"repeats": 30},
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
        return prepare(models=MODELS, params={"rounds": ROUNDS}, **options)

    def alone(self, **options):
        """What one process records, and how many requests it makes."""
        key = str(sorted(options.items()))
        if key not in self._alone:
            before = self.counting.arrived()
            ref = play_alone(self.prepare(**options), self._folder / f"alone-{len(self._alone)}")
            self._alone[key] = record_of(ref), self.counting.arrived() - before
        return self._alone[key]

    def begin(self, **options):
        """A run for workers. It is played alone first, because both use one endpoint."""
        wanted, requests = self.alone(**options)
        return RunUnderTest(self, create(self.prepare(**options), self.url), wanted, requests)


class RunUnderTest:
    """A run that workers play; `wanted` and `calls`: what one process records, and its requests."""

    def __init__(self, stage, ref, wanted, calls):
        self.stage, self.ref, self.wanted, self.calls = stage, ref, wanted, calls
        self.before = stage.counting.arrived()

    def start(self, *words, store=None, concurrency=CONCURRENCY, env=None, **settings):
        """Start a worker that plays this run."""
        words = self.ref.id, "--concurrency", concurrency, *words
        settings = {"lease": 4.0, **settings}
        return self.stage.nursery.start(store or self.stage.url, *words, env=env, **settings)

    @property
    def requests(self):
        return self.stage.counting.arrived() - self.before

    def ask(self, query):
        """One value of the database; {run} stands for the number of the run."""
        run = f"(SELECT run FROM parley.runs WHERE id = '{self.ref.id}')"
        database = self.stage.url.rpartition("?")[0].rpartition("/")[2]
        ((found,),) = self.stage.server.run(query.format(run=run), database=database)
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
        assert record_of(self.ref) == self.wanted
        assert audit_run(self.ref).breaches == []
        assert self.recorded == self.calls
        assert self.calls <= self.requests <= self.calls + kills * MOST_IN_FLIGHT
        with read_run(self.ref) as reader:
            assert reader.info.state == "done"
            assert reader.info.digest
            assert reader.spent_at_most()[0] >= self.calls


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
    rng, crew = random.Random(seed), [run.start() for _ in range(workers)]
    for n in range(kills):
        run.wait_for_calls(run.calls * (n + rng.random()) / (kills + 1), *crew)
        killed = rng.randrange(workers)
        crew[killed].kill()
        crew[killed] = run.start()
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


@pytest.mark.parametrize("moment", ["in a commit", "in a claim", ""])
def test_a_stopped_worker_notices_that_it_was_replaced(stage, moment):
    run = stage.begin(**PLANS["fixed"])
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


@pytest.mark.parametrize("moment", ["in a plan", "after a plan"])
def test_the_planner_dies_before_anybody_claims(stage, moment):
    run = stage.begin(**PLANS["fixed"])
    planner = run.start(lease=1.5, at=moment, signum=signal.SIGKILL)
    assert planner.wait() == -signal.SIGKILL
    assert run.ask("SELECT count(*) FROM parley.matches WHERE run = {run}") == 30
    assert run.start(lease=1.5).wait() == 0
    run.check()


def crash_database(stage, seconds):
    stage.server.crash()
    time.sleep(seconds)
    stage.server.start()


@pytest.mark.parametrize("plan", ["fixed", "race"])
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
    "word", [b"COPY calls", b"UPDATE matches m SET worker", b"state = 'left'", b"SET digest"]
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

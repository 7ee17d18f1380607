"""Workers play a run together as one process would, and leave nothing undone."""

import asyncio
from urllib.parse import urlsplit

import orjson
import psycopg
import pytest

from parley import __version__
from parley.audit.audit import audit_run
from parley.config.prepare import prepare_resume
from parley.errors import StoreError, UsageError
from parley.runs import worker
from parley.runs.progress import StopSignal
from parley.runs.shared_play import parse_workers
from parley.runs.start import resume_run
from parley.store import open_store, read_run
from parley.store.shared_runs import RunEnd, WorkerFacts, require_shared
from tests.cli.test_cli import parley as call_command
from tests.postgres_server import PostgresServer
from tests.runs.shared import BOTS, create, play_alone, prepare, record_of, serve, serve_together

PLANS = {
    "fixed": {"repeats": 20},
    "stable": {"until_stable": True, "half_width": 3.0},
    "race": {"plan": "race", "half_width": 8.0, "max_blocks": 200},
}


@pytest.mark.parametrize("plan", PLANS)
def test_workers_play_what_one_process_plays(postgres_url, tmp_path, plan):
    prepared = prepare(**PLANS[plan])
    ref = create(prepared, postgres_url)
    assert [outcome.fault for outcome in serve_together(ref)] == [""] * 3
    alone = play_alone(prepare(**PLANS[plan]), tmp_path)
    assert record_of(ref) == record_of(alone)
    assert audit_run(ref).breaches == []
    with read_run(ref) as reader:
        assert sum(row.ended for row in reader.snapshot.workers()) == sum(
            reader.matches.counts().values()
        )
        assert {row.state for row in reader.snapshot.workers()} == {"left"}


def test_a_run_with_a_memory_is_the_same_on_workers(postgres_url, tmp_path):
    given = {
        "task": "qa",
        "models": {"a": "bot/learner", "b": "bot/student"},
        "plan": "evolve",
        "items": 12,
        "evolve": {"stages": 2, "retriever": "bm25"},
    }
    ref = create(prepare(**given), postgres_url)
    serve_together(ref)
    assert record_of(ref) == record_of(play_alone(prepare(**given), tmp_path))
    assert audit_run(ref).breaches == []


def test_a_worker_that_leaves_gives_its_matches_back_and_others_finish(postgres_url, tmp_path):
    ref = create(prepare(repeats=100), postgres_url)
    listed = call_command("ls", "--store", postgres_url, cwd=tmp_path).out
    assert "stopped, no worker playing" in listed  # nobody has come yet

    async def leave_early():
        stop = StopSignal()
        first = asyncio.create_task(serve(ref, stop_signal=stop))
        while not await asyncio.to_thread(count_ended, ref):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        stop.stop("interrupted")
        assert (await first).fault == ""
        with read_run(ref) as reader:
            assert reader.matches.counts().get("running", 0) == 0
            assert reader.info.state == "stopped"  # nobody plays it
            assert reader.info.reason == "no worker plays this run"

    asyncio.run(leave_early())
    listed = call_command("ls", "--store", postgres_url, cwd=tmp_path).out
    assert "stopped, no worker playing" in listed
    shown = call_command("show", ref.id, "--store", postgres_url, cwd=tmp_path).out
    assert f"no worker plays this run; go on with `parley worker {ref.id}` on any machine" in shown
    serve_together(ref, 2)
    assert record_of(ref) == record_of(play_alone(prepare(repeats=100), tmp_path))


def count_ended(ref):
    with read_run(ref) as reader:
        return reader.matches.counts().get("done", 0)


def test_a_worker_that_is_stopped_before_it_begins_leaves_at_once(postgres_url):
    ref, stop = create(prepare(repeats=1), postgres_url), StopSignal()
    stop.stop("interrupted")
    assert asyncio.run(serve(ref, stop_signal=stop)).fault == ""  # and no coroutine is left over
    with read_run(ref) as reader:
        assert reader.matches.counts() == {}
        assert reader.snapshot.workers()[0].state == "left"


def test_a_worker_that_cannot_begin_frees_the_run(postgres_url, monkeypatch):
    ref = create(prepare(repeats=1), postgres_url)

    def fail(*given):
        raise UsageError("no")

    async def fail_and_play_alone():
        with monkeypatch.context() as patch:
            patch.setattr("parley.runs.worker.WorkerPlayer", fail)
            with pytest.raises(UsageError, match="no"):
                await serve(ref)
        await (await open_store(ref.store).open(ref)).close()  # nobody holds its lock

    asyncio.run(fail_and_play_alone())


def test_a_stopped_run_goes_on_with_workers_or_alone(postgres_url, tmp_path):
    whole = record_of(play_alone(prepare(repeats=30), tmp_path))
    ref = create(prepare(repeats=30, max_calls=100), postgres_url)
    serve_together(ref)
    with read_run(ref) as reader:
        assert (reader.info.state, reader.info.status) == ("stopped", "budget")
        assert reader.run.spent_at_most()[0] <= 100
        assert reader.info.digest
    limit = {"max_calls": 300}
    prepared = prepare_resume(ref, from_limits(limit))
    from parley.runs.budget import find_spent

    with read_run(ref) as reader:
        before = find_spent(prepared, reader)
    assert (
        require_shared(open_store(postgres_url)).share(ref, prepared.config, lambda: before)
        == "shared"
    )
    serve_together(ref)
    with read_run(ref) as reader:
        assert 100 < reader.calls.count() <= 300
    prepared = prepare_resume(ref, from_limits({"max_calls": 10_000}))
    asyncio.run(resume_run(prepared, ref))
    found = record_of(ref)
    assert {**found, "signature": ""} == {**whole, "signature": ""}
    audit = audit_run(ref)
    assert audit.breaches == []
    again = ["opened", "settings", "sealed"]
    with read_run(ref) as reader:
        assert [each.kind for each in reader.run.history()] == ["began", "sealed", *again, *again]
    assert [each["status"] for each in audit.earlier_seals] == ["budget", "budget"]


def test_models_that_were_swapped_in_a_run_of_workers_are_noticed(postgres_url):
    ref = create(prepare(repeats=4), postgres_url)
    serve_together(ref)
    assert audit_run(ref).breaches == []
    with psycopg.connect(postgres_url) as connection:
        (text,) = connection.execute(
            "SELECT config FROM parley.runs WHERE id = %s", (ref.id,)
        ).fetchone()
        config = orjson.loads(text)
        config["models"]["a"], config["models"]["b"] = config["models"]["b"], config["models"]["a"]
        connection.execute(
            "UPDATE parley.runs SET config = %s, digest = NULL, state = 'running' WHERE id = %s",
            (orjson.dumps(config).decode(), ref.id),
        )
    found = [each.detail for each in audit_run(ref).breaches]
    assert any("who is who" in said for said in found)
    assert any("its seal was removed" in said for said in found)
    shared, prepared = require_shared(open_store(postgres_url)), prepare_resume(ref)
    with pytest.raises(StoreError, match="was changed after it was recorded"):
        shared.share(ref, prepared.config, lambda: None)


def from_limits(limits):
    from parley.options import from_keywords

    return from_keywords(**limits)


def test_a_run_that_workers_play_is_not_played_alone(postgres_url):
    ref = create(prepare(repeats=2000), postgres_url)

    async def both():
        stop = StopSignal()
        first = asyncio.create_task(serve(ref, stop_signal=stop))
        await asyncio.sleep(0.5)
        with pytest.raises(StoreError, match="is being played by workers"):
            await resume_run(prepare_resume(ref), ref)
        config = prepare_resume(ref, from_limits({"max_calls": 70_000})).config
        shared = require_shared(open_store(postgres_url))
        with pytest.raises(UsageError, match="limits and endpoints cannot change"):
            shared.share(ref, config, lambda: None)
        with pytest.raises(UsageError, match="still running"):
            open_store(postgres_url).delete(ref)
        stop.stop("interrupted")
        await first

    asyncio.run(both())


def test_a_stop_from_anywhere_ends_all_workers(postgres_url, tmp_path):
    ref = create(prepare(repeats=3000), postgres_url)
    shared = require_shared(open_store(postgres_url))

    async def stop():
        workers = [asyncio.create_task(serve(ref)) for _ in range(3)]
        await asyncio.sleep(0.5)
        listed = await asyncio.to_thread(
            call_command, "ls", "--json", "--store", postgres_url, cwd=tmp_path
        )
        (facts,) = [each for each in listed.json if each["id"] == ref.id]
        assert (facts["state"], facts["workers"]) == (
            "running",
            {"alive": 3, "left": 0, "dead": 0},
        )
        end = RunEnd("stopped", "interrupted", "enough")
        await asyncio.to_thread(shared.ask_to_end, ref, end)
        await asyncio.gather(*workers)

    asyncio.run(stop())
    with read_run(ref) as reader:
        assert (reader.info.state, reader.info.reason) == ("stopped", "enough")
        assert reader.info.digest
    assert audit_run(ref).breaches == []
    with pytest.raises(UsageError, match="nothing to stop"):
        shared.ask_to_end(ref, RunEnd("stopped", "interrupted", "again"))


def test_a_worker_of_another_version_does_not_join(postgres_url):
    ref = create(prepare(), postgres_url)
    store = require_shared(open_store(postgres_url))

    async def join():
        await store.join(ref, WorkerFacts("h", 1, "0.0.1"), print)

    with pytest.raises(StoreError, match=f"is played with Parley {__version__}, but this is"):
        asyncio.run(join())


def test_two_planners_write_the_same_matches(postgres_url, tmp_path):
    """Plans are pure: if two workers plan at once, each match is there once."""
    prepared = prepare(repeats=25)
    ref = create(prepared, postgres_url)
    store = require_shared(open_store(postgres_url))

    async def plan_twice():
        facts = WorkerFacts("h", 1, __version__)
        sessions = [await store.join(ref, facts, print) for _ in range(2)]
        specs = list(prepared.plan.specs)
        await asyncio.gather(*(each.journal.add_matches(specs) for each in sessions))
        assert [await each.take_plan() for each in sessions] == [True, False]
        for each in sessions:
            await each.journal.close()
            await each.leave()
            await each.close()

    asyncio.run(plan_twice())
    serve_together(ref)
    assert record_of(ref) == record_of(play_alone(prepare(repeats=25), tmp_path))


def test_a_store_of_files_names_the_remedy_before_anything_is_written(tmp_path):
    words = ["run", "public_goods", *(w for a in BOTS for w in ("-m", f"{a}={BOTS[a]}"))]
    found = call_command(*words, "--workers", 2, cwd=tmp_path, code=2)
    assert "workers need a PostgreSQL store" in found.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("given", ["", "-1", "two", "ray:", "ray:0", "k8s:3", "1.5", "999999"])
def test_other_forms_of_workers_are_refused(given):
    with pytest.raises(UsageError, match="--workers must be a number, ray:N or slurm:N"):
        parse_workers(given)


def test_servers_of_workers_are_started_by_the_user():
    models, address = {"a": "vllm/./tiny", "b": "vllm/x"}, {"base_url": "http://x/v1"}
    with pytest.raises(UsageError, match=r"no server for a on workers.*set -M a.base_url=URL"):
        worker.refuse_on_workers(prepare(models=models, model_options={"b": address}))
    both = dict.fromkeys(models, address)
    worker.refuse_on_workers(prepare(models=models, model_options=both))


def test_people_and_functions_cannot_be_seated_on_workers(postgres_url, tmp_path):
    people = prepare(models={"me": "human/terminal", "b": "bot/random", "c": "bot/random"})
    with pytest.raises(UsageError, match="me cannot play on workers"):
        worker.refuse_on_workers(people)
    before = len(open_store(postgres_url).refs())
    words = ["run", "public_goods", "-m", "me=human/terminal", "-m", "bot/random"]
    found = call_command(*words, "--workers", 1, "--store", postgres_url, cwd=tmp_path, code=2)
    assert "cannot play on workers" in found.err
    assert len(open_store(postgres_url).refs()) == before


def test_what_workers_counted_moves_with_the_run(postgres_url, tmp_path):
    """Spending and unanswered requests are sums over workers, also in a copy of an open run."""
    ref = create(prepare(repeats=2), postgres_url)
    store = open_store(postgres_url)

    async def count_something():
        for number in (1, 2):
            session = await require_shared(store).join(ref, WorkerFacts("h", 1, __version__), print)
            await session.journal.set_spending(10 * number, None)
            await session.journal.set_unanswered({"a": {"players": number}})
            await session.journal.close()
            await session.leave()
            await session.close()

    asyncio.run(count_something())
    path = tmp_path / "copy.parley"
    store.export_run(ref, path, replace=False, tell=print)
    for each in (ref, open_store(tmp_path).find(str(path))):
        with read_run(each) as reader:
            assert reader.run.spent_at_most() == (30, None)
            assert reader.run.unanswered() == {"a": {"players": 3}}
    # a process that plays the run alone goes on from there, and workers after it as well
    asyncio.run(resume_run(prepare_resume(ref), ref))
    with read_run(ref) as reader:
        replies = reader.calls.count()
        assert reader.run.spent_at_most() == (30 + replies, None)
        assert reader.run.unanswered() == {"a": {"players": 3}}


def test_a_run_is_not_sealed_before_its_workers_are_back_after_a_restart_of_the_database():
    server = PostgresServer()  # it has just started, as after a crash
    try:
        url = server.new_database()
        ref, shared = create(prepare(repeats=1), url), require_shared(open_store(url))

        async def record_late():
            session = await shared.join(ref, WorkerFacts("h", 1, __version__), print)
            server.run(
                "UPDATE parley.workers SET until = clock_timestamp() - interval '1 minute'",
                database=urlsplit(url).path[1:],
            )
            shared.ask_to_end(ref, RunEnd("stopped", "interrupted", "enough"))
            assert shared.seal_shared(ref) == "busy"
            await session.journal.set_spending(7, None)  # what it holds is not lost
            await session.leave()
            await session.close()

        asyncio.run(record_late())
        assert shared.seal_shared(ref) == "sealed"
        with read_run(ref) as reader:
            assert reader.run.spent_at_most() == (7, None)
    finally:
        server.close()

"""Runs that move between stores: every row stays the same, and nothing half-written remains."""

import asyncio
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parley
from parley import Result
from parley.audit.audit import audit_run
from parley.config.task_catalogue import task_class
from parley.errors import StoreError, UsageError
from parley.match.match import Outcome
from parley.match.protocol import CallPlace, DeviceSetup, DeviceUse, Reply, Usage
from parley.match.record import RecordedCall
from parley.memory.feedback import PeopleVerdict
from parley.rules.pool import Message
from parley.store import find_run, open_store
from parley.store.batch_records import Batch, StoredRequest
from parley.store.sqlite import run_copy, schema
from parley.store.tables import RUN_TABLES
from parley.store.types import CopiedMatch
from tests.cli.test_cli import parley as call_command
from tests.endpoint import endpoint
from tests.forked import run_program
from tests.store.test_journal import SEAT, call, ended, spec
from tests.store.test_postgres import (
    BOTS,
    fresh_url,  # noqa: F401 - a fixture
    name_of,
    recorded,
    run_parley,
)
from tests.store.test_stores import EXPERIENCE, STRANGE, begin, fill, write

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("move_program.py")
RECORDED = ROOT / "tests" / "data" / "runs"


def quiet(how):
    """Progress that nobody reads."""


@pytest.fixture(scope="module")
def databases(postgres_server):
    return postgres_server.new_database(), postgres_server.new_database()


WAYS = ("folder to folder", "folder to postgres", "postgres to folder", "postgres to postgres")


@pytest.fixture(params=WAYS)
def stores(request, tmp_path):
    """Two stores, of each kind and in each order."""
    return [
        open_store(
            request.getfixturevalue("databases")[number]
            if kind == "postgres"
            else tmp_path / f"runs{number}"
        )
        for number, kind in enumerate(request.param.split(" to "))
    ]


@pytest.fixture(params=["folder", "postgres"])
def target(request, tmp_path):
    """A store to import into."""
    if request.param == "folder":
        return open_store(tmp_path / "target")
    return open_store(request.getfixturevalue("databases")[0])


def move(ref, store, path):
    """Move a run into a store through a file; the new run."""
    open_store(ref.store).export_run(ref, path, False, quiet)
    return store.import_run(path, quiet)


def rows_in(path):
    """All rows of a run file, by table, in the order of their keys."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        found = {}
        for table in sorted(names):
            order = RUN_TABLES[table].order if table in RUN_TABLES else "id"
            found[table] = connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
    return found


async def fill_more(journal):
    """What `fill` has not: a restarted match, devices, and batches at a provider."""
    await journal.add_matches([spec(n) for n in (11, 12, 13)])
    await journal.lease(spec(11)).append(call(content="dropped"))
    await journal.lease(spec(12)).append(call(content="kept"))
    await journal.restart(11)
    record = journal.lease(spec(13))
    setup = DeviceSetup("NVIDIA H200", "gpu", "engine", batch=4)
    timed = Reply(STRANGE, usage=Usage(2**62, None, 3), device=DeviceUse(setup, 0.1 + 0.2))
    await record.append(RecordedCall(1, SEAT, 0, b"", timed, 1e-300))
    record.circulate([Message(1, "tell", None, (SEAT,), STRANGE, 0)], 0)
    requests = [
        StoredRequest(n, CallPlace(13, n, SEAT.key, 0), b"\x00\xff", 0.5) for n in (1, 2, 3)
    ]
    await journal.add_batch(Batch(1, "uid", "a", "new", None, 3, 5.0), requests)
    await journal.set_batch(1, "sent", "batch-1")
    await journal.end_batch(1, [2])
    await journal.fail(13, "")


COPIED = CopiedMatch(
    spec(20),
    [call(content=STRANGE)],
    {(1, 0): (b"view", [1])},
    {SEAT: {"points": 0.5}},
    "before",
    [PeopleVerdict(20, SEAT, 1, 0, 0)],
)


def test_the_process_that_plays_a_run_does_not_move():
    staying = {(table.name, each.name) for table in RUN_TABLES.values() for each in table.columns}
    staying -= {(table.name, each.name) for table in RUN_TABLES.values() for each in table.moved}
    assert staying == {("runs", name) for name in ("owner", "token", "heartbeat", "heartbeats")}


def test_every_row_stays_the_same(stores, tmp_path):
    one, two = stores
    ref = write(
        one,
        fill_more,
        fill,
        items=[("i", b'{"id":"i"}')],
        transferred=[EXPERIENCE],
        copied=[COPIED],
    )
    there = move(ref, two, tmp_path / "first.parley")
    back = tmp_path / "back"
    two.export_run(there, tmp_path / "second.parley", False, quiet)
    first, second = rows_in(tmp_path / "first.parley"), rows_in(tmp_path / "second.parley")
    assert first == second
    assert all(first.values()), "a table without rows proves nothing"
    assert [row[0] for row in first["calls"]] == list(range(1, len(first["calls"]) + 1))
    with one.read(ref) as before, two.read(there) as after:
        assert list(after.snapshot.find_changes()) == []
        assert before.info.digest == after.info.digest
        assert list(before.whole_matches.read()) == list(after.whole_matches.read())
        assert before.run.spent_at_most() == after.run.spent_at_most()
        assert before.batches.open() == after.batches.open()
    assert not back.exists()
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".parley"}


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(
    "\x00\x01\x02\x03a", max_size=6
)
COUNTS = st.integers(0, 2**63 - 1)
FLOATS = st.floats(allow_nan=True)


@settings(max_examples=20)
@given(
    st.lists(st.tuples(TEXTS, TEXTS, COUNTS, FLOATS, st.binary(max_size=70)), max_size=4),
    TEXTS,
    FLOATS.map(lambda value: None if math.isnan(value) else value),
)
def test_any_value_survives_the_way_through_a_database(postgres_url, tmp_path_factory, rows, text,
                                                       number):  # fmt: skip
    folder = tmp_path_factory.mktemp("any")

    async def play(journal):
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        for round, (content, reasoning, tokens, latency, digest) in enumerate(rows, 1):
            reply = Reply(
                content,
                reasoning,
                "stop",
                Usage(tokens, None, tokens),
                text,
                text,
                text,
                text,
                latency,
                [text],
            )
            await record.append(RecordedCall(round, SEAT, 0, digest, reply, 1.5))
            await record.append_effect(round, 0, digest, {"value": content})
        record.circulate([Message(1, "tell", None, (SEAT,), text, 0)], 0)
        await journal.finish(1, Outcome("done", text, {SEAT: {"points": number}}, 1, [], []))
        await journal.set_state("done", "plan_complete", text)

    ref = write(open_store(folder / "runs"), play)
    store = open_store(postgres_url)
    there = move(ref, store, folder / "first.parley")
    store.export_run(there, folder / "second.parley", False, quiet)
    assert rows_in(folder / "first.parley") == rows_in(folder / "second.parley")
    with store.read(there) as reader:
        assert list(reader.snapshot.find_changes()) == []
    store.delete(there)


def test_a_finished_run_has_the_same_results_and_signature(stores, tmp_path):
    one, two = stores
    result = parley.run("public_goods", models=BOTS, repeats=3, store=one.name)
    there = move(result.ref, two, tmp_path / "run.parley")
    moved = Result(there, task=task_class("public_goods"))
    assert moved.data == result.data
    assert moved.table() == result.table()
    with one.read(result.ref) as before, two.read(there) as after:
        assert before.info.digest == after.info.digest != ""
        assert before.info.identity == after.info.identity
    for ref in (there, find_run(tmp_path / "run.parley")):
        found = audit_run(ref)
        assert found.breaches == []
        assert found.checked["replay"] == 3


@pytest.mark.parametrize("stores", ["folder to postgres", "postgres to folder"], indirect=True)
def test_an_unfinished_run_is_resumed_in_the_other_store_without_one_call_more(stores, tmp_path):
    """The run is killed. Calls in flight at the kill may be sent again; those on record are not."""
    one, two = stores
    others = one.refs()
    models = [word for name in BOTS for word in ("-m", f"{name}=openai-compatible/mock")]
    matches, rounds = 6, 5
    with endpoint(0.02) as server:
        environment = {"OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1"}
        options = ("--repeats", str(matches), "--concurrency", "2", "--store", one.name)
        with run_parley("run", "public_goods", *models, *options, **environment) as process:
            wait_for_replies(one, others, process, 20)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        in_flight = server.arrived() - len(server.log())
        ref = one.find("last")
        with one.read(ref) as reader:
            kept = recorded(reader)
        done = call_command(
            *("export", ref.id, "--to", "parley", "-o", "run.parley", "--store", one.name),
            cwd=tmp_path,
        )
        assert "stopped" in done.err
        done = call_command("import", "parley", "run.parley", "--store", two.name, cwd=tmp_path)
        assert ref.id in done.err
        before = server.arrived()
        with run_parley("resume", ref.id, "--store", two.name, **environment) as process:
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
        sent = server.arrived() - before
    there = two.find(ref.id)
    with two.read(there) as reader:
        final = recorded(reader)
    assert kept.items() <= final.items()
    assert len(final) == matches * rounds * len(BOTS)
    assert sent == len(final) - len(kept), in_flight
    found = audit_run(there)
    assert found.breaches == []
    assert found.checked["replay"] == matches


def wait_for_replies(store, others, process, wanted):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        for ref in set(store.refs()) - set(others):
            with store.read(ref) as reader:
                if reader.calls.count() >= wanted:
                    return
        time.sleep(0.02)
    raise AssertionError("the run has not begun")


def test_a_copy_of_a_run_that_is_played_is_an_interrupted_run(stores, tmp_path):
    one, two = stores

    async def main():
        journal = await begin(one)
        await journal.add_matches([spec(1), spec(2)])
        await journal.lease(spec(1)).append(call())
        await journal.finish(1, ended())
        record = journal.lease(spec(2))
        await record.append(call())
        await asyncio.to_thread(one.export_run, journal.ref, tmp_path / "a.parley", False, quiet)
        await record.append(call(2))  # the player goes on meanwhile
        await journal.set_state("stopped", "budget", "")
        await journal.close()
        there = two.import_run(tmp_path / "a.parley", quiet)
        with two.read(there) as reader:
            info = reader.info
            assert (info.state, info.status) == ("stopped", "interrupted")
            assert info.reason == "the run was being played when it was copied"
            assert info.digest
            assert reader.calls.of(2) == [call()]
            assert list(reader.snapshot.find_changes()) == []
        journal = await two.open(there)
        record = journal.lease(spec(2))
        assert record.call(1, SEAT, 0) == call()
        await record.append(call(2))
        await journal.finish(2, ended())
        await journal.set_state("done", "plan_complete", "")
        await journal.close()
        with two.read(there) as reader:
            assert reader.matches.counts() == {"done": 2}
            assert list(reader.snapshot.find_changes()) == []

    asyncio.run(main())


def test_a_file_that_is_being_played_can_be_imported(stores, tmp_path):
    _, two = stores

    async def main():
        journal = await begin(open_store(tmp_path / "live"))
        await journal.add_matches([spec(1)])
        await journal.lease(spec(1)).append(call())
        there = await asyncio.to_thread(two.import_run, Path(journal.ref.location), quiet)
        await journal.set_state("stopped", "budget", "")
        await journal.close()
        with two.read(there) as reader:
            assert (reader.info.state, reader.info.status) == ("stopped", "interrupted")
            assert list(reader.snapshot.find_changes()) == []

    asyncio.run(main())


def test_votes_of_people_on_conversations_move_and_are_not_counted_twice(stores, tmp_path):
    one, two = stores
    ref, secret = write(one, fill), os.urandom(16)
    with one.open_verdict_votes(ref) as votes:
        votes.record(ref.id, 1, SEAT, "Ann", "no")
        votes.record(ref.id, 1, SEAT, "ann", "yes")
        votes.record(ref.id, 2, SEAT, "Ben", "unsure")
        votes.invite(ref.id, "Ann", secret)
        wanted = votes.votes(ref.id)
    there = move(ref, two, tmp_path / "first.parley")
    assert two.read_verdict_votes(there, ref.id) == wanted
    with two.open_verdict_votes(there) as votes:
        assert votes.find_invitation(secret) is None  # a link is for the store that gave it
        votes.record(ref.id, 2, SEAT, "Ben", "yes")
    two.export_run(there, tmp_path / "second.parley", False, quiet)
    two.delete(there)  # votes are kept
    for path, standing in (("first.parley", "yes"), ("second.parley", "yes")):
        again = two.import_run(tmp_path / path, quiet)
        assert two.read_verdict_votes(again, ref.id)[2, SEAT] == {"Ben": standing}
        two.export_run(again, tmp_path / f"again-{path}", False, quiet)
        assert len(rows_in(tmp_path / f"again-{path}")["verdict_votes"]) == 4
        two.delete(again)
    one.delete(ref)
    again = one.import_run(tmp_path / "second.parley", quiet)
    assert one.read_verdict_votes(again, ref.id)[2, SEAT] == {"Ben": "yes"}
    if again.path:
        assert "verdict_votes" not in rows_in(again.path)


@pytest.fixture
def file(tmp_path):
    """The file of a finished run."""
    ref = write(open_store(tmp_path / "runs"), fill)
    shutil.move(ref.location, tmp_path / "run.parley")
    return tmp_path / "run.parley"


def change(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_run_that_the_store_has_is_not_imported_again(target, file):
    ref = target.import_run(file, quiet)
    with pytest.raises(UsageError, match=rf"already has the run {ref.id}: .*parley rm"):
        target.import_run(file, quiet)
    assert target.find_exact(ref.id) == ref


def test_a_changed_record_is_not_imported(target, file):
    before = target.refs()
    change(file, "UPDATE calls SET content = 'better' WHERE match = 2")
    with pytest.raises(StoreError, match="so the run is not imported: match 2: the calls") as wrong:
        target.import_run(file, quiet)
    assert str(file) in str(wrong.value)
    assert target.refs() == before


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"PRAGMA user_version = {schema.VERSION + 1}", "newer version of Parley"),
        ("PRAGMA application_id = 7", "is not a Parley run"),
        ("UPDATE runs SET id = '../escaped'", "not a plain name"),
        ("UPDATE runs SET id = ''", "not a plain name"),
        ("UPDATE runs SET id = 7", "so the run is not imported"),
        ("DELETE FROM runs", "contains no run"),
        ("CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls; END", "trigger 't'"),
        ("UPDATE runs SET config = CAST(x'80' AS TEXT)", "UTF-8"),
        ("UPDATE runs SET config = '{}'", "cannot be read"),
    ],
)
def test_what_is_not_a_sound_run_is_not_imported(target, file, statement, said):
    before = target.refs()
    change(file, statement)
    with pytest.raises(StoreError, match=said) as wrong:
        target.import_run(file, quiet)
    assert ".new" not in str(wrong.value)
    assert target.refs() == before
    assert [path.name for path in file.parent.rglob("*") if path.is_file()] == ["run.parley"]


def test_other_files_are_not_imported(target, tmp_path):
    for name, content, said in (
        ("text", b"hello" * 1000, "not a database"),
        ("empty", b"", "not a Parley run"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(StoreError, match=said):
            target.import_run(path, quiet)
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(StoreError, match="there is no file"):
            target.import_run(path, quiet)


@pytest.mark.parametrize("name", ["kieval", "killed", "word_guessing", "race"])
def test_a_recorded_run_moves(target, name, tmp_path):
    path = RECORDED / f"{name}.parley"
    ref = target.import_run(path, quiet)
    assert_same_run(find_run(path), ref)
    target.export_run(ref, tmp_path / "back.parley", False, quiet)
    assert_same_run(find_run(path), find_run(tmp_path / "back.parley"))
    target.delete(ref)


def assert_same_run(one, two):
    with open_store(one.store).read(one) as before, open_store(two.store).read(two) as after:
        assert list(before.whole_matches.read()) == list(after.whole_matches.read())
    assert Result(one).data == Result(two).data
    old, new = audit_run(one), audit_run(two)
    assert (old.breaches, old.checked, old.unchecked) == (new.breaches, new.checked, new.unchecked)


def test_an_existing_file_is_replaced_only_on_request(place, tmp_path):
    store, path = open_store(place), tmp_path / "run.parley"
    ref = write(store, fill)
    path.write_text("precious")
    with pytest.raises(UsageError, match=r"already exists: .*--force"):
        store.export_run(ref, path, False, quiet)
    assert path.read_text() == "precious"
    store.export_run(ref, path, True, quiet)
    assert find_run(path).path == path
    assert rows_in(path)["runs"][0][0] == ref.id
    with pytest.raises(UsageError, match="is a folder"):
        store.export_run(ref, tmp_path, True, quiet)
    with pytest.raises(StoreError, match="its folder does not exist"):
        store.export_run(ref, tmp_path / "no" / "run.parley", False, quiet)
    if ref.path:
        with pytest.raises(UsageError, match="is the file of this run"):
            store.export_run(ref, ref.path, True, quiet)
    # SQLite would take the log of the old file for that of the new one
    (tmp_path / "run.parley-wal").write_bytes(b"log")
    with pytest.raises(UsageError, match=r"run\.parley-wal belongs to a run"):
        store.export_run(ref, path, True, quiet)


def test_what_a_killed_export_left_is_replaced(place, tmp_path):
    store, path = open_store(place), tmp_path / "run.parley"
    ref = write(store, fill)
    (tmp_path / "run.parley.new").write_bytes(os.urandom(100_000))
    (tmp_path / "run.parley.new-journal").write_bytes(os.urandom(5000))
    store.export_run(ref, path, False, quiet)
    assert {each.name for each in tmp_path.iterdir()} - {"runs"} == {"run.parley"}
    assert audit_ok(path)


def audit_ok(path):
    with open_store().read(find_run(path)) as reader:
        return list(reader.snapshot.find_changes()) == []


@pytest.mark.parametrize("stores", ["folder to postgres", "postgres to folder"], indirect=True)
def test_a_killed_process_leaves_no_run_and_the_next_one_succeeds(stores, tmp_path):
    one, two = stores
    ref = write(one, fill)
    path = tmp_path / "run.parley"
    done = run_program(PROGRAM, one.name, "export", ref.id, path, "killed", cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    one.export_run(ref, path, False, quiet)
    done = run_program(PROGRAM, two.name, "import", "-", path, "killed", cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert two.find_exact(ref.id) is None
    there = two.import_run(path, quiet)
    assert list(tmp_path.rglob("*.new*")) == []
    with two.read(there) as reader:
        assert list(reader.snapshot.find_changes()) == []


def test_two_processes_do_not_write_the_same_file(place, tmp_path):
    store, path = open_store(place), tmp_path / "run.parley"
    ref = write(store, fill)
    program = (
        "import sys, fcntl, time; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, f"{path}.new"], stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        with pytest.raises(StoreError, match="another process is writing"):
            store.export_run(ref, path, False, quiet)
        other.kill()
    store.export_run(ref, path, False, quiet)
    assert audit_ok(path)


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(place, tmp_path):
    store, path = open_store(place), tmp_path / "run.parley"

    async def play(journal):
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        for round in range(1, 40):
            await record.append(call(round, content=os.urandom(10_000).hex()))
        await journal.set_state("stopped", "budget", "")

    ref = write(store, play)
    done = run_program(PROGRAM, place, "export", ref.id, path, "full", cwd=ROOT)
    assert f"{path} cannot be written: " in done.stdout, done.stderr
    assert {each.name for each in tmp_path.iterdir()} - {"runs"} == set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its cursor
def test_a_lost_connection_imports_nothing(postgres_server, fresh_url, file, monkeypatch):  # noqa: F811
    monkeypatch.setattr(run_copy, "ROWS_BETWEEN_REPORTS", 1)
    store = open_store(fresh_url)
    database = name_of(fresh_url)

    def cut(how):
        if how.startswith("copying calls"):
            postgres_server.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                f"WHERE datname = '{database}' AND pid != pg_backend_pid()",
                database=database,
            )

    with pytest.raises(StoreError, match="nothing was imported: import the run again"):
        store.import_run(file, cut)
    assert store.refs() == []
    ref = store.import_run(file, quiet)
    with pytest.raises(StoreError, match="cannot be read"):
        store.export_run(ref, file.with_name("out.parley"), False, cut)
    assert [path.name for path in file.parent.iterdir() if path.is_file()] == ["run.parley"]


def test_ctrl_c_leaves_nothing(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(run_copy, "ROWS_BETWEEN_REPORTS", 1)
    one, two = stores
    ref = write(one, fill)

    def interrupt(how):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one.export_run(ref, tmp_path / "run.parley", False, interrupt)
    assert not list(tmp_path.glob("run.parley*"))
    one.export_run(ref, tmp_path / "run.parley", False, quiet)
    with pytest.raises(KeyboardInterrupt):
        two.import_run(tmp_path / "run.parley", interrupt)
    assert two.find_exact(ref.id) is None
    assert not list(tmp_path.rglob("*.new"))


def test_the_command_moves_runs_and_names_what_it_needs(tmp_path):
    ref = write(open_store(tmp_path / "runs"), fill)
    done = call_command("export", "last", "--to", "parley", "-o", "x.parley", cwd=tmp_path)
    assert done.out == ""
    assert done.err == (
        f"parley: written to x.parley: {ref.id} 'Renamed': t, a; done, 3 matches played\n"
    )
    done = call_command("import", "parley", "x.parley", "--store", "other", cwd=tmp_path)
    assert done.err.startswith(f"parley: imported into other: {ref.id} ")
    done = call_command("import", "parley", "x.parley", "--store", "other", cwd=tmp_path, code=2)
    assert "already has the run" in done.err
    done = call_command("export", "last", "--to", "parley", "-o", "x.parley", cwd=tmp_path, code=2)
    assert "--force" in done.err
    call_command("export", "last", "--to", "parley", "-o", "x.parley", "--force", cwd=tmp_path)
    done = call_command("export", "last", "--to", "csv", "-o", "x.csv", cwd=tmp_path, code=2)
    assert "'csv' is not 'parley'" in done.err
    done = call_command("import", "lm-eval", "x.parley", cwd=tmp_path, code=2)
    assert "'lm-eval' is not 'parley'" in done.err


@pytest.mark.parametrize("given", ["postgresql://me@h/secret#run", "postgres:/me:secret@h/d"])
def test_an_address_instead_of_a_file_is_refused_without_repeating_it(tmp_path, given):
    write(open_store(tmp_path / "runs"), fill)
    for words in (("import", "parley", given), ("export", "last", "--to", "parley", "-o", given)):
        done = call_command(*words, cwd=tmp_path, code=2)
        assert "expected the path of a run file" in done.err
        assert "secret" not in done.out + done.err

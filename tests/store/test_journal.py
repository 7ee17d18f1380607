"""The journal: durable before used, once only, whole after faults, refused when it cannot be
trusted."""

import asyncio
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from parley.config.identity import metric_facts
from parley.errors import StoreError
from parley.match.match import Outcome
from parley.match.protocol import Reply
from parley.match.record import RecordedCall
from parley.plans import MatchSpec
from parley.rules.notes import WrittenNote
from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.store import find_run, open_store
from parley.store.config import Config
from parley.store.owner import (
    Owner,
    is_running,
    process_id,
    seems_alive,
    start_time_of,
)
from parley.store.sqlite import schema
from parley.store.sqlite.create import create_file
from parley.store.sqlite.filesystem import filesystem_type, is_network
from parley.store.sqlite.run_file import SqliteReader
from parley.store.sqlite.run_writer import END, ROWS, insert_rows, open_run_file
from parley.store.tables import CALLS
from parley.store.types import NewRun, StoredPart
from tests.clock import clock as clock

CONFIG = Config("t", {}, {"a": {"model": "bot/x"}}, ["a"])
POINTS = Metric("points", 0, 1, 0.1)
IDENTITY = {
    "task": "t",
    "version": 1,
    "rule": "",
    "prompts": {},
    "parley": "0",
    "python": "3",
    "json_repair": "0",
    "items": None,
    "texts": {},
    "roles": {"players": "contestant"},
    "seats": {"players": 1},
    "metrics": [metric_facts(POINTS)],
}
SEAT = Seat("players", 1)


def spec(number=1):
    return MatchSpec(number, "1", None, 1, 42, {SEAT: "a"})


def call(round=1, attempt=0, content="hello", **facts):
    return RecordedCall(round, SEAT, attempt, b"digest", Reply(content, **facts), 12.5)


def ended(state="done"):
    return Outcome(state, "", {SEAT: {"points": 1.0}}, 1, [], [])


async def fresh(path):
    create_file(path, NewRun("run-1", CONFIG, IDENTITY))
    return await open_run_file(path)


def test_what_append_returned_for_is_on_disk_when_the_process_is_killed(tmp_path):
    path = tmp_path / "r.parley"
    program = f"""
        import asyncio, sys
        from tests.store.test_journal import *
        async def main():
            journal = await fresh(Path({str(path)!r}))
            await journal.add_matches([spec()])
            record = journal.lease(spec(1))
            for n in range(1, 10_000):
                await record.append(call(n, content="x" * 200))
                print(n, flush=True)
        asyncio.run(main())
    """
    here = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=here,
    ) as child:
        for _ in range(50):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        acknowledged = max([50, *map(int, child.stdout.read().split())])
    with SqliteReader(path) as reader:
        kept = [c.round for c in reader.calls.of(1)]
        assert reader.info.state == "stopped"
    assert kept == list(range(1, len(kept) + 1))
    assert len(kept) >= acknowledged


def test_a_process_runs_only_as_the_same_process():
    host, pid = os.uname().nodename, os.getpid()
    assert is_running(Owner.of(process_id()))
    assert is_running(Owner.of(f"{host}:{pid}:{start_time_of(pid)}:place"))
    assert not is_running(Owner.of(f"{host}:{pid}:12345:place"))
    assert not is_running(Owner.of(f"{host}:999999999:1:place"))
    for none in ("", "nonsense", f"{host}:{pid}:{start_time_of(pid)}"):
        assert not is_running(Owner.of(none))


def test_a_process_of_another_machine_or_container_is_not_looked_for_here():
    here = Owner.of(process_id())
    assert here.is_near
    assert not here._replace(host="elsewhere").is_near
    assert not here._replace(place="another container with this host name").is_near


def test_a_killed_process_that_nobody_has_noticed_holds_nothing():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        owner = Owner.of(process_id())._replace(pid=str(child.pid), began=start_time_of(child.pid))
        assert seems_alive(owner, 0)
        child.kill()
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert not seems_alive(owner, time.time())


def elsewhere(path, **columns):
    """The run is played on another machine, as far as its file says."""
    with sqlite3.connect(path) as connection:
        for column, value in {"owner": "elsewhere:1:1:x", "token": "t", **columns}.items():
            connection.execute(f"UPDATE runs SET {column} = ?", (value,))
    connection.close()


@pytest.mark.parametrize("ahead", [-1e6, -120, 0, 120, 1e6])
def test_a_run_that_another_machine_plays_is_not_taken_over_however_clocks_differ(
    tmp_path, clock, ahead
):
    path = tmp_path / "r.parley"
    create_file(path, NewRun("run-1", CONFIG, IDENTITY))
    elsewhere(path, heartbeat=time.time() + ahead, heartbeats=7)

    async def beat():
        await asyncio.sleep(12)
        elsewhere(path, heartbeats=8)

    async def main():
        beating = asyncio.create_task(beat())
        began = clock.now
        with pytest.raises(StoreError, match="is already being played by process 1 on elsewhere"):
            await open_run_file(path)
        assert clock.now - began < 20
        await beating

    clock.run(main())


@pytest.mark.parametrize("ahead", [-1e6, 0, 1e6])
def test_a_run_whose_beats_stand_still_for_a_minute_is_taken_over(tmp_path, clock, ahead):
    path = tmp_path / "r.parley"
    create_file(path, NewRun("run-1", CONFIG, IDENTITY))
    elsewhere(path, heartbeat=time.time() + ahead, heartbeats=7)
    said = []

    async def main():
        began = clock.now
        journal = await open_run_file(path, said.append)
        assert 60 <= clock.now - began < 65
        await journal.heartbeat()
        await journal.close()

    clock.run(main())
    assert said == [
        "process 1 on elsewhere is still registered as playing this run; Parley waits 60 seconds "
        "for a sign of life, and then takes the run over"
    ]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT heartbeats FROM runs").fetchone() == (9,)
    connection.close()


def test_a_run_of_another_machine_is_shown_as_running_while_its_clock_says_so(tmp_path):
    path = tmp_path / "r.parley"
    create_file(path, NewRun("run-1", CONFIG, IDENTITY))
    elsewhere(path, heartbeat=time.time())
    with SqliteReader(path) as reader:
        assert reader.info.state == "running"
    elsewhere(path, heartbeat=time.time() - 1000)
    with SqliteReader(path) as reader:
        assert (reader.info.state, reader.info.status) == ("stopped", "interrupted")


def test_a_file_that_is_deleted_or_moved_stops_the_run_at_once(tmp_path):
    async def main(spoil):
        path = tmp_path / f"{spoil.__name__}.parley"
        journal = await fresh(path)
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        await record.append(call())
        spoil(path)
        with pytest.raises(StoreError, match="moved or deleted"):
            await record.append(call(2))
        await journal.close()

    def deleted(path):
        path.unlink()

    def moved(path):
        path.rename(path.with_suffix(".elsewhere"))

    asyncio.run(main(deleted))
    asyncio.run(main(moved))


def test_a_heartbeat_notices_that_the_run_was_taken_over(tmp_path):
    path = tmp_path / "r.parley"

    async def main():
        journal = await fresh(path)
        await journal.heartbeat()
        other = sqlite3.connect(path)
        other.execute("UPDATE runs SET token = 'another'")
        other.commit()
        other.close()
        with pytest.raises(StoreError, match="taken over this run"):
            await journal.heartbeat()
        with pytest.raises(StoreError, match="taken over this run"):
            await journal.set_state("done", "plan_complete", "")
        await journal.close()

    asyncio.run(main())


def test_a_full_disk_is_an_error_and_loses_nothing_that_was_acknowledged(tmp_path):
    """The file may not grow beyond a limit: writes fail as on a full disk."""
    path = tmp_path / "r.parley"
    program = (
        f"from tests.store.test_journal import *; print(asyncio.run(fill(Path({str(path)!r}))))"
    )
    here = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=here, capture_output=True, text=True, check=True
    )
    acknowledged = int(done.stdout)
    assert 1 <= acknowledged < 200
    with SqliteReader(path) as reader:
        assert len(reader.calls.of(1)) == acknowledged


async def fill(path):
    journal = await fresh(path)
    await journal.add_matches([spec()])
    record = journal.lease(spec(1))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    for n in range(1, 200):
        try:
            await record.append(call(n, content="x" * 20_000))
        except StoreError:
            return n - 1
    return 0


def test_a_new_file_gets_all_tables_in_one_transaction():
    connection, statements = sqlite3.connect(":memory:"), []
    connection.set_trace_callback(statements.append)
    schema.create_run_tables(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    assert sum("COMMIT" in statement for statement in statements) == 1
    connection.close()


def test_rows_of_one_commit_may_have_nulls_in_different_columns():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create_run_tables(connection)
    needed = {"round": 1, "seat": "a", "attempt": 0, "view_digest": b"view", "content": "hello"}
    needed |= {"finish": "stop", "at": 12.5, "digest": "d"}
    optional = [("reasoning", "thought"), ("model_served", "m"), ("tokens_in", 3), ("latency", 0.5)]
    rows = []
    for number in range(2 * ROWS + 3):  # three statements
        values = dict.fromkeys(CALLS.row.split(", ")) | needed | {"match": number}
        if number < ROWS or number == 2 * ROWS - 1:  # all rows of the first, one of the second
            values |= optional[number % len(optional) :][:1]
        rows.append(tuple(values.values()))
    insert_rows(connection, "calls", rows)
    query = f"SELECT {CALLS.row} FROM calls ORDER BY id"
    assert connection.execute(query).fetchall() == rows


def test_a_match_that_ends_is_found_by_its_number():
    """And not by a search through all running matches, which takes longer the more there are."""
    connection = sqlite3.connect(":memory:")
    schema.create_run_tables(connection)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {END}", ("[]",))]
    assert plan[0].startswith("SCAN e VIRTUAL TABLE")
    assert plan[1] == "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"
    connection.close()


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "r.parley"

    async def begin():
        await (await fresh(path)).close()

    asyncio.run(begin())
    for version, said in (
        (2, r"newer version of Parley \(schema version 2; this Parley reads version 1\): update"),
        (0, "is not a run that this Parley can read: its schema version is 0, not 1; give a file"),
    ):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        with pytest.raises(StoreError, match=said):
            SqliteReader(path)
        with pytest.raises(StoreError, match=said):
            asyncio.run(open_run_file(path))


@pytest.mark.parametrize(
    "content",
    [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5000],
    ids=["empty", "text", "torn"],
)
def test_what_is_no_run_is_refused(tmp_path, content):
    path = tmp_path / "r.parley"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"r\.parley"):
        SqliteReader(path)
    with pytest.raises(StoreError, match=r"r\.parley"):
        asyncio.run(open_run_file(path))


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        asyncio.run(fresh(tmp_path / "file" / "r.parley"))


def test_a_finished_run_can_be_copied_as_one_file_and_read_where_nothing_can_be_written(tmp_path):
    path = tmp_path / "r.parley"

    async def begin():
        await (await fresh(path)).close()

    asyncio.run(begin())
    elsewhere = tmp_path / "locked"
    elsewhere.mkdir()
    shutil.copy(path, elsewhere / "copy.parley")
    (elsewhere / "copy.parley").chmod(0o444)
    elsewhere.chmod(0o555)
    try:
        with SqliteReader(elsewhere / "copy.parley") as reader:
            assert reader.info.id == "run-1"
    finally:
        elsewhere.chmod(0o755)


def test_a_network_file_system_gets_a_rollback_journal_and_a_notice(tmp_path, monkeypatch):
    monkeypatch.setattr("parley.store.sqlite.run_writer.is_network", lambda path: True)

    async def main():
        journal = await fresh(tmp_path / "r.parley")
        with sqlite3.connect(tmp_path / "r.parley") as other:
            mode = other.execute("PRAGMA journal_mode").fetchone()
        other.close()
        await journal.close()
        return journal.notice, mode

    notice, mode = asyncio.run(main())
    assert "rollback journal" in notice
    assert mode == ("delete",)


def test_file_systems_are_told_by_the_longest_mount_point(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path}/my\\040shäre nfs4 rw 0 0\nodd\n")
    share = tmp_path / "my shäre"
    share.mkdir()
    assert filesystem_type(tmp_path / "r.parley", mounts) == "ext4"
    assert filesystem_type(share / "r.parley", mounts) == "nfs4"
    assert is_network(share / "deep" / "r.parley", mounts)
    assert not is_network(tmp_path, mounts)
    assert filesystem_type(tmp_path, tmp_path / "missing") == ""


def test_runs_are_found_by_path_id_or_beginning(tmp_path, monkeypatch):
    from parley.errors import UsageError

    for name in ("alpha-1", "alpha-2", "beta-1"):
        (tmp_path / f"{name}.parley").write_bytes(b"")
    store = open_store(tmp_path)
    assert store.find("alpha-1").location == str(tmp_path / "alpha-1.parley")
    assert store.find("bet").id == "beta-1"
    direct = find_run(tmp_path / "beta-1.parley", "/nowhere")
    assert direct == store.find("beta-1")
    assert {run.ref.id for run in store.runs()} == {"alpha-1", "alpha-2", "beta-1"}
    for wrong in ("alpha", "gamma", "missing.parley"):
        with pytest.raises(UsageError):
            store.find(wrong)
    monkeypatch.setenv("PARLEY_STORE", str(tmp_path))
    assert open_store().find("bet") == direct
    assert open_store("x").check().location == "x"
    assert open_store(direct.store).find("bet") == direct
    with pytest.raises(UsageError, match="folder"):
        open_store("mysql://host/db")


def played(path):
    """Two blocks, one of which is not finished."""

    async def main():
        journal = await fresh(path)
        specs = [MatchSpec(n, str((n + 1) // 2), None, 1, 42, {SEAT: "a"}) for n in range(1, 5)]
        await journal.add_matches(specs)
        for number in (1, 2, 3):
            record = journal.lease(specs[number - 1])
            await record.append(call())
            notes = [
                WrittenNote(1, {"free": number}),
                WrittenNote(2, {"fact": number}, "test.note"),
            ]
            scores = {SEAT: {"points": None if number == 2 else 0.5}}
            await journal.finish(number, Outcome("done", "", scores, 1, [], notes))
        await journal.keep_parts([StoredPart("old", "1", "{}", "{}", "[]")])
        await journal.keep_parts([StoredPart("new", "1", "{}", '{"a": 1}', "[]")])
        await journal.set_state("done", "plan_complete", "")
        await journal.close()

    asyncio.run(main())
    return path


MESSAGES = "INSERT INTO rounds (digest, match, first, messages) VALUES ('d', 1, 0,"
DAMAGES = {
    "seats that nobody has": 'UPDATE matches SET seats = \'{"judges.1": "a"}\'',
    "a seat that is none": 'UPDATE matches SET seats = \'{"players.x": "a"}\'',
    "a model that is none": 'UPDATE matches SET seats = \'{"players.1": "z"}\'',
    "unscored seats that are none": "UPDATE matches SET unscored = '{}'",
    "a block that is no text": "UPDATE matches SET block = x'00'",
    "rounds that are no number": "UPDATE matches SET rounds = 'many'",
    "a score of another seat": "UPDATE scores SET seat = 'players.7'",
    "a score that is no number": "UPDATE scores SET value = 'much'",
    "a score out of range": "UPDATE scores SET value = 7",
    "a score of no metric": "UPDATE scores SET metric = 'charm'",
    "notes that are no object": "UPDATE notes SET facts = '[1]'",
    "notes that are no JSON": "UPDATE notes SET facts = '{'",
    "a call of nobody": "UPDATE calls SET seat = 'ghost'",
    "a call without words": "UPDATE calls SET content = x'00'",
    "parts that are none": "UPDATE calls SET parts = '[{\"x\": 1}]'",
    "names that are no JSON": "UPDATE calls SET masked = 'x'",
    "a name beyond the text": """UPDATE calls SET masked = '[[0, 9999999, "GPT", []]]'""",
    "a name that ends before it begins": """UPDATE calls SET masked = '[[2, 1, "GPT", []]]'""",
    "a name at half a letter": """UPDATE calls SET masked = '[[0.5, 1, "GPT", []]]'""",
    "a name at a number too large": (f"""UPDATE calls SET masked = '[[0, {10**30}, "GPT", []]]'"""),
    "tokens that are no number": "UPDATE calls SET tokens_in = 'many'",
    "messages that are none": f"{MESSAGES} '[[1, 2]]')",
    "a message to nobody": f"""{MESSAGES} '[[1, "tell", null, ["ghost"], "x", 0]]')""",
    "prices without rates": (
        'UPDATE runs SET prices = \'[{"alias": "a", "rates": [], "source": "x"}]\''
    ),
    "spending that is none": "UPDATE runs SET spent = '[]'",
    "unanswered requests that are none": "UPDATE runs SET unanswered = '{\"a\": 1}'",
    "metrics without a range": (
        "UPDATE runs SET identity = json_remove(identity, '$.metrics[0].low')"
    ),
    "an identity without roles": "UPDATE runs SET identity = json_remove(identity, '$.roles')",
    "a contestant without a model": (
        "UPDATE runs SET config = json_set(config, '$.models', json('{}'))"
    ),
    "a seed that is no number": "UPDATE runs SET config = json_set(config, '$.seed', 'x')",
    "a time that is none": "UPDATE runs SET created = 1e30",
    "a time before all": "UPDATE runs SET created = -1e30",
    "a configuration of many levels": (
        "UPDATE runs SET config = json_set(config, '$.params.x', json('%s'))"
        % ("[" * 900 + "]" * 900)
    ),
    "an identity of many levels": (
        "UPDATE runs SET identity = json_set(identity, '$.x', json('%s'))" % ("[" * 900 + "]" * 900)
    ),
    "judges that are nobody": (
        """UPDATE runs SET config = json_set(config, '$.rejudged',
        json('{"run": "x", "roles": ["judge"], "before": {}, "names": []}'))"""
    ),
    "an item without its id": "INSERT INTO items VALUES ('i', 0, '{}')",
}


def read_all(path):
    with SqliteReader(path) as reader:
        for read in (
            reader.run.items,
            reader.run.prices,
            reader.run.spent_at_most,
            reader.run.unanswered,
        ):
            read()
        for match in reader.matches.read():
            reader.messages.of(match.number)
            reader.scores.of(match.number)
        for read in (reader.scores.read, reader.notes.read, reader.usage.by_model):
            list(read())


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_refused_where_it_is_read(tmp_path, damage):
    path = played(tmp_path / "r.parley")
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(StoreError, match=r"r\.parley"):
        read_all(path)


def test_a_query_without_an_end_is_broken_off(tmp_path, monkeypatch):
    """Every call is looked for among all seats of its match: here a million times."""
    monkeypatch.setattr("parley.store.sqlite.run_file.STEPS", 1_000_000)
    monkeypatch.setattr("parley.store.sqlite.run_file.STEPS_PER_BYTE", 1)
    path = played(tmp_path / "r.parley")
    with sqlite3.connect(path) as connection:
        seats = {f"players.{number}": "a" for number in range(1, 1001)}
        connection.execute("UPDATE matches SET seats = ?", (json.dumps(seats),))
        names = [row[1] for row in connection.execute("PRAGMA table_info(calls)")]
        rest = ", ".join(name for name in names if name not in ("id", "seat"))
        connection.execute(
            f"""WITH RECURSIVE n(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
            INSERT INTO calls (seat, {rest}) SELECT 'players.' || x, {rest}
            FROM n, (SELECT * FROM calls LIMIT 1)"""
        )
    connection.close()
    with pytest.raises(StoreError, match=r"r\.parley cannot be read: a query took more than"):
        read_all(path)


def test_a_virtual_table_is_none_of_ours(tmp_path):
    path = played(tmp_path / "r.parley")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE scores")
        connection.execute(
            "CREATE VIRTUAL TABLE scores USING rtree(match, seat, metric, judge, value)"
        )
    connection.close()
    with pytest.raises(StoreError, match="table 'scores', which Parley did not create"):
        read_all(path)


def test_what_is_not_damaged_is_read(tmp_path):
    read_all(played(tmp_path / "r.parley"))


def test_an_error_in_an_analysis_is_no_damaged_file(tmp_path):
    with pytest.raises(KeyError), SqliteReader(played(tmp_path / "r.parley")) as reader:
        reader.info.config.params["no such parameter"]


def test_a_configuration_that_is_no_text_is_a_store_error(tmp_path):
    path = played(tmp_path / "r.parley")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET config = CAST(x'80' AS TEXT)")
    connection.close()
    with pytest.raises(StoreError, match=r"r\.parley cannot be read: .*UTF-8"):
        SqliteReader(path)


def test_a_store_that_cannot_be_read_is_not_empty(tmp_path, monkeypatch):
    assert open_store(tmp_path / "new").refs() == []  # the first run creates it
    place = tmp_path / "runs"
    place.mkdir()
    store = open_store(place)
    assert store.refs() == []
    place.rmdir()
    with pytest.raises(StoreError, match="is gone: the folder was moved, deleted or unmounted"):
        store.refs()
    place.write_text("")
    with pytest.raises(StoreError, match="must be a folder, but it is a file"):
        store.refs()

    def refuse(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("parley.store.sqlite.folder.os.listdir", refuse)
    with pytest.raises(StoreError, match=r"runs cannot be read: Permission denied"):
        store.refs()

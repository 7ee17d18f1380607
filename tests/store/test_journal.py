"""The journal: durable before used, once only, whole after faults, refused when it cannot be
trusted."""

import asyncio
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

from parley.audit.audit import audit
from parley.config.prepare import prepare_resume
from parley.errors import ReplayError, StoreError
from parley.match.match import Outcome
from parley.match.protocol import Reply, Usage
from parley.match.record import RecordedCall
from parley.plans import MatchSpec
from parley.results.result import Result
from parley.rules.pool import Part, Seat
from parley.runs import player as runs
from parley.store.sqlite import schema
from parley.store.sqlite.filesystem import is_network, kind_of
from parley.store.sqlite.folder import files, find, folder
from parley.store.sqlite.owner import lives, started
from parley.store.sqlite.reader import SqliteReader
from parley.store.sqlite.writer import SqliteJournal

CONFIG = b'{"task": "t", "params": {}, "models": {"a": {"model": "bot/x"}}, "contestants": ["a"]}'
IDENTITY = (
    b'{"task": "t", "version": 1, "rule": "", "prompts": {}, "parley": "0", "texts": {}, '
    b'"roles": {"players": "contestant"}, "seats": {"players": 1}, "metrics": [{"name": "points", '
    b'"low": 0, "high": 1, "epsilon": 0.1, "unit": "", "better": "higher", "success": null, '
    b'"roles": []}]}'
)
SEAT = Seat("players", 1)


def spec(number=1):
    return MatchSpec(number, "1", None, 1, 42, {SEAT: "a"})


def call(round=1, attempt=0, content="hello", **facts):
    return RecordedCall(round, SEAT, attempt, b"digest", Reply(content, **facts), 12.5)


def ended(state="done"):
    return Outcome(state, "", {SEAT: {"points": 1.0}}, 1, [], [])


async def fresh(path):
    return await SqliteJournal.create(path, "run-1", CONFIG, IDENTITY)


def test_a_call_reads_back_as_it_was_written(tmp_path):
    path = tmp_path / "r.parley"
    full = call(
        content=(Part("text", "a"), Part("text", "b")),
        reasoning="hm",
        finish="length",
        usage=Usage(1, 2, 3, 4),
        model="m-1",
        latency=0.5,
        carry={"id": [1]},
        sent="ab",
    )

    async def main():
        journal = await fresh(path)
        await journal.plan([spec()])
        record = journal.claim(1)
        await record.append(full)
        await record.append(call(2))
        await journal.close()

    asyncio.run(main())
    with SqliteReader(path) as reader:
        assert reader.calls(1) == [full, call(2)]
        assert [c for _, _, c in reader.calls_since(1)] == [call(2)]
    assert not Path(f"{path}-wal").exists()


def test_what_append_returned_for_is_on_disk_when_the_process_is_killed(tmp_path):
    path = tmp_path / "r.parley"
    program = f"""
        import asyncio, sys
        from tests.store.test_journal import *
        async def main():
            journal = await fresh(Path({str(path)!r}))
            await journal.plan([spec()])
            record = journal.claim(1)
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
        kept = [c.round for c in reader.calls(1)]
        assert reader.info.state == "stopped"
    assert kept == list(range(1, len(kept) + 1))
    assert len(kept) >= acknowledged


def test_many_waiting_appends_share_commits(tmp_path):
    async def main():
        journal = await fresh(tmp_path / "r.parley")
        await journal.plan([spec(n) for n in range(1, 301)])
        before = journal.commits
        await asyncio.gather(*(journal.claim(n).append(call()) for n in range(1, 301)))
        await journal.close()
        return journal.commits - before

    assert asyncio.run(main()) < 30


def test_a_match_ends_once(tmp_path):
    async def main():
        journal = await fresh(tmp_path / "r.parley")
        await journal.plan([spec()])
        journal.claim(1)
        await journal.finish(1, ended())
        with pytest.raises(StoreError, match=r"ended before|UNIQUE"):
            await journal.finish(1, ended())
        await journal.close()

    asyncio.run(main())


def test_a_call_is_recorded_once_and_a_journal_that_failed_takes_nothing_more(tmp_path):
    """A record with a hole in it would be worse than none: also what nobody waits for may not be
    lost unseen."""

    async def main():
        journal = await fresh(tmp_path / "r.parley")
        await journal.plan([spec(1), spec(2)])
        record = journal.claim(1)
        await record.append(call())
        journal.add_call(1, call())  # nobody waits for this one
        journal.claim(2)
        with pytest.raises(StoreError, match="UNIQUE"):
            await record.append(call(2))
        with pytest.raises(StoreError, match="UNIQUE"):
            await journal.finish(1, ended())
        await journal.close()

    asyncio.run(main())
    with SqliteReader(tmp_path / "r.parley") as reader:
        assert reader.calls(1) == [call()]


def test_an_unfinished_match_comes_back_with_what_is_on_record(tmp_path):
    path = tmp_path / "r.parley"

    async def main():
        journal = await fresh(path)
        await journal.plan([spec(1), spec(2)])
        record = journal.claim(1)
        await record.append(call())
        await record.append_effect(1, 0, b"saw", {"value": 3})
        await journal.close()
        journal = await SqliteJournal.open(path)
        record = journal.claim(1)
        assert record.call(1, SEAT, 0) == call()
        assert record.call(2, SEAT, 0) is None
        assert record.effect(1, 0) == (b"saw", {"value": 3})
        assert journal.claim(2).call(1, SEAT, 0) is None
        await journal.close()

    asyncio.run(main())


def test_a_run_that_is_being_played_cannot_be_played_by_another_process(tmp_path):
    path = tmp_path / "r.parley"

    async def main():
        journal = await fresh(path)
        with pytest.raises(StoreError, match="is being played"):
            await SqliteJournal.open(path)
        await journal.close()
        await (await SqliteJournal.open(path)).close()

    asyncio.run(main())


def test_an_owner_is_alive_only_as_the_same_process():
    me = f"{os.uname().nodename}:{os.getpid()}:{started(os.getpid())}"
    assert lives(me, 0)
    assert not lives(f"{os.uname().nodename}:{os.getpid()}:12345", time.time())
    assert not lives(f"{os.uname().nodename}:999999999:1", time.time())
    assert lives("elsewhere:1:1", time.time() - 5)
    assert not lives("elsewhere:1:1", time.time() - 3600)


def test_a_killed_process_that_nobody_has_noticed_holds_nothing():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        began = started(child.pid)
        owner = f"{os.uname().nodename}:{child.pid}:{began}"
        assert lives(owner, 0)
        child.kill()
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert not lives(owner, time.time())
    assert not lives("nonsense", 0)
    assert not lives("elsewhere:1:1", time.time() + 1e9)


def test_a_file_that_is_deleted_or_moved_stops_the_run_at_once(tmp_path):
    async def main(spoil):
        path = tmp_path / f"{spoil.__name__}.parley"
        journal = await fresh(path)
        await journal.plan([spec()])
        record = journal.claim(1)
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
        with pytest.raises(StoreError, match="taken this run over"):
            await journal.heartbeat()
        with pytest.raises(StoreError, match="taken this run over"):
            await journal.end("done", "plan_complete", "")
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
        assert len(reader.calls(1)) == acknowledged


async def fill(path):
    journal = await fresh(path)
    await journal.plan([spec()])
    record = journal.claim(1)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    for n in range(1, 200):
        try:
            await record.append(call(n, content="x" * 20_000))
        except StoreError:
            return n - 1
    return 0


def test_the_schema_is_brought_up_to_date_step_by_step(tmp_path, monkeypatch):
    path = tmp_path / "r.parley"

    async def begin():
        await (await fresh(path)).close()

    asyncio.run(begin())
    newer = [*schema.MIGRATIONS, "ALTER TABLE runs ADD COLUMN mood TEXT;"]
    monkeypatch.setattr(schema, "MIGRATIONS", newer)
    monkeypatch.setattr(schema, "VERSION", len(newer))
    monkeypatch.setattr("parley.store.sqlite.reader.VERSION", len(newer))
    with SqliteReader(path) as reader:  # an older file is read from a copy, and stays as it is
        assert reader.info.id == "run-1"
        assert list(reader._rows("SELECT mood FROM runs")) == [(None,)]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(newer) - 1,)
    connection.close()

    async def again():
        await (await SqliteJournal.open(path)).close()

    asyncio.run(again())
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
        assert connection.execute("SELECT mood FROM runs").fetchone() == (None,)
    connection.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "r.parley"

    async def begin():
        await (await fresh(path)).close()

    asyncio.run(begin())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer Parley"):
        SqliteReader(path)
    with pytest.raises(StoreError, match="newer Parley"):
        asyncio.run(SqliteJournal.open(path))


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
        asyncio.run(SqliteJournal.open(path))


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
    monkeypatch.setattr("parley.store.sqlite.rows.is_network", lambda path: True)

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
    assert kind_of(tmp_path / "r.parley", mounts) == "ext4"
    assert kind_of(share / "r.parley", mounts) == "nfs4"
    assert is_network(share / "deep" / "r.parley", mounts)
    assert not is_network(tmp_path, mounts)
    assert kind_of(tmp_path, tmp_path / "missing") == ""


def test_runs_are_found_by_path_id_or_beginning(tmp_path, monkeypatch):
    from parley.errors import UsageError

    for name in ("alpha-1", "alpha-2", "beta-1"):
        (tmp_path / f"{name}.parley").write_bytes(b"")
    assert find("alpha-1", tmp_path).name == "alpha-1.parley"
    assert find("bet", tmp_path).name == "beta-1.parley"
    assert find(str(tmp_path / "beta-1.parley"), Path("/nowhere")) == tmp_path / "beta-1.parley"
    assert len(files(tmp_path)) == 3
    for wrong in ("alpha", "gamma", "missing.parley"):
        with pytest.raises(UsageError):
            find(wrong, tmp_path)
    monkeypatch.setenv("PARLEY_STORE", str(tmp_path))
    assert folder() == tmp_path
    assert folder("x") == Path("x")
    with pytest.raises(UsageError, match="folder"):
        folder("postgresql://host/db")


def test_a_run_of_the_first_version_is_shown_audited_and_resumed(tmp_path):
    """Recorded before matches had idle seats, and before digests of rules had a scheme."""
    path = tmp_path / "old.parley"
    shutil.copy(Path(__file__).parents[1] / "data" / "version_1.parley", path)
    before = path.read_bytes()
    shown = Result(path).data
    assert [row["blocks"] for row in shown["results"]] == [3, 3]
    assert audit(path).breaches == []
    assert path.read_bytes() == before
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET state = 'stopped'")
    connection.close()
    prepared = prepare_resume(path)
    with pytest.raises(ReplayError, match="recorded the rule of public_goods in another way"):
        asyncio.run(runs.go_on(prepared, path))
    with sqlite3.connect(path) as connection:  # the rule is known to be the same
        connection.execute(
            "UPDATE runs SET identity = json_set(identity, '$.rule', ?)",
            [prepared.identity["rule"]],
        )
    connection.close()
    asyncio.run(runs.go_on(prepared, path))
    assert Result(path).data["results"] == shown["results"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    connection.close()

"""PostgreSQL as a store: bad addresses, secrets, tables, killed processes, a crashed server."""

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

import parley
from parley.audit.audit import audit_run
from parley.cli import COMMANDS
from parley.errors import StoreError, UsageError
from parley.rules.pool import Message, Seat
from parley.store import find_run, open_store
from parley.store.postgres import connections, database_tables
from parley.store.postgres.addresses import parse_address, secrets_in, split_address
from parley.store.postgres.connections import escape, unescape
from parley.store.sqlite import schema
from parley.store.types import NewRun
from tests.cli.test_cli import parley as call_command
from tests.endpoint import endpoint
from tests.store.test_journal import CONFIG, IDENTITY, SEAT, call, ended, spec

BOTS = dict.fromkeys(("a", "b", "c"), "bot/random")
ROOT = Path(__file__).parents[2]
THREE_BOTS = [word for name in BOTS for word in ("-m", f"{name}=bot/random")]
PASSWORD = "pl/anted#p@ss?w:rd"


def run_parley(*words, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "parley", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def invoke(*words):
    """The code of a command and everything that it prints."""
    found = call_command(*words, cwd=os.getcwd(), code=None)
    return found.code, found.out + found.err


@pytest.fixture
def fresh_url(postgres_server):
    """A database without tables."""
    return postgres_server.new_database()


def name_of(url):
    """The database of an address."""
    return url.split("/")[3].partition("?")[0]


@pytest.mark.parametrize(
    ("given", "public", "secrets"),
    [
        ("postgresql://h/d", "postgresql://h/d", {}),
        ("postgres://u@h:5/d", "postgresql://u@h:5/d", {}),
        ("postgresql://u:s%23t@h/d", "postgresql://u@h/d", {"password": "s#t"}),
        ("postgresql://u:a@b@h/d", "postgresql://u@h/d", {"password": "a@b"}),
        ("postgresql://:s@h/d", "postgresql://h/d", {"password": "s"}),
        (
            "postgresql://u@/d?host=/tmp/x&password=s&sslpassword=t",
            "postgresql://u@/d?host=/tmp/x",
            {"password": "s", "sslpassword": "t"},
        ),
        ("postgresql://u:s@[::1]:5,h2/d", "postgresql://u@[::1]:5,h2/d", {"password": "s"}),
    ],
)
def test_the_public_form_of_an_address_has_no_secrets(given, public, secrets):
    found = parse_address(f"{given}#run-1")
    assert (found.public, found.run, found.secrets) == (public, "run-1", secrets)
    assert parse_address(found.location_of("x")).secrets == secrets  # known in this process


@pytest.mark.parametrize(
    "given",
    [
        "postgresql://u:sec#ret@h/d",
        "postgresql://u:12#34@h/d",
        "postgresql://u:sec/ret@h/d",
        "postgresql://u:sec?ret@h/d",
        "postgresql://h:sec/d",
        "postgresql://u:12?sec@h/d",
        "postgresql://h/d?secret=1",
        "postgresql://u:sec@[::1/d",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(given):
    with pytest.raises(UsageError, match="postgresql://") as wrong:
        open_store(given).refs()
    for part in ("sec", "ret", "34", "12"):
        assert part not in str(wrong.value)


@pytest.mark.parametrize(
    "given",
    [
        "postgresql:/me:secret@/parley",
        "postgres:me:secret@h/parley",
        "PostgreSQL:/me:secret@/parley",
        "postgresql;//me:secret@h/parley",
        "me:secret@h/parley",
        "host=/tmp user=me dbname=parley password=secret",
        "dbname = parley password = secret",
    ],
)
def test_a_misspelled_address_is_neither_repeated_nor_a_folder(tmp_path, given):
    models = [word for name in BOTS for word in ("-m", f"{name}=bot/random")]
    for words in (
        ("run", "public_goods", *models, "--repeats", "1", "--store", given),
        ("ls", "--store", given),
        ("show", f"{given}#run"),
        ("show", f"{given}#run.parley"),
    ):
        done = call_command(*words, cwd=tmp_path, code=2)
        assert "postgresql://USER@HOST/DATABASE" in done.err
        assert "secret" not in done.out + done.err
        assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("word", "secrets"),
    [
        ("postgresql://me:p%40ss@host/db", ["p@ss"]),
        ("--store=postgres://me:secret@host/db?sslpassword=a%20b&port=1", ["a b", "secret"]),
        ("a.key=Postgres://me:secret@host/db#run", ["secret"]),
        ("postgres and postgresql://h/d,postgresql://h/d?oauth_client_secret=s", ["s", "s"]),
        ("postgresql://me@[::1]:5/db?user=a@b", []),
        ("./me:1@home", []),
        ("runs", []),
    ],
)
def test_secrets_are_found_in_words_of_a_command(word, secrets):
    assert sorted(secrets_in(word)) == secrets


ADDRESSES = (
    "postgresql://me:secret@h/d",
    "POSTGRES://me:secret@h/d#run",
    "postgresql:///d?host=/tmp&password=secret",
    "postgresql://me@h/d?sslpassword=secret#run",
    "postgresql://me@h/d?oauth_client_secret=secret",
    "postgresql://me@h/d?scram_client_key=secret",
    "postgressql://me:secret@h/d",
    "mysql://me:secret@h/d",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_typed_password_is_refused_without_repeating_it(tmp_path, command):
    for address in ADDRESSES:
        for words in (
            [address],
            ["--store", address],
            [f"--store={address}"],
            [f"-Ma.b={address}"],
        ):
            done = call_command(command, *words, cwd=tmp_path, code=2)
            assert done.err.startswith("parley: this command contains an address with a password")
            assert "PARLEY_STORE" in done.err
            assert "PGPASSFILE" in done.err
            assert "secret" not in done.out + done.err
    for unreadable in (
        "--name=postgresql://me:sec#ret@h/d",
        "postgresql://me%3Asec@h/d",
        "postgresql:///d?dbname=password%3Dsec",
    ):
        done = call_command(command, unreadable, cwd=tmp_path, code=2)
        assert "cannot be read" in done.err
        assert "sec" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_secrets_of_an_address_are_those_of_the_environment(monkeypatch):
    public = "postgresql://me@only-in-the-environment/d?port=1"
    monkeypatch.setenv("PARLEY_STORE", "postgresql://me:wrong#password@h/d")
    assert parse_address(public).secrets == {}
    secrets = {"password": PASSWORD, "sslpassword": "a b&c"}
    monkeypatch.setenv("PARLEY_STORE", f"{public}&{urlencode(secrets)}".replace("+", "%20"))
    assert parse_address(public.replace("/d", "/other")).variables == {}
    variables = parse_address(public).variables
    assert parse_address(public).secrets == secrets
    address, found = split_address(variables["PARLEY_STORE"])
    assert (address.public, found) == (public, secrets)


@pytest.mark.parametrize("given", ["postgres/runs", "./me:1@home", "a/host=b", "runs 2", "x=1"])
def test_a_folder_with_an_unusual_name_is_a_folder(given):
    assert open_store(given).name == given.removeprefix("./")


def test_a_user_without_rights_on_the_schema_gets_one_line_everywhere(postgres_server, fresh_url):
    ref = parley.run("public_goods", models=BOTS, repeats=1, store=fresh_url).ref
    database = name_of(fresh_url)
    postgres_server.run(
        "CREATE ROLE stranger LOGIN",
        f"GRANT CREATE ON DATABASE {database} TO stranger",
        database=database,
    )
    url = postgres_server.url(database, "stranger")
    store = open_store(url)
    there = store._ref(ref.id)
    for use in (
        store.refs,
        lambda: list(store.runs()),
        lambda: store.read(there),
        lambda: store.stamp(there),
        lambda: store.watch(there),
        lambda: asyncio.run(store.create(RUN)),
        lambda: asyncio.run(store.open(there)),
        lambda: store.delete(there),
        store.open_votes,
        store.open_verdict_votes,
        lambda: store.read_verdict_votes(there, ref.id),
    ):
        with pytest.raises(StoreError, match="permission denied") as wrong:
            use()
        assert "USAGE on the schema, and on its tables SELECT" in str(wrong.value)
        assert "\n" not in str(wrong.value)
    models = [word for name in BOTS for word in ("-m", f"{name}=bot/random")]
    code, said = invoke("run", "public_goods", *models, "--store", url)
    assert code == 1
    assert "Traceback" not in said
    assert "grant this user USAGE on the schema" in said


def test_a_database_that_cannot_be_used_is_refused_in_one_line(postgres_server, fresh_url):
    folder = postgres_server.folder
    for given, said in (
        ("postgresql://127.0.0.1:1/d", "check the address"),
        (f"postgresql://parley@/d?host={folder}/no", "check the address"),
        (f"postgresql://parley@/nowhere?host={folder}", "createdb"),
        (f"postgresql://nobody_at_all@/postgres?host={folder}", "cannot connect"),
    ):
        with pytest.raises(StoreError, match=said) as wrong:
            open_store(given).refs()
        assert "\n" not in str(wrong.value)
        assert given in str(wrong.value)
    database = name_of(fresh_url)
    postgres_server.run("CREATE ROLE poor LOGIN", database=database)
    poor = postgres_server.url(database, "poor")
    assert open_store(poor).refs() == []
    with pytest.raises(StoreError, match="grant this user CREATE"):
        asyncio.run(open_store(poor).create(NewRun("r", CONFIG, IDENTITY)))
    read_only = f"{fresh_url}&options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(StoreError, match="primary server"):
        asyncio.run(open_store(read_only).create(NewRun("r", CONFIG, IDENTITY)))
    assert "read-only" in open_store(read_only).check().state
    assert open_store(fresh_url).check().state.startswith("ready")


def test_a_user_who_may_only_read_can_read(postgres_server, fresh_url):
    ref = parley.run("public_goods", models=BOTS, repeats=1, store=fresh_url).ref
    database = name_of(fresh_url)
    postgres_server.run(
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA parley TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA parley TO reader",
        database=database,
    )
    store = open_store(postgres_server.url(database, "reader"))
    assert audit_run(store.find(ref.id)).breaches == []
    for use in (
        lambda: asyncio.run(store.create(RUN)),
        lambda: asyncio.run(store.open(store.find(ref.id))),
        lambda: store.delete(store.find(ref.id)),
    ):
        with pytest.raises(StoreError, match=r"permission denied for table .* ALL to write") as no:
            use()
        assert "CREATE" not in str(no.value)


def test_a_full_disk_is_no_lost_connection():
    full = psycopg.errors.DiskFull('could not extend file "base/1": No space left on device')
    said = connections.explain_unwritable(parse_address("postgresql://me@db/parley"), full)
    assert said == (
        'could not extend file "base/1": No space left on device: make room on the disk of the '
        "server, then resume the run"
    )


def test_reading_votes_creates_no_tables_and_changes_nothing(fresh_url):
    store, address = open_store(fresh_url), parse_address(fresh_url)
    for open_votes in (store.open_votes, store.open_verdict_votes):
        with pytest.raises(UsageError, match="there are no votes yet"):
            open_votes(read_only=True)
    with connections.connect(address) as connection:
        assert not database_tables.has_store_tables(connection, address)
    with store.open_verdict_votes() as votes:
        votes.invite("run", "ann", b"1")
    with (
        store.open_verdict_votes(read_only=True) as votes,
        pytest.raises(StoreError, match="cannot be written"),
    ):
        votes.invite("run", "bo", b"2")


def statements_in_docs():
    """The SQL blocks of the docs page, in order: a group, a second writer, a reader."""
    page = (ROOT / "docs/guides/stores.md").read_text(encoding="utf-8")
    found = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(found) == 3
    return [[line for line in block.split(";\n") if line] for block in found]


def for_users(statements, database, **names):
    """Statements with the names of a test: roles belong to the whole server."""
    text = "\n".join(statements).replace("DATABASE parley", f"DATABASE {database}")
    for name, new in names.items():
        text = re.sub(rf"\b{name}\b", new, text)
    return text.split("\n")


def play_and_vote(url):
    """Write a run and a vote, resume the run and delete it."""
    store = open_store(url)
    ref = parley.run("public_goods", models=BOTS, repeats=1, store=url).ref
    with store.open_verdict_votes(ref) as votes, votes.transaction():
        votes.record(ref.id, 1, Seat("player"), "Ann", "yes")
    assert audit_run(ref).breaches == []
    assert call_command("doctor", "--no-calls", "--json", "--store", url, cwd=os.getcwd(),
                        code=None).json["store"]["state"] == "ready"  # fmt: skip
    return store, ref


def test_a_group_can_own_the_tables_as_the_docs_say(postgres_server, fresh_url):
    database = name_of(fresh_url)
    group, _, _ = statements_in_docs()
    names = {"writers": "writers_1", "ann": "ann_1", "ben": "ben_1"}
    postgres_server.run(
        "CREATE ROLE ann_1 LOGIN",
        "CREATE ROLE ben_1 LOGIN",
        *for_users(group, database, **names),
        database=database,
    )
    ann, ben = (postgres_server.url(database, user) for user in ("ann_1", "ben_1"))
    _, ref = play_and_vote(ann)
    store, _ = play_and_vote(ben)
    store.delete(store.find(ref.id))
    assert len(store.refs()) == 1


def test_an_owner_can_let_others_write_and_read_as_the_docs_say(postgres_server, fresh_url):
    database = name_of(fresh_url)
    _, writer, reader = statements_in_docs()
    postgres_server.run(
        *(f"CREATE ROLE {name}_2 LOGIN" for name in ("ann", "ben", "cy")),
        f"GRANT CREATE ON DATABASE {database} TO ann_2",
        database=database,
    )
    ann, ben, cy = (postgres_server.url(database, f"{name}_2") for name in ("ann", "ben", "cy"))
    _, ref = play_and_vote(ann)
    names = {"ann": "ann_2", "ben": "ben_2", "cy": "cy_2"}
    with psycopg.connect(ann, autocommit=True) as connection:
        for statement in (
            *for_users(writer, database, **names),
            *for_users(reader, database, **names),
        ):
            connection.execute(statement)
    store, _ = play_and_vote(ben)
    store.delete(store.find(ref.id))
    assert len(open_store(cy).refs()) == 1
    assert (
        open_store(cy)
        .check()
        .state.startswith("ready to read, not to write: this user has no INSERT, UPDATE, DELETE")
    )


def test_doctor_reports_a_store_that_cannot_be_used_and_goes_on(
    postgres_server, fresh_url, tmp_path
):
    parley.run("public_goods", models=BOTS, repeats=1, store=fresh_url)
    database = name_of(fresh_url)
    postgres_server.run("CREATE ROLE outsider LOGIN")
    for given, said in (
        (f"postgresql://me@/d?host={tmp_path}", "store: cannot connect to postgresql://me@/d"),
        (postgres_server.url(database, "outsider"), "permission denied for schema parley"),
        ("postgresql:/me:secret@/parley", "store: a store must be a folder or postgresql://"),
    ):
        done = call_command("doctor", "--no-calls", "--store", given, cwd=tmp_path, code=1)
        (line,) = [line for line in done.out.splitlines() if line.startswith("store: ")]
        assert said in line
        assert "sandbox: " in done.out
        assert "secret" not in done.out + done.err
    database = name_of(postgres_server.new_database())
    state = open_store(postgres_server.url(database, "outsider")).check().state
    assert state.startswith("cannot be written: there are no tables yet")
    assert state.endswith("grant this user CREATE on the database")


def test_both_stores_have_the_same_tables_and_columns(fresh_url):
    """A table that only one store has would be missed when a run is written or read."""
    address = parse_address(fresh_url)
    with connections.connect(address) as connection:
        database_tables.create_store_tables(connection, address)
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'parley'"
        ).fetchall()
    stored = {}
    for table, column in rows:
        stored.setdefault(table, set()).add(column)
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.create_run_tables(connection)
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        for table in tables:
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert columns <= stored[table], table
            assert "run" in stored[table]
            assert table in connections.TABLES
    # only a database can be shared by workers
    assert set(tables) | {"workers", "grants", "rates"} == set(connections.TABLES)


def test_rows_may_be_dropped_after_the_reader_is_closed(fresh_url):
    store = open_store(fresh_url)
    ref = parley.run("public_goods", models=BOTS, repeats=3, store=fresh_url).ref
    with store.read(ref) as reader:
        rows = reader.matches.read()
        next(rows)
    del rows
    with store.read(ref) as reader:
        first, second = reader.matches.read(), reader.scores.read()  # two streams at a time
        assert len(list(zip(first, second, strict=False))) == 3


def test_a_server_that_is_too_old_is_refused(fresh_url, monkeypatch):
    monkeypatch.setattr(connections, "OLDEST", 990000)
    with pytest.raises(StoreError, match=r"version \d+, but Parley needs version 99 or newer"):
        open_store(fresh_url).refs()


@pytest.mark.parametrize(
    ("session", "is_refused"),
    [("SELECT 7", True), ("SELECT pg_backend_pid() + 1000000", False)],
    ids=["shared", "own"],
)
def test_a_pooler_that_shares_sessions_is_refused(fresh_url, monkeypatch, session, is_refused):
    """A pooler gives sessions other numbers than the server."""
    monkeypatch.setattr(connections, "SESSION", session)
    monkeypatch.setattr(connections, "_OWN_SESSIONS", set())
    if is_refused:
        with pytest.raises(StoreError, match=r"shares sessions .* pool_mode = session"):
            open_store(fresh_url).refs()
    else:
        assert open_store(fresh_url).refs() == []


@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="PgBouncer is not installed")
def test_pgbouncer_works_if_it_gives_sessions_of_their_own(postgres_server, fresh_url):
    folder = Path(tempfile.mkdtemp(dir=postgres_server.folder))
    url = f"postgresql://parley@/{name_of(fresh_url)}?host={folder}&port=6432"
    said = {}
    for mode in ("transaction", "statement", "session"):
        (folder / "ini").write_text(
            f"[databases]\n* = host={postgres_server.folder} user=parley\n[pgbouncer]\n"
            f"listen_addr =\nunix_socket_dir = {folder}\nauth_type = any\npool_mode = {mode}\n"
        )
        if postgres_server.user:
            for path in (folder, folder / "ini"):
                shutil.chown(path, postgres_server.user)
        with subprocess.Popen(
            ["pgbouncer", "-q", folder / "ini"], user=postgres_server.user, cwd="/"
        ) as pooler:
            try:
                deadline = time.monotonic() + 60
                while not (folder / ".s.PGSQL.6432").exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                said[mode] = invoke("run", "public_goods", *THREE_BOTS, "--store", url)
            finally:
                pooler.kill()
                pooler.wait()
                (folder / ".s.PGSQL.6432").unlink(missing_ok=True)
    for mode in ("transaction", "statement"):
        assert said[mode][0] == 1
        (line,) = said[mode][1].splitlines()
        assert re.search("shares sessions .* give the address of the server itself", line)
    assert said["session"][0] == 0, said["session"][1]


def test_a_database_of_somebody_else_or_of_a_newer_parley_is_refused(postgres_server, fresh_url):
    database = name_of(fresh_url)
    postgres_server.run("CREATE SCHEMA parley", database=database)
    store = open_store(fresh_url)
    assert store.refs() == []  # an administrator may create the schema
    postgres_server.run("CREATE TABLE parley.birds (name text)", database=database)
    with pytest.raises(StoreError, match="Parley did not create"):
        store.refs()
    postgres_server.run("DROP TABLE parley.birds", database=database)
    parley.run("public_goods", models=BOTS, repeats=1, store=fresh_url)
    for version, said in (
        (2, r"newer version of Parley \(schema version 2; this Parley reads version 1\): update"),
        (0, "not a store that this Parley can read: its schema version is 0, not 1; use another"),
    ):
        change = f"UPDATE parley.schema_version SET version = {version}"
        postgres_server.run(change, database=database)
        for use in (store.refs, lambda: store.find("last"), lambda: asyncio.run(store.create(RUN))):
            with pytest.raises(StoreError, match=said):
                use()


RUN = NewRun("run", CONFIG, IDENTITY)


def test_processes_that_start_at_once_create_the_tables_once(fresh_url):
    address = parse_address(fresh_url)
    faults = []

    def create():
        try:
            with connections.connect(address) as connection:
                database_tables.create_store_tables(connection, address)
        except Exception as wrong:
            faults.append(wrong)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    ref = parley.run("public_goods", models=BOTS, repeats=1, store=fresh_url).ref
    assert audit_run(ref).breaches == []


def test_passwords_reach_no_store_message_or_log(postgres_server, fresh_url, monkeypatch):
    """The server trusts its socket, so a password is not needed, but it is given."""
    database = name_of(fresh_url)
    written = "pl%2Fanted%23p%40ss%3Fw%3Ard"
    url = f"postgresql://parley:{written}@/{database}?host={postgres_server.folder}"
    run = ("run", "public_goods", *THREE_BOTS, "--repeats", "2")
    commands = (
        run,
        ("ls",),
        ("ls", "--json"),
        ("show", "last"),
        ("show", "last", "--json"),
        ("audit", "last", "--json"),
        ("report", "last"),
        ("resume", "last"),
        ("doctor", "--no-calls"),
        ("show", "nothing"),
    )
    monkeypatch.setenv("PARLEY_STORE", url)
    codes, said = map(list, zip(*(invoke(*words) for words in commands), strict=True))
    assert codes[:8] == [0] * 8, said
    assert codes[-1] != 0
    assert "public_goods" in said[1]
    monkeypatch.setenv("PARLEY_STORE", url.replace(str(postgres_server.folder), "/nowhere"))
    said.append(invoke("ls")[1])
    assert "cannot connect" in said[-1]
    with run_parley(*run, PARLEY_STORE=url, PGPASSWORD=PASSWORD) as child:
        said += child.communicate(timeout=120)
        assert child.returncode == 0, said[-1]
    result = parley.run("public_goods", models=BOTS, repeats=1, store=url)
    said += [repr(result.ref), json.dumps(result.data)]
    with psycopg.connect(fresh_url) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'parley'"
        ).fetchall()
        for (table,) in tables:
            rows = connection.execute(f"SELECT t::text FROM parley.{table} AS t").fetchall()
            said.append("\n".join(text for (text,) in rows))
    for text in said:
        for secret in (PASSWORD, written, "anted"):
            assert secret not in text


def test_every_text_survives_escaping():
    for text in ("", "\x00", "\x01", "\x01\x02", "\x00\x01\x03\x00", "a\x01\x03b", "\x02\x03"):
        assert unescape(escape(text)) == text
        assert "\x00" not in escape(text)


def test_a_second_process_waits_for_nothing_and_is_refused(fresh_url):
    store = open_store(fresh_url)

    async def main():
        journal = await store.create(RUN)
        with pytest.raises(StoreError, match=r"already being played by process \d+ on "):
            await store.open(journal.ref)
        await journal.close()

    asyncio.run(main())


def test_a_run_that_another_process_is_just_releasing_is_opened_a_moment_later(fresh_url):
    async def main():
        store = open_store(fresh_url)
        journal = await store.create(NewRun("run-1", CONFIG, IDENTITY))
        await journal.set_state("stopped", "interrupted", "")
        await journal.close()
        with psycopg.connect(fresh_url, autocommit=True) as other:
            (number,) = other.execute("SELECT run FROM parley.runs").fetchone()
            other.execute("SELECT pg_advisory_lock(%s, %s)", (database_tables.LOCK, number))
            opening = asyncio.ensure_future(store.open(journal.ref))
            await asyncio.sleep(0.3)
            assert not opening.done()
            other.execute("SELECT pg_advisory_unlock_all()")
            await (await opening).close()

    asyncio.run(main())


def test_a_process_that_was_taken_over_writes_nothing_more(fresh_url):
    store = open_store(fresh_url)

    async def main():
        journal = await store.create(RUN)
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        with psycopg.connect(fresh_url) as connection:
            connection.execute("UPDATE parley.runs SET token = 'other'")
        with pytest.raises(StoreError, match="another process has taken over"):
            await journal.heartbeat()
        with pytest.raises(StoreError, match="another process has taken over"):
            await record.append(call())
        await journal.close()

    asyncio.run(main())
    with store.read(store.find("run")) as reader:
        assert reader.calls.of(1) == []


def test_a_killed_run_resumes_without_one_call_more(fresh_url):
    """Calls in flight at the kill may be sent again; those on record are not."""
    models = [word for name in BOTS for word in ("-m", f"{name}=openai-compatible/mock")]
    matches, rounds = 8, 5
    with endpoint(0.02) as server:
        environment = {"OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1"}
        options = ("--repeats", str(matches), "--concurrency", "2", "--store", fresh_url)
        with run_parley("run", "public_goods", *models, *options, **environment) as process:
            wait_for_calls(fresh_url, process, 20)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        store = open_store(fresh_url)
        ref = store.find("last")
        with store.read(ref) as reader:
            kept = recorded(reader)
        wait_until_stopped(store, ref)
        with run_parley("resume", "last", "--store", fresh_url, **environment) as process:
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
        sent = len(server.log())
    with store.read(ref) as reader:
        final = recorded(reader)
    assert kept.items() <= final.items()
    assert len(final) == matches * rounds * len(BOTS)
    assert sent - len(final) <= 2 * len(BOTS)  # what was in flight
    found = audit_run(ref)
    assert found.breaches == []
    assert found.checked["replay"] == matches


def recorded(reader):
    return {
        (row.number, found.round, found.seat, found.attempt): found
        for row in reader.matches.read()
        for found in reader.calls.of(row.number)
    }


def wait_until_stopped(store, ref):
    """Wait until the server has noticed that the process has ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with store.read(ref) as reader:
            if reader.info.state == "stopped":
                return
        time.sleep(0.01)
    raise AssertionError("the run is still shown as running")


def wait_for_calls(url, process, wanted):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        try:
            with psycopg.connect(url) as connection:
                (found,) = connection.execute("SELECT COUNT(*) FROM parley.calls").fetchone()
        except psycopg.errors.UndefinedTable:
            found = 0
        if found >= wanted:
            return
        time.sleep(0.01)
    raise AssertionError("the run has not begun")


def test_a_crashed_server_stops_the_run_with_a_clear_error_and_resume_goes_on(
    postgres_server, fresh_url
):
    models = [word for name in BOTS for word in ("-m", f"{name}=openai-compatible/mock")]
    with endpoint(0.02) as server:
        environment = {"OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1"}
        options = ("--repeats", "8", "--concurrency", "2", "--store", fresh_url)
        with run_parley("run", "public_goods", *models, *options, **environment) as process:
            wait_for_calls(fresh_url, process, 20)
            postgres_server.crash()
            _, err = process.communicate(timeout=120)
            postgres_server.start()
        assert process.returncode != 0
        assert re.search(r"connection to the database was lost \(.*\): resume the run", err), err
        assert "Traceback" not in err
        store = open_store(fresh_url)
        ref = store.find("last")
        with store.read(ref) as reader:
            kept = recorded(reader)
            assert (reader.info.state, reader.info.status) == ("stopped", "interrupted")
        assert len(kept) >= 20
        with run_parley("resume", "last", "--store", fresh_url, **environment) as process:
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
        sent = len(server.log())
    with store.read(ref) as reader:
        final = recorded(reader)
    assert kept.items() <= final.items()
    assert len(final) == 8 * 5 * len(BOTS)
    assert sent - len(final) <= 2 * len(BOTS)
    assert audit_run(ref).breaches == []


def test_many_runs_share_a_database(fresh_url):
    """Rows of one run never show up in another."""
    store = open_store(fresh_url)

    async def play(name, rounds):
        journal = await store.create(NewRun(name, CONFIG, IDENTITY))
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        for round in range(1, rounds + 1):
            await record.append(call(round, content=name))
        await journal.finish(1, ended())
        await journal.set_state("done", "plan_complete", "")
        await journal.close()

    async def main():
        await asyncio.gather(play("one", 3), play("two", 5))

    asyncio.run(main())
    for name, rounds in (("one", 3), ("two", 5)):
        with store.read(store.find(name)) as reader:
            assert [found.reply.content for found in reader.calls.of(1)] == [name] * rounds
            assert reader.calls.count() == rounds
            assert list(reader.snapshot.find_changes()) == []
    store.delete(store.find("one"))
    with store.read(find_run("two", fresh_url)) as reader:
        assert reader.calls.count() == 5
        assert list(reader.snapshot.find_changes()) == []


def test_a_run_that_the_statistics_of_the_server_do_not_know_is_read_as_quickly(fresh_url):
    """A server that expects no rows of a run reads all of them again for each of its matches."""
    store, matches, rounds = open_store(fresh_url), 200, 3

    async def play(name):
        journal = await store.create(NewRun(name, CONFIG, IDENTITY))
        await journal.add_matches(spec(number) for number in range(1, matches + 1))
        for number in range(1, matches + 1):
            record = journal.lease(spec(number))
            for first in range(rounds):
                record.circulate([Message(1, "tell", None, (SEAT,), "hello")], first)
        await journal.heartbeat()
        await journal.close()

    asyncio.run(play("one"))
    query = "SELECT t.match, t.digest FROM matches m JOIN rounds t ON t.match = m.number"
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        asyncio.run(play("two"))
        ((number,),) = connection.execute("SELECT run FROM parley.runs WHERE id = 'two'").fetchall()
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {connections.for_run(query, number)}"
        (((plan,),),) = connection.execute(explain).fetchall()
    steps = [plan["Plan"]]
    for step in steps:
        steps += step.get("Plans", ())
    assert steps[0]["Actual Rows"] == matches * rounds
    read = max(step["Actual Rows"] * step["Actual Loops"] for step in steps)
    assert read <= 2 * matches * rounds, plan


def test_an_experiment_file_cannot_choose_a_database(tmp_path):
    file = tmp_path / "exp.yaml"
    file.write_text(
        "kind: experiment\ntask: public_goods\nmodels: {a: bot/random, b: bot/random}\nstore: postgresql://h/d\n"
    )
    code, said = invoke("run", str(file))
    assert code != 0
    assert "a file cannot choose a database" in said


def test_the_driver_is_loaded_only_for_a_database(tmp_path):
    program = (
        "import sys, parley.cli; parley.cli.command(['ls', '--store', sys.argv[1]], "
        "standalone_mode=False); assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True)

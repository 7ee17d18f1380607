"""`parley worker`, `parley stop` and `--workers`, as a user calls them with something wrong."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import parley
from parley.config.worker_allowances import list_allowances
from parley.runs import worker
from parley.store import open_store, read_run
from parley.store.postgres import connections
from parley.store.shared_runs import require_shared
from tests.cli.test_cli import parley as call_command
from tests.endpoint import endpoint
from tests.runs.launched import wait_until
from tests.runs.shared import BOTS, create, prepare

MODELS = [word for alias, model in BOTS.items() for word in ("-m", f"{alias}={model}")]
RUN = ["run", "public_goods", *MODELS, "--repeats", "2"]
GAME = Path(__file__).parents[2] / "examples" / "stag_hunt.py"
OTHER_RULE = 'default="hare",', 'default="stag",'
OTHER_PROMPT = "A hare gives you 3.", "A hare gives you 2."
OTHER_BOT = 'return "hare"', 'return "stag"'
GAME_MODELS = ["-m", "a=bot/trusting", "-m", "b=bot/careful"]


def name_of(url):
    return url.split("/")[3].partition("?")[0]


def ids_in(url):
    return {ref.id for ref in open_store(url).refs()}


@pytest.fixture(scope="module")
def stopped(postgres_url):
    """A run that reached a limit."""
    return parley.run("public_goods", models=BOTS, repeats=20, store=postgres_url, max_calls=20).ref


# The database


def commands(run):
    return (
        [*RUN, "--workers", "1"],
        ["worker"],
        ["worker", run],
        ["worker", run, "--wait"],
        ["stop", run],
        ["resume", run, "--workers", "1"],
    )


@pytest.mark.parametrize(
    ("store", "remedy", "code"),
    [
        ("postgresql://me@127.0.0.1:1/d", "check the address, and that the server is running", 1),
        ("postgresql://parley@/nowhere?host={folder}", "create the database", 1),
        ("postgresql://nobody_at_all@/postgres?host={folder}", "check the address", 1),
        ("postgresql://parley@[::1/d", "expected postgresql://USER@HOST/DATABASE", 2),
        ("postgresql://parley@/d?hosst=x", "expected postgresql://USER@HOST/DATABASE", 2),
        ("postgress://me@h/d", "must be a folder or postgresql://USER@HOST/DATABASE", 2),
    ],
    ids=["away", "no database", "no user", "no address", "no parameter", "no scheme"],
)
def test_a_database_that_cannot_be_reached(postgres_server, tmp_path, store, remedy, code):
    url = store.format(folder=postgres_server.folder)
    for words in commands("some-run"):
        refuse_in_one_line(words, url, tmp_path, code, remedy)


def refuse_in_one_line(words, url, folder, code, remedy):
    """Call a command that must be refused, and check what it says."""
    done = call_command(*words, "--store", url, cwd=folder, code=code)
    lines = [line for line in done.err.splitlines() if not line.startswith("parley: playing ")]
    assert len(lines) == 1, done.err
    assert lines[0].startswith("parley: ")
    assert remedy in lines[0]
    assert done.out == ""
    assert not (folder / "runs").exists()


def test_a_database_that_is_not_ours(postgres_server, tmp_path):
    url = postgres_server.new_database()
    statements = "CREATE SCHEMA parley", "CREATE TABLE parley.birds (name text)"
    postgres_server.run(*statements, database=name_of(url))
    for words in commands("some-run"):
        refuse_in_one_line(words, url, tmp_path, 1, "that Parley did not create: use another")


def test_a_server_that_is_too_old(postgres_url, stopped, tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "OLDEST", 990000)
    for words in commands(stopped.id):
        refuse_in_one_line(words, postgres_url, tmp_path, 1, "update the server")


def test_a_database_that_this_user_may_only_read(postgres_server, postgres_url, stopped, tmp_path):
    shared = create(prepare(repeats=2), postgres_url)
    database = name_of(postgres_url)
    postgres_server.run(
        "CREATE ROLE visitor LOGIN",
        "GRANT USAGE ON SCHEMA parley TO visitor",
        "GRANT SELECT ON ALL TABLES IN SCHEMA parley TO visitor",
        database=database,
    )
    before = ids_in(postgres_url)
    read_only = f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"
    for url, remedy in (
        (postgres_server.url(database, "visitor"), "grant this user USAGE on the schema"),
        (read_only, "give the address of the primary server"),
    ):
        for words in (
            [*RUN, "--workers", "1"],
            ["worker"],
            ["worker", shared.id],
            ["stop", shared.id],
            ["resume", stopped.id, "--workers", "1"],
        ):
            refuse_in_one_line(words, url, tmp_path, 1, remedy)
    assert ids_in(postgres_url) == before
    with read_run(stopped) as reader:
        assert (reader.info.state, reader.info.status) == ("stopped", "budget")
    call_command("stop", shared.id, "--store", postgres_url, cwd=tmp_path)


def test_a_user_who_may_not_create_tables(postgres_server, tmp_path):
    url = postgres_server.new_database()
    postgres_server.run("CREATE ROLE guest LOGIN")
    guest = postgres_server.url(name_of(url), "guest")
    remedy = "ask an administrator to grant this user CREATE on the database"
    refuse_in_one_line([*RUN, "--workers", "1"], guest, tmp_path, 1, remedy)
    for words in (["worker", "x"], ["stop", "x"], ["resume", "x", "--workers", "1"]):
        refuse_in_one_line(words, guest, tmp_path, 2, "the store has no runs")
    found = call_command("worker", "--store", guest, cwd=tmp_path)
    assert "is open for workers: there is nothing to play" in found.err


# The run


def test_a_worker_of_a_run_that_is_not_open(postgres_url, stopped, tmp_path):
    at = {"cwd": tmp_path}
    place = ("--store", postgres_url)
    done = parley.run("public_goods", models=BOTS, repeats=2, store=postgres_url).ref
    found = call_command("worker", done.id, *place, **at)
    assert f"{done.id} is done: there is nothing to play" in found.err
    found = call_command("worker", stopped.id, *place, code=1, **at)
    assert f"open it with `parley resume {stopped.id} --workers N`" in found.err
    assert "unknown run" in call_command("worker", "nothing", *place, code=2, **at).err
    shared = create(prepare(repeats=2), postgres_url)
    found = call_command("stop", shared.id, *place, **at)
    assert f"{shared.id} has stopped (stopped by `parley stop`)" in found.err
    assert "is not open for workers" in call_command("worker", shared.id, *place, code=1, **at).err


def test_a_worker_of_a_folder_or_of_another_store(postgres_url, tmp_path):
    ref = parley.run("public_goods", models=BOTS, repeats=2, store=tmp_path / "runs").ref
    for words in (["worker"], ["worker", ref.id], ["resume", ref.id, "--workers", "1"]):
        found = call_command(*words, cwd=tmp_path, code=2)
        assert "give --store postgresql://USER@HOST/DATABASE or set PARLEY_STORE" in found.err
    words = ["worker", ref.location, "--store", postgres_url]
    assert "a worker plays the runs of one store" in call_command(*words, cwd=tmp_path, code=2).err


def test_a_stop_of_a_run_without_workers(postgres_url, stopped, tmp_path):
    ref = parley.run("public_goods", models=BOTS, repeats=2, store=tmp_path / "runs").ref
    for place in (ref.id, ref.location):
        found = call_command("stop", place, cwd=tmp_path, code=2)
        assert "is a file, which workers cannot play: press Ctrl-C where it is played" in found.err
    done = parley.run("public_goods", models=BOTS, repeats=2, store=postgres_url).ref
    for ref in (done, stopped):
        found = call_command("stop", ref.id, "--store", postgres_url, cwd=tmp_path, code=2)
        assert f"no workers play {ref.location}, so there is nothing to stop" in found.err


def test_a_stop_of_a_run_that_one_process_plays(postgres_url, tmp_path):
    with endpoint(0.3) as server:
        models = [word for name in "abc" for word in ("-m", f"{name}=openai-compatible/mock")]
        with start_command("run", "public_goods", *models, server=server, url=postgres_url) as run:
            wait_until(lambda: server.arrived() > 3)
            found = call_command("stop", "last", "--store", postgres_url, cwd=tmp_path, code=2)
            assert "if a process plays it alone, press Ctrl-C there" in found.err
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)


def start_command(*words, url, server=None, cwd=None, **environment):
    address = {"OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1"} if server else {}
    return subprocess.Popen(
        [sys.executable, "-m", "parley", *words, "--store", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, **address, **environment},
    )


# What cannot play on workers


def test_what_workers_cannot_play_is_refused_before_anything_is_written(postgres_url, tmp_path):
    before = ids_in(postgres_url)
    for words, remedy in (
        (["-m", "me=human/terminal"], "me cannot play on workers"),
        (["-m", "me=human/web"], "me cannot play on workers"),
        (["-m", "x=openai/gpt-4.1-mini", "--batch"], "leave out --workers or --batch"),
    ):
        found = call_command(
            *(*RUN, *words, "--workers", "1", "--store", postgres_url),
            cwd=tmp_path,
            code=2,
            env={"OPENAI_API_KEY": "a-key-that-is-not-used"},
        )
        assert remedy in found.err
        assert "Traceback" not in found.err
    assert ids_in(postgres_url) == before


def test_a_launcher_that_cannot_start_leaves_no_run(postgres_url, stopped, tmp_path, monkeypatch):
    """sbatch is there, but does not accept the job."""
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'no such partition' >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PARLEY_WORKER_FOLDER", str(tmp_path / "workers"))
    before = ids_in(postgres_url)
    words = ["--workers", "slurm:2", "--store", postgres_url]
    found = call_command(*RUN, *words, cwd=tmp_path, code=2)
    assert "Slurm did not accept the job: no such partition; choose a partition" in found.err
    assert ids_in(postgres_url) == before
    limit = ["--max-calls", "10000"]
    found = call_command("resume", stopped.id, *limit, *words, cwd=tmp_path, code=2)
    assert "no such partition" in found.err
    with read_run(stopped) as reader:
        assert (reader.info.state, reader.info.reason) == ("stopped", "no worker was started")
    assert list((tmp_path / "workers").iterdir()) == []


def test_the_command_for_other_machines_has_no_secret(postgres_server, tmp_path):
    public = postgres_server.new_database()
    store = f"{public}&sslpassword=planted-secret"
    with start_command(*RUN, "--workers", "0", url=public, PARLEY_STORE=store) as watcher:
        (line,) = watch(watcher, "start workers on any machine with: ")
        call_command("stop", "last", "--store", public, cwd=tmp_path)
        assert watcher.wait(60) == 3
    assert f"parley worker --store '{public}'" in line
    assert "planted-secret" not in line


# What a worker lacks


def serve(ref, folder, *words, env=None, code=1):
    return call_command(
        "worker", ref.id, "--store", ref.store, *words, cwd=folder, env=env, code=code
    )


@pytest.fixture
def with_key(postgres_url, monkeypatch):
    """A shared run with a model that needs a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-of-openai")
    models = {**BOTS, "a": "openai/gpt-4.1-mini"}
    ref = create(prepare(models=models, repeats=2), postgres_url)
    monkeypatch.delenv("OPENAI_API_KEY")
    yield ref
    require_shared(open_store(postgres_url)).seal_shared(ref)
    open_store(postgres_url).delete(ref)


def test_a_worker_without_a_key_names_it(with_key, tmp_path):
    found = serve(with_key, tmp_path)
    assert f"this worker cannot play {with_key.id}: " in found.err
    assert "OPENAI_API_KEY" in found.err
    with read_run(with_key) as reader:
        assert reader.snapshot.workers() == []  # it has not joined


def test_a_worker_without_the_sandbox_names_it(postgres_url, tmp_path, monkeypatch):
    models = {"a": "bot/random", "b": "bot/random"}
    ref = create(prepare("code_review", models, repeats=1), postgres_url)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = serve(ref, tmp_path)
    assert f"this worker cannot play {ref.id}: " in found.err
    assert "bubblewrap" in found.err
    monkeypatch.undo()
    call_command("stop", ref.id, "--store", postgres_url, cwd=tmp_path)


def test_a_worker_of_another_version_names_both(postgres_url, tmp_path, monkeypatch):
    ref = create(prepare(repeats=2), postgres_url)
    monkeypatch.setattr(worker, "__version__", "0.0.1")
    found = serve(ref, tmp_path)
    assert f"is played with Parley {parley.__version__}, but this is Parley 0.0.1" in found.err
    monkeypatch.undo()
    serve(ref, tmp_path, code=0)
    with read_run(ref) as reader:
        assert reader.info.state == "done"


def test_a_worker_with_another_task_leaves_and_others_go_on(postgres_url, tmp_path):
    """Each folder stands for a machine."""
    here, nothing, rule, prompt, bots = (tmp_path / name for name in "abcde")
    source = GAME.read_text()
    for folder, old, new in (
        (here, "", ""),
        (rule, *OTHER_RULE),
        (prompt, *OTHER_PROMPT),
        (bots, *OTHER_BOT),
    ):
        folder.mkdir()
        assert old in source
        (folder / "game.py").write_text(source.replace(old, new, 1))
    nothing.mkdir()
    with start_command(
        *("run", "game.py", *GAME_MODELS, "--repeats", "3", "--workers", "0"),
        url=postgres_url,
        cwd=here,
    ) as watcher:
        (line,) = watch(watcher, "start workers on any machine with: ")
        ref = open_store(postgres_url).find(line.split()[-1].strip("'"))
        for folder, words, wrong in (
            (nothing, [], "does not exist: name the file with --task FILE"),
            (rule, [], "has changed since this run started"),
            (rule, ["--task", "game.py"], "was started with another rule"),
            (prompt, ["--task", "game.py"], "was started with another prompt"),
            (bots, ["--task", "game.py"], "workers must have the same bots"),
        ):
            found = serve(ref, folder, *words)
            assert f"this worker cannot play {ref.id}: " in found.err
            assert wrong in found.err
            assert watcher.poll() is None
        serve(ref, here, code=0)
        _, said = watcher.communicate(timeout=60)
        assert watcher.returncode == 0, said


# Several commands at a time


def watch(process, text):
    """Read what a command prints until a line has a text; that line."""
    for line in process.stderr:
        if text in line:
            return [line]
    raise AssertionError(f"{process.args} ended without {text!r}")


def test_two_watchers_follow_one_run(postgres_url, tmp_path):
    with start_command(*RUN, "--workers", "0", "--json", url=postgres_url) as first:
        watch(first, "start workers on any machine with: parley worker --store ")
        ref = open_store(postgres_url).find("last")
        again = ["resume", ref.id, "--workers", "0", "--json"]
        with start_command(*again, url=postgres_url) as second:
            watch(second, "start workers")
            serve(ref, tmp_path, code=0)
            results = []
            for each in (first, second):
                out, err = each.communicate(timeout=60)
                assert each.returncode == 0, err
                assert err.count(f"parley: done; written to {ref.location}") == 1
                results.append(json.loads(out))
    assert results[0] == results[1]


def test_a_waiting_worker_serves_one_run_after_the_other(postgres_server, tmp_path):
    url = postgres_server.new_database()
    with start_command("worker", "--wait", url=url, cwd=tmp_path) as waiting:
        watch(waiting, f"waiting for runs in {url}")
        for _ in range(3):
            call_command(*RUN, "--workers", "0", "--store", url, cwd=tmp_path)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=30)
        assert waiting.returncode == 0, err
    for ref in open_store(url).refs():
        assert f"playing {ref.id}" in err
        with read_run(ref) as reader:
            assert reader.info.state == "done"
            assert len(reader.snapshot.workers()) == 1


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_ends_a_worker_alone_and_gives_its_matches_back(postgres_url, tmp_path, signum):
    models = dict.fromkeys("abc", "openai-compatible/mock")
    with endpoint(0.2) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{server.url}/v1")
        ref = create(prepare(models=models, repeats=20), postgres_url)
        words = ["worker", ref.id, "--concurrency", "2"]
        with start_command(*words, url=postgres_url, server=server) as process:
            wait_until(lambda: server.arrived() > 8)
            process.send_signal(signum)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        assert "this worker finishes its calls and leaves" in err
        with read_run(ref) as reader:
            assert reader.matches.counts().get("running", 0) == 0
            assert [row.state for row in reader.snapshot.workers()] == ["left"]
            assert reader.calls.count() == server.arrived()
    call_command("stop", ref.id, "--store", postgres_url, cwd=tmp_path)


# What the user of the command trusts, its workers trust


def test_workers_may_use_what_their_command_was_given(postgres_url, tmp_path):
    """A key at another host than its provider's, a key with a name of its own, and a task in
    another folder: typed by the user, so the workers that the user starts may use them."""
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    for folder in (elsewhere, here):
        folder.mkdir()
    (elsewhere / "game.py").write_text(GAME.read_text())
    with endpoint(0.01) as server:
        found = call_command(
            *("run", str(elsewhere / "game.py"), "-m", "a=bot/trusting"),
            *("-m", "b=openai-compatible/mock", "-M", f"b.base_url={server.url}/v1"),
            *("-M", "b.api_key_env=KEY_OF_MINE", "--repeats", "2", "--workers", "1"),
            *("--store", postgres_url),
            cwd=here,
            env={"KEY_OF_MINE": "planted-key-of-mine"},
        )
    assert "done; written to" in found.err
    ref = open_store(postgres_url).find("last")
    allowed = list_allowances(read_config(ref))
    assert allowed == ["--allow-host", "127.0.0.1", "--allow-env", "KEY_OF_MINE", "--allow-path",
                       str(elsewhere / "game.py")]  # fmt: skip


def read_config(ref):
    with read_run(ref) as reader:
        return reader.info.config


def test_a_worker_that_somebody_else_starts_trusts_no_record(postgres_url, tmp_path, monkeypatch):
    monkeypatch.setenv("KEY_OF_MINE", "planted-key-of-mine")
    options = {"b": {"base_url": "http://gpu.example.org/v1", "api_key_env": "KEY_OF_MINE"}}
    models = {"a": "bot/random", "b": "openai-compatible/mock"}
    ref = create(prepare(models=models, repeats=1, model_options=options), postgres_url)
    found = serve(ref, tmp_path)
    assert f"{ref.location}: models.b.api_key_env: the environment variable KEY_OF" in found.err
    call_command("stop", ref.id, "--store", postgres_url, cwd=tmp_path)

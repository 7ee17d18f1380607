"""A stand-in for the programs `vllm` and `sglang`: their command lines, their addresses, and the
ways in which they fail. Like them it has a child in a session of its own, and prints its settings.

    write_program(folder, "vllm")      makes an executable of that name
    --stand-in slow,stubborn           among the words of the server says how it behaves
    --notes FILE                       where it writes its processes and the requests that it gets
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SAID = '{"coins": 5}'


def write_program(folder, name):
    """An executable with the name of an engine, which runs this file."""
    program = Path(folder) / name
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {name} "$@"\n')
    program.chmod(0o755)
    return program


def make_checkpoint(folder):
    """A folder that looks like a checkpoint, with two special tokens."""
    folder.mkdir(parents=True)
    for name, content in {
        "config.json": {},
        "tokenizer.json": {"added_tokens": [
            {"content": "<|end|>", "special": True},
            {"content": "<|user|>", "special": True},
            {"content": "plain", "special": False},
        ]},
        "model.safetensors": {},
    }.items():  # fmt: skip
        (folder / name).write_text(json.dumps(content))
    return folder


def words_after(words, name):
    return [following for word, following in itertools.pairwise(words) if word == name]


def first(words, name, usual=""):
    return next(iter(words_after(words, name)), usual)


def key_of(program, words):
    if program == "vllm":
        return os.environ.get("VLLM_API_KEY", "")
    [config] = words_after(words, "--config")
    assert os.stat(Path(config).parent).st_mode & 0o077 == 0
    return Path(config).read_text().removeprefix("api-key: ").strip()


def chat(key):
    """Print what a log and a terminal should not get as it is."""
    for piece in (b"key in two pieces: ", key[:9].encode(), f"{key[9:]}\n".encode()):
        os.write(1, piece)
        time.sleep(0.1)
    os.write(1, b"x" * 5_000_000)
    os.write(1, b"\n\x1b[2J\x07\xff\x00\rloading: 50% [/red]")  # no line has ended


def serve(program, words):
    kinds, notes = first(words, "--stand-in").split(","), Path(first(words, "--notes", "/dev/null"))
    name, port, key = (
        first(words, "--served-model-name"),
        first(words, "--port"),
        key_of(program, words),
    )

    def note(**what):
        with notes.open("a") as file:
            file.write(json.dumps(what) + "\n")

    earlier = notes.read_text().count("words") if notes.is_file() else 0
    keys = sorted(name for name in os.environ if name.endswith(("_KEY", "_TOKEN")))
    note(words=words, keys=keys, offline=os.environ.get("HF_HUB_OFFLINE"))
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)
    note(pids=[os.getpid(), child.pid])
    if "silent" in kinds:
        os._exit(4)
    if "killed" in kinds:
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"settings: name={name} api_key={key}", flush=True)
    if "chatty" in kinds:
        chat(key)
    if "stubborn" in kinds:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "slow" in kinds:
        time.sleep(3)
    if "dies-loading" in kinds:
        print("a traceback\nRuntimeError: the weights do not fit into memory", flush=True)
        os._exit(3)
    if "port-taken" in kinds and not earlier:
        print("OSError: [Errno 98] Address already in use", flush=True)
        os._exit(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        asked = 0

        def log_message(self, *_):
            pass

        def answer(self, what, status=200):
            body = json.dumps(what).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def allowed(self):
            if not key or self.headers.get("Authorization") == f"Bearer {key}":
                return True
            self.answer({"error": {"message": "Unauthorized"}}, 401)
            return False

        def do_GET(self):
            if self.allowed():
                self.answer({"data": [{"id": name}]})

        def do_POST(self):
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.allowed():
                return
            Handler.asked += 1
            note(asked=said)
            if "dies-playing" in kinds and Handler.asked >= 3 and not earlier:
                print("RuntimeError: CUDA error: an illegal memory access", flush=True)
                print("\n".join(5 * ["leaked function"]), flush=True)  # as vLLM does in the end
                os._exit(9)
            message = {"role": "assistant", "content": SAID}
            usage = {"prompt_tokens": 7, "completion_tokens": 4}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.answer({"model": name, "choices": [choice], "usage": usage})

    host = first(words, "--host", "127.0.0.1")
    assert host == "127.0.0.1", host
    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])

"""Programs and commands in processes of their own, without the price of starting Python each time.

A server imports Parley once and forks for every request. What a program does to its process ends
with it, and standard streams, folder and environment are its own, as behind a shell."""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from tests.surroundings import hide_other_packages

ROOT = Path(__file__).parents[1]
WITH_IT = ("rapidfuzz", "rich.console", "rich.table", "sacrebleu", "uvloop", "yaml")
# by process: one that was forked has no server of its parent's
_servers: dict[int, tuple[subprocess.Popen[bytes], socket.socket]] = {}


def run_command(*words, cwd, **options):
    """Run `parley WORDS` and return a `subprocess.CompletedProcess`."""
    return _ask(["parley", *map(str, words)], cwd, **options)


def run_program(path, *words, cwd, **options):
    """Run `python PATH WORDS` and return a `subprocess.CompletedProcess`."""
    return _ask([str(path), *map(str, words)], cwd, **options)


def _ask(words, cwd, env=None, stdin="", timeout=100):
    process, connection = _server()
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("stdin", "stdout", "stderr")]
        Path(names[0]).write_text(stdin, encoding="utf-8")
        asked = {
            "words": words,
            "cwd": str(cwd),
            "env": dict(os.environ if env is None else env),
            "streams": names,
        }
        connection.settimeout(timeout)
        try:
            connection.sendall(json.dumps(asked).encode() + b"\n")
            answer = connection.recv(64)
        except TimeoutError:
            _servers.pop(os.getpid())
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise subprocess.TimeoutExpired(words, timeout) from None
        out, err = (Path(name).read_text(encoding="utf-8") for name in names[1:])
    return subprocess.CompletedProcess(words, int(answer), out, err)


def _server():
    """The server of this process, started when it is first needed."""
    if os.getpid() not in _servers:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        _servers[os.getpid()] = process, ours
        atexit.register(_stop, os.getpid())
    return _servers[os.getpid()]


def _stop(owner):
    if owner == os.getpid() and owner in _servers:
        process, connection = _servers.pop(owner)
        connection.close()
        process.wait()


def _serve(connection):
    """Answer requests until nobody asks any more; a child leaves with the request that it runs."""
    with connection.makefile("r", encoding="utf-8") as lines:
        for line in lines:
            child = os.fork()
            if not child:
                asked = json.loads(line)
                break
            _, status = os.waitpid(child, 0)
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        else:
            os._exit(0)
    connection.close()
    return asked


def _become(words, cwd, env, streams):
    """Make this process the one that was asked for, and run what it was asked to run."""
    for number, (name, how) in enumerate(
        zip(streams, (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)
    ):
        opened = os.open(name, how)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    if words[0] == "parley":
        import_module("parley.cli").main()
    else:
        path = os.path.abspath(words[0])
        sys.path[0] = os.path.dirname(path)
        runpy.run_path(path, run_name="__main__")


def load_parley():
    """Import all that a command may need, for good."""
    hide_other_packages()
    import parley

    for found in pkgutil.walk_packages(parley.__path__, "parley."):
        if found.name.endswith("__main__"):
            continue
        try:
            import_module(found.name)
        except ModuleNotFoundError as missing:  # of an extra, which is loaded when it is needed
            if str(missing.name).startswith("parley"):
                raise
    for name in WITH_IT:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()  # what is forked need not look at all of this again, and copy it


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _connection:
        load_parley()
        _asked = _serve(_connection)
    _become(**_asked)

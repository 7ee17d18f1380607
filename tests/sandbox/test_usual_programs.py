"""What ordinary programs use of the system works inside: the filter and the limits are in nobody's
way."""

import asyncio

import pytest

from parley.sandbox.executor import Sandbox
from tests.isolation import isolated

pytestmark = [isolated]
PROGRAMS = {
    "asyncio": """
import asyncio, socket
async def found(x):
    here, there = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=here)
    reader, _ = await asyncio.open_connection(sock=there)
    writer.write(b"%d\\n" % await asyncio.to_thread(lambda: x + 1))
    await writer.drain()
    return int(await reader.readline())
def f(x): return asyncio.run(found(x))
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
def f(x):
    with ThreadPoolExecutor(32) as pool: return sum(pool.map(abs, [x, 1]))
""",
    "processes": """
import multiprocessing
def f(x):
    with multiprocessing.get_context("fork").Pool(8) as pool: return sum(pool.map(abs, [x, 1]))
""",
    "pipes": """
import multiprocessing
def told(end, x): end.send(x + 1)
def f(x):
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=told, args=(there, x))
    process.start()
    found = here.recv()
    process.join()
    return found
""",
    "commands": """
import subprocess, sys
def f(x):
    command = [sys.executable, "-c", f"print({x} + 1)"]
    return int(subprocess.run(command, capture_output=True, start_new_session=True).stdout)
""",
    "databases": """
import sqlite3
def f(x):
    with sqlite3.connect("/tmp/kept") as base:
        base.execute("create table if not exists t (a)")
        base.execute("insert into t values (?)", (x + 1,))
    return base.execute("select max(a) from t").fetchone()[0]
""",
    "a_larger_stack": """
import resource, sys, threading
most = resource.getrlimit(resource.RLIMIT_STACK)[1]
resource.setrlimit(resource.RLIMIT_STACK, (most, most))
sys.setrecursionlimit(10 ** 6)
threading.stack_size(64 << 20)
def f(x): return x + 1
""",
}


@pytest.fixture(scope="module")
def sandbox():
    made = Sandbox(jobs=1)
    yield made
    made.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_works_inside(sandbox, name):
    found = asyncio.run(
        sandbox.execute(
            {
                "code": PROGRAMS[name],
                "tests": ["assert f(1) == 2", "assert f(5) == 6"],
                "names": ["f"],
            }
        )
    )
    assert found["faults"] == ["", ""]

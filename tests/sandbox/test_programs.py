"""Programs in the sandbox: right ones pass, wrong ones do not, and what the machine did wrong is
nobody's failure."""

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from parley.errors import SandboxError, TaskError
from parley.rules.python_tests import parse_tests
from parley.sandbox import cgroups, executor, judges, kinds, process
from parley.sandbox.executor import Sandbox
from parley.sandbox.judging import Doubtful, Verdict
from parley.sandbox.kinds import Bubblewrap
from parley.sandbox.limits import MB, Limits
from parley.sandbox.trials import trial_of
from tests.hostile.drive import processes
from tests.isolation import isolated

pytestmark = [isolated]
RIGHT = {
    "code": "def f(x):\n    return x + 1",
    "tests": ["assert f(1) == 2", "assert f(5) == 6"],
    "names": ["f"],
}
WRONG = {**RIGHT, "code": "def f(x):\n    return x + 2 if x > 2 else x + 1"}
SLEEPING = 60  # seconds
SLEEPS = {
    **RIGHT,
    "code": (
        "import ctypes, time\nctypes.CDLL(None).prctl(15, b'hostile')\ndef f(x):\n"
        f"    time.sleep({SLEEPING})"
    ),
}


@pytest.fixture
def sandbox():
    made = Sandbox(limits=Limits(cpu=3, memory=300 * MB), jobs=2)
    yield made
    made.close()


def verdict(sandbox, program):
    return asyncio.run(sandbox.execute(named(program)))


def named(program):
    """A program of which the tests use whatever they do not define."""
    free = parse_tests(tuple(program.get("tests", ())), "", program.get("prelude", "")).names
    return {"names": free, **program} if free else program


def uid_of(sandbox):
    return sandbox.open().uid or os.getuid()


def zygotes(sandbox):
    """The processes of a sandbox, on this machine."""
    if os.getuid() == 0:
        return set(processes(uid_of(sandbox)))
    return {
        pid
        for pid, name in processes(os.getuid()).items()
        if name.startswith("python") and pid != os.getpid()
    }


def eventually(true, seconds=10.0):
    ends = time.monotonic() + seconds
    while not true() and time.monotonic() < ends:
        time.sleep(0.05)
    return true()


def test_a_right_program_passes_and_a_wrong_one_fails_where_it_is_wrong(sandbox):
    found = verdict(sandbox, RIGHT)
    assert (found["passed"], found["guarantee"], found["end"]) == (True, "values", "")
    found = verdict(sandbox, WRONG)
    assert found["faults"] == ["", "AssertionError"]


VALUES = [
    "None", "True", "-7", "2**200", "1.5", "float('inf')", "'ä\\u2028'", "[1, [2, (3,)]]",
    "{'a': {1: {2}}}", "frozenset({1})",
    "b'ab'", "bytearray(b'x')", "1+2j", "range(3, 9, 2)", "{(1, 2): [3]}",
    "__import__('decimal').Decimal('1.10')",
    "__import__('fractions').Fraction(1, 3)", "__import__('datetime').date(2026, 11, 15)",
    "__import__('datetime').timedelta(1, 2, 3)",
    "__import__('collections').deque([1, 2])", "__import__('collections').Counter('aab')", "{}",
    "[]", "()", "set()",
]  # fmt: skip


def test_values_cross_as_what_they_are(sandbox):
    code = "def f(n):\n    return [" + ", ".join(VALUES) + "][n]\ndef same(x):\n    return x"
    prelude = "expected = [" + ", ".join(VALUES) + "]"
    tests = [f"assert f({n}) == expected[{n}] == same(expected[{n}])" for n in range(len(VALUES))]
    assert verdict(sandbox, {"code": code, "tests": tests, "prelude": prelude})["faults"] == [
        ""
    ] * len(VALUES)


def test_tests_may_use_objects_iterators_errors_and_arguments_that_change(sandbox):
    code = """
class Account:
    def __init__(self, held): self.held = held
    def add(self, more): self.held += more; return self
    def __len__(self): return 3
    def __getitem__(self, at): return at * 2
def squares(n):
    for each in range(n): yield each * each
def put(xs): xs.append(4)
def bad(x): raise ValueError(f"no {x}")
"""
    tests = [
        "a = Account(3)\nassert a.add(4).held == 7 and len(a) == 3 and a[4] == 8",
        (
            "assert list(squares(4)) == [0, 1, 4, 9]\ns = squares(3)\n"
            "assert next(s) == 0 and next(s) == 1"
        ),
        (
            "s = squares(1)\nnext(s)\ntry:\n    next(s)\n    assert False\n"
            "except StopIteration:\n    pass"
        ),
        "xs = [1]\nput(xs)\nassert xs == [1, 4]",
        (
            "try:\n    bad(3)\n    assert False\nexcept ValueError as error:\n"
            "    assert str(error) == 'no 3'"
        ),
    ]
    found = verdict(sandbox, {"code": code, "tests": tests, "classes": ["Account"]})
    assert (found["faults"], found["guarantee"]) == ([""] * 5, "values")


def test_functions_are_handed_over_only_where_the_problem_says_so(sandbox):
    code = "def apply(f, x):\n    return f(x)"
    tests = ["assert apply(lambda x: x + 1, 2) == 3", "assert apply(abs, -1) == 2"]
    found = verdict(sandbox, {"code": code, "tests": tests, "inside": True})
    assert (found["faults"][0], found["guarantee"]) == ("", "inside")
    assert found["faults"][1].startswith("AssertionError")
    found = verdict(sandbox, {"code": code, "tests": tests})
    assert found["guarantee"] == "values"
    assert all("which is not plain data" in fault for fault in found["faults"])


def test_scripts_are_judged_by_what_they_print(sandbox):
    cases = [("2 3\n", "5\n"), ("1 1\n", "3\n")]
    for code in (
        "a, b = map(int, input().split())\nprint(a + b)",
        "import sys\na, b = map(int, sys.stdin.read().split())\nsys.stdout.write(f'{a + b}')",
        "import os\na, b = map(int, open(0).read().split())\nos.write(1, b'%d' % (a + b))",
        (
            "import subprocess\na, b = map(int, input().split())\n"
            "subprocess.run(['echo', str(a + b)])\nraise SystemExit"
        ),
    ):
        assert verdict(sandbox, {"code": code, "cases": cases})["faults"] == [
            "",
            "wrong output",
        ], code
    assert verdict(sandbox, {"code": "exit(3)", "cases": cases})["faults"][0].startswith(
        "RuntimeError: the program exited with status 3"
    )
    assert (
        "printed more than"
        in verdict(sandbox, {"code": "print('x' * 2_000_000)", "cases": cases})["faults"][0]
    )


@pytest.mark.parametrize(
    ("test", "runs_text"),
    [
        ("assert eval(f(1)) == 2", True), ("exec(f(1))", True),
        ("import pickle\npickle.loads(f(1))", True),
        ("from subprocess import run\nrun(f(1))", True), ("import os\nos.system(f(1))", True),
        ("getattr(str, f(1))()", True),
        ("import importlib\nimportlib.import_module(f(1))", True), ("globals()[f(1)]()", True),
        ("compile(f(1), '', 'exec')", True),
        ("from typing import get_type_hints\nassert get_type_hints(f)", True),
        ("import json\nassert json.loads(f(1)) == 2", False),
        ("import re\nassert re.compile('a').match(f(1))", False),
        ("assert getattr(f(1), 'x') == 2", False),
        ("import math\nassert math.isclose(f(1), 2)", False),
    ],
)  # fmt: skip
def test_tests_that_run_text_are_found(test, runs_text):
    assert parse_tests((test,), "", "").runs_text is runs_text
    guarantee = "inside" if runs_text else "values"
    assert trial_of(named({"code": "", "tests": [test]})).guarantee == guarantee


def test_names_are_what_only_the_program_can_define():
    tests = (
        "def near(a, b): return abs(a - b) < EPS\nassert all(near(f(x), y) for x, y in CASES)",
        "match g(1):\n    case [h, *t]: assert h",
    )
    found = parse_tests(tests, "import math as m\nm.pi", "EPS = 1\nCASES = []")
    assert (found.names, found.modules) == (("f", "g"), ())
    found = parse_tests(
        ("assert math.isclose(f(1), bisect(2))\nassert sys.maxsize > f(2)",), "", ""
    )
    assert (found.names, found.modules) == (("bisect", "f"), ("math", "sys"))


EQUAL = "class E:\n    def __eq__(s, o): return True\n    __hash__ = object.__hash__\n"


@pytest.mark.parametrize(
    ("code", "test", "classes"),
    [
        ("def Extract(x): return E()", "assert Extract([1]) == [2]", []),
        ("def Extract(x): return E()", "assert [2] == Extract([1])", []),
        ("class P:\n    def __init__(s, *a): s.x = E()", "assert P(1).x == 12345", []),
        ("class P:\n    def __init__(s, *a): s.x = E()", "assert P(1).x == 12345", ["P"]),
        ("class P(E):\n    def __init__(s, *a): pass", "assert P(1) == 12345", ["P"]),
        ("class P(E):\n    def __init__(s, *a): pass", "assert not P(1) != 12345", ["P"]),
        ("class P(E):\n    def __init__(s, *a): pass", "assert P(1) == None", ["P"]),
        ("class P:\n    def __str__(s): return E()", "assert str(P()) == 'x'", ["P"]),
        ("class P(str, E): pass\ndef f(x): return P('no')", "assert f(1) == 'yes'", []),
        ("def f(x): return [E()]", "assert f(1) == [3]", []),
        ("def f(x): return E()", "assert f(1) in (1, 2)", []),
        (
            "class math:\n    isclose = staticmethod(lambda *a, **k: True)\ndef f(x): return 0.0",
            "assert math.isclose(f(1), 0.3333)",
            [],
        ),
    ],
)
def test_an_object_of_the_program_never_decides_an_equality(sandbox, code, test, classes):
    found = verdict(sandbox, {"code": EQUAL + code, "tests": [test], "classes": classes})
    assert (found["passed"], found["guarantee"]) == (False, "values")


def test_objects_of_classes_have_texts_and_are_not_compared(sandbox):
    code = (
        "class P:\n    def __init__(s, x): s.x = x\n    def __str__(s): return f'<{s.x}>'\n"
        "    def __eq__(s, o): return s.x == o.x\n    def __repr__(s): return f'P({s.x})'"
    )
    tests = [
        "assert str(P(3)) == f'{P(3)}' == '<3>' and repr(P(4)) == 'P(4)'",
        "assert P(1) != None",
    ]
    program = {"code": code, "tests": tests, "classes": ["P"]}
    found = verdict(sandbox, program)
    assert (found["passed"], found["guarantee"]) == (True, "values")
    compared = {**program, "tests": ["assert P(1) == P(1)", "assert P(1) == P(2)"]}
    found = verdict(sandbox, compared)
    assert found["guarantee"] == "values"
    assert [each[:7] for each in found["faults"]] == ["NotData"] * 2
    found = verdict(sandbox, {**compared, "inside": True})
    assert [each[:14] for each in found["faults"]] == ["", "AssertionError"]


def test_names_that_tests_leave_open_come_from_the_judge_or_from_nobody(sandbox):
    right = {"code": "def f(x): return x / 3", "tests": ["assert math.isclose(f(1), 1 / 3)"]}
    assert verdict(sandbox, right)["passed"]
    for test, name in (
        ("assert f(1) == approx(0.5)", "approx"),
        ("assertEqual(f(1), 8)", "assertEqual"),
    ):
        with pytest.raises(TaskError, match=f"'{name}', but nothing defines this name"):
            trial_of({"code": "def f(x): return x", "tests": [test], "names": ["f"]})
    unpickled = {"code": "", "tests": ["assert pickle.loads(f(1)) == 2"], "names": ["f"]}
    assert trial_of(unpickled).guarantee == "inside"


@pytest.mark.parametrize(
    "program",
    [
        {"code": "x"}, {"code": 3, "tests": ["assert 1"]}, {**RIGHT, "cases": [("", "")]},
        {**RIGHT, "tests": ["assert ("]},
        {**RIGHT, "tests": ["return 3"]}, {**RIGHT, "other": 1}, {**RIGHT, "names": "f"},
        {**RIGHT, "names": [3]}, {**RIGHT, "names": []}, {**RIGHT, "tests": ["\0"]},
    ],
)  # fmt: skip
def test_mistakes_of_a_task_are_its_authors(program):
    with pytest.raises(TaskError):
        trial_of(program)


def test_many_threads_and_more_problems_than_judges_are_kept(sandbox):
    def program(n):
        return {
            "code": f"def f(x):\n    return x + {n % 3}",
            "tests": [f"assert f({n}) == {n + 1}"],
            "names": ["f"],
        }

    async def all_at_once():
        return await asyncio.gather(*(sandbox.execute(program(n)) for n in range(3 * judges.MOST)))

    assert [found["passed"] for found in asyncio.run(all_at_once())] == [
        n % 3 == 1 for n in range(3 * judges.MOST)
    ]


def test_two_programs_at_once_do_not_see_each_other(sandbox):
    """One leaves traces wherever it may and waits; the other, meanwhile, is right only if it finds
    one."""
    traces = """
import os, time
PLACES = [f"{place}/trace" for place in ("/tmp", "/dev/shm", "/run", "/var/tmp", "/dev/pts", os.getcwd())]
def leave():
    for place in PLACES:
        try: open(place, "w").close()
        except OSError: pass
def seen():
    others = 0
    for pid in range(1, 3000):
        try: os.kill(pid, 0); others += pid != os.getpid()
        except OSError: pass
    return others or any(map(os.path.exists, PLACES))
"""  # noqa: E501
    leaves = {
        "code": traces
        + (
            "def f(x):\n    leave()\n    time.sleep(0.8)\n"
            "    return any(map(os.path.exists, PLACES))"
        ),
        "tests": ["assert f(1)"],
        "names": ["f"],
    }
    looks = {
        "code": traces + "def f(x):\n    time.sleep(0.3)\n    return bool(seen())",
        "tests": ["assert f(1)"],
        "names": ["f"],
    }

    async def both():
        return await asyncio.gather(sandbox.execute(leaves), sandbox.execute(looks))

    assert [found["faults"] for found in asyncio.run(both())] == [[""], ["AssertionError"]]


def test_two_runs_at_once_share_nothing(sandbox):
    other = Sandbox(jobs=1)
    try:
        if os.getuid() == 0:
            assert uid_of(sandbox) != uid_of(other)

        async def both():
            return await asyncio.gather(
                *(each.execute(RIGHT) for each in (sandbox, other) for _ in range(4))
            )

        assert all(found["passed"] for found in asyncio.run(both()))
    finally:
        other.close()
    assert verdict(sandbox, RIGHT)["passed"]


@pytest.mark.skipif(os.getuid() != 0, reason="processes are told apart by a user of their own")
@pytest.mark.parametrize("which", ["first", "judge"])
def test_a_killed_sandbox_is_replaced_and_the_program_judged(sandbox, which):
    slow = {**RIGHT, "code": "import time\ndef f(x):\n    time.sleep(0.7)\n    return x + 1"}
    before, kind = zygotes(sandbox), sandbox.kind

    def kill():
        time.sleep(0.4)
        for pid in before if which == "first" else zygotes(sandbox) - before:
            with suppress(ProcessLookupError):  # it went with another
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = verdict(sandbox, slow)
    killer.join()
    assert found["passed"], found
    assert verdict(sandbox, RIGHT)["passed"]
    assert sandbox.kind is kind


@pytest.mark.skipif(os.getuid() != 0, reason="processes are told apart by a user of their own")
def test_an_idle_judge_that_was_killed_is_replaced(sandbox):
    before = zygotes(sandbox)
    assert verdict(sandbox, RIGHT)["passed"]
    for pid in zygotes(sandbox) - before:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert verdict(sandbox, RIGHT)["passed"]


def test_a_program_killed_from_outside_twice_is_an_error_and_no_failure(sandbox, monkeypatch):
    tries = []

    def killed(*_):
        tries.append(1)
        raise Doubtful("a program was ended from outside (signal 9)")

    monkeypatch.setattr(executor, "run_trial", killed)
    with pytest.raises(SandboxError, match="could not be judged"):
        verdict(sandbox, RIGHT)
    assert len(tries) == 2


def test_a_timeout_by_the_clock_counts_only_the_second_time(sandbox, monkeypatch):
    late = Verdict(("no answer in time",) * 2, end="timeout")
    tried = []

    def judged(first, trial, *_):
        tried.append(trial.code)
        if trial.code == "twice" or (trial.code == "once" and tried.count("once") == 1):
            raise Doubtful("no answer in time", late)
        return Verdict(("", ""))

    monkeypatch.setattr(executor, "run_trial", judged)

    async def all_at_once():
        return await asyncio.gather(
            *(sandbox.execute({**RIGHT, "code": code}) for code in ("twice", "once", "a", "b", "c"))
        )

    found = asyncio.run(all_at_once())
    assert [each["passed"] for each in found] == [False, True, True, True, True]
    assert sorted(tried) == ["a", "b", "c", "once", "once", "twice", "twice"]


def test_those_who_sleep_keep_nobody_waiting(sandbox, monkeypatch):
    """Sleepers hold both places, and many more wait before the honest ones; nobody wakes up before
    all of these are judged."""
    awake = threading.Event()

    def judged(first, trial, *_):
        if trial.code == "sleeps" and not awake.wait(60):
            raise AssertionError("the honest programs waited for those who sleep")
        return Verdict(("", ""))

    monkeypatch.setattr(executor, "run_trial", judged)
    monkeypatch.setattr(executor, "TURN", 0.01)

    async def all_at_once():
        sleepers = [
            asyncio.create_task(sandbox.execute({**RIGHT, "code": "sleeps"})) for _ in range(5)
        ]
        await asyncio.sleep(0)
        honest = await asyncio.gather(
            *(sandbox.execute({**RIGHT, "code": str(n)}) for n in range(60))
        )
        assert not any(each.done() for each in sleepers)
        awake.set()
        return honest + await asyncio.gather(*sleepers)

    assert all(each["passed"] for each in asyncio.run(all_at_once()))


def test_one_who_runs_out_of_time_takes_nobody_of_his_problem_with_him():
    """Both are before the same judge when the first is given up."""
    sandbox = Sandbox(limits=Limits(wall=3.0), jobs=2)
    sleeper = {**RIGHT, "code": "import time\ndef f(x):\n    time.sleep(60)"}
    slow = {**RIGHT, "code": "import time\ndef f(x):\n    time.sleep(1)\n    return x + 1"}

    async def both():
        late = asyncio.create_task(sandbox.execute(sleeper))
        await asyncio.sleep(2)
        return await asyncio.gather(sandbox.execute(slow), late)

    right, late = asyncio.run(both())
    assert right["passed"], right
    assert late["end"] == "timeout"
    sandbox.close()


def test_a_bounded_number_of_programs_runs_beside_others(sandbox, monkeypatch):
    at_once, most, awake = set(), [0], threading.Event()

    def judged(first, trial, *_):
        at_once.add(trial.code)
        most[0] = max(most[0], len(at_once))
        assert awake.wait(60)
        at_once.discard(trial.code)
        return Verdict(("", ""))

    monkeypatch.setattr(executor, "run_trial", judged)
    monkeypatch.setattr(executor, "TURN", 0.001)

    async def many():
        tasks = [asyncio.create_task(sandbox.execute({**RIGHT, "code": str(n)})) for n in range(20)]
        full = sandbox.jobs + executor.LONG
        assert await asyncio.to_thread(eventually, lambda: len(at_once) == full)
        await asyncio.sleep(0.05)
        awake.set()
        return await asyncio.gather(*tasks)

    assert all(each["passed"] for each in asyncio.run(many()))
    assert most == [sandbox.jobs + executor.LONG]


def test_under_load_a_wall_timeout_is_repeated(monkeypatch):
    """What takes long by the clock only the first time passes."""
    sandbox = Sandbox(limits=Limits(wall=3.0), jobs=2)
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        needs = {
            **RIGHT,
            "code": (
                "import time\nwhile time.process_time() < 0.2: pass\ndef f(x):\n    return x + 1"
            ),
        }
        assert verdict(sandbox, needs)["passed"]
    finally:
        for each in hogs:
            each.kill()
            each.wait()
        sandbox.close()


@pytest.mark.parametrize("warm", [True, False])
def test_a_cancelled_program_is_gone_when_the_cancellation_is(warm):
    sandbox = Sandbox(jobs=1, warm=warm)
    uid = uid_of(sandbox)

    async def cancelled():
        task = asyncio.create_task(sandbox.execute(SLEEPS))
        assert await asyncio.to_thread(eventually, lambda: processes(uid, "hostile"))
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < SLEEPING  # ended, not waited for
        assert not processes(uid, "hostile")
        assert (await sandbox.execute(RIGHT))["passed"]

    asyncio.run(cancelled())
    sandbox.close()


@pytest.mark.parametrize("warm", [True, False])
def test_closing_in_mid_flight_leaves_nothing(warm):
    sandbox = Sandbox(jobs=2, warm=warm)
    uid = uid_of(sandbox)

    async def closed():
        tasks = [asyncio.create_task(sandbox.execute(SLEEPS)) for _ in range(2)]
        assert await asyncio.to_thread(eventually, lambda: len(processes(uid, "hostile")) == 2)
        began = time.monotonic()
        await asyncio.to_thread(sandbox.close)
        assert time.monotonic() - began < SLEEPING
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, SandboxError) for each in found), found

    asyncio.run(closed())
    assert not processes(uid, "hostile")
    if os.getuid() == 0:
        assert not processes(uid)
    with pytest.raises(SandboxError, match="closed"):
        verdict(sandbox, RIGHT)


def test_nothing_survives_the_host(tmp_path):
    code = f"""
import asyncio, os
from parley.sandbox.executor import Sandbox
sandbox = Sandbox(jobs=1)
print(sandbox.open().uid or os.getuid(), flush=True)
asyncio.run(sandbox.execute({SLEEPS!r}))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        uid = int(host.stdout.readline())
        assert eventually(lambda: processes(uid, "hostile"))
        host.kill()
    assert eventually(lambda: not processes(uid, "hostile"))
    if uid != os.getuid():
        assert eventually(lambda: not processes(uid))


def fake(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "not installed"), ("#!/bin/sh\necho no rights >&2\nexit 1\n", "no rights"),
        ("#!/bin/sh\necho rubbish and more rubbish\nexec cat >/dev/null\n", "did not start"),
        ("#!/nowhere\n", "did not start"),
        ("\x7fELF nonsense", "did not start"), ("#!/bin/sh\nkill -9 $$\n", "did not start"),
    ],
)  # fmt: skip
def test_a_missing_or_broken_bubblewrap_is_an_error_with_its_remedy(
    tmp_path, monkeypatch, script, words
):
    if script is not None:
        fake(tmp_path, "bwrap", script)
    monkeypatch.setattr(
        kinds.shutil, "which", lambda name: str(tmp_path / name) if script is not None else None
    )
    sandbox = Sandbox(jobs=1)
    with pytest.raises(SandboxError, match=words) as caught:
        verdict(sandbox, RIGHT)
    assert "apt-get install bubblewrap" in str(caught.value)
    assert "--unsafe-run-code-without-isolation" in str(caught.value)
    sandbox.close()


def test_without_a_memory_group_the_watch_ends_what_takes_too_much(monkeypatch):
    monkeypatch.setattr(executor, "make_limited_group", lambda most: None)
    sandbox = Sandbox(limits=Limits(memory=200 * MB), jobs=1)
    many = """
import os, time
def f(x):
    for _ in range(12):
        if os.fork() == 0:
            held = bytearray(b'x') * (50 << 20)
            time.sleep(3)
            os._exit(0)
    time.sleep(2)
    return x + 1
"""
    found = verdict(sandbox, {**RIGHT, "code": many})
    assert (found["end"], found["passed"]) == ("memory", False)
    modest = """
import os, time
def f(x):
    for _ in range(30):
        if os.fork() == 0:
            time.sleep(0.4)
            os._exit(0)
    time.sleep(0.3)
    return x + 1
"""
    assert verdict(sandbox, {"code": modest, "tests": ["assert f(1) == 2"]})[
        "passed"
    ]  # what forked processes share is counted once
    sandbox.close()


ANONYMOUS = "mmap.mmap(-1, 90 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)"


@pytest.mark.parametrize(
    ("make", "hide"),
    [
        (ANONYMOUS, ""),
        ("mmap.mmap(os.open('/dev/zero', os.O_RDWR), 90 << 20)", ""),
        (ANONYMOUS, "libc.prctl(4, 0, 0, 0, 0)"),
    ],
    ids=["anonymous", "zeros", "hidden"],
)
def test_memory_without_a_file_cannot_be_shared(monkeypatch, make, hide):
    """Its pages stay when they are dropped or unmapped, and nobody could count them."""
    monkeypatch.setattr(executor, "make_limited_group", lambda most: None)
    sandbox = Sandbox(limits=Limits(memory=200 * MB), jobs=1)
    code = "import ctypes, mmap, os\nlibc = ctypes.CDLL(None)\ndef f(x):\n"
    code += f"    {hide or 'pass'}\n    m = {make}"
    found = verdict(sandbox, {"code": code, "tests": ["assert f(1) is None"]})
    assert not found["passed"], found
    sandbox.close()


def test_processes_of_a_program_may_share_a_file(sandbox):
    code = """
import mmap, os
def f(x):
    file = os.open("shared", os.O_RDWR | os.O_CREAT)
    os.truncate(file, 4096)
    m = mmap.mmap(file, 4096)
    if (child := os.fork()) == 0:
        m[0] = x + 1
        os._exit(0)
    os.waitpid(child, 0)
    return m[0]
"""
    assert verdict(sandbox, {"code": code, "tests": ["assert f(1) == 2"]})["passed"]


def test_what_sockets_hold_counts(monkeypatch):
    monkeypatch.setattr(executor, "make_limited_group", lambda most: None)
    sandbox = Sandbox(limits=Limits(memory=100 * MB), jobs=1)
    code = """
import os, socket, time
def f(x):
    filled, done = os.pipe()
    for _ in range(30):
        if os.fork() == 0:
            held = []
            while len(held) < 20:
                held.append(socket.socketpair())
                held[-1][0].setblocking(False)
                try:
                    while True:
                        held[-1][0].send(b'x' * 60000)
                except BlockingIOError:
                    pass
            os.write(done, b"x")
            time.sleep(20)
            os._exit(0)
    for _ in range(30):
        os.read(filled, 1)
    time.sleep(15)
    return x + 1
"""
    found = verdict(sandbox, {"code": code, "tests": ["assert f(1) == 2"]})
    assert (found["end"], found["passed"]) == ("memory", False), found
    sandbox.close()


def test_locks_of_a_program_reach_nobody(sandbox):
    """It is told that it has them, and the file of this machine is free."""
    place = "/usr/bin/env"
    code = f"""
import fcntl, time
def f(x):
    f.file = open({place!r})
    fcntl.lockf(f.file, fcntl.LOCK_SH)
    fcntl.fcntl(f.file, 37, bytes(32))
    return x + 1
def g(x):
    time.sleep(1)
    return x
"""

    async def both():
        work = asyncio.create_task(
            sandbox.execute(named({"code": code, "tests": ["assert f(1) == 2 and g(3) == 3"]}))
        )
        seen = set()
        with open(place) as file:  # noqa: ASYNC230
            while not work.done():
                asked = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
                seen.add(struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked))[0])
                await asyncio.sleep(0.01)
        return await work, seen

    found, seen = asyncio.run(both())
    assert found["passed"]
    assert seen == {fcntl.F_UNLCK}


def test_a_group_that_cannot_be_entered_is_none(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    # a folder, but no control group
    assert cgroups.make_limited_group(1 << 30, tmp_path, "4:memory:/\n") is None
    assert list(folder.iterdir()) == []
    assert cgroups.make_limited_group(1 << 30, tmp_path / "nowhere", "0::/\n") is None
    assert cgroups.make_limited_group(1 << 30, tmp_path, "7:cpu:/\n") is None


def test_a_full_disk_or_no_descriptors_are_errors_of_the_machine(monkeypatch):
    sandbox = Sandbox(jobs=1)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    async def short_of_everything():
        with monkeypatch.context() as patch:
            # nothing here needs a file
            patch.setattr(process.tempfile, "_get_default_tempdir", full)
            patch.setattr(process.tempfile, "tempdir", "/nowhere")
            assert (await sandbox.execute(RIGHT))["passed"]
            patch.setattr(process.socket, "socketpair", full)
            with pytest.raises(SandboxError, match="No space"):
                await sandbox.execute(RIGHT)
        assert (await sandbox.execute(RIGHT))["passed"]

    asyncio.run(short_of_everything())
    sandbox.close()


def test_no_place_for_a_bare_programs_folder_is_an_error_of_the_machine(monkeypatch):
    monkeypatch.setattr(process.tempfile, "tempdir", "/nowhere")
    sandbox = Sandbox("none", jobs=1)
    with pytest.raises(SandboxError):
        verdict(sandbox, RIGHT)
    sandbox.close()


def test_the_flat_form_judges_too(monkeypatch):
    monkeypatch.setattr(
        executor,
        "start_first",
        lambda choice, limits, group: executor.start_and_try(
            Bubblewrap(nested=False), limits, group
        ),
    )
    sandbox = Sandbox(jobs=2)
    assert [verdict(sandbox, each)["passed"] for each in (RIGHT, WRONG)] == [True, False]
    sandbox.close()


def test_no_descriptor_is_kept(sandbox):
    assert verdict(sandbox, RIGHT)["passed"]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        verdict(sandbox, RIGHT)
        verdict(sandbox, WRONG)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_bare_works_is_marked_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
    sandbox = Sandbox("none", jobs=1)
    assert [verdict(sandbox, each)["passed"] for each in (RIGHT, WRONG)] == [True, False]
    daemon = (
        "import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'hostile-bare')\n"
        "open('kept', 'w').close()\n"
    )
    daemon += (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(60)\n"
        "def f(x):\n    return x + 1"
    )
    assert verdict(sandbox, {**RIGHT, "code": daemon})["passed"]
    assert not processes(os.getuid(), "hostile-bare")
    assert list(tmp_path.iterdir()) == []
    assert sandbox.open().name == "none"
    sandbox.close()


def test_the_folder_of_a_bare_program_goes_with_its_killed_host(tmp_path):
    code = f"""
import asyncio, tempfile
from parley.sandbox.executor import Sandbox
tempfile.tempdir = {str(tmp_path)!r}
asyncio.run(Sandbox("none", jobs=1).execute({SLEEPS!r}))
"""
    with subprocess.Popen([sys.executable, "-c", code]) as host:
        # the program's and the judge's
        assert eventually(lambda: len(list(tmp_path.iterdir())) == 2)
        time.sleep(0.5)
        host.kill()
    assert eventually(lambda: list(tmp_path.iterdir()) == [])


def test_modules_sent_inside_need_nothing_but_the_standard_library():
    for name, text in process.SOURCES:
        assert "import parley\n" not in text, name
    assert Path(process.__file__).parent.joinpath("inside").is_dir()


def test_a_program_cannot_have_itself_killed_to_stop_the_run(sandbox):
    code = (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\ndef answer(x):\n"
        "    while True: pass"
    )
    found = verdict(sandbox, {"code": code, "tests": ["assert answer(1) == 1"]})
    # it may not set that limit
    assert found["faults"][0].startswith(("ValueError", "PermissionError"))


def test_only_line_feeds_end_lines(sandbox):
    for wrong in ("\\x0c", "\\u2028", "\\x1c"):
        found = asyncio.run(
            sandbox.execute({"code": f"print('a{wrong}b')", "cases": [("", "a\nb")]})
        )
        assert not found["passed"]


def test_objects_that_an_object_holds_do_not_lead_inside(sandbox):
    code = EQUAL + "class P:\n    def __init__(s): s.x = E()\n"
    for test in ("assert P().x == P().x", "assert {P().x}", "assert -P().x", "assert P().x < 3"):
        found = verdict(sandbox, {"code": code, "tests": [test], "classes": ["P"]})
        assert (found["passed"], found["guarantee"]) == (False, "values"), test


def test_a_name_of_pythons_own_that_the_program_lacks_is_not_there(sandbox):
    program = {"code": "", "tests": ["assert sum([1, 2]) == 3"], "names": ["sum"]}
    assert not verdict(sandbox, program)["passed"]
    program["code"] = "def sum(xs):\n    return max(xs) + min(xs)"
    assert verdict(sandbox, program)["passed"]

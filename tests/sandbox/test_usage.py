"""What a watcher reads of the processes that it watches: memory and time that somebody tries to
hide."""

import os
import subprocess
import sys
import time

import pytest

from parley.sandbox.inside import usage
from parley.sandbox.inside.usage import ProcessFacts, Times, all_below, memory_of, processes
from parley.sandbox.limits import MB

TICK = usage.TICKS
HEADLESS = """
import ctypes, os, threading, time
def hold():
    time.sleep(0.1)
    held = bytearray(b"x") * (64 << 20)
    os.write(1, b"x")
    time.sleep(60)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)
"""


def alone(own=0, collected=0, parent=1):
    return ProcessFacts(parent, False, own, collected)


def test_memory_is_seen_where_the_first_thread_has_ended():
    with subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout.read(1) == b"x"
            family = {started.pid: processes()[started.pid]}
            assert family[started.pid].headless
            assert usage.read_resident(started.pid) == 0
            for enough in (0, 1 << 40):
                assert 64 * MB < memory_of(family, enough) < 128 * MB
        finally:
            started.kill()


def test_a_process_whose_threads_all_live_or_have_all_ended_is_not_headless():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    here = processes()
    os.waitpid(pid, 0)
    assert not here[pid].headless
    assert not here[os.getpid()].headless
    assert pid in all_below(os.getpid(), here)


def test_time_of_children_that_were_waited_for_counts_once():
    times = Times()
    assert times.seconds({1: alone(own=TICK), 2: alone(own=2 * TICK)}) == 3
    assert times.seconds({1: alone(own=TICK, collected=2 * TICK)}) == 3
    assert times.seconds({1: alone(own=2 * TICK, collected=3 * TICK)}) == 5


def test_time_of_children_that_nobody_waited_for_counts():
    times = Times()
    for pid in range(2, 10):
        found = times.seconds({1: alone(), pid: alone(own=TICK)})
    assert found == 8
    assert times.seconds({1: alone()}) == 8


def test_time_of_real_children_is_seen():
    def burnt(seconds):
        if (pid := os.fork()) == 0:
            while time.process_time() < seconds:
                pass
            os._exit(0)
        return pid

    def now():
        return times.seconds(
            {os.getpid(): (here := processes())[os.getpid()], **all_below(os.getpid(), here)}
        )

    times = Times()
    before = now()
    os.waitpid(burnt(0.2), 0)
    assert now() - before >= 0.18


@pytest.mark.parametrize("clock", ["process_time", "monotonic"])
def test_a_look_that_takes_too_long_counts_what_is_shared_as_often_as_it_is_held(
    monkeypatch, clock
):
    now = [0.0]
    read = []

    def slow(pid, with_shared):
        read.append(pid)
        now[0] += 0.6
        return 1

    monkeypatch.setattr(usage, "own_memory", slow)
    monkeypatch.setattr(usage, "read_resident", lambda pid: 100)
    monkeypatch.setattr(usage.time, clock, lambda: now[0])
    family = {pid: alone() for pid in range(1000, 1040)}
    assert memory_of(family, 4000) == 4000
    assert read == []
    assert memory_of(family, 3999) == 4000
    assert len(read) == {"process_time": 1, "monotonic": 2}[clock]
    assert memory_of({1000: alone()}, 10) == 1

"""Processes that a model left running try to wake up during a check, read what it expects, and
write it where the check looks."""

import asyncio
import os
import secrets
import shutil

import pytest

from parley.sandbox import seccomp
from parley.sandbox import shell as shell_module
from parley.sandbox.shell import Shell

if shutil.which("bwrap") is None and not os.environ.get("CI"):
    pytest.skip("bubblewrap is not installed", allow_module_level=True)

# What every attacker does while it is awake: find the value in what it can read of other processes.
LOOK = r"""
import ctypes, fcntl, glob, os, re, signal, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
VALUE = re.compile(rb"value-[0-9a-f]{24}")
open("/data/ready", "w").close()

def look():
    for place in glob.glob("/proc/[0-9]*"):
        if int(place[6:]) in (1, os.getpid()):
            continue
        for name in ("cmdline", "environ", "fd/250", "fd/0"):
            try:
                with open(f"{place}/{name}", "rb") as file:
                    found = VALUE.search(file.read(1 << 16))
            except OSError:
                continue
            if found:
                with open("/data/answer", "wb") as file:
                    file.write(found[0])
                with open("/data/caught", "w") as file:
                    file.write(name)
"""
ATTACKS = {
    "timers": r"""
FIRST = 300_000
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int),
                ("rest", ctypes.c_char * 48)]
timers = []
for _ in range(12):
    timer = ctypes.c_void_p()
    if libc.timer_create(1, ctypes.byref(Event(None, signal.SIGCONT, 0)), ctypes.byref(timer)) == 0:
        timers.append(timer)
while True:
    for number, timer in enumerate(timers):
        when = struct.pack("llll", 0, 0, 0, FIRST + 160_000 * number)
        libc.timer_settime(timer, 0, when, None)
    look()
""",
    "signals of a pipe": r"""
read, write = os.pipe()
try:
    fcntl.fcntl(read, 10, signal.SIGCONT)
except OSError:
    pass
fcntl.fcntl(read, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
if os.fork() == 0:
    os.nice(19)
    while True:
        os.write(write, b"x")
while True:
    look()
""",
    "a parent's end": r"""
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for _ in range(20):
    if os.fork() == 0:
        libc.prctl(1, signal.SIGCONT, 0, 0, 0)
        if os.fork() == 0:
            os.setpgid(0, 0)
            libc.prctl(1, signal.SIGCONT, 0, 0, 0)
            while True:
                look()
        time.sleep(0.01)
        os._exit(0)
while True:
    look()
""",
    "an idle thread without its first": r"""
def idle():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        look()
for _ in range(4):
    threading.Thread(target=idle).start()
libc.pthread_exit(None)
""",
    "children that report": r"""
signal.signal(signal.SIGCHLD, lambda *_: look())
for _ in range(10):
    if os.fork() == 0:
        while True:
            os.kill(os.getppid(), signal.SIGCONT)
            os.kill(os.getppid(), signal.SIGCHLD)
while True:
    look()
""",
}
SLOW_CHECK = (
    'for n in $(seq 30); do md5sum /usr/bin/env >/dev/null; done; test "$(cat /data/answer)" = "$1"'
)


async def attack(source, rounds):
    """How many checks were forged, and by what."""
    async with Shell() as shell:
        await shell.prepare("mkdir -p /data && touch /data/answer && chmod 777 /data")
        written = await shell.run(f"cat > /data/attack.py <<'END'\n{LOOK}{source}\nEND")
        assert written["status"] == 0
        started = await shell.run(
            "python3 /data/attack.py >/dev/null 2>&1 &\n"
            "until [ -e /data/ready ]; do sleep 0.05; done"
        )
        assert started["status"] == 0, "the attacker did not start"
        forged = []
        for _ in range(rounds):
            checked = await shell.check(SLOW_CHECK, f"value-{secrets.token_hex(12)}", timeout=60)
            if checked["status"] == 0:
                forged.append((await shell.run("cat /data/caught"))["output"])
        return forged


@pytest.mark.parametrize("name", ATTACKS)
def test_no_process_of_the_model_forges_a_check(name):
    assert asyncio.run(attack(ATTACKS[name], 3)) == []


@pytest.mark.parametrize("held", [True, False])
def test_a_check_during_which_somebody_moved_is_repeated_with_nobody_there(monkeypatch, held):
    """Without the filter timers wake the attacker. If it is held, it stays where it is. Where
    nobody may be held it is seen, and it still finds no value."""
    monkeypatch.setattr(seccomp, "NOT_IN_SHELLS", {})
    if not held:
        plain = shell_module.sources
        none = "def hold_processes(pids): return []\ndef release(thread): pass\n"
        monkeypatch.setattr(
            shell_module,
            "sources",
            lambda *names: [
                (name, none if name.endswith(".hold") else text) for name, text in plain(*names)
            ],
        )

    async def act():
        async with Shell() as shell:
            await shell.prepare("mkdir -p /data && touch /data/answer /data/caught")
            # they fire long after everybody was stopped, and while the check sleeps
            late = ATTACKS["timers"].replace("FIRST = 300_000", "FIRST = 500_000_000")
            await shell.run(f"cat > /data/attack.py <<'END'\n{LOOK}{late}\nEND")
            await shell.run(
                "python3 /data/attack.py >/dev/null 2>&1 &\n"
                "until [ -e /data/ready ]; do sleep 0.05; done; sleep 0.3"
            )
            wrong = await shell.check(
                f"sleep 1; {SLOW_CHECK}", f"value-{secrets.token_hex(12)}", timeout=60
            )
            after = await shell.run("cat /data/caught; pgrep -c python3")
            right = await shell.check('test -e "$1"', "/data/answer", timeout=60)
            return wrong["status"], after["output"], after["restarted"], right["status"]

    status, output, restarted, right = asyncio.run(act())
    assert restarted == ("" if held else "a background process of the model ran during a check")
    assert (status, output, right) == (1, "1\n" if held else "0\n", 0)


# The kernel wakes a stopped process when its group has lost its last parent.
ORPHANS = """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
    while True:
        if QUIET and os.getppid() == 1:
            if os.fork() == 0:
                while True:
                    look()
            os._exit(0)
        look()
with open("/data/pid", "w") as file:
    file.write(str(os.getpid()))
time.sleep(100)
"""


@pytest.mark.parametrize("quiet", [False, True])
def test_nobody_wakes_when_a_check_ends_its_parent(quiet):
    async def act():
        async with Shell() as shell:
            await shell.prepare("mkdir -p /data && touch /data/answer")
            source = f"{LOOK}QUIET = {quiet}\n{ORPHANS}"
            await shell.run(
                f"cat > /data/attack.py <<'END'\n{source}\nEND\n"
                "python3 /data/attack.py >/dev/null 2>&1 &\n"
                "until [ -s /data/pid ]; do sleep 0.05; done; sleep 0.3"
            )
            check = (
                'kill -9 $(cat /data/pid); for n in $(seq 60); do expr "$1" : x >/dev/null; done; '
                'test "$(cat /data/answer)" = "$1"'
            )
            await shell.check(check, f"value-{secrets.token_hex(12)}", timeout=60)
            return await shell.run("cat /data/answer")

    assert asyncio.run(act())["output"] == ""


# A parent in vfork cannot be stopped as long as its child lives. It would run when a check ends the
# child, and the end of its own parent has taken the stop from it.
VFORK = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void note(const char *place) {
    int file = open(place, O_CREAT | O_WRONLY, 0644);
    dprintf(file, "%d", getpid());
    close(file);
}
static void look(void) {
    struct dirent *entry;
    DIR *folder = opendir("/proc");
    while ((entry = readdir(folder))) {
        char place[300], text[4096], *value;
        snprintf(place, sizeof place, "/proc/%s/cmdline", entry->d_name);
        int file = open(place, O_RDONLY), size = file < 0 ? 0 : read(file, text, sizeof text);
        if (file >= 0) close(file);
        if (size > 30 && (value = memmem(text, size - 30, "value-", 6))) {
            file = open("/data/answer", O_CREAT | O_WRONLY | O_TRUNC, 0644);
            write(file, value, 30);
            close(file);
        }
    }
    closedir(folder);
}
int main(void) {
    signal(SIGHUP, SIG_IGN);
    if (fork() == 0) {
        setpgid(0, 0);
        if (vfork() == 0) {
            note("/data/child");
            for (;;) usleep(100000);
        }
        for (;;) look();
    }
    note("/data/parent");
    sleep(100);
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_nobody_wakes_who_could_not_be_stopped():
    async def act():
        async with Shell() as shell:
            await shell.prepare("mkdir -p /data && touch /data/answer")
            await shell.run(
                f"cat > /data/a.c <<'END'\n{VFORK}\nEND\ngcc -w -o /data/a /data/a.c; /data/a &\n"
                "until [ -s /data/child -a -s /data/parent ]; do sleep 0.05; done; sleep 0.3",
                timeout=60,
            )
            check = (
                "kill -9 $(cat /data/parent); kill -9 $(cat /data/child); "
                'for n in $(seq 60); do expr "$1" : x >/dev/null; done'
            )
            await shell.check(check, f"value-{secrets.token_hex(12)}", timeout=60)
            return await shell.run("cat /data/answer")

    assert asyncio.run(act())["output"] == ""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_who_could_not_be_stopped_goes_on_after_a_check():
    source = """#include <unistd.h>
int main(void) { if (vfork() == 0) { usleep(900000); _exit(0); } return unlink("/data/waiting"); }
"""

    async def act():
        async with Shell() as shell:
            await shell.prepare("mkdir -p /data && touch /data/waiting")
            await shell.run(
                f"cat > /data/a.c <<'END'\n{source}\nEND\ngcc -w -o /data/a /data/a.c; /data/a &",
                timeout=60,
            )
            await shell.check("true")
            return await shell.run(
                "for n in $(seq 200); do [ -e /data/waiting ] || break; sleep 0.1; done; ls /data",
                timeout=60,
            )

    assert "waiting" not in asyncio.run(act())["output"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_not_one_of_two_hundred_checks_is_forged(name):
    assert asyncio.run(attack(ATTACKS[name], 200)) == []

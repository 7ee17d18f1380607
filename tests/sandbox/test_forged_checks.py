"""Models attack the checks of their tasks: with processes that they left running, links, files
beside programs, and programs that a check starts."""

import asyncio
import os
import secrets
import shutil
from dataclasses import replace

import pytest

from parley.sandbox.limits import MB
from parley.sandbox.shell import SHELL, Shell

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


def checked(
    attack, check, *arguments, language="bash", prepared="", timeout=60, proc=False, **options
):
    """The result of a check after a model's command."""

    async def act():
        async with Shell(**options) as shell:
            await shell.prepare(f"mkdir -p /data && touch /data/answer; {prepared}")
            await shell.run(attack, timeout)
            return await shell.check(
                check, *arguments, language=language, timeout=timeout, proc=proc
            )

    return asyncio.run(act())


def value():
    return f"value-{secrets.token_hex(12)}"


# ---- processes


def leave(source):
    """A command that leaves an attacker running."""
    return (
        f"cat > /data/attack.py <<'END'\n{LOOK}{source}\nEND\n"
        "setsid python3 /data/attack.py >/dev/null 2>&1 &\n"
        "until [ -e /data/ready ]; do sleep 0.05; done"
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_no_process_of_the_model_forges_a_check(name):
    assert checked(leave(ATTACKS[name]), SLOW_CHECK, value())["status"] == 1
    check = f"ps -e --no-headers | wc -l; {SLOW_CHECK}"
    result = checked(leave(ATTACKS[name]), check, value(), proc=True)
    # init, the check, ps and wc
    assert (result["status"], result["output"]) == (1, "4\n")


def test_processes_that_the_task_started_are_ended_too():
    started = "setsid sleep 4321 & (while :; do echo x >> /data/log; sleep 0.01; done) &"
    check = (
        "a=$(wc -l < /data/log); sleep 0.2; [ $a = $(wc -l < /data/log) ] && ps -C sleep -o args="
    )
    wait = "until [ -s /data/log ]; do sleep 0.02; done"
    result = checked(wait, check, prepared=started, proc=True)
    assert "4321" not in result["output"]
    assert result["status"] == 1  # of ps, which finds none
    assert result["errors"] == ""


VFORK = """#include <unistd.h>
int main(void) { if (vfork() == 0) { for (;;) pause(); } return 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_nobody_is_left_who_cannot_be_stopped():
    attack = (
        f"cat > /data/a.c <<'END'\n{VFORK}END\ngcc -w -o /data/a /data/a.c; /data/a & sleep 0.2"
    )
    assert checked(attack, "pgrep -c -x a", proc=True)["output"] == "0\n"


# ---- what programs find beside them

FAKE_LIBRARY = """
mkdir -p /tmp/evil/bin /tmp/evil/lib; cp -r /usr/lib/python3.* /tmp/evil/lib/
for f in /tmp/evil/lib/python3.*/encodings/__init__.py; do
    printf 'import os\\nos._exit(0)\\n' > $f
done
cp -r /tmp/evil/lib/python3.* /usr/ cp $(readlink -f /usr/bin/python3) /tmp/evil/bin/
for f in /usr/pyvenv.cfg /pyvenv.cfg /usr/local/pyvenv.cfg /data/pyvenv.cfg; do
    printf 'home = /tmp/evil/bin\\n' > $f
done
"""


@pytest.mark.parametrize(
    ("check", "language"),
    [
        ("import sys; sys.exit(open('/data/answer').read() != sys.argv[1])", "python"),
        ("python3 -c 'import sys; sys.exit(sys.argv[1] != \"\")' $1", "bash"),
        ("/bin/python3 -c 'import sys; sys.exit(sys.argv[1] != \"\")' $1", "bash"),
    ],
)
def test_python_reads_nothing_beside_it(check, language):
    limits = replace(SHELL, disk=400 * MB)
    result = checked(FAKE_LIBRARY, check, value(), language=language, limits=limits)
    assert result["status"] == 1
    assert "Error" not in result["errors"]


# ---- links

READ_BACK = 'grep -q "$1" /data/answer || echo "$1" | cmp -s - /data/answer'
LINKS = {
    "to itself": "ln -sf /proc/self/cmdline /data/answer",
    "relative": "ln -sf ../proc/self/fd/0 /data/answer",
    "to its input": "ln -sf /dev/stdin /data/answer",
    "to its descriptor": "ln -sf /proc/self/fd/0 /data/answer",
    "to its root": "ln -sf /proc/self/root/proc/self/fd/0 /data/answer",
    "by a folder": "ln -s / /data/all; ln -sf /data/all/proc/self/fd/0 /data/answer",
    "by a folder that is in a link": (
        "mkdir /srv/deep; ln -s /srv/deep/up/up /srv/here; ln -s .. /srv/deep/up; "
        "ln -s ../../proc/self /srv/x; ln -sf /srv/x/fd/0 /data/answer"
    ),
    "under /sys": (
        "mkdir -p /sys/a; ln -s /proc/self/fd/0 /sys/a/link; ln -sf /sys/a/link /data/answer"
    ),
    "under /lib32": (
        "mkdir -p /lib32 /usr/lib99; ln -s /proc/self/fd/0 /lib32/link; "
        "ln -s /proc/self/fd/0 /usr/lib99/link; "
        "ln -sf /lib32/link /data/answer; [ -e /lib32/link ] || ln -sf /usr/lib99/link /data/answer"
    ),
    "at the end of a deep path": (
        "cd /data; for n in $(seq 400); do mkdir aaaaaaaaaaaaaaaaaaaa && cd aaaaaaaaaaaaaaaaaaaa; "
        "done; ln -s /proc/self/fd/0 link; for n in $(seq 300); do cd ..; done; "
        "ln -sf $(pwd)/link /data/answer; ln -s /proc/self/fd/0 link"
    ),
    "in shared memory": "ln -s /proc/self/fd/0 /dev/shm/a; ln -sf /dev/shm/a /data/answer",
    "in /usr/local": (
        "ln -s /proc/self/fd/0 /usr/local/bin/a; ln -sf /usr/local/bin/a /data/answer"
    ),
    "that flips": (
        "setsid bash -c 'while :; do ln -sfn /proc/self/fd/0 /data/answer; rm -f /data/answer; "
        "echo x > /data/answer; done' >/dev/null 2>&1 & sleep 0.3"
    ),
    "that many swap": (
        "cd /data; for n in $(seq 3000); do ln -s /proc/self/fd/0 l$n; done; "
        "ln -sf l7 answer; setsid bash -c 'while :; do for f in l1 l2 l3; do rm -f $f; "
        "ln -s /proc/self/fd/0 $f; done; done' >/dev/null 2>&1 & sleep 0.3"
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_to_what_a_check_is_or_reads_is_no_answer(name):
    result = checked(LINKS[name], READ_BACK, value())
    assert result["status"] in (1, 2)  # of cmp, which says 2 where there is no file


# What the model leaves, and a check that opens, moves or unpacks it.
CHANGED_LINKS = {
    "a folder that is a link": ("ln -s /proc/self /data/logs", 'grep -rqs "$1" /data/logs/'),
    "a link that leads out once it is moved": (
        "mkdir -p /data/a/b/c; ln -s ../proc/self/fd/0 /data/a/b/c/answer",
        'mv /data/a/b/c/answer /data/answer; echo "$1" | cmp -s - /data/answer',
    ),
    "a link that leads out once it is copied": (
        "mkdir -p /data/a/b/c; ln -s ../proc/self/cmdline /data/a/b/c/answer",
        'cp -a /data/a/b/c/. /data/; grep -q "$1" /data/answer',
    ),
    "a link from an archive": (
        "cd /data; ln -s /dev/stdin link; tar -cf a.tar link",
        'cd /data; tar -xf a.tar; echo "$1" | cmp -s - link',
    ),
    "a name": ("echo /proc/self/cmdline > /data/answer", 'grep -q "$1" "$(cat /data/answer)"'),
    "the table of mounts": (
        "ln -sf /proc/self/cmdline /etc/mtab",
        'grep -q "$1" /etc/mtab',
    ),
    "a link that the check completes": (
        "mkdir -p /tmp/check; ln -sf /tmp/check/fd/0 /data/answer",
        'ln -s /dev/fd /tmp/check/fd; echo "$1" | cmp -s - /data/answer',
    ),
}


@pytest.mark.parametrize("name", CHANGED_LINKS)
def test_no_link_leads_to_what_a_check_is_or_reads(name):
    attack, check = CHANGED_LINKS[name]
    assert checked(attack, check, value())["status"] in (1, 2)


def test_all_links_are_copied_as_they_are():
    attack = (
        "ln -sf /proc/self/fd/63 /data/answer; ln -s /dev/null /data/nothing; "
        "ln -s gone /data/dead; ln -s /data/dead /data/good; ln -s a /data/b; ln -s b /data/a; "
        "ln -s /usr/share/zoneinfo/Etc/UTC /data/zone"
    )
    names = "/data/answer /data/dead /data/good /data/b /data/zone"
    result = checked(attack, f"readlink {names}; ls /proc | wc -l")
    assert result["output"].split() == [
        *("/proc/self/fd/63", "gone", "/data/dead", "a", "/usr/share/zoneinfo/Etc/UTC", "0")
    ]
    assert result["errors"] == ""


def test_a_check_reads_what_it_was_given_without_proc():
    check = (
        "echo $0 $1; cat <<< here; v=$(echo $2); echo $v; echo wrong >&2; [ -t 0 ] || cat; exit 7"
    )
    result = checked("true", check, "first", "second")
    assert result["output"] == "check first\nhere\nsecond\n"
    assert (result["errors"], result["status"]) == ("wrong\n", 7)


def test_a_check_may_ask_for_proc():
    check = 'diff <(echo a) <(echo a) && [ -e /proc/self/exe ] && echo "same $1" > /dev/stdout'
    assert checked("true", check, "x", proc=True)["output"] == "same x\n"


# ---- programs that a check starts

# What a program can do to read its parents: their memory, by file and by system call, what they
# have open, and their environment.
SPY = r"""
import ctypes, os, re, sys
VALUE = re.compile(rb"value-[0-9a-f]{24}")
libc = ctypes.CDLL(None, use_errno=True)

def regions(pid):
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            area, rights = line.split()[:2]
            if "r" in rights:
                yield [int(each, 16) for each in area.split("-")]

def memory(pid):
    with open(f"/proc/{pid}/mem", "rb", 0) as file:
        for first, last in regions(pid):
            try:
                file.seek(first)
                yield file.read(last - first)
            except (OSError, ValueError):
                pass

def traced(pid):
    if libc.ptrace(0x4206, pid, None, None) == 0 or libc.ptrace(16, pid, None, None) == 0:
        yield b"value-" + b"0" * 24  # it may look into it
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    for first, last in regions(pid):
        text = ctypes.create_string_buffer(last - first)
        own, other = Vector(ctypes.addressof(text), len(text)), Vector(first, len(text))
        if libc.process_vm_readv(pid, ctypes.byref(own), 1, ctypes.byref(other), 1, 0) > 0:
            yield text.raw

def files(pid):
    for name in ("environ", "cmdline", *(f"fd/{each}" for each in os.listdir(f"/proc/{pid}/fd"))):
        try:
            with open(os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                yield file.read(1 << 20)
        except OSError:
            pass

pid, open_to = os.getppid(), []
while pid:
    for way in (memory, traced, files):
        try:
            for text in way(pid):
                if found := VALUE.search(text):
                    open_to.append(way.__name__)
                    open("/data/answer", "wb").write(found[0])
                    break
        except OSError:
            pass
    with open(f"/proc/{pid}/status") as file:
        pid = int(re.search(r"PPid:\s*(\d+)", file.read())[1])
open("/data/found", "w").write(" ".join(open_to))
"""
STARTS = {
    "bash": ('python3 /data/spy.py; cat /data/found; test "$(cat /data/answer)" = "$1"', "bash"),
    "a part of bash": ('v="$1"; (python3 /data/spy.py; true); cat /data/found; '
                       'test "$(cat /data/answer)" = "$v"', "bash"),
    "python": (
        "import subprocess, sys; subprocess.run(['python3', '/data/spy.py']); "
        "print(open('/data/found').read(), end=''); "
        "sys.exit(open('/data/answer').read() != sys.argv[1])",
        "python",
    ),
}  # fmt: skip


@pytest.mark.parametrize("proc", [True, False])
@pytest.mark.parametrize("name", STARTS)
def test_a_program_that_a_check_starts_cannot_read_its_parents(name, proc):
    check, language = STARTS[name]
    attack = f"cat > /data/spy.py <<'END'\n{SPY}\nEND"
    result = checked(attack, check, value(), language=language, proc=proc)
    assert (result["status"], result["output"]) == (1, "")
    assert not proc or result["errors"] == ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_filter_of_git_reads_no_value():
    attack = (
        f"cat > /data/spy.py <<'END'\n{SPY}\nEND\ncd /data; git init -q; git add answer; "
        "echo '* filter=x' > .gitattributes; "
        "git config filter.x.clean 'python3 /data/spy.py; cat'; touch -d '1 hour ago' answer"
    )
    check = 'v="$1"; git -C /data status --porcelain >/dev/null; test "$(cat /data/answer)" = "$v"'
    assert checked(attack, check, value())["status"] == 1


# ---- the copy


def test_a_check_finds_all_that_the_model_wrote():
    attack = (
        "mkdir -p /srv/a /usr/new /dev/shm/s; echo 1 > /srv/a/one; ln /srv/a/one /srv/two; "
        "chmod 640 /srv/a/one; chmod 2770 /srv/a; touch -d '2001-02-03 04:05:06.789' /srv/a/one; "
        "echo 2 > /usr/stock.log; echo 3 > /usr/new/file; echo 4 > /usr/local/bin/four; "
        "echo 5 > /dev/shm/s/five; truncate -s 20M /srv/hole; rm /etc/motd; "
        "echo 6 > $'/srv/a\\nb'; echo 7 > /srv/$'\\xff'; chmod 4755 /usr/local/bin/four; "
        "chmod 000 /srv/two; echo word >> /etc/hosts"
    )
    look = (
        "cat /srv/a/one /usr/stock.log /usr/new/file /usr/local/bin/four /dev/shm/s/five "
        "/srv/a$'\\n'b /srv/$'\\xff'; tail -n 1 /etc/hosts; ls /etc/motd 2>&1 | grep -c 'No such'; "
        "stat -c '%h %a %y %s %F' /srv/a/one /srv/two; stat -c %a /srv/a "
        "/usr/local/bin/four / /root /tmp; [ /srv/a/one -ef /srv/two ] && echo same; "
        "stat -c '%s %b' /srv/hole; find /etc /var /srv /usr/local -xdev | sort | md5sum"
    )

    async def act():
        async with Shell() as shell:
            await shell.run(attack)
            before = await shell.run(look)
            return before, await shell.check(look)

    before, after = asyncio.run(act())
    assert before["output"].startswith("1\n2\n3\n4\n5\n6\n7\nword\n1\n2 0 2001-02-03 04:05:06.789")
    assert after["output"] == before["output"]
    assert (after["errors"], after["status"]) == ("", 0)


def test_the_end_of_the_models_shell_writes_nothing():
    """A shell that notices its end keeps a history of its commands at home."""
    found = {checked("echo $HOME > /data/x", "ls -A ~")["output"] for _ in range(16)}
    assert found == {""}


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has one user inside")
def test_owners_are_kept():
    attack = "useradd bob; touch /srv/his; chown bob:users /srv/his; chown -h bob /srv/his"
    result = checked(attack, "stat -c '%U:%G' /srv/his; su bob -c 'id -un; cat /root/.x'")
    assert result["output"] == "bob:users\nbob\n"


@pytest.mark.parametrize(
    "filling",
    [
        "head -c 100M /dev/zero > /srv/full; head -c 100M /dev/zero > /usr/full",
        "cd /srv; for n in $(seq 40); do mkdir $n; (cd $n; touch $(seq 500)); done",
        "cd /srv; for n in $(seq 500); do truncate -s 32M $n; done",
    ],
    ids=["bytes", "names", "holes"],
)
def test_a_check_has_room_where_the_disk_is_full(filling):
    result = checked(f"{filling} 2>/dev/null", "seq 20000 > /tmp/own && wc -l < /tmp/own")
    assert (result["output"], result["status"]) == ("20000\n", 0)


def test_what_cannot_be_copied_fails_the_check_and_not_the_run():
    """Paths of more than 4096 bytes are reached step by step only."""
    deep = "cd /srv; n=$(printf 'a%.0s' $(seq 250)); for i in $(seq 30); do mkdir $n && cd $n; done"

    async def act():
        async with Shell() as shell:
            await shell.run(deep)
            return [await shell.check("true") for _ in range(2)]

    for result in asyncio.run(act()):
        assert result["status"] == 1
        assert "cannot be copied" in result["errors"]


LONG_NAMES = r"""
mkdir -p /srv; cd /srv; n=$(printf 'a%.0s' $(seq 240)); for i in $(seq 14); do mkdir $n; cd $n; done
python3 -c "
import os
for number in range(14000):
    os.symlink('/proc/self/fd/63', f'link{number}')
" 2>/dev/null
"""


def test_many_links_with_long_names_do_not_stop_a_run():
    result = checked(LONG_NAMES, "true", limits=replace(SHELL, disk=128 * MB))
    assert (result["status"], result["errors"]) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes", "links", "programs"])
def test_not_one_of_two_hundred_checks_is_forged(name):
    async def forge(attack, check):
        async with Shell() as shell:
            await shell.prepare("mkdir -p /data && touch /data/answer")
            await shell.run(attack, 60)
            return (await shell.check(check, value(), timeout=60))["status"] == 0

    spy = f"cat > /data/spy.py <<'END'\n{SPY}\nEND"
    attacks = {
        "processes": [(leave(source), SLOW_CHECK) for source in ATTACKS.values()],
        "links": [*((attack, READ_BACK) for attack in LINKS.values()), *CHANGED_LINKS.values()],
        "programs": [(spy, check) for check, language in STARTS.values() if language == "bash"],
    }[name]

    async def act():
        forged = 0
        for number in range(200):
            forged += await forge(*attacks[number % len(attacks)])
        return forged

    assert asyncio.run(act()) == 0

"""A persistent shell: its state, its limits, what it must not reach, and checks that a model cannot
influence."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from parley.errors import SandboxError, TaskError
from parley.sandbox.limits import MB
from parley.sandbox.shell import SHELL, Shell, private_range
from parley.sandbox.shells import Shells

ROOT = Path(__file__).parents[2]
IS_ROOT = os.getuid() == 0
if shutil.which("bwrap") is None and not os.environ.get("CI"):
    pytest.skip("bubblewrap is not installed", allow_module_level=True)


def within(act, **options):
    """What becomes of a shell."""

    async def whole():
        async with Shell(**options) as shell:
            return await act(shell)

    return asyncio.run(whole())


def ran(*commands, timeout=20.0, **options):
    """The results of commands, one after the other in one shell."""

    async def act(shell):
        return [await shell.run(command, timeout) for command in commands]

    return within(act, **options)


def said(*commands, **options):
    return [result["output"] for result in ran(*commands, **options)]


def alive(marker):
    """Processes of this machine whose command line holds a text."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words and int(place.name) != os.getpid():
            found.add(int(place.name))
    return found


def gone(marker, seconds=10.0):
    until = time.monotonic() + seconds
    while (left := alive(marker)) and time.monotonic() < until:
        time.sleep(0.05)
    return not left


# ---- state


def test_state_stays_from_command_to_command():
    commands = [
        "cd /tmp; X=5; f() { echo f$1; }; alias hi='echo hi'; echo y > file",
        "echo $X $PWD; f 1; hi; cat file",
    ]
    assert said(*commands) == ["", "5 /tmp\nf1\nhi\ny\n"]


def test_the_last_status_is_there_for_the_next_command():
    results = ran("(exit 7)", "echo $?", "set -e; false && true", "echo on $?")
    assert [result["status"] for result in results] == [7, 0, 1, 0]
    assert results[1]["output"] == "7\n"
    assert results[3]["output"].startswith("on")


def test_background_jobs_go_on_and_what_they_write_comes_later():
    results = ran("(sleep 0.3; echo late) & echo first", "wait; echo last")
    assert "first\n" in results[0]["output"]
    assert "late" not in results[0]["output"]
    assert results[1]["output"] == "late\nlast\n"


@pytest.mark.parametrize(
    ("command", "output", "status"),
    [
        ("printf abc", "abc", 0),
        ("printf 'a\\xff\\xfeb'", "a��b", 0),
        ("cat; echo after", "after\n", 0),
        ("read x; echo $?", "1\n", 0),
        ("cat <<E\n'x' \"y\" $((1+1))\nE\n", "'x' \"y\" 2\n", 0),
        ("echo out; echo err >&2", "out\nerr\n", 0),
        ("yes | head -n 1", "y\n", 0),
        ("false", "", 1),
        ("echo a\0b", "ab\n", 0),
        ("echo \ud800", "?\n", 0),
        ("", "", 0),
        ("# nothing", "", 0),
        ("echo one\necho two # end\\", "one\ntwo\n", 0),
    ],
)
def test_a_command_and_what_it_writes(command, output, status):
    result, after = ran(command, "echo still here")
    assert result == {
        "output": output,
        "status": status,
        "cut": False,
        "timed_out": False,
        "restarted": "",
    }
    assert after["output"] == "still here\n"


@pytest.mark.parametrize(
    "command",
    ["echo 'a", 'echo "a', "if true; then", "echo $(", "cat <<E\nx", "}", "a() {", "((", "echo `x"],
)
def test_a_command_that_is_not_whole_does_not_swallow_the_next(command):
    result, after = ran("X=kept", command, "echo $X")[1:]
    assert not result["timed_out"]
    assert result["restarted"] == ""
    assert after["output"] == "kept\n"


@pytest.mark.parametrize("command", ["exit 3", "exec sh -c 'exit 3'", "set -e; sh -c 'exit 3'"])
def test_a_shell_that_ends_is_started_anew_and_that_is_said(command):
    first, result, after = ran("X=1; echo y > /tmp/file", command, "echo [$X] $(cat /tmp/file)")
    assert first["restarted"] == ""
    assert (result["status"], result["restarted"]) == (3, "it ended")
    assert after["output"] == "[] y\n"


def test_a_shell_that_is_killed_is_started_anew():
    result, after = ran("kill -9 $$", "echo here")
    assert (result["status"], result["restarted"]) == (137, "it ended")
    assert after["output"] == "here\n"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 100",
        "while :; do :; done",
        "sleep 100 | cat",
        "sh -c 'trap \"\" INT; sleep 100'",
        "setsid -w sleep 100",
    ],
)
def test_a_command_out_of_time_is_ended_and_the_shell_is_not(command):
    async def act(shell):
        await shell.run("X=kept; sleep 1000 &")
        result = await shell.run(command, timeout=0.5)
        return result, await shell.run("echo $X; pgrep -c sleep; jobs | wc -l")

    result, after = within(act)
    assert (result["timed_out"], result["status"], result["restarted"]) == (True, 124, "")
    assert after["output"].splitlines() == ["kept", "1", "1"]


@pytest.mark.parametrize(
    "command",
    ["trap '' INT; while :; do :; done", "kill -STOP $$", "exec sleep 100", "builtin() { :; }"],
)
def test_a_shell_that_does_not_come_back_is_started_anew(command):
    result, after = ran(command, "echo here", timeout=0.7)
    assert result["timed_out"]
    assert result["restarted"]
    assert after["output"] == "here\n"


def test_a_command_may_be_long_but_not_too_long():
    long, too_long, after = ran(
        f"echo {'a' * 300_000} | wc -c", "echo " + "a" * (1 << 20), "echo on"
    )
    assert long["output"] == "300001\n"
    assert too_long["status"] == 126
    assert after["output"] == "on\n"


def test_of_much_output_the_beginning_and_the_end_are_kept():
    flood, endless, after = ran(
        "echo first; seq 1000000; echo last", "timeout 1 yes", "echo on", output=2000
    )
    assert flood["cut"]
    assert flood["output"].startswith("first\n1\n")
    assert flood["output"].endswith("1000000\nlast\n")
    assert len(flood["output"]) < 2100
    assert endless["cut"]
    assert (after["output"], after["cut"]) == ("on\n", False)


def test_what_a_command_starts_cannot_say_that_it_has_ended():
    look = "for fd in /proc/self/fd/*; do readlink $fd; done | grep -c socket"
    forge = (
        "for fd in $(seq 3 255); do echo 'x 0' >&$fd; done 2>/dev/null; for f in "
        "/proc/$PPID/fd/*; do echo 'x 0' > $f; done"
    )
    first, _, third = ran(look, f"sh -c {forge!r} 2>/dev/null", "sleep 0.2; echo honest")
    assert first["output"] == "0\n"
    assert third["output"] == "honest\n"


# ---- a system of one's own


def test_places_to_write_are_private_and_programs_cannot_be_replaced():
    places = ["/etc", "/home", "/root", "/var", "/tmp", "/opt", "/srv", "/usr/local/bin", "/"]
    name = f"parley-{os.getpid()}"
    results = ran(*[f"echo x > {place}/{name} && cat {place}/{name}" for place in places])
    assert [result["output"] for result in results] == ["x\n"] * len(places)
    assert not [place for place in places if os.path.exists(f"{place}/{name}")]
    sealed = [
        "/usr/bin",
        "/bin",
        "/lib",
        "/lib64",
        "/etc/alternatives",
        "/usr/local/lib",
        "/usr/lib",
        "/dev",
        "/proc",
    ]
    results = ran(
        *[f"echo x > {place}/{name}" for place in sealed],
        "rm -rf /lib64; rm /bin; mv /etc /x; mv /lib64 /y; ls / | wc -l",
    )
    assert all(result["status"] for result in results[:-1])
    assert int(results[-1]["output"].splitlines()[-1]) >= 15


def test_no_modules_are_laid_where_some_systems_look_for_them():
    places = [
        f"/usr/local/{folder}/python3.12/site-packages" for folder in ("lib", "lib64", "share")
    ]
    assert all(result["status"] for result in ran(*[f"mkdir -p {place}" for place in places]))


@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user has one user inside: the next test")
def test_there_are_several_users():
    results = ran(
        "useradd -m -s /bin/bash bob && groupadd team && usermod -aG team bob && id bob",
        "echo x > /root/s; chmod 600 /root/s; touch /tmp/f; chown bob:team /tmp/f; chmod 640 "
        "/tmp/f; stat -c '%U %G %a' /tmp/f",
        "su bob -c 'id -un; cat /root/s; echo x > ~/own && cat ~/own; kill -9 1'",
        "echo bob:word | chpasswd && grep -c '^bob:[$]' /etc/shadow",
        "su bob -c 'cat /etc/shadow'; userdel -r bob; ls /home",
        "cat /proc/self/uid_map",
    )
    assert results[0]["output"] == "uid=1000(bob) gid=1000(bob) groups=1000(bob),1001(team)\n"
    assert results[1]["output"] == "bob team 640\n"
    assert results[2]["output"].startswith("bob\ncat: /root/s: Permission denied\nx\n")
    assert results[3]["output"] == "1\n"
    assert "Permission denied" in results[4]["output"]
    inside, outside, count = map(int, results[5]["output"].split())
    assert inside == 0
    assert outside >= 65536  # root of this machine is nobody there
    assert count == 65536


def test_a_view_says_whether_it_has_several_users():
    async def act(shell):
        return shell.users, await shell.run(
            "id -u; touch /tmp/f; chown 1000 /tmp/f && echo changed"
        )

    users, result = within(act)
    assert users == IS_ROOT
    assert result["output"].startswith("0\n")
    assert ("changed" in result["output"]) == IS_ROOT


def test_a_range_of_users_is_one_that_nobody_is():
    for _ in range(100):
        assert (1 << 30) <= private_range("0 0 4294967295") <= (1 << 31) - 65536
    assert private_range("0 100000 200000") >= 65536
    with pytest.raises(SandboxError, match="unused user IDs"):
        private_range("0 100000 65536")


# ---- what is not reached


def test_usr_is_a_layer_of_its_own():
    """Files may stand beside its folders, nothing in these changes, and locks reach nobody."""
    beside, inside, renamed, locked = said(
        "echo 1 > /usr/note && mkdir /usr/new && cat /usr/note",
        "touch /usr/bin/x /usr/lib/x /bin/x /usr/libexec/x",
        "mv /usr/bin /usr/other",
        "python3 -c \"import fcntl\nfor place in ('/usr/bin/env', '/bin/env'):\n"
        "    file = open(place)\n    fcntl.lockf(file, fcntl.LOCK_SH)\n"
        "    print(open('/proc/locks').read())\"",
    )
    assert beside == "1\n"
    assert inside.count("Read-only file system") == 4
    assert "busy" in renamed
    found = os.stat("/usr/bin/env")
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    assert str(found.st_ino) in locked
    assert device not in locked
    assert not os.path.exists("/usr/note")


def test_the_network_is_not_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        results = ran(
            f"exec 3<>/dev/tcp/127.0.0.1/{port}",
            "python3 -c 'import socket; socket.socket()'",
            "cat /proc/net/dev | wc -l",
        )
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert "family not supported" in results[0]["output"]
    assert "family not supported" in results[1]["output"]
    assert results[2]["output"] == "3\n"


def test_nothing_of_this_machine_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED_KEY", "planted-secret")
    (tmp_path / "file").write_text("planted-secret")
    commands = [
        f"cat {tmp_path}/file", "env; cat /proc/*/environ | tr '\\0' '\\n'",
        "ls /proc | grep -c '^[0-9]'; ls /home /root",
        "cat /proc/1/environ", "ls -l /proc/1/fd /proc/1/root /proc/1/cwd/", "cat /proc/1/mem",
        "cat /proc/*/cmdline",
        "echo x > /proc/sys/kernel/core_pattern; echo x > /proc/sysrq-trigger; cat /proc/kcore /proc/kmsg /dev/mem",  # noqa: E501
        "mount -t tmpfs x /mnt || umount /etc/ld.so.preload || unshare -r true || nsenter -t 1 -m true || chroot / true",  # noqa: E501
        "mknod /tmp/m b 254 0",
        f"kill -9 {os.getpid()}; kill -9 1; kill -INT 1; kill -STOP 1",
    ]  # fmt: skip
    results = ran(*commands, "echo alive")
    assert not [
        result["output"]
        for result in results
        if "planted" in result["output"] or "PLANTED" in result["output"]
    ]
    assert results[0]["status"]
    # keeper, shell, ls, and grep if it was there in time
    assert results[2]["output"].splitlines()[0] in ("3", "4")
    for number in (3, 4, 5, 7, 8, 9):
        assert results[number]["status"], commands[number]
    assert "python" not in results[6]["output"]
    assert results[-1]["output"] == "alive\n"
    assert results[-1]["restarted"] == ""


def test_rights_are_few_and_cannot_grow():
    text = said("cat /proc/self/status")[0]
    held = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert int(held["CapEff"], 16) == int(held["CapBnd"], 16) == 0b11111011
    assert (held["NoNewPrivs"], held["Seccomp"]) == ("1", "2")


# ---- what takes too much


def test_a_fork_bomb_is_bounded_and_does_not_last():
    begun = time.monotonic()
    bomb, after = ran(
        ":(){ :|:& };:; sleep 100", "echo on", timeout=3.0, limits=replace(SHELL, processes=40)
    )
    assert bomb["timed_out"] or bomb["restarted"] == "40 processes"
    assert after["output"].endswith("on\n")
    assert time.monotonic() - begun < 95  # the sleep was not waited for


@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user has one user inside")
def test_the_bound_on_processes_holds_for_all_users_together():
    code = (
        "import os,time\nfor n in range(200):\n  if os.fork() == 0:\n"
        "    os.setuid(2000 + n); time.sleep(30)\ntime.sleep(30)"
    )
    results = ran(
        f"python3 -c '{code}' 2>/dev/null & sleep 0.7; ls /proc | grep -c '^[0-9]'",
        limits=replace(SHELL, processes=40),
    )
    assert 20 < int(results[0]["output"].split()[-1]) <= 42


PRIVATE = "x = []\nwhile True: x.append(bytearray(1 << 22))"
SHARED = (
    "import mmap\nx = [mmap.mmap(-1, 1 << 26) for _ in range(8)]\nfor m in x:\n"
    "  for i in range(0, 1 << 26, 4096): m[i] = 1"
)


@pytest.mark.parametrize("code", [PRIVATE, SHARED], ids=["private", "shared"])
def test_a_memory_bomb_ends_itself(code):
    bomb, after = ran(
        f"X=1; python3 -c '{code}'; echo survived",
        "echo on",
        limits=replace(SHELL, memory=128 * MB),
    )
    assert bomb["restarted"] == "more than 128 MB of memory"
    assert "survived" not in bomb["output"]
    assert after["output"] == "on\n"


def test_a_memory_bomb_in_the_background_is_said_with_the_next_command():
    async def act(shell):
        await shell.run("(sleep 0.2; python3 -c 'x = bytearray(1 << 29)\nwhile True: pass') &")
        await asyncio.sleep(2)
        return await shell.run("echo on")

    result = within(act, limits=replace(SHELL, memory=128 * MB))
    assert result["restarted"] == "more than 128 MB of memory"
    assert result["output"].endswith("on\n")


def test_a_full_disk_is_full_and_no_larger():
    commands = [
        "for n in $(seq 20); do head -c 1000000 /dev/zero > /tmp/$n; done",
        "df --output=used -m / | tail -n 1",
        "i=0; mkdir /tmp/m; while : > /tmp/m/$i && [ $i -lt 9000 ]; do i=$((i+1)); done; echo $i",
        "rm /tmp/*; echo x > /tmp/y && cat /tmp/y",
        "head -c 50000000 /dev/zero > /tmp/large",
    ]
    results = ran(*commands, limits=replace(SHELL, disk=8 * MB))
    assert "No space left" in results[0]["output"]
    assert int(results[1]["output"].split()[0]) <= 9
    assert int(results[2]["output"].split()[-1]) < 4096
    assert results[3]["output"].endswith("x\n")
    assert results[4]["status"]


# ---- scripts of the task


def test_prepare_comes_before_the_model_and_leaves_its_state():
    async def act(shell):
        first = await shell.prepare(
            "echo $1 > /srv/given; (while :; do date >> /srv/log; echo noise; sleep 0.1; done) &",
            "a b",
        )
        second = await shell.prepare(
            "open('/srv/second', 'w').write('from python\\n')", language="python"
        )
        seen = await shell.run("cat /srv/given /srv/second; sleep 0.3; wc -l < /srv/log")
        with pytest.raises(TaskError, match="before its first command"):
            await shell.prepare("true")
        return first, second, seen

    first, second, seen = within(act)
    assert (first["status"], second["status"]) == (0, 0)
    words = seen["output"].split()
    assert words[:4] == ["a", "b", "from", "python"]
    assert int(words[-1]) >= 2


def test_a_check_sees_the_view_and_gives_output_and_status():
    async def act(shell):
        await shell.run("echo 42 > /tmp/answer; cd /tmp; Y=1")
        good = await shell.check(
            '[ "$(cat /tmp/answer)" = "$1" ] && echo "$2" [$Y] $PWD', "42", "it's so"
        )
        bad = await shell.check('[ "$(cat /tmp/answer)" = "$1" ]', "43")
        python = await shell.check(
            "import sys; print(open('/tmp/answer').read(), sys.argv[1:]); sys.exit(5)",
            "x",
            language="python",
        )
        late = await shell.check("sleep 100 & sleep 100", timeout=0.3)
        return good, bad, python, late, await shell.check("pgrep -c sleep")

    good, bad, python, late, after = within(act)
    assert (good["status"], good["output"]) == (0, "it's so [] /root\n")
    assert bad["status"] == 1
    assert (python["status"], python["output"]) == (5, "42\n ['x']\n")
    assert late["timed_out"]
    assert after["output"] == "0\n"


def test_scripts_have_their_errors_apart_and_commands_do_not():
    async def act(shell):
        words = "echo out; echo err >&2"
        prepared = await shell.prepare(words)
        ran = await shell.run(words)
        checked = await shell.check(
            "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)",
            language="python",
        )
        much = await shell.check("seq 20000; seq 3 >&2")
        return prepared, ran, checked, much

    prepared, ran, checked, much = within(act)
    assert (prepared["output"], prepared["errors"]) == ("out\n", "err\n")
    assert ran["output"] == "out\nerr\n"
    assert (checked["output"], checked["errors"], checked["status"]) == ("out\n", "err\n", 3)
    assert much["cut"]
    assert much["errors"] == "1\n2\n3\n"


def test_a_shell_begins_in_a_folder_of_choice_and_has_a_home_of_choice():
    async def act(shell):
        await shell.prepare("echo x > here; mkdir -p ~/own")
        return (
            await shell.run("pwd; ls -d here; cd; pwd; ls; exit"),
            await shell.run("pwd"),
            await shell.check("pwd; echo ~; cat here"),
        )

    first, again, check = within(act, home="/home/agent", folder="/")
    assert first["output"].split() == ["/", "here", "/home/agent", "own", "exit"]
    assert again["output"] == "/\n"
    assert check["output"] == "/\n/home/agent\nx\n"


@pytest.mark.parametrize("place", ["root", "/usr/bin", "/proc", "/home/../etc", "/home/"])
def test_a_home_in_a_place_of_programs_is_refused(place):
    with pytest.raises(TaskError, match="the home of a shell"):
        Shell(home=place)


def test_a_check_finds_the_models_own_commands_last():
    async def act(shell):
        plant = "for n in cat mine; do printf '#!/bin/sh\\necho planted' > /usr/local/bin/$n; done"
        await shell.run(f"{plant}; chmod +x /usr/local/bin/*")
        folders = "echo $PATH | tr : '\\n' | sort"
        model = await shell.run(folders)
        return model, await shell.check(folders), await shell.check("mine; type -p cat")

    model, check, found = within(act)
    assert model["output"] == check["output"]
    assert found["output"] == "planted\n/usr/bin/cat\n"


POISONS = {
    "functions and aliases": (
        "cat() { echo forged; }; export -f cat; alias cat='echo forged'; enable -n "
        "echo; set -o noexec"
    ),
    "the path": """
        mkdir -p /tmp/b
        for d in /usr/local/bin /usr/local/sbin /tmp/b; do printf '#!/bin/sh\\necho forged\\n' > $d/cat; chmod +x $d/cat; done
        export PATH=/tmp/b:$PATH""",  # noqa: E501
    "start-up files": """
        for f in /root/.bashrc /root/.profile /root/.bash_profile /etc/profile /etc/bash.bashrc /etc/environment; do
            echo 'cat() { echo forged; }' >> $f
        done
        export BASH_ENV=/root/.bashrc ENV=/root/.bashrc""",  # noqa: E501
    "libraries": """
        printf '#include <unistd.h>\\n__attribute__((constructor)) void f(void) { write(1, "forged", 6); }' > /tmp/e.c
        gcc -shared -fPIC -o /tmp/e.so /tmp/e.c
        echo /tmp/e.so > /etc/ld.so.preload; rm -f /etc/ld.so.cache; echo /tmp > /etc/ld.so.conf; ldconfig
        export LD_PRELOAD=/tmp/e.so""",  # noqa: E501
    "programs": """
        cp /bin/echo /usr/bin/cat; ln -sf /bin/echo /etc/alternatives/awk
        rm -rf /bin /lib64 /lib; mv /usr /usr2; mv /etc /etc2; mv /bin /bin2; mv /usr/local /tmp/local""",  # noqa: E501
    "openssl": """
        printf 'openssl_conf = a\n[a]\nengines = b\n[b]\nc = d\n[d]\ndynamic_path = /tmp/e.so\ninit = 1\n' > /etc/ssl/openssl.cnf
        mkdir -p /usr/lib/ssl; cp /etc/ssl/openssl.cnf /root/""",  # noqa: E501
    "python": """
        for d in /etc/python3* /root/.local/lib/python3.11/site-packages /usr/local/lib/python3.11/dist-packages /root; do
            mkdir -p $d
            for n in sitecustomize usercustomize json; do echo 'print("forged")' > $d/$n.py; done
        done
        export PYTHONPATH=/root""",  # noqa: E501
    "perl": """
        for d in /etc/perl /usr/local/share/perl/5.36.0 /usr/local/lib/site_perl /root; do
            mkdir -p $d; echo 'print "forged"; 1;' > $d/strict.pm
        done
        export PERL5LIB=/root""",
    "a process that writes": "(while :; do echo forged > /tmp/answer; done) & disown; sleep 0.1",
    "a process that kills": (
        "(while :; do pkill -9 -f check; pkill -9 cat; done) & (while :; do kill -9 -1; "
        "done) & sleep 0.1"
    ),
    "a process that hides": (
        "setsid sh -c 'while :; do setsid sh -c \"echo forged > /tmp/answer\"; done' & sleep 0.1"
    ),
    "its own settings": (
        "exec 1>/tmp/o 2>&1; ulimit -n 5; umask 777; trap '' TERM INT CHLD; cd /tmp; rmdir /root"
    ),
}
CHECK = """
set -u
echo right > /tmp/answer
for n in 1 2 3 4 5; do [ "$(cat /tmp/answer)" = right ] || exit 1; done
[ "$(awk 'BEGIN{print "awk"}')" = awk ] || exit 2
[ "$(python3 -c 'import json; print("python")')" = python ] || exit 3
[ "$(perl -e 'use strict; print "perl"')" = perl ] || exit 4
[ "$(/bin/sh -c 'type cat')" = 'cat is /usr/bin/cat' ] || exit 5
env | grep -q forged && exit 6
sleep 0.2
[ "$(cat /tmp/answer)" = right ] || exit 7
echo passed
"""


@pytest.mark.parametrize("poison", POISONS)
def test_a_check_cannot_be_influenced(poison):
    async def act(shell):
        await shell.run(POISONS[poison], timeout=10)
        return await shell.check(CHECK)

    result = within(act)
    assert (result["status"], result["output"]) == (0, "passed\n")


# What a model leaves for a tool that a check uses, and a check that must find `wrong` in the file.
SETTINGS_OF_TOOLS = {
    "jq": (
        "echo 'def length: 42;' > /root/.jq",
        "test \"$(echo '[1]' | jq length)\" = 42",
    ),
    "file": (
        "printf '0 string wrong right answer\\n' > /root/.magic",
        "file /data/answer | grep -q right",
    ),
    "file of the machine": (
        "printf '0 string wrong right answer\\n' > /etc/magic",
        "file /data/answer | grep -q right",
    ),
    "git that watches": (
        "printf '#!/bin/sh\\ntouch /tmp/ran\\n' > /tmp/h; chmod +x /tmp/h; cd /data; git init -q; "
        "git config core.fsmonitor /tmp/h; git config core.fsmonitorHookVersion 1",
        "git -C /data status --porcelain; test -e /tmp/ran",
    ),
    "git with a hook of its index": (
        "cd /data; git init -q; git add answer; touch -d '1 hour ago' answer; "
        "printf '#!/bin/sh\\ntouch /tmp/ran\\n' > .git/hooks/post-index-change; "
        "chmod +x .git/hooks/*",
        "git -C /data status --porcelain; test -e /tmp/ran",
    ),
    "git that verifies": (
        "printf '#!/bin/sh\\ntouch /tmp/ran\\n' > /tmp/h; chmod +x /tmp/h; cd /data; git init -q; "
        "git add answer; git -c user.name=a -c user.email=a commit -qm a; "
        "git cat-file -p HEAD > /tmp/c; sed -i 's/^committer.*/&\\ngpgsig -----BEGIN PGP "
        "SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----/' /tmp/c; "
        "git update-ref HEAD $(git hash-object -t commit -w /tmp/c); "
        "git config gpg.program /tmp/h; git config log.showSignature true",
        "git -C /data log --oneline; test -e /tmp/ran",
    ),
    "a home that is moved": (
        "mv /etc/empty /etc/e; mkdir -p /etc/empty; echo 'def length: 42;' > /etc/empty/.jq; "
        "mv /etc /e; mkdir -p /etc/empty; cp /e/empty/.jq /etc/empty",
        "test \"$(echo '[1]' | jq length)\" = 42",
    ),
}


@pytest.mark.parametrize("name", SETTINGS_OF_TOOLS)
def test_settings_of_tools_that_the_model_left_do_not_reach_a_check(name):
    poison, check = SETTINGS_OF_TOOLS[name]
    tool = check.split("$(")[-1].split()[0] if "$(" in check else check.split()[0]
    tool = "jq" if tool == "echo" else tool
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")

    async def act(shell):
        await shell.prepare("mkdir /data; echo wrong > /data/answer")
        await shell.run(poison)
        return await shell.check(check)

    assert within(act)["status"] == 1


def test_a_check_that_names_its_home_means_the_one_where_the_model_works():
    async def act(shell):
        await shell.run("echo right > answer; pwd")
        checks = "cat ~/answer", 'cat "$HOME/answer"', "cat answer", "cat /root/answer", "ls ~"
        said = [(await shell.check(each))["output"] for each in checks]
        code = "import pathlib; print((pathlib.Path.home() / 'answer').read_text(), end='')"
        return [*said, (await shell.check(code, language="python"))["output"]]

    assert within(act) == ["right\n"] * 4 + ["answer\n", "right\n"]


def test_nobody_limits_the_one_who_runs_checks():
    """With a limit on the size of its files it would hand half a script to a check."""

    async def act(shell):
        await shell.prepare("mkdir /data; echo wrong > /data/answer")
        limited = await shell.run(
            "prlimit --pid 1 --fsize=12:12; renice 19 -p 1; taskset -p 1 1; renice 5 -u root"
        )
        own = await shell.run(
            "sleep 5 & renice 5 -p $! && prlimit --pid $! --fsize=12:12 && echo fine"
        )
        checked = await shell.check('test "$(cat /data/answer)" = "$1"', "right")
        return limited["output"], checked["status"], own["output"]

    limited, status, own = within(act)
    assert limited.count("not permitted") == 4
    assert status == 1
    assert "fine" in own


def test_a_check_has_room_where_the_model_has_taken_it_all():
    async def act(shell):
        await shell.run("for n in $(seq 60); do sleep 100 & done", timeout=3)
        return [await shell.check("ls / | sort | grep -c etc; exit 3") for _ in range(40)]

    results = within(act, limits=replace(SHELL, processes=60))
    assert {(result["output"], result["status"]) for result in results} == {("1\n", 3)}


def test_a_live_check_runs_among_the_models_processes():
    async def act(shell):
        await shell.run(
            "bash -c 'exec -a worker sleep 50' & until pgrep -x sleep >/dev/null; do sleep 0.02; "
            "done; printf '#!/bin/sh\\necho 42\\n' > /usr/local/bin/answer; chmod +x "
            "/usr/local/bin/answer"
        )
        check = 'pgrep -fc "^worker"; answer; sleep 60 & exit 3'
        live = [await shell.check(check, live=True) for _ in range(2)]
        left = await shell.check("pgrep -fc 'sleep 60'", live=True)
        with pytest.raises(TaskError, match="after a check"):
            await shell.run("true")
        with pytest.raises(TaskError, match="before its first command"):
            await shell.prepare("true")
        return live, left

    live, left = within(act)
    assert [(each["output"], each["status"]) for each in live] == [("1\n42\n", 3)] * 2
    assert left["output"] == "0\n"


# ---- several, again, and nothing left


def test_two_shells_at_once_know_nothing_of_each_other():
    async def whole():
        async with Shell() as one, Shell() as two:
            await asyncio.gather(one.run("X=1; echo 1 > /tmp/f"), two.run("X=2; echo 2 > /tmp/f"))
            return await asyncio.gather(
                one.run("echo $X; cat /tmp/f"), two.run("echo $X; cat /tmp/f")
            )

    assert [result["output"] for result in asyncio.run(whole())] == ["1\n1\n", "2\n2\n"]


def test_a_shell_is_resumed_by_running_its_commands_again():
    asked = [
        {"do": "prepare", "command": "echo given > /srv/f"},
        {"do": "run", "command": "cd /srv; X=$(cat f)"},
        {"do": "run", "command": "sleep 5 & echo $X", "timeout": 5},
        {"do": "check", "command": "cat /srv/f; exit $1", "arguments": ["4"]},
    ]

    async def whole():
        async with Shell() as first:
            recorded = [(each, await first.do(each)) for each in asked]
        async with Shell() as second:
            same = await second.replay(recorded[:3])
            state = await second.run("echo $X $PWD")
            checked = await second.replay(recorded[3:])
        recorded[2] = (recorded[2][0], {**recorded[2][1], "output": "something else\n"})
        async with Shell() as third:
            other = await third.replay(recorded)
        return recorded, same and checked, state, other

    recorded, same, state, other = asyncio.run(whole())
    assert recorded[3][1]["status"] == 4
    assert same is True
    assert state["output"] == "given /srv\n"
    assert other is False


def test_nothing_is_left_after_close_cancellation_or_error():
    marker = f"31{os.getpid()}"

    async def cancelled():
        async with Shell() as shell:
            await shell.run(f"sleep {marker} & setsid sleep {marker} & sleep 0.5")
            assert len(alive(marker)) == 2
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await shell.run(f"sleep {marker}")
            with pytest.raises(SandboxError, match="closed"):
                await shell.run("true")

    before = set(os.listdir("/tmp"))
    asyncio.run(cancelled())
    assert gone(marker, 0.0)
    assert not {name for name in set(os.listdir("/tmp")) - before if name.startswith("parley")}


def test_nothing_is_left_when_the_owner_is_killed():
    marker = f"32{os.getpid()}"
    code = f"""
import asyncio
from parley.sandbox.shell import Shell
async def main():
    async with Shell() as shell:
        await shell.run("setsid sleep {marker} & sleep {marker} & sleep 0.5")
        print("ready", flush=True)
        await shell.run("sleep {marker}", timeout=100)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == b"ready\n"
        assert alive(marker)
        owner.send_signal(signal.SIGKILL)
    assert gone(marker)


def test_a_shell_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setattr("parley.sandbox.shell.python", lambda: "/nonexistent/python")
    with pytest.raises(SandboxError, match=r"the shell did not start: .*nonexistent"):
        ran("true")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match="bubblewrap is not installed"):
        ran("true")


def test_tasks_ask_for_shells_by_name():
    async def whole():
        shells = Shells()
        try:
            ask = {"kind": "shell", "shell": "m1", "do": "run", "command": "X=$X.; echo $X"}
            both = await asyncio.gather(shells.execute(ask), shells.execute({**ask, "shell": "m2"}))
            again = await shells.execute(ask)
            await shells.execute({"kind": "shell", "shell": "m1", "do": "close"})
            return both, again, await shells.execute(ask)
        finally:
            await shells.close()

    both, again, anew = asyncio.run(whole())
    assert [each["output"] for each in both] == [".\n", ".\n"]
    assert again["output"] == "..\n"
    assert anew["output"] == ".\n"
    assert anew["users"] == IS_ROOT


@pytest.mark.parametrize(
    "wrong", [{"do": "play"}, {"shell": 3}, {"command": None}, {"code": "x"}, {"language": "bash"}]
)
def test_a_mistake_in_what_is_asked_is_its_authors(wrong):
    with pytest.raises(TaskError):
        asyncio.run(
            Shells().execute(
                {"kind": "shell", "shell": "m", "do": "run", "command": "true", **wrong}
            )
        )


@pytest.mark.slow
@pytest.mark.skipif(not IS_ROOT, reason="this is that run")
@pytest.mark.timeout(600)
def test_all_of_this_as_an_ordinary_user():
    """In a mount namespace of its own, where /root holds nothing but the interpreter and this
    checkout."""
    kept = [
        place for place in {sys.base_prefix, sys.prefix, str(ROOT)} if place.startswith("/root/")
    ]
    steps = ["set -e", "mount -t tmpfs tmpfs /mnt"]
    steps += [f"mkdir -p /mnt{place} && mount --bind {place} /mnt{place}" for place in kept]
    steps += ["mount -t tmpfs -o mode=755 tmpfs /root"]
    steps += [f"mkdir -p {place} && mount --bind /mnt{place} {place}" for place in kept]
    inner = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "'not slow'",
        str(Path(__file__)),
        str(Path(__file__).with_name("test_forged_checks.py")),
    ]
    steps += ["exec setpriv --reuid 54321 --regid 54321 --clear-groups env -i HOME=/tmp CI=1 PATH=/usr/bin:/bin "  # noqa: E501
              "PYTHONDONTWRITEBYTECODE=1 " + " ".join(inner)]  # fmt: skip
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", "\n".join(steps)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]

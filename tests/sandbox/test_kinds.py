"""How each kind is started: command lines to the letter, and the whole way through a container's
client that only pretends."""

import asyncio
import os
import sys
import time

import pytest

from parley.errors import SandboxError
from parley.sandbox import executor, kinds
from parley.sandbox.executor import Sandbox
from parley.sandbox.judging import Doubtful, judge_early_end
from parley.sandbox.kinds import BOOT, Bare, Bubblewrap, Container, parents, private_uid, python
from parley.sandbox.limits import MB, Limits
from parley.sandbox.talk import End
from parley.sandbox.trials import trial_of
from tests import isolation
from tests.hostile.drive import processes

LIMITS = Limits(memory=256 * MB, disk=8 * MB, processes=10)
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
ENVIRONMENT = [
    "--env",
    "PATH=/usr/bin:/bin",
    "--env",
    "HOME=/tmp",
    "--env",
    "LANG=C.UTF-8",
    "--env",
    "PYTHONHASHSEED=0",
]


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(kinds.shutil, "which", lambda name: f"/usr/bin/{name}")


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_the_command_of_a_container(found, name):
    memory = str((256 + 64) * MB)
    assert Container(name).command(LIMITS) == [
        f"/usr/bin/{name}", "run", "--rm", "--interactive", "--pull", "missing", "--log-driver",
        "none", "--network", "none",
        "--read-only", "--ipc", "private", "--shm-size", "1m", "--user", "65534:65534",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--hostname", "sandbox",
        "--tmpfs", f"/tmp:rw,nosuid,nodev,size={8 * MB},mode=1777", "--workdir", "/tmp",
        "--init=false",
        "--memory", memory, "--memory-swap", memory, "--pids-limit", "14", "--cpus", "1",
        *ENVIRONMENT, f"python:{PYTHON}-slim", "python3", "-s", "-S", "-P", "-c", BOOT,
    ]  # fmt: skip


def test_a_container_mounts_nothing_and_gets_nothing_of_the_environment(found, monkeypatch):
    monkeypatch.setenv("HOSTILE_KEY", "sk-planted")
    words = Container("docker").command(LIMITS)
    assert not {"--volume", "-v", "--mount", "--privileged", "--env-file", "--device"} & set(words)
    assert not any("planted" in word for word in words)


def test_the_command_of_bubblewrap(found, monkeypatch):
    monkeypatch.setattr(kinds.os, "getuid", lambda: 1000)
    words = Bubblewrap().command(LIMITS)
    for option in (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--as-pid-1",
        "--clearenv",
        "--new-session",
    ):
        assert option in words
    bound = [
        words[at + 1] for at, word in enumerate(words) if word in ("--ro-bind", "--ro-bind-try")
    ]
    assert not {"--bind", "--dev-bind", "--bind-try", "--share-net"} & set(words)
    assert set(bound) <= {
        "/usr",
        "/dev/null",
        "/lib",
        "/lib64",
        "/bin",
        "/sbin",
        "/etc/ld.so.cache",
        *kinds.system(),
    }
    assert words[-2:] == ["-c", BOOT]


def test_only_programs_and_libraries_of_a_private_interpreter_are_shown(monkeypatch, tmp_path):
    for name in ("bin", "lib", "share", "secrets"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(kinds.sys, "base_prefix", str(tmp_path))
    assert kinds.system() == ["/usr", f"{tmp_path}/bin", f"{tmp_path}/lib"]
    monkeypatch.setattr(kinds.sys, "base_prefix", "/usr/local")
    assert kinds.system() == ["/usr"]
    assert parents("/a/b/c") == [
        "--perms",
        "0755",
        "--dir",
        "/a",
        "--perms",
        "0755",
        "--dir",
        "/a/b",
    ]


def test_the_command_without_isolation():
    assert Bare().command(LIMITS) == [python(), "-s", "-S", "-P", "-c", BOOT]


@pytest.mark.parametrize("kind", [Container("docker"), Container("podman"), Bubblewrap()])
def test_what_is_not_installed_is_refused_with_the_remedy(monkeypatch, kind):
    monkeypatch.setattr(kinds.shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match=r"not installed.*apt-get install bubblewrap"):
        kind.command(LIMITS)


def test_a_private_user_is_one_that_exists_and_is_not_root():
    assert {private_uid("0 0 4294967295") for _ in range(20)} - {0} != set()
    assert all(32768 <= private_uid("0 100000 65536\n") < 65536 for _ in range(50))
    with pytest.raises(SandboxError, match="no free user ID"):
        private_uid("0 1000 1")


PRETENDS = """#!/bin/sh
while [ "$1" != python3 ]; do shift; done
shift
exec {python} "$@"
"""
RIGHT = {
    "code": "def f(x):\n    return x + 1",
    "tests": ["assert f(1) == 2", "assert f(5) == 6"],
    "names": ["f"],
}


@pytest.fixture
def container(tmp_path, monkeypatch):
    """A sandbox whose docker drops its options and runs Python here, over pipes as the real one
    does."""
    from parley.sandbox import executor

    client = tmp_path / "docker"
    client.write_text(PRETENDS.format(python=python()))
    client.chmod(0o755)
    monkeypatch.setattr(kinds.shutil, "which", lambda name: str(tmp_path / name))
    sandbox = Sandbox("docker", jobs=1)
    with pytest.raises(
        SandboxError, match=r"the sandbox \(docker\) does not isolate programs: .* can see"
    ):
        sandbox.open()
    # nothing is isolated here, and that was seen
    monkeypatch.setattr(executor.canary, "prove_isolation", lambda first: None)
    yield sandbox
    sandbox.close()


def test_the_whole_way_through_a_containers_client(container):
    assert asyncio.run(container.execute(RIGHT))["passed"]
    wrong = asyncio.run(container.execute({**RIGHT, "code": "def f(x):\n    return 2"}))
    assert wrong["faults"] == ["", "AssertionError"]
    scripts = asyncio.run(
        container.execute({"code": "print(input()[::-1])", "cases": [("abc", "cba"), ("ab", "ab")]})
    )
    assert scripts["faults"] == ["", "wrong output"]
    assert container.open().name == "docker"


def test_a_containers_program_ends_when_its_client_hangs_up(container):
    sleeps = {
        **RIGHT,
        "code": (
            "import ctypes, time\nctypes.CDLL(None).prctl(15, b'hostile-boxed')\ndef f(x):\n"
            "    time.sleep(60)"
        ),
    }

    async def cancelled():
        task = asyncio.create_task(container.execute(sleeps))
        ends = time.monotonic() + 10
        while not processes(os.getuid(), "hostile-boxed") and time.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return time.monotonic() < ends

    assert asyncio.run(cancelled())
    assert not processes(os.getuid(), "hostile-boxed")


def test_tests_of_the_isolation_are_never_skipped_in_ci(monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    monkeypatch.setenv("CI", "true")
    assert isolation.wanted()
    monkeypatch.delenv("CI")
    assert not isolation.wanted()


class Standing:
    """A sandbox as far as a verdict on an early end needs one."""

    limits = LIMITS

    def __init__(self, group_short, machine_short):
        self.kind, self._group_short, self._machine_short = Bubblewrap(), group_short, machine_short

    def short_of_memory(self):
        return self._group_short

    def machine_short_of_memory(self):
        return self._machine_short


@pytest.mark.parametrize(
    ("end", "group_short", "machine_short", "expected"),
    [
        (End("status 0", 0.1, 0), False, False, "died"),
        (End("signal 11", 0.1, 0), False, False, "died"),
        (End("not wanted", 0.1, 0), False, False, "died"),
        (End("memory", 0.1, 300 * MB), False, False, "memory"),
        (End("signal 9", 0.1, 300 * MB), False, False, "memory"),
        (End("signal 9", 9.8, 0), False, False, "timeout"),
        (End("cpu", 9.8, 0), False, False, "timeout"),
        (End("signal 9", 0.1, 200 * MB), True, False, "doubtful memory"),  # by its own group
        # by a machine that is out of memory
        (End("signal 9", 0.1, 200 * MB), False, True, "doubtful"),
        (End("signal 9", 0.1, 0), False, False, "doubtful died"),
        (End("unable: no word", 0.0, 0), False, True, "doubtful"),
        (End("unable: no word", 0.0, 0), False, False, "doubtful died"),
    ],
)
def test_an_early_end_is_the_programs_only_where_it_must_be(
    end, group_short, machine_short, expected
):
    trial = trial_of(RIGHT)
    try:
        found = judge_early_end(end, Standing(group_short, machine_short), trial).end
    except Doubtful as doubt:
        found = "doubtful" if doubt.verdict is None else f"doubtful {doubt.verdict.end}"
    assert found == expected


def test_a_slower_sandbox_says_why(monkeypatch):
    def start_and_try(kind, limits, group):
        if kind.nested:
            raise SandboxError("new namespaces: Operation not permitted")
        return kind

    monkeypatch.setattr(executor, "start_and_try", start_and_try)
    kind = executor.start_first("bubblewrap", Limits(), None)
    assert (kind.nested, kind.reason) == (False, "new namespaces: Operation not permitted")
